/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Sessions: see session.h. wolfSSL never sees a socket: its receive callback
 * copies from the lent input, its send callback appends to the output chain.
 * Must not know who drives it.
 */
#include "tls/session.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/chain.h"
#include "base/check.h"
#include "base/err.h"
#include "base/mem.h"
#include "tls/ctx.h"
#include "tls/key_priv.h"
#include "tls/crl_priv.h"
#include "tls/verify.h"

/* RFC 8446 6. */
#define ALERT_FATAL 2
#define ALERT_UNSUPPORTED_CERTIFICATE 43
#define ALERT_CERTIFICATE_REVOKED 44
#define ALERT_CERTIFICATE_UNKNOWN 46
#define ALERT_DECRYPT_ERROR 51

#define ALPN_H2 "h2"

/*
 * The library's own way to send an alert. It has no public call for it, and by
 * itself it answers most refusals of a certificate with bad_certificate where
 * the mesh's peers expect to be told more, certificate_unknown above all.
 */
int SendAlert(WOLFSSL *ssl, int severity, int type);

struct tls_session {
	WOLFSSL *ssl;                  /* owned */
	struct tls_identity *identity; /* one reference; NULL on a control plane session */
	struct tls_trust *trust;       /* one reference; NULL on others */
	struct verify_rule rule;       /* what the peer must be */
	char *accept;                  /* memory of rule.accept; freed after the handshake */
	const uint8_t *in;             /* lent input not taken yet */
	size_t in_len;                 /* bytes */
	struct chunk_pool *pool;       /* borrowed */
	struct chain *out;             /* borrowed */
	struct err *err;               /* where callbacks put a refusal; set during tls_handshake only */
	struct crl_member member;      /* for revocation */
	char *peer;                    /* owned; NULL before the verdict */
	int refused;                   /* code of our own refusal in a callback, 0 = none */
	int failed;                    /* code of the error that ended the session, 0 = none */
	int lib_error;                 /* the library's code for it, for later calls' text */
	bool is_established;           /* handshake complete */
	bool is_h2;                    /* ALPN chose h2 */
	bool is_muted;                 /* our last alert is out: what the library adds is dropped */
	bool is_closed;                /* we sent close_notify */
	bool is_peer_closed;           /* the peer did */
};

int session_on_recv(WOLFSSL *ssl, char *buf, int cap, void *arg)
{
	struct tls_session *s = arg;
	if (s->in_len == 0)
		return WOLFSSL_CBIO_ERR_WANT_READ;
	size_t len = s->in_len < (size_t)cap ? s->in_len : (size_t)cap;
	memcpy(buf, s->in, len);
	s->in += len;
	s->in_len -= len;
	return (int)len;
}

int session_on_send(WOLFSSL *ssl, char *buf, int len, void *arg)
{
	struct tls_session *s = arg;
	if (s->is_muted)
		return len;
	if (chain_write(s->out, s->pool, buf, (size_t)len) != 0) {
		s->refused = -ENOMEM;
		return WOLFSSL_CBIO_ERR_GENERAL;
	}
	return len;
}

int session_on_sign(WOLFSSL *ssl, const unsigned char *hash, unsigned int hash_len, unsigned char *sig,
        word32 *sig_len, const unsigned char *key_der, unsigned int key_len, void *arg)
{
	size_t len = *sig_len;
	if (tls_key_sign(arg, hash, hash_len, sig, &len) != 0)
		return WC_HW_E;
	*sig_len = (word32)len;
	return 0;
}

/* Our own check of the peer's leaf, after the library's of the chain. */
static int session_verify(struct tls_session *s, WOLFSSL_X509_STORE_CTX *store)
{
	if (!store->certs || store->totalCerts < 1)
		return err_set(s->err, ERR_TLS_HANDSHAKE, "peer sent no certificates");
	mem_free(s->peer);
	s->peer = NULL;
	struct tls_revocation *revocation = s->identity ? tls_identity_policy(s->identity)->revocation : NULL;
	if (revocation) {
		s->member.roots = tls_identity_roots(s->identity);
		int r = crl_admit(revocation, &s->member, store->certs, (size_t)store->totalCerts, s->err);
		if (r < 0)
			return r;
	}
	return verify_leaf(&s->rule, store->certs[0].buffer, store->certs[0].length, &s->peer, s->err);
}

/* Sends our last alert; nothing may follow it. */
static void send_alert(struct tls_session *s, int alert)
{
	SendAlert(s->ssl, ALERT_FATAL, alert);
	s->is_muted = true;
}

/* The alert for a chain that the library refused, 0 where its own choice is the usual one. */
static int chain_alert(int lib_error)
{
	switch (lib_error) {
	case EXTKEYUSE_AUTH_E:
	case KEYUSE_SIGNATURE_E:
		return ALERT_UNSUPPORTED_CERTIFICATE;
	case CRL_CERT_REVOKED:
		return ALERT_CERTIFICATE_REVOKED;
	case ASN_SIG_CONFIRM_E:
		return ALERT_DECRYPT_ERROR;
	default:
		return 0;
	}
}

int session_on_verify(int is_fine, WOLFSSL_X509_STORE_CTX *store)
{
	struct tls_session *s = store->userCtx;
	if (!is_fine) {
		int alert = chain_alert(store->error);
		if (alert)
			send_alert(s, alert);
		return 0;
	}
	/* Intermediates come first; only the leaf says who the peer is. */
	if (store->error_depth != 0)
		return 1;
	s->refused = session_verify(s, store);
	if (s->refused == 0)
		return 1;
	send_alert(s, s->refused == ERR_TLS_REVOKED ? ALERT_CERTIFICATE_REVOKED : ALERT_CERTIFICATE_UNKNOWN);
	return 0;
}

/* Puts the accept list into one block: the pointers, then the texts. */
static int copy_accept(struct tls_session *s, const char *const *accept, size_t cnt)
{
	size_t size = cnt * sizeof(char *);
	for (size_t i = 0; i < cnt; i++)
		size += strlen(accept[i]) + 1;
	s->accept = mem_alloc(size ? size : 1);
	if (!s->accept)
		return -ENOMEM;
	const char **list = (const char **)(void *)s->accept;
	char *text = s->accept + cnt * sizeof(char *);
	for (size_t i = 0; i < cnt; i++) {
		size_t len = strlen(accept[i]) + 1;
		memcpy(text, accept[i], len);
		list[i] = text;
		text += len;
	}
	s->rule.accept = list;
	s->rule.accept_cnt = cnt;
	return 0;
}

static struct tls_session *session_alloc(struct chunk_pool *pool, struct chain *out)
{
	struct tls_session *s = mem_zalloc(1, sizeof(*s));
	if (s) {
		s->pool = pool;
		s->out = out;
	}
	return s;
}

static int set_alpn(struct tls_session *s, bool is_server)
{
	char list[] = ALPN_H2;
	/* A server refuses a client that offers something else only; a client takes what it gets. */
	return wolfSSL_UseALPN(s->ssl, list, sizeof(list) - 1,
	        is_server ? WOLFSSL_ALPN_FAILED_ON_MISMATCH : WOLFSSL_ALPN_CONTINUE_ON_MISMATCH);
}

/* Makes the library's session and ties it to ours. */
static int session_start(struct tls_session *s, WOLFSSL_CTX *ctx, bool is_server, struct err *err)
{
	s->ssl = wolfSSL_new(ctx);
	if (!s->ssl)
		return err_set(err, -ENOMEM, "out of memory for a TLS session");
	wolfSSL_SetIOReadCtx(s->ssl, s);
	wolfSSL_SetIOWriteCtx(s->ssl, s);
	wolfSSL_SetCertCbCtx(s->ssl, s);
	if (s->identity)
		wolfSSL_SetEccSignCtx(s->ssl, tls_identity_key(s->identity));
	int ret = set_alpn(s, is_server);
	if (ret == WOLFSSL_SUCCESS && !is_server) {
		const struct tls_policy *policy =
		        s->identity ? tls_identity_policy(s->identity) : tls_trust_policy(s->trust);
		ret = wolfSSL_UseKeyShare(s->ssl, (word16)ctx_key_share(policy));
	}
	return ret == WOLFSSL_SUCCESS ? 0 : tls_lib_error(ret, -1, ERR_TLS_SETUP, err);
}

static int workload_start(
        struct tls_session *s, struct tls_identity *identity, bool is_server, struct err *err)
{
	WOLFSSL_CTX *ctx;
	int ret = tls_identity_ctx(identity, is_server, &ctx, err);
	if (ret != 0)
		return ret;
	s->identity = tls_identity_ref(identity);
	return session_start(s, ctx, is_server, err);
}

/* Hands the session out, or frees it when making it failed. */
static int session_finish(struct tls_session *s, int ret, struct tls_session **ret_session)
{
	if (ret == 0)
		*ret_session = s;
	else
		tls_free(s);
	return ret;
}

int tls_client_new(struct tls_identity *identity, const char *const *accept, size_t accept_cnt,
        struct chunk_pool *pool, struct chain *out, struct tls_session **ret_session, struct err *err)
{
	if (accept_cnt > TLS_ACCEPT_MAX)
		return err_set(err, ERR_TOO_MANY, "more than %u acceptable identities", TLS_ACCEPT_MAX);
	struct tls_session *s = session_alloc(pool, out);
	if (!s || copy_accept(s, accept, accept_cnt) != 0) {
		tls_free(s);
		return err_set(err, -ENOMEM, "out of memory for a TLS session");
	}
	s->rule.kind = VERIFY_ACCEPT;
	return session_finish(s, workload_start(s, identity, false, err), ret_session);
}

int tls_server_new(struct tls_identity *identity, struct chunk_pool *pool, struct chain *out,
        struct tls_session **ret_session, struct err *err)
{
	struct tls_session *s = session_alloc(pool, out);
	if (!s)
		return err_set(err, -ENOMEM, "out of memory for a TLS session");
	s->rule.kind = VERIFY_TRUST_DOMAIN;
	s->rule.own_id = tls_identity_id(identity);
	return session_finish(s, workload_start(s, identity, true, err), ret_session);
}

static int control_start(struct tls_session *s, struct err *err)
{
	WOLFSSL_CTX *ctx;
	struct in6_addr ip;
	int ret = tls_trust_ctx(s->trust, &ctx, err);
	if (ret == 0)
		ret = session_start(s, ctx, false, err);
	if (ret != 0)
		return ret;
	/* No SNI for an address (RFC 6066 3). */
	const char *name = s->rule.names[0];
	if (inet_pton(AF_INET, name, &ip) == 1 || inet_pton(AF_INET6, name, &ip) == 1)
		return 0;
	ret = wolfSSL_UseSNI(s->ssl, WOLFSSL_SNI_HOST_NAME, name, (unsigned short)strlen(name));
	return ret == WOLFSSL_SUCCESS ? 0 : tls_lib_error(ret, -1, ERR_TLS_SETUP, err);
}

int tls_control_new(struct tls_trust *trust, struct chunk_pool *pool, struct chain *out,
        struct tls_session **ret_session, struct err *err)
{
	struct tls_session *s = session_alloc(pool, out);
	if (!s)
		return err_set(err, -ENOMEM, "out of memory for a TLS session");
	s->rule.kind = VERIFY_NAMES;
	s->trust = tls_trust_ref(trust);
	s->rule.names[0] = tls_trust_name(trust, 0);
	s->rule.names[1] = tls_trust_name(trust, 1);
	return session_finish(s, control_start(s, err), ret_session);
}

static void accept_drop(struct tls_session *s)
{
	mem_free(s->accept);
	s->accept = NULL;
	s->rule.accept = NULL;
	s->rule.accept_cnt = 0;
}

void tls_on_revoked(struct tls_session *s, void (*told)(void *ctx), void *ctx)
{
	s->member.told = told;
	s->member.ctx = ctx;
}

void tls_free(struct tls_session *s)
{
	if (!s)
		return;
	/* Freeing must not write. */
	s->is_muted = true;
	wolfSSL_free(s->ssl);
	crl_leave(&s->member);
	accept_drop(s);
	tls_identity_unref(s->identity);
	tls_trust_unref(s->trust);
	mem_free(s->peer);
	mem_free(s);
}

void tls_feed(struct tls_session *s, const void *bytes, size_t len)
{
	ASSERT(s->in_len == 0);
	s->in = bytes;
	s->in_len = len;
}

size_t tls_feed_left(const struct tls_session *s)
{
	return s->in_len;
}

void tls_feed_drop(struct tls_session *s)
{
	s->in = NULL;
	s->in_len = 0;
}

bool tls_is_readable(const struct tls_session *s)
{
	return s->in_len > 0 || (s->is_established && wolfSSL_pending(s->ssl) > 0);
}

/* The fatal alert that the peer sent, -1 if none. */
static int peer_alert(const struct tls_session *s)
{
	WOLFSSL_ALERT_HISTORY history;
	if (wolfSSL_get_alert_history(s->ssl, &history) != WOLFSSL_SUCCESS ||
	        history.last_rx.level != ALERT_FATAL)
		return -1;
	return history.last_rx.code;
}

/* Text and code of the failure that ended the session; repeated by every later call. */
static int failure(struct tls_session *s, struct err *err)
{
	if (s->failed == -ENOMEM)
		return err_set(err, -ENOMEM, "out of memory for TLS records");
	return tls_lib_error(s->lib_error, peer_alert(s), s->failed, err);
}

/* Ends the session with the library's error, or with ours if a callback refused. */
static int fail(struct tls_session *s, int lib_error, int code, struct err *err)
{
	s->lib_error = lib_error;
	s->failed = code;
	if (s->refused == -ENOMEM || lib_error == MEMORY_E)
		s->failed = -ENOMEM;
	else if (s->refused != 0)
		return s->failed = s->refused; /* its text is in err already */
	return failure(s, err);
}

/* What stays of the handshake, and what can go. */
static void established(struct tls_session *s)
{
	char *name;
	unsigned short len;
	s->is_established = true;
	s->is_h2 = wolfSSL_ALPN_GetProtocol(s->ssl, &name, &len) == WOLFSSL_SUCCESS &&
	           len == strlen(ALPN_H2) && memcmp(name, ALPN_H2, len) == 0;
	accept_drop(s);
}

int tls_handshake(struct tls_session *s, struct err *err)
{
	struct err local;
	if (s->is_established)
		return 0;
	if (s->failed)
		return failure(s, err);
	s->err = err ? err : &local;
	int ret = wolfSSL_negotiate(s->ssl);
	int lib_error = ret == WOLFSSL_SUCCESS ? 0 : wolfSSL_get_error(s->ssl, ret);
	if (ret == WOLFSSL_SUCCESS)
		established(s);
	else if (lib_error != WOLFSSL_ERROR_WANT_READ)
		ret = fail(s, lib_error, ERR_TLS_HANDSHAKE, s->err);
	else
		ret = -EAGAIN;
	s->err = NULL;
	return s->is_established ? 0 : ret;
}

bool tls_is_established(const struct tls_session *s)
{
	return s->is_established;
}

/* What a read that got nothing means. */
static ssize_t read_end(struct tls_session *s, int lib_error, struct err *err)
{
	if (lib_error == WOLFSSL_ERROR_WANT_READ)
		return -EAGAIN;
	if (lib_error == WOLFSSL_ERROR_ZERO_RETURN) {
		s->is_peer_closed = true;
		return 0;
	}
	return fail(s, lib_error, ERR_TLS_RECORD, err);
}

ssize_t tls_read(struct tls_session *s, void *buf, size_t cap, struct err *err)
{
	size_t done = 0;
	if (!s->is_established || cap == 0)
		return err_set(err, -EINVAL, "TLS session not established");
	if (s->is_peer_closed)
		return 0;
	if (s->failed)
		return failure(s, err);
	while (done < cap) {
		size_t room = cap - done < INT_MAX ? cap - done : INT_MAX;
		int ret = wolfSSL_read(s->ssl, (char *)buf + done, (int)room);
		if (ret > 0) {
			done += (size_t)ret;
			continue;
		}
		ssize_t end = read_end(s, wolfSSL_get_error(s->ssl, ret), done ? NULL : err);
		/* What was read comes first; close_notify and errors are kept for the next call. */
		return done ? (ssize_t)done : end;
	}
	return (ssize_t)done;
}

/* Why nothing can be written now, 0 if it can. */
static int write_check(struct tls_session *s, struct err *err)
{
	if (!s->is_established)
		return err_set(err, -EINVAL, "TLS session not established");
	if (s->failed)
		return failure(s, err);
	if (s->is_closed)
		return err_set(err, -EPIPE, "TLS session closed by us");
	return 0;
}

static int write_record(struct tls_session *s, const void *bytes, size_t len, struct err *err)
{
	int ret = wolfSSL_write(s->ssl, bytes, (int)len);
	if (ret == (int)len)
		return 0;
	return fail(s, wolfSSL_get_error(s->ssl, ret), ERR_TLS_RECORD, err);
}

int tls_write(struct tls_session *s, const void *bytes, size_t len, struct err *err)
{
	int ret = write_check(s, err);
	const uint8_t *at = bytes;
	while (ret == 0 && len > 0) {
		size_t take = len < TLS_RECORD_MAX ? len : TLS_RECORD_MAX;
		ret = write_record(s, at, take, err);
		at += take;
		len -= take;
	}
	return ret;
}

int tls_write_chain(struct tls_session *s, struct chain *in, size_t max, struct err *err)
{
	uint8_t gathered[TLS_RECORD_MAX];
	int ret = write_check(s, err);
	size_t left = max < in->len ? max : in->len;
	while (ret == 0 && left > 0) {
		size_t take = left < TLS_RECORD_MAX ? left : TLS_RECORD_MAX;
		const uint8_t *bytes = chunk_bytes(in->head);
		if (in->head->len < take) {
			chain_copy(in, 0, gathered, take);
			bytes = gathered;
		}
		ret = write_record(s, bytes, take, err);
		if (ret == 0) {
			chain_consume(in, take);
			left -= take;
		}
	}
	return ret;
}

int tls_close_notify(struct tls_session *s, struct err *err)
{
	if (!s->is_established || s->is_closed || s->failed)
		return 0;
	s->is_closed = true;
	/* "Not done" only says that the peer's has not come. */
	int ret = wolfSSL_shutdown(s->ssl);
	if (ret == WOLFSSL_SUCCESS || ret == WOLFSSL_SHUTDOWN_NOT_DONE)
		return 0;
	return fail(s, wolfSSL_get_error(s->ssl, ret), ERR_TLS_RECORD, err);
}

bool tls_peer_closed(const struct tls_session *s)
{
	return s->is_peer_closed;
}

const char *tls_peer_identity(const struct tls_session *s)
{
	return s->is_established ? s->peer : NULL;
}

static const char *or_empty(const char *name)
{
	return name ? name : "";
}

const char *tls_version_name(const struct tls_session *s)
{
	return s->is_established ? or_empty(wolfSSL_get_version(s->ssl)) : "";
}

const char *tls_cipher_name(const struct tls_session *s)
{
	return s->is_established ? or_empty(wolfSSL_get_cipher(s->ssl)) : "";
}

const char *tls_group_name(const struct tls_session *s)
{
	return s->is_established ? or_empty(wolfSSL_get_curve_name(s->ssl)) : "";
}

bool tls_alpn_is_h2(const struct tls_session *s)
{
	return s->is_h2;
}

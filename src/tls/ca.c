/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The embedded CA: see ca.h. The key file decides which root a directory
 * has; its certificate can be made again from it at any time. Must not know
 * who asks.
 */
#include "tls/ca.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "tls/ca_store.h"
#include "tls/cert.h"
#include "tls/cert_priv.h"
#include "tls/pem.h"
#include "tls/spiffe.h"
#include "tls/x509.h"

/* Life of the root, seconds: ten years of 365 days. */
#define CA_ROOT_LIFE (10ll * 365 * 24 * 3600)
/* How far back certificates start, seconds, for clocks that are behind; as the mesh's own CA. */
#define CA_BACKDATE 120
/* Longest subject of a root we load, bytes; leaves repeat it. */
#define CA_NAME_MAX 1024u

struct tls_ca {
	struct tls_key *key;        /* one reference */
	char *root_pem;             /* certificate as text, owned */
	uint8_t name[CA_NAME_MAX];  /* its subject, content of the SEQUENCE */
	size_t name_len;            /* bytes */
	uint8_t id[EXT_KEY_ID_LEN]; /* its key identifier */
	int64_t not_after;          /* its end of validity: no leaf outlives it */
};

/* O=cluster.local (RFC 4519 2.19) as the one SET of a Name. */
static void root_name(struct der *d)
{
	static const uint8_t oid_organization[] = {0x55, 0x04, 0x0a};
	der_init(d);
	der_elem(d, DER_UTF8, "cluster.local", strlen("cluster.local"));
	der_elem(d, DER_OID, oid_organization, sizeof(oid_organization));
	der_wrap(d, DER_SEQ, 0);
	der_wrap(d, DER_SET, 0);
}

/* A new root certificate for the key, as PEM. */
static int root_make(struct tls_key *key, struct buf *pem, struct err *err)
{
	struct der name;
	struct der cert;
	uint8_t id[EXT_KEY_ID_LEN];
	int64_t now = time(NULL);
	root_name(&name);
	struct x509_plan plan = {
	        .issuer = {der_bytes(&name), der_len(&name)},
	        .subject = {der_bytes(&name), der_len(&name)},
	        .not_before = now - CA_BACKDATE,
	        .not_after = now + CA_ROOT_LIFE,
	        .point = tls_key_point(key),
	        .issuer_id = id,
	        .is_ca = true,
	};
	int ret = x509_key_id(plan.point, id);
	if (ret == 0)
		ret = x509_make(&plan, key, &cert);
	if (ret == 0)
		ret = pem_encode("CERTIFICATE", der_bytes(&cert), der_len(&cert), 64, pem);
	return ret == 0 ? 0 : err_sys(err, ret, "cannot make a root certificate");
}

/* The name and key identifier that leaves repeat. */
static int root_fields(struct tls_ca *ca, const struct DecodedCert *dc)
{
	if (dc->subjectRawLen <= 0 || dc->subjectRawLen > (int)CA_NAME_MAX)
		return -EBADMSG;
	memcpy(ca->name, dc->subjectRaw, (size_t)dc->subjectRawLen);
	ca->name_len = (size_t)dc->subjectRawLen;
	/* A root of another maker may count its identifier in another way. */
	if (!dc->extSubjKeyIdSet)
		return x509_key_id(tls_key_point(ca->key), ca->id);
	if (dc->extSubjKeyIdSz != EXT_KEY_ID_LEN)
		return -EBADMSG;
	memcpy(ca->id, dc->extSubjKeyId, EXT_KEY_ID_LEN);
	return 0;
}

/* Takes over what leaves need of the root's certificate. */
static int root_adopt(struct tls_ca *ca, const struct tls_cert *root, struct err *err)
{
	struct DecodedCert dc;
	if (cert_decode(&dc, root->der, root->der_len, CERT_TYPE, NO_VERIFY) != 0)
		return err_set(err, -EBADMSG, "%s: not a certificate", TLS_CA_CERT_FILE);
	int ret = 0;
	if (!root->is_ca || root->not_after <= time(NULL))
		ret = err_set(err, -EBADMSG, "%s: not a CA certificate, or expired", TLS_CA_CERT_FILE);
	else if (!cert_has_key(root->der, root->der_len, ca->key))
		ret = err_set(
		        err, -EBADMSG, "%s is not the certificate of %s", TLS_CA_CERT_FILE, TLS_CA_KEY_FILE);
	else if (root_fields(ca, &dc) != 0)
		ret = err_set(err, -EBADMSG, "%s: subject or key identifier of a kind we cannot repeat",
		        TLS_CA_CERT_FILE);
	ca->not_after = root->not_after;
	wc_FreeDecodedCert(&dc);
	return ret;
}

/* Adopts the root's certificate from PEM text. */
static int root_take(struct tls_ca *ca, const struct buf *pem, struct err *err)
{
	struct tls_certs certs = {0};
	struct buf text;
	int ret = tls_certs_add_pem(&certs, (const char *)pem->data, pem->len, TLS_PEM_FIRST, NULL, err);
	if (ret != 0)
		return ret == -ENOMEM ? ret
		                      : err_set(err, -EBADMSG, "%s: not a certificate", TLS_CA_CERT_FILE);
	buf_init(&text, CA_STORE_MAX);
	ret = root_adopt(ca, &certs.all[0], err);
	if (ret == 0) {
		/* Written anew: peers get the certificate and nothing else that stands in the file. */
		tls_cert_pem(&certs.all[0], 64, &text);
		const char *root = buf_cstr(&text);
		ca->root_pem = root ? mem_strdup(root) : NULL;
		if (!ca->root_pem)
			ret = err_set(err, -ENOMEM, "out of memory");
	}
	buf_done(&text);
	tls_certs_done(&certs);
	return ret;
}

/* Reads a file, or makes it with `content` if there is none; whoever was first, `out` ends up with the file's
 * content. */
static int read_or_create(
        int dir_fd, const char *name, const struct buf *content, struct buf *out, struct err *err)
{
	int ret = ca_store_create(dir_fd, name, content, err);
	if (ret != 0 && ret != -EEXIST)
		return ret;
	ret = ca_store_read(dir_fd, name, out, err);
	return ret == -ENOENT ? err_sys(err, ret, "%s", name) : ret;
}

/* Leaves a key's text neither in the buffer nor on the heap. */
static void buf_wipe(struct buf *buf)
{
	if (buf->data)
		mem_wipe(buf->data, buf->cap);
	buf_done(buf);
}

/* The key file's content, made first if need be. */
static int load_key_text(int dir_fd, struct buf *text, struct err *err)
{
	int ret = ca_store_read(dir_fd, TLS_CA_KEY_FILE, text, err);
	if (ret != -ENOENT)
		return ret;
	struct tls_key *key;
	struct buf fresh;
	ret = tls_key_new(&key, err);
	if (ret != 0)
		return ret;
	buf_init(&fresh, CA_STORE_MAX);
	ret = buf_reserve(&fresh, 1024); /* in one piece, so that growing leaves no copy */
	if (ret == 0)
		ret = tls_key_pem(key, &fresh);
	if (ret != 0)
		err_sys(err, ret, "cannot encode the CA key");
	else
		ret = read_or_create(dir_fd, TLS_CA_KEY_FILE, &fresh, text, err);
	buf_wipe(&fresh);
	tls_key_unref(key);
	return ret;
}

static int load_key(struct tls_ca *ca, int dir_fd, struct err *err)
{
	struct buf text;
	buf_init(&text, CA_STORE_MAX);
	int ret = buf_reserve(&text, CA_STORE_MAX);
	if (ret != 0)
		return err_set(err, ret, "out of memory");
	ret = load_key_text(dir_fd, &text, err);
	if (ret == 0) {
		ret = tls_key_from_pem((const char *)text.data, text.len, &ca->key, err);
		if (ret != 0)
			err_wrap(err, "%s", TLS_CA_KEY_FILE);
	}
	buf_wipe(&text);
	return ret;
}

static int load_root(struct tls_ca *ca, int dir_fd, struct err *err)
{
	struct buf text;
	struct buf fresh;
	buf_init(&text, CA_STORE_MAX);
	buf_init(&fresh, CA_STORE_MAX);
	int ret = ca_store_read(dir_fd, TLS_CA_CERT_FILE, &text, err);
	if (ret == -ENOENT) {
		ret = root_make(ca->key, &fresh, err);
		if (ret == 0)
			ret = read_or_create(dir_fd, TLS_CA_CERT_FILE, &fresh, &text, err);
	}
	if (ret == 0)
		ret = root_take(ca, &text, err);
	buf_done(&text);
	buf_done(&fresh);
	return ret;
}

static int make_root(struct tls_ca *ca, struct err *err)
{
	struct buf pem;
	buf_init(&pem, CA_STORE_MAX);
	int ret = tls_key_new(&ca->key, err);
	if (ret == 0)
		ret = root_make(ca->key, &pem, err);
	if (ret == 0)
		ret = root_take(ca, &pem, err);
	buf_done(&pem);
	return ret;
}

/* dir_fd -1: keep nothing. */
static int ca_open(int dir_fd, struct tls_ca **ret_ca, struct err *err)
{
	struct tls_ca *ca = mem_zalloc(1, sizeof(*ca));
	if (!ca)
		return err_set(err, -ENOMEM, "out of memory");
	int ret = dir_fd < 0 ? make_root(ca, err) : load_key(ca, dir_fd, err);
	if (ret == 0 && dir_fd >= 0)
		ret = load_root(ca, dir_fd, err);
	if (ret != 0) {
		tls_ca_free(ca);
		return ret;
	}
	*ret_ca = ca;
	return 0;
}

int tls_ca_open(int dir_fd, struct tls_ca **ret_ca, struct err *err)
{
	if (dir_fd < 0)
		return err_set(err, -EBADF, "no directory for the CA");
	return ca_open(dir_fd, ret_ca, err);
}

int tls_ca_new(struct tls_ca **ret_ca, struct err *err)
{
	return ca_open(-1, ret_ca, err);
}

void tls_ca_free(struct tls_ca *ca)
{
	if (!ca)
		return;
	tls_key_unref(ca->key);
	mem_free(ca->root_pem);
	mem_free(ca);
}

const char *tls_ca_root_pem(const struct tls_ca *ca)
{
	return ca->root_pem;
}

/* Whether the request's names are the one URI and nothing beside it. */
static bool csr_names(const struct DecodedCert *dc, const char *identity)
{
	const struct DNS_entry *san = dc->altNames;
	if (!san || san->next || dc->altEmailNames || dc->altDirNames)
		return false;
	return san->type == ASN_URI_TYPE && (size_t)san->len == strlen(identity) &&
	       memcmp(san->name, identity, (size_t)san->len) == 0;
}

/* Checks a request in DER and copies its public key. */
static int csr_check(const uint8_t *der, size_t len, const char *identity, uint8_t ret_point[KEY_POINT_LEN],
        struct err *err)
{
	struct DecodedCert dc;
	int lib = cert_decode(&dc, der, len, CERTREQ_TYPE, VERIFY);
	if (lib != 0)
		return tls_lib_error(lib, -1, -EBADMSG, err);
	const uint8_t *point = cert_point(&dc);
	int ret = 0;
	if (!point)
		ret = err_set(err, -EBADMSG, "the request's key is not P-256");
	else if (!csr_names(&dc, identity))
		ret = err_set(err, -EACCES, "the request is not for exactly %s", identity);
	else
		memcpy(ret_point, point, KEY_POINT_LEN);
	wc_FreeDecodedCert(&dc);
	return ret;
}

/* The request's PEM to a checked public key. */
static int csr_open(
        const char *csr, size_t len, const char *identity, uint8_t ret_point[KEY_POINT_LEN], struct err *err)
{
	struct pem_block block;
	struct buf der;
	const char *at = csr;
	if (len > TLS_CA_CSR_MAX)
		return err_set(err, -EBADMSG, "certificate request is too large");
	if (pem_next(&at, csr + len, &block) != 1 || strcmp(block.label, "CERTIFICATE REQUEST") != 0)
		return err_set(err, -EBADMSG, "not a certificate request in PEM");
	buf_init(&der, TLS_CA_CSR_MAX);
	int ret = pem_decode(&block, &der);
	if (ret == 0)
		ret = csr_check(der.data, der.len, identity, ret_point, err);
	else
		ret = err_set(err, ret == -ENOMEM ? ret : -EBADMSG, "certificate request is not base64");
	buf_done(&der);
	return ret;
}

int tls_ca_sign(struct tls_ca *ca, const char *csr, size_t csr_len, const char *identity, uint32_t ttl,
        struct buf *ret_leaf, struct err *err)
{
	uint8_t point[KEY_POINT_LEN];
	struct spiffe id;
	struct der leaf;
	if (spiffe_parse(identity, strlen(identity), &id) != 0)
		return err_set(err, -EINVAL, "invalid spiffe identity: %s", identity);
	int ret = csr_open(csr, csr_len, identity, point, err);
	if (ret != 0)
		return ret;
	int64_t now = time(NULL);
	int64_t end = now + (ttl == 0 ? TLS_CA_TTL_DEFAULT : ttl < TLS_CA_TTL_MAX ? ttl : TLS_CA_TTL_MAX);
	struct x509_plan plan = {
	        .issuer = {ca->name, ca->name_len},
	        .not_before = now - CA_BACKDATE,
	        .not_after = end < ca->not_after ? end : ca->not_after,
	        .point = point,
	        .issuer_id = ca->id,
	        .uris = &identity,
	        .uri_cnt = 1,
	};
	ret = x509_make(&plan, ca->key, &leaf);
	if (ret == 0)
		ret = pem_encode("CERTIFICATE", der_bytes(&leaf), der_len(&leaf), 64, ret_leaf);
	return ret == 0 ? 0 : err_sys(err, ret, "cannot sign the certificate");
}

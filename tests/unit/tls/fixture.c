/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * TLS test fixture: see fixture.h.
 */
#include "fixture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/check.h"
#include "tls/pem.h"

static const struct tls_policy plain_policy;

static char *der_pem(const struct der *d)
{
	struct buf text;
	buf_init(&text, 65536);
	ASSERT(pem_encode("CERTIFICATE", der_bytes(d), der_len(d), 64, &text) == 0);
	char *copy = strdup(buf_cstr(&text));
	buf_done(&text);
	return copy;
}

static void authority_make(struct authority *a, const char *name, const struct authority *parent)
{
	static const uint8_t oid_organization[] = {0x55, 0x04, 0x0a};
	struct der cert;
	struct err err;
	ASSERT(tls_key_new(&a->key, &err) == 0);
	ASSERT(x509_key_id(tls_key_point(a->key), a->id) == 0);
	der_init(&a->name);
	der_elem(&a->name, DER_UTF8, name, strlen(name));
	der_elem(&a->name, DER_OID, oid_organization, sizeof(oid_organization));
	der_wrap(&a->name, DER_SEQ, 0);
	der_wrap(&a->name, DER_SET, 0);
	if (!parent)
		parent = a;
	struct x509_plan plan = {
	        .issuer = {der_bytes(&parent->name), der_len(&parent->name)},
	        .subject = {der_bytes(&a->name), der_len(&a->name)},
	        .not_before = time(NULL) - 3600,
	        .not_after = time(NULL) + 3600,
	        .point = tls_key_point(a->key),
	        .issuer_id = parent->id,
	        .is_ca = true,
	};
	ASSERT(x509_make(&plan, parent->key, &cert) == 0);
	a->pem = der_pem(&cert);
}

void authority_root(struct authority *a, const char *name)
{
	authority_make(a, name, NULL);
}

void authority_under(struct authority *a, const char *name, const struct authority *parent)
{
	authority_make(a, name, parent);
}

void authority_done(struct authority *a)
{
	tls_key_unref(a->key);
	free(a->pem);
}

char *leaf_pem(const struct authority *a, const struct tls_key *key, const struct leaf_options *options)
{
	struct der cert;
	struct x509_plan plan = {
	        .issuer = {der_bytes(&a->name), der_len(&a->name)},
	        .not_before = time(NULL) + (options->from ? options->from : -3600),
	        .not_after = time(NULL) + (options->until ? options->until : 3600),
	        .point = tls_key_point(key),
	        .issuer_id = a->id,
	        .uris = options->uris,
	};
	while (plan.uri_cnt < 4 && options->uris[plan.uri_cnt])
		plan.uri_cnt++;
	ASSERT(x509_make(&plan, a->key, &cert) == 0);
	return der_pem(&cert);
}

struct tls_identity *identity_under(const struct authority *root, const struct authority *issuer,
        const struct leaf_options *options, const struct tls_policy *policy)
{
	struct tls_identity *identity = NULL;
	struct tls_key *key;
	struct err err;
	ASSERT(tls_key_new(&key, &err) == 0);
	char *leaf = leaf_pem(issuer, key, options);
	const char *chain[] = {leaf, issuer->pem};
	int ret = tls_identity_new(key, chain, issuer == root ? 1 : 2, root->pem, NULL,
	        policy ? policy : &plain_policy, &identity, &err);
	if (ret != 0)
		fprintf(stderr, "identity: %s\n", err.text);
	ASSERT(ret == 0);
	free(leaf);
	tls_key_unref(key);
	return identity;
}

struct tls_identity *identity_for(const struct authority *root, const char *uri)
{
	struct leaf_options options = {.uris = {uri}};
	return identity_under(root, root, &options, NULL);
}

void pair_init(struct pair *p, struct tls_identity *client, struct tls_identity *server, const char *accept)
{
	struct err err;
	memset(p, 0, sizeof(*p));
	chunk_pool_init(&p->pool, 64u << 20);
	int ret = tls_client_new(client, &accept, accept ? 1 : 0, &p->pool, &p->to_server, &p->client, &err);
	if (ret != 0)
		fprintf(stderr, "client: %s\n", err.text);
	ASSERT(ret == 0);
	ASSERT(tls_server_new(server, &p->pool, &p->to_client, &p->server, &err) == 0);
}

void pair_done(struct pair *p)
{
	tls_free(p->client);
	tls_free(p->server);
	chain_clear(&p->to_client);
	chain_clear(&p->to_server);
	chunk_pool_done(&p->pool);
}

/* One step of a handshake with all bytes that have come. */
static int step(struct tls_session *s, struct chain *wire, struct err *err)
{
	int ret = tls_handshake(s, err);
	while (ret == -EAGAIN && wire->head) {
		struct chunk *c = chain_take(wire);
		tls_feed(s, chunk_bytes(c), c->len);
		ret = tls_handshake(s, err);
		ASSERT(ret != -EAGAIN || tls_feed_left(s) == 0);
		/* Application data behind the handshake is not for this fixture; a session that ended takes
		 * nothing. */
		ASSERT(ret != 0 || tls_feed_left(s) == 0);
		if (tls_feed_left(s))
			tls_feed_drop(s);
		chunk_free(c);
	}
	return ret;
}

void pair_rounds(struct pair *p, int cnt)
{
	for (int i = 0; i < cnt; i++) {
		if (p->client_ret == -EAGAIN)
			p->client_ret = step(p->client, &p->to_client, &p->client_err);
		if (p->server_ret == -EAGAIN)
			p->server_ret = step(p->server, &p->to_server, &p->server_err);
	}
}

void pair_handshake(struct pair *p)
{
	p->client_ret = p->server_ret = -EAGAIN;
	pair_rounds(p, 10);
}

ssize_t carry(struct chain *wire, struct tls_session *s, size_t max, void *buf, size_t cap, struct err *err)
{
	struct iovec iov;
	size_t len = 0;
	if (chain_peek(wire, &iov, 1, max, &len) == 0)
		return tls_read(s, buf, cap, err);
	tls_feed(s, iov.iov_base, len);
	ssize_t ret = tls_read(s, buf, cap, err);
	size_t left = tls_feed_left(s);
	tls_feed_drop(s);
	chain_consume(wire, len - left);
	return ret;
}

char *run_command(const char *command, const char *input, int *ret_status)
{
	char path[] = "/tmp/tls-test-XXXXXX";
	int fd = mkstemp(path);
	ASSERT(fd >= 0 && write(fd, input, strlen(input)) == (ssize_t)strlen(input));
	close(fd);
	char line[1024];
	ASSERT((size_t)snprintf(line, sizeof(line), "( %s ) < %s 2>&1", command, path) < sizeof(line));
	FILE *f = popen(line, "r");
	ASSERT(f);
	char *out = calloc(1, 65536);
	size_t len = fread(out, 1, 65535, f);
	out[len] = 0;
	int status = pclose(f);
	unlink(path);
	*ret_status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	return out;
}

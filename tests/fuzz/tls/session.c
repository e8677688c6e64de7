/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target: a session in handshake is fed what a stranger may send. First
 * byte: bit 0 client or server, bit 1 TLS 1.2 allowed; the rest of it how the
 * input is cut. Whatever happens, the session must end up refused or waiting,
 * and never established.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/chain.h"
#include "base/check.h"
#include "base/err.h"
#include "tls/ca.h"
#include "tls/identity.h"
#include "tls/key.h"
#include "tls/session.h"

#define ALICE "spiffe://cluster.local/ns/default/sa/alice"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static struct tls_identity *make_identity(bool tls12)
{
	struct tls_ca *ca;
	struct tls_key *key;
	struct tls_identity *identity;
	struct tls_policy policy = {.tls12 = tls12};
	struct buf csr, leaf;
	struct err err;
	buf_init(&csr, 8192);
	buf_init(&leaf, 8192);
	ASSERT(tls_ca_new(&ca, &err) == 0 && tls_key_new(&key, &err) == 0);
	ASSERT(tls_csr_make(key, ALICE, &csr, &err) == 0);
	ASSERT(tls_ca_sign(ca, (const char *)csr.data, csr.len, ALICE, 0, &leaf, &err) == 0);
	const char *chain[] = {buf_cstr(&leaf)};
	ASSERT(tls_identity_new(key, chain, 1, tls_ca_root_pem(ca), ALICE, &policy, &identity, &err) == 0);
	buf_done(&csr);
	buf_done(&leaf);
	tls_key_unref(key);
	tls_ca_free(ca);
	return identity;
}

static struct tls_session *make_session(uint8_t how, struct chunk_pool *pool, struct chain *out)
{
	/* Made once: an identity costs far more than a session. */
	static struct tls_identity *identities[2];
	const char *accept = ALICE;
	struct tls_session *s;
	unsigned i = how >> 1 & 1;
	if (!identities[i])
		identities[i] = make_identity(i);
	if (how & 1)
		ASSERT(tls_client_new(identities[i], &accept, 1, pool, out, &s, NULL) == 0);
	else
		ASSERT(tls_server_new(identities[i], pool, out, &s, NULL) == 0);
	return s;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	if (len < 1)
		return 0;
	struct chunk_pool pool;
	struct chain out = {0};
	struct err err;
	uint8_t how = data[0];
	size_t piece = how >> 2 ? (size_t)(how >> 2) * 7 : SIZE_MAX;
	chunk_pool_init(&pool, 1u << 20);
	struct tls_session *s = make_session(how, &pool, &out);
	int ret = tls_handshake(s, &err);
	for (size_t at = 1; at < len && ret == -EAGAIN;) {
		size_t take = len - at < piece ? len - at : piece;
		tls_feed(s, data + at, take);
		ret = tls_handshake(s, &err);
		ASSERT(ret != -EAGAIN || tls_feed_left(s) == 0);
		at += take;
	}
	ASSERT(ret < 0 && !tls_is_established(s) && tls_peer_identity(s) == NULL);
	ASSERT(tls_read(s, &how, 1, &err) == -EINVAL);
	tls_free(s);
	chain_clear(&out);
	chunk_pool_done(&pool);
	return 0;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Sessions against each other in memory: who is accepted, what is carried,
 * how it ends, and what it costs.
 */
#include <errno.h>
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/rand.h"
#include "fixture.h"

#define ALICE "spiffe://cluster.local/ns/default/sa/alice"
#define BOB "spiffe://cluster.local/ns/default/sa/bob"
#define STRANGER "spiffe://other.domain/ns/default/sa/bob"

struct world {
	struct authority root;
	struct tls_identity *alice, *bob;
};

static int world_up(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	authority_root(&w->root, "test");
	w->alice = identity_for(&w->root, ALICE);
	w->bob = identity_for(&w->root, BOB);
	*state = w;
	return 0;
}

static int world_down(void **state)
{
	struct world *w = *state;
	tls_identity_unref(w->alice);
	tls_identity_unref(w->bob);
	authority_done(&w->root);
	free(w);
	return 0;
}

static void pair_up(struct pair *p, const struct world *w)
{
	pair_init(p, w->alice, w->bob, BOB);
	pair_handshake(p);
	assert_int_equal(p->client_ret, 0);
	assert_int_equal(p->server_ret, 0);
}

static void test_handshake(void **state)
{
	struct pair p;
	pair_up(&p, *state);
	assert_string_equal(tls_peer_identity(p.server), ALICE);
	assert_string_equal(tls_peer_identity(p.client), BOB);
	assert_string_equal(tls_version_name(p.client), "TLSv1.3");
	assert_string_equal(tls_cipher_name(p.client), "TLS_AES_256_GCM_SHA384");
	assert_string_equal(tls_group_name(p.client), "X25519");
	assert_true(tls_alpn_is_h2(p.client));
	assert_true(tls_alpn_is_h2(p.server));
	/* No ticket, nothing at all after the handshake. */
	assert_int_equal(p.to_client.len, 0);
	assert_int_equal(p.to_server.len, 0);
	pair_done(&p);
}

/* Runs a handshake that must fail on one side, and returns the pair for a closer look. */
static void refused(
        struct pair *p, struct tls_identity *client, struct tls_identity *server, const char *accept)
{
	pair_init(p, client, server, accept);
	pair_handshake(p);
	assert_true(p->client_ret < 0 || p->server_ret < 0);
}

static void test_unexpected_san(void **state)
{
	struct world *w = *state;
	struct pair p;
	refused(&p, w->alice, w->bob, ALICE);
	assert_int_equal(p.client_ret, ERR_TLS_SAN);
	assert_string_equal(p.client_err.text,
	        "identity verification error: peer did not present the expected SAN (" ALICE "), got [" BOB
	        "]");
	assert_int_equal(p.server_ret, ERR_TLS_HANDSHAKE);
	assert_string_equal(p.server_err.text, "received fatal alert: CertificateUnknown");
	assert_null(tls_peer_identity(p.client));
	/* The verdict stays. */
	assert_int_equal(tls_handshake(p.client, NULL), ERR_TLS_SAN);
	pair_done(&p);
	refused(&p, w->alice, w->bob, NULL);
	assert_int_equal(p.client_ret, ERR_TLS_SAN);
	pair_done(&p);
}

static void test_trust_domain(void **state)
{
	struct world *w = *state;
	struct tls_identity *stranger = identity_for(&w->root, STRANGER);
	struct pair p;
	refused(&p, stranger, w->bob, BOB);
	assert_int_equal(p.server_ret, ERR_TLS_SAN);
	assert_string_equal(p.server_err.text,
	        "identity verification error: peer did not present the expected trust domain "
	        "(cluster.local), got [" STRANGER "]");
	/* A TLS 1.3 client is done before the server has judged it: it learns by the alert. */
	char byte;
	assert_int_equal(p.client_ret, 0);
	assert_int_equal(carry(&p.to_client, p.client, 65536, &byte, 1, &p.client_err), ERR_TLS_RECORD);
	assert_string_equal(p.client_err.text, "received fatal alert: CertificateUnknown");
	pair_done(&p);
	tls_identity_unref(stranger);
}

static void test_second_san_counts(void **state)
{
	struct world *w = *state;
	struct leaf_options options = {.uris = {"https://example.com/", STRANGER, BOB}};
	struct tls_identity *many = identity_under(&w->root, &w->root, &options, NULL);
	struct pair p;
	/* As a client: one SAN of our domain is enough, but the peer is the first one. */
	pair_init(&p, many, w->bob, BOB);
	pair_handshake(&p);
	assert_int_equal(p.server_ret, 0);
	assert_string_equal(tls_peer_identity(p.server), STRANGER);
	pair_done(&p);
	/* As a server: any of its SANs may be the accepted one. Its own first SAN is no SPIFFE id: no domain
	 * check. */
	pair_init(&p, w->alice, many, BOB);
	pair_handshake(&p);
	assert_int_equal(p.client_ret, 0);
	assert_int_equal(p.server_ret, 0);
	assert_string_equal(tls_peer_identity(p.client), STRANGER);
	pair_done(&p);
	tls_identity_unref(many);
}

static void test_bad_chains(void **state)
{
	struct world *w = *state;
	struct authority other;
	authority_root(&other, "other");
	struct leaf_options past = {.uris = {ALICE}, .from = -7200, .until = -3600};
	struct leaf_options future = {.uris = {ALICE}, .from = 3600, .until = 7200};
	const struct {
		struct tls_identity *client;
		const char *server_text, *client_text;
	} cases[] = {
	        {identity_under(&w->root, &w->root, &past, NULL), "invalid peer certificate: Expired",
	                "received fatal alert: CertificateExpired"},
	        {identity_under(&w->root, &w->root, &future, NULL), "invalid peer certificate: NotValidYet",
	                "received fatal alert: CertificateExpired"},
	};
	struct pair p;
	for (size_t i = 0; i < 2; i++) {
		char byte;
		refused(&p, cases[i].client, w->bob, BOB);
		assert_int_equal(p.server_ret, ERR_TLS_HANDSHAKE);
		assert_string_equal(p.server_err.text, cases[i].server_text);
		assert_int_equal(
		        carry(&p.to_client, p.client, 65536, &byte, 1, &p.client_err), ERR_TLS_RECORD);
		assert_string_equal(p.client_err.text, cases[i].client_text);
		pair_done(&p);
		tls_identity_unref(cases[i].client);
	}
	struct tls_identity *outsider = identity_for(&other, BOB);
	refused(&p, w->alice, outsider, BOB);
	assert_int_equal(p.client_ret, ERR_TLS_HANDSHAKE);
	assert_string_equal(p.client_err.text, "invalid peer certificate: UnknownIssuer");
	assert_string_equal(p.server_err.text, "received fatal alert: UnknownCA");
	pair_done(&p);
	tls_identity_unref(outsider);
	authority_done(&other);
}

static void test_intermediate(void **state)
{
	struct world *w = *state;
	struct authority middle;
	struct leaf_options options = {.uris = {ALICE}};
	authority_under(&middle, "middle", &w->root);
	struct tls_identity *alice = identity_under(&w->root, &middle, &options, NULL);
	struct pair p;
	pair_init(&p, alice, w->bob, BOB);
	pair_handshake(&p);
	assert_int_equal(p.client_ret, 0);
	assert_int_equal(p.server_ret, 0);
	assert_string_equal(tls_peer_identity(p.server), ALICE);
	pair_done(&p);
	tls_identity_unref(alice);
	authority_done(&middle);
}

static void test_policies(void **state)
{
	struct world *w = *state;
	struct tls_policy pqc = {.pqc_only = true};
	struct tls_policy tls12 = {.tls12 = true};
	struct leaf_options alice = {.uris = {ALICE}};
	struct leaf_options bob = {.uris = {BOB}};
	struct tls_identity *alice_pqc = identity_under(&w->root, &w->root, &alice, &pqc);
	struct tls_identity *bob_pqc = identity_under(&w->root, &w->root, &bob, &pqc);
	struct tls_identity *bob_12 = identity_under(&w->root, &w->root, &bob, &tls12);
	struct pair p;
	pair_init(&p, alice_pqc, bob_pqc, BOB);
	pair_handshake(&p);
	assert_int_equal(p.client_ret, 0);
	assert_non_null(strstr(tls_group_name(p.client), "ML"));
	pair_done(&p);
	/* Only one side insists: the hybrid is offered last by everyone, found by a retry request. */
	pair_init(&p, w->alice, bob_pqc, BOB);
	pair_handshake(&p);
	assert_int_equal(p.client_ret, 0);
	assert_int_equal(p.server_ret, 0);
	pair_done(&p);
	pair_init(&p, alice_pqc, w->bob, BOB);
	pair_handshake(&p);
	assert_int_equal(p.server_ret, 0);
	pair_done(&p);
	pair_init(&p, w->alice, bob_12, BOB);
	pair_handshake(&p);
	assert_string_equal(tls_version_name(p.server), "TLSv1.3");
	pair_done(&p);
	tls_identity_unref(alice_pqc);
	tls_identity_unref(bob_pqc);
	tls_identity_unref(bob_12);
}

/* Bytes that tell where they stand. */
static void pattern(uint8_t *p, size_t len, size_t at)
{
	for (size_t i = 0; i < len; i++)
		p[i] = (uint8_t)((at + i) * 2654435761u >> 13);
}

/* Sends `total` bytes one way in random pieces, read with random room, fed in random cuts. */
static void bulk(struct tls_session *from, struct tls_session *to, struct chain *wire, size_t total)
{
	static uint8_t out[70000], in[70000], want[70000];
	size_t sent = 0;
	size_t got = 0;
	struct err err = {0};
	while (got < total) {
		if (sent < total && wire->len < 300000) {
			size_t len = 1 + rand_below(rand_below(4) ? 300 : sizeof(out));
			if (len > total - sent)
				len = total - sent;
			pattern(out, len, sent);
			assert_int_equal(tls_write(from, out, len, &err), 0);
			sent += len;
		}
		ssize_t ret = carry(wire, to, 1 + rand_below(rand_below(3) ? 40000 : 50), in,
		        1 + rand_below(sizeof(in)), &err);
		if (ret == -EAGAIN)
			continue;
		if (ret <= 0)
			fail_msg("read %zd: %s", ret, err.text);
		pattern(want, (size_t)ret, got);
		assert_memory_equal(in, want, (size_t)ret);
		got += (size_t)ret;
	}
	assert_int_equal(got, sent);
}

static void test_bulk(void **state)
{
	struct pair p;
	pair_up(&p, *state);
	bulk(p.client, p.server, &p.to_server, 20u << 20);
	bulk(p.server, p.client, &p.to_client, 20u << 20);
	bulk(p.client, p.server, &p.to_server, 1u << 20);
	pair_done(&p);
}

/* Number of records in a chain, and the wire length of the longest. */
static size_t records(const struct chain *wire, size_t *ret_longest)
{
	size_t cnt = 0;
	*ret_longest = 0;
	for (size_t at = 0; at < wire->len;) {
		uint8_t head[5];
		assert_int_equal(chain_copy(wire, at, head, 5), 5);
		size_t len = 5 + ((size_t)head[3] << 8 | head[4]);
		if (len > *ret_longest)
			*ret_longest = len;
		at += len;
		cnt++;
	}
	return cnt;
}

static void test_records_are_full(void **state)
{
	static uint8_t data[10 * TLS_RECORD_MAX];
	struct pair p;
	struct err err;
	size_t longest;
	pair_up(&p, *state);
	assert_int_equal(tls_write(p.client, data, sizeof(data), &err), 0);
	assert_int_equal(records(&p.to_server, &longest), 10);
	assert_int_equal(longest, TLS_RECORD_MAX + 5 + 1 + 16);
	/* Many records share a chunk. */
	assert_true(p.to_server.head->len > 3 * TLS_RECORD_MAX);
	chain_clear(&p.to_server);
	pair_done(&p);
}

static void test_write_chain(void **state)
{
	static uint8_t data[100000], in[100000];
	struct pair p;
	struct err err;
	struct chain plain = {0};
	size_t longest;
	pair_up(&p, *state);
	pattern(data, sizeof(data), 0);
	/* Pieces of all sizes, cut by chunks of their own. */
	for (size_t at = 0, len = 1; at < sizeof(data); at += len, len = len * 2 < 30000 ? len * 2 : 1) {
		if (len > sizeof(data) - at)
			len = sizeof(data) - at;
		struct chunk *c = chunk_new(&p.pool, len);
		memcpy(chunk_end(c), data + at, len);
		c->len = (uint32_t)len;
		chain_append(&plain, c);
	}
	assert_int_equal(tls_write_chain(p.client, &plain, 40000, &err), 0);
	assert_int_equal(plain.len, sizeof(data) - 40000);
	assert_int_equal(records(&p.to_server, &longest), 3);
	assert_int_equal(tls_write_chain(p.client, &plain, SIZE_MAX, &err), 0);
	assert_int_equal(plain.len, 0);
	assert_int_equal(records(&p.to_server, &longest), 3 + 4);
	size_t got = 0;
	while (got < sizeof(in)) {
		ssize_t ret = carry(&p.to_server, p.server, SIZE_MAX, in + got, sizeof(in) - got, &err);
		assert_true(ret > 0 || ret == -EAGAIN);
		got += ret > 0 ? (size_t)ret : 0;
	}
	assert_memory_equal(in, data, sizeof(in));
	pair_done(&p);
}

static void test_half_close(void **state)
{
	char buf[64];
	struct pair p;
	struct err err;
	pair_up(&p, *state);
	assert_int_equal(tls_write(p.client, "last", 4, &err), 0);
	assert_int_equal(tls_close_notify(p.client, &err), 0);
	assert_int_equal(tls_close_notify(p.client, &err), 0);
	assert_int_equal(tls_write(p.client, "more", 4, &err), -EPIPE);
	assert_int_equal(carry(&p.to_server, p.server, 65536, buf, sizeof(buf), &err), 4);
	assert_int_equal(tls_read(p.server, buf, sizeof(buf), &err), 0);
	assert_true(tls_peer_closed(p.server));
	assert_false(tls_peer_closed(p.client));
	/* The other direction goes on. */
	assert_int_equal(tls_write(p.server, "answer", 6, &err), 0);
	assert_int_equal(carry(&p.to_client, p.client, 65536, buf, sizeof(buf), &err), 6);
	assert_memory_equal(buf, "answer", 6);
	assert_int_equal(tls_close_notify(p.server, &err), 0);
	assert_int_equal(carry(&p.to_client, p.client, 65536, buf, sizeof(buf), &err), 0);
	assert_int_equal(tls_read(p.client, buf, sizeof(buf), &err), 0);
	pair_done(&p);
}

static void test_back_pressure(void **state)
{
	static uint8_t data[5 * TLS_RECORD_MAX];
	uint8_t in[1000];
	struct pair p;
	struct err err;
	struct iovec iov;
	size_t len;
	pair_up(&p, *state);
	assert_int_equal(tls_write(p.client, data, sizeof(data), &err), 0);
	assert_int_equal(chain_peek(&p.to_server, &iov, 1, SIZE_MAX, &len), 1);
	tls_feed(p.server, iov.iov_base, len);
	assert_int_equal(tls_read(p.server, in, sizeof(in), &err), sizeof(in));
	/* One record was taken, the others stay with the caller. */
	assert_int_equal(tls_feed_left(p.server), len - (TLS_RECORD_MAX + 22));
	assert_true(tls_is_readable(p.server));
	tls_feed_drop(p.server);
	assert_true(tls_is_readable(p.server));
	pair_done(&p);
}

static void test_garbage(void **state)
{
	struct world *w = *state;
	struct pair p;
	for (int i = 0; i < 200; i++) {
		uint8_t junk[600];
		rand_bytes(junk, sizeof(junk));
		/* Half of them look like a handshake record at first. */
		if (i % 2)
			memcpy(junk, "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11);
		pair_init(&p, w->alice, w->bob, BOB);
		tls_feed(p.server, junk, sizeof(junk));
		int ret = tls_handshake(p.server, &p.server_err);
		assert_true(ret == ERR_TLS_HANDSHAKE || ret == -EAGAIN);
		if (ret == ERR_TLS_HANDSHAKE) {
			assert_true(p.server_err.text[0] != 0);
			assert_int_equal(tls_handshake(p.server, NULL), ERR_TLS_HANDSHAKE);
		}
		assert_int_equal(tls_read(p.server, junk, 1, NULL), -EINVAL);
		assert_int_equal(tls_write(p.server, junk, 1, NULL), -EINVAL);
		pair_done(&p);
	}
}

static void test_http_on_the_port(void **state)
{
	static const char request[] = "GET / HTTP/1.1\r\nhost: x\r\n\r\n";
	struct world *w = *state;
	struct pair p;
	pair_init(&p, w->alice, w->bob, BOB);
	tls_feed(p.server, request, sizeof(request) - 1);
	assert_int_equal(tls_handshake(p.server, &p.server_err), ERR_TLS_HANDSHAKE);
	pair_done(&p);
}

static void test_damaged_record(void **state)
{
	uint8_t wire[200], buf[200];
	struct pair p;
	struct err err;
	pair_up(&p, *state);
	assert_int_equal(tls_write(p.client, "one", 3, &err), 0);
	assert_int_equal(tls_write(p.client, "two", 3, &err), 0);
	size_t len = chain_copy(&p.to_server, 0, wire, sizeof(wire));
	wire[len - 1] ^= 1;
	tls_feed(p.server, wire, len);
	/* What came before the damage is delivered, then the error, for good, and the peer is told. */
	assert_int_equal(tls_read(p.server, buf, sizeof(buf), &err), 3);
	assert_int_equal(tls_read(p.server, buf, sizeof(buf), &err), ERR_TLS_RECORD);
	assert_string_equal(err.text, "cannot decrypt peer's message");
	assert_int_equal(tls_read(p.server, buf, sizeof(buf), &err), ERR_TLS_RECORD);
	assert_int_equal(tls_write(p.server, "x", 1, &err), ERR_TLS_RECORD);
	assert_int_equal(carry(&p.to_client, p.client, 65536, buf, sizeof(buf), &err), ERR_TLS_RECORD);
	assert_string_equal(err.text, "received fatal alert: BadRecordMac");
	pair_done(&p);
}

static void test_oversized_record(void **state)
{
	static uint8_t wire[20000] = {0x17, 0x03, 0x03, 0x48, 0x00};
	char buf[10];
	struct pair p;
	struct err err;
	pair_up(&p, *state);
	tls_feed(p.server, wire, sizeof(wire));
	assert_int_equal(tls_read(p.server, buf, sizeof(buf), &err), ERR_TLS_RECORD);
	pair_done(&p);
}

static void test_truncated(void **state)
{
	uint8_t wire[200], buf[200];
	struct pair p;
	struct err err;
	pair_up(&p, *state);
	assert_int_equal(tls_write(p.client, "whole", 5, &err), 0);
	size_t len = chain_copy(&p.to_server, 0, wire, sizeof(wire));
	for (size_t i = 0; i + 1 < len; i++) {
		tls_feed(p.server, wire + i, 1);
		assert_int_equal(tls_read(p.server, buf, sizeof(buf), &err), -EAGAIN);
		assert_int_equal(tls_feed_left(p.server), 0);
	}
	assert_false(tls_peer_closed(p.server));
	tls_feed(p.server, wire + len - 1, 1);
	assert_int_equal(tls_read(p.server, buf, sizeof(buf), &err), 5);
	pair_done(&p);
}

static void test_pool_ceiling(void **state)
{
	static uint8_t data[TLS_RECORD_MAX];
	struct pair p;
	struct err err;
	pair_up(&p, *state);
	p.pool.max = 0;
	assert_int_equal(tls_write(p.client, data, sizeof(data), &err), -ENOMEM);
	assert_int_equal(tls_write(p.client, data, 1, &err), -ENOMEM);
	p.pool.max = 1u << 20;
	pair_done(&p);
}

static size_t heap_used(void)
{
	return mallinfo2().uordblks;
}

static void test_memory(void **state)
{
	enum { CNT = 200 };
	static struct pair pairs[CNT];
	static uint8_t data[65536], buf[65536];
	struct world *w = *state;
	struct err err;
	pair_up(&pairs[0], w); /* builds the contexts */
	pair_done(&pairs[0]);
	size_t before = heap_used();
	for (size_t i = 0; i < CNT; i++) {
		pair_up(&pairs[i], w);
		struct pair *p = &pairs[i];
		assert_int_equal(tls_write(p->client, data, sizeof(data), &err), 0);
		size_t got = 0;
		while (got < sizeof(data)) {
			ssize_t ret = carry(&p->to_server, p->server, SIZE_MAX, buf, sizeof(buf), &err);
			assert_true(ret > 0 || ret == -EAGAIN);
			got += ret > 0 ? (size_t)ret : 0;
		}
		chunk_pool_trim(&p->pool, 0);
	}
	size_t each = (heap_used() - before) / (2 * CNT);
	print_message("heap of an idle established session: %zu bytes\n", each);
	for (size_t i = 0; i < CNT; i++)
		pair_done(&pairs[i]);
	if (HAS_ASAN)
		return;
	assert_true(each > 1000);
	assert_true(each < 4300);
	assert_true(heap_used() < before + 4096);
}

static void test_many_in_one_identity(void **state)
{
	struct world *w = *state;
	struct pair p;
	for (int i = 0; i < 300; i++) {
		pair_up(&p, w);
		pair_done(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_handshake),
	        cmocka_unit_test(test_unexpected_san),
	        cmocka_unit_test(test_trust_domain),
	        cmocka_unit_test(test_second_san_counts),
	        cmocka_unit_test(test_bad_chains),
	        cmocka_unit_test(test_intermediate),
	        cmocka_unit_test(test_policies),
	        cmocka_unit_test(test_bulk),
	        cmocka_unit_test(test_records_are_full),
	        cmocka_unit_test(test_write_chain),
	        cmocka_unit_test(test_half_close),
	        cmocka_unit_test(test_back_pressure),
	        cmocka_unit_test(test_garbage),
	        cmocka_unit_test(test_http_on_the_port),
	        cmocka_unit_test(test_damaged_record),
	        cmocka_unit_test(test_oversized_record),
	        cmocka_unit_test(test_truncated),
	        cmocka_unit_test(test_pool_ceiling),
	        cmocka_unit_test(test_memory),
	        cmocka_unit_test(test_many_in_one_identity),
	};
	return cmocka_run_group_tests(tests, world_up, world_down);
}

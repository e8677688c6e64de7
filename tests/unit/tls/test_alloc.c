/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Every allocation fails once, ours and the library's, in a handshake and in
 * the first bytes after it: the session ends with an error, and nothing leaks
 * (which the sanitized run of this test sees).
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/mem.h"
#include "fixture.h"
#include "tls/lib.h"

#define ALICE "spiffe://cluster.local/ns/default/sa/alice"
#define BOB "spiffe://cluster.local/ns/default/sa/bob"

/* Counts down to the one that fails; 0 = none will. */
static unsigned countdown;

static bool fails_now(void)
{
	return countdown && --countdown == 0;
}

bool mem_should_fail(size_t len)
{
	return fails_now();
}

static void *lib_malloc(size_t len)
{
	return fails_now() ? NULL : malloc(len);
}

static void lib_free(void *p)
{
	free(p);
}

static void *lib_realloc(void *p, size_t len)
{
	return fails_now() ? NULL : realloc(p, len);
}

/* Both sessions to the end of a small exchange. True if all of it worked. */
static bool exchange(struct tls_identity *client, struct tls_identity *server)
{
	struct pair p = {.client_ret = -EAGAIN, .server_ret = -EAGAIN};
	const char *accept = BOB;
	struct err err = {0};
	char buf[100];
	bool worked = false;
	chunk_pool_init(&p.pool, 1u << 20);
	int ret = tls_client_new(client, &accept, 1, &p.pool, &p.to_server, &p.client, &err);
	if (ret == 0)
		ret = tls_server_new(server, &p.pool, &p.to_client, &p.server, &err);
	if (ret == 0) {
		pair_handshake(&p);
		assert_true(p.client_ret == 0 || p.client_ret == -EAGAIN || p.client_err.text[0]);
		assert_true(p.server_ret == 0 || p.server_ret == -EAGAIN || p.server_err.text[0]);
		if (p.client_ret == 0 && p.server_ret == 0 && tls_write(p.client, "hello", 5, &err) == 0)
			worked = carry(&p.to_server, p.server, 1000, buf, sizeof(buf), &err) == 5;
	}
	assert_true(ret == 0 || err.text[0]);
	unsigned keep = countdown;
	countdown = 0;
	pair_done(&p);
	countdown = keep;
	return worked;
}

static void test_every_allocation(void **state)
{
	struct authority root;
	struct tls_policy policy = {0};
	struct leaf_options alice_options = {.uris = {ALICE}};
	struct leaf_options bob_options = {.uris = {BOB}};
	unsigned failures = 0;
	assert_int_equal(wolfSSL_SetAllocators(lib_malloc, lib_free, lib_realloc), 0);
	authority_root(&root, "test");
	for (unsigned n = 1; n < 5000; n++) {
		/* New ones each time: the contexts are part of the walk. */
		struct tls_identity *alice = identity_under(&root, &root, &alice_options, &policy);
		struct tls_identity *bob = identity_under(&root, &root, &bob_options, &policy);
		countdown = n;
		bool worked = exchange(alice, bob);
		bool reached = countdown == 0;
		countdown = 0;
		tls_identity_unref(alice);
		tls_identity_unref(bob);
		failures += !worked;
		if (!reached) {
			assert_true(worked);
			break;
		}
	}
	print_message("%u allocations failed the exchange\n", failures);
	assert_true(failures > 100);
	authority_done(&root);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_every_allocation),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

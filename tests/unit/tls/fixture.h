/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Authorities and identities for the TLS tests, good ones and odd ones, and a
 * pair of sessions whose outputs are carried to each other in memory.
 * Everything here aborts the test on failure.
 */
#ifndef TESTS_TLS_FIXTURE_H
#define TESTS_TLS_FIXTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/chain.h"
#include "base/err.h"
#include "tls/identity.h"
#include "tls/session.h"
#include "tls/x509.h"

/* Set when the address sanitizer stands in for the allocator and for mlock. */
#if defined(__SANITIZE_ADDRESS__)
#define HAS_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAS_ASAN 1
#endif
#endif
#ifndef HAS_ASAN
#define HAS_ASAN 0
#endif

/* An authority: a root, or an intermediate under one. */
struct authority {
	struct tls_key *key;        /* owned */
	uint8_t id[EXT_KEY_ID_LEN]; /* key identifier */
	struct der name;            /* subject */
	char *pem;                  /* certificate, malloc'd */
};

/* How a leaf differs from a good one. */
struct leaf_options {
	const char *uris[4]; /* SANs, NULL-terminated if fewer */
	int64_t from;        /* start of validity relative to now, seconds; 0 = an hour ago */
	int64_t until;       /* end relative to now; 0 = in an hour */
};

/* Makes a root; `name` is its organization. */
void authority_root(struct authority *a, const char *name);

/* Makes an intermediate signed by `parent`. */
void authority_under(struct authority *a, const char *name, const struct authority *parent);

void authority_done(struct authority *a);

/* A leaf for `key` as PEM, malloc'd. */
char *leaf_pem(const struct authority *a, const struct tls_key *key, const struct leaf_options *options);

/* An identity whose leaf is signed by `issuer` (sent along when it is not `root`) and which trusts `root`. */
struct tls_identity *identity_under(const struct authority *root, const struct authority *issuer,
        const struct leaf_options *options, const struct tls_policy *policy);

/* A good identity under `root`. */
struct tls_identity *identity_for(const struct authority *root, const char *uri);

/* Two sessions and what is between them. */
struct pair {
	struct chunk_pool pool;
	struct tls_session *client, *server;
	struct chain to_client, to_server; /* outputs of server and client */
	struct err client_err, server_err; /* of the last handshake step */
	int client_ret, server_ret;        /* its results */
};

/* Ends one handshake attempt: both established, or one failed and the other has seen the alert. */
void pair_handshake(struct pair *p);

/* A part of it: so many times each side's step, while its result is -EAGAIN. */
void pair_rounds(struct pair *p, int cnt);

/* Sessions for the two identities; the client accepts `accept` (NULL: nobody). Takes no reference of its own.
 */
void pair_init(struct pair *p, struct tls_identity *client, struct tls_identity *server, const char *accept);

void pair_done(struct pair *p);

/* Feeds up to `max` bytes of `wire` to `s` and reads what comes into `buf`. Returns tls_read's last result,
 * or the bytes. */
ssize_t carry(struct chain *wire, struct tls_session *s, size_t max, void *buf, size_t cap, struct err *err);

/* Output of a command's stdout and stderr with `input` on its stdin; *ret_status its exit status. malloc'd.
 */
char *run_command(const char *command, const char *input, int *ret_status);

#endif

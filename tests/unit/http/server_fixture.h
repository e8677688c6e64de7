/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A server connection with its pool, fed from strings and read as one string. */
#ifndef CULVERT_TESTS_UNIT_HTTP_SERVER_FIXTURE_H
#define CULVERT_TESTS_UNIT_HTTP_SERVER_FIXTURE_H

#include "http/server.h"
#include "unit.h"

struct fixture {
	struct chunk_pool pool;
	struct http_server server;
	char text[65536];
};

static inline void fixture_init(struct fixture *f)
{
	chunk_pool_init(&f->pool, 1u << 20);
	http_server_init(&f->server, &f->pool);
}

static inline void fixture_done(struct fixture *f)
{
	http_server_done(&f->server);
	chunk_pool_done(&f->pool);
}

static inline const struct http_request *fixture_feed(struct fixture *f, const char *text)
{
	assert_int_equal(http_server_feed(&f->server, text, strlen(text)), 0);
	return http_server_next(&f->server);
}

/* All output so far, taken. */
static inline const char *fixture_out(struct fixture *f)
{
	size_t len = chain_copy(&f->server.out, 0, f->text, sizeof(f->text) - 1);
	f->text[len] = '\0';
	chain_consume(&f->server.out, len);
	return f->text;
}

#endif

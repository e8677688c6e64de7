/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A server connection fed in portions: the outcome may not depend on how the bytes were cut. */
#include <string.h>

#include "base/check.h"
#include "http/server.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* Feeds everything in portions of at most step bytes, answers each request with its path, returns what came
 * out. */
static struct buf run(const uint8_t *data, size_t len, size_t step)
{
	struct chunk_pool pool;
	struct http_server server;
	struct buf out;
	char value[64];
	buf_init(&out, 64u << 20);
	chunk_pool_init(&pool, 64u << 20);
	http_server_init(&server, &pool);
	for (size_t at = 0;; at += step) {
		size_t n = len - at < step ? len - at : step;
		if (n)
			ASSERT(http_server_feed(&server, data + at, n) == 0);
		if (at + n == len)
			http_server_eof(&server);
		for (const struct http_request *r; (r = http_server_next(&server));) {
			ASSERT(r->body_len <= LIMIT_HTTP_BODY && r->header_cnt <= LIMIT_HTTP_HEADERS);
			(void)http_query_get(r, "level", value, sizeof(value));
			if (r->body_len)
				(void)http_form_get(
				        (const char *)r->body, r->body_len, "level", value, sizeof(value));
			ASSERT(http_reply_text(&server, 200, NULL, r->path) == 0);
		}
		if (at + n == len)
			break;
	}
	ASSERT(http_server_is_closed(&server));
	while (!chain_empty(&server.out)) {
		struct iovec iov;
		chain_peek(&server.out, &iov, 1, SIZE_MAX, NULL);
		buf_add(&out, iov.iov_base, iov.iov_len);
		chain_consume(&server.out, iov.iov_len);
	}
	http_server_done(&server);
	chunk_pool_done(&pool);
	return out;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	/* "100 Continue" depends on when the body comes, so such inputs are only run. */
	bool comparable = !memmem(data, len, "100-", 4);
	struct buf whole = run(data, len, 60000);
	struct buf cut = run(data, len, 1 + (len ? data[0] % 7 : 0));
	if (comparable)
		ASSERT(whole.len == cut.len &&
		        (whole.len == 0 || memcmp(whole.data, cut.data, whole.len) == 0));
	buf_done(&whole);
	buf_done(&cut);
	return 0;
}

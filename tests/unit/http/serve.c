/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Serves one connection after another on a unix socket given as argument, so
 * that an independent client can be set upon http/server.c. Blocking; no part
 * of culvert.
 */
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/fd.h"
#include "http/server.h"

static void answer(struct http_server *s, const struct http_request *r)
{
	char value[256];
	if (strcmp(r->path, "/ready") == 0) {
		http_reply_text(s, r->method == HTTP_GET || r->method == HTTP_HEAD ? 200 : 405, "text/plain",
		        "ready\n");
	} else if (strcmp(r->path, "/stream") == 0) {
		http_reply_begin(s, 200, NULL, 0);
		for (int i = 0; i < 1000; i++)
			http_reply_piece(s, "0123456789", 10);
		http_reply_end(s);
	} else if (strcmp(r->path, "/echo") == 0) {
		http_reply(s, 200, NULL, 0, r->body, r->body_len);
	} else if (strcmp(r->path, "/query") == 0 && http_query_get(r, "level", value, sizeof(value)) == 1) {
		http_reply_text(s, 200, "text/plain", value);
	} else {
		http_reply(s, 404, NULL, 0, NULL, 0);
	}
}

static int flush(int fd, struct http_server *s)
{
	while (!chain_empty(&s->out)) {
		struct iovec iov[16];
		ssize_t n = writev(fd, iov, (int)chain_peek(&s->out, iov, 16, SIZE_MAX, NULL));
		if (n <= 0)
			return -1;
		chain_consume(&s->out, (size_t)n);
	}
	return 0;
}

static void serve(int fd, struct chunk_pool *pool)
{
	static char bytes[HTTP_FEED_MAX];
	struct http_server s;
	http_server_init(&s, pool);
	while (!http_server_is_closed(&s)) {
		ssize_t n = read(fd, bytes, sizeof(bytes));
		if (n > 0)
			http_server_feed(&s, bytes, (size_t)n);
		else
			http_server_eof(&s);
		for (const struct http_request *r; (r = http_server_next(&s));)
			answer(&s, r);
		if (flush(fd, &s) < 0)
			break;
	}
	http_server_done(&s);
	/* As server.h advises: the client may still be sending what was refused. */
	shutdown(fd, SHUT_WR);
	while (read(fd, bytes, sizeof(bytes)) > 0)
		;
}

int main(int argc, char **argv)
{
	int listener = -1;
	struct chunk_pool pool;
	if (argc != 2 || fd_unix_listen(argv[1], SOCK_STREAM, 8, &listener) < 0)
		return 2;
	chunk_pool_init(&pool, 1u << 20);
	for (;;) {
		struct pollfd p = {.fd = listener, .events = POLLIN};
		if (poll(&p, 1, 20000) <= 0)
			return 1;
		int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		if (fd >= 0)
			serve(fd, &pool);
		fd_close(&fd);
	}
}

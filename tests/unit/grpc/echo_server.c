/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A gRPC server of ours for python's client: HTTP/2 without TLS on a loopback
 * port that it prints. /t/Echo gives every message back, /t/Fail one message
 * and a status with odd words, /t/Deadline says the request's time limit in
 * milliseconds, anything else is unimplemented.
 */
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/mem.h"
#include "conn/link.h"
#include "conn/listen.h"
#include "conn/sock.h"
#include "grpc/frame.h"
#include "grpc/text.h"

/* Longest message that is taken. */
#define MESSAGE_MAX (1u << 20)

static const char *const kept[] = {"content-type", "grpc-encoding", "grpc-timeout", "te", NULL};

struct server {
	struct io *io;
	struct h2_env *env;
	struct h2_config h2;
};

/* One request. */
struct call {
	struct io *io;
	struct stream *stream;
	struct grpc_reader reader;
	enum { CALL_ECHO, CALL_FAIL, CALL_DEADLINE, CALL_NONE } kind;
	uint64_t timeout_ms;
	struct grpc_status status;
};

static void put(struct call *call, const void *bytes, size_t len, bool is_head)
{
	uint8_t head[GRPC_HEAD_LEN];
	struct chain out = {0};

	grpc_head_write(len, head);
	if (is_head && chain_write(&out, io_pool(call->io), head, sizeof(head)) < 0)
		abort();
	if (bytes && chain_write(&out, io_pool(call->io), bytes, len) < 0)
		abort();
	stream_write(call->stream, &out);
}

static void end(struct call *call)
{
	struct grpc_trailers trailers;
	struct h2_header lines[2];

	grpc_trailers_make(&call->status, &trailers);
	lines[0] = (struct h2_header){"grpc-status", trailers.code, false};
	lines[1] = (struct h2_header){"grpc-message", trailers.message, false};
	if (link_trailers(call->stream, lines, trailers.message[0] ? 2 : 1) < 0)
		abort();
}

static void finished(void *ctx)
{
	struct call *call = ctx;

	stream_free(call->stream);
	mem_free(call);
}

static void on_error(void *ctx, int code, const char *text)
{
	finished(ctx);
}

static void on_data(void *ctx, struct chain *data)
{
	struct call *call = ctx;

	for (const struct chunk *c = data->head; c && call->status.code == GRPC_OK; c = c->next) {
		const uint8_t *at = chunk_bytes(c);
		size_t left = c->len;
		struct grpc_piece piece;

		while (grpc_reader_next(&call->reader, &at, &left, &piece, &call->status) > 0)
			if (call->kind == CALL_ECHO && (piece.is_begin || piece.len > 0))
				put(call, piece.bytes, piece.len, piece.is_begin);
	}
	if (call->status.code != GRPC_OK)
		end(call);
}

static void on_eof(void *ctx)
{
	struct call *call = ctx;
	char text[32];

	if (call->status.code != GRPC_OK)
		return;
	if (call->kind == CALL_DEADLINE) {
		snprintf(text, sizeof(text), "%" PRIu64, call->timeout_ms);
		put(call, text, strlen(text), true);
	} else if (call->kind == CALL_FAIL) {
		put(call, "half", 4, true);
		grpc_status_set(&call->status, GRPC_FAILED_PRECONDITION, "50%% of \xe2\x82\xac\n");
	}
	end(call);
}

static const struct stream_events call_events = {
        .on_data = on_data, .on_eof = on_eof, .on_finished = finished, .on_error = on_error};

/* Status without a message before it: one header block ends the call. */
static void refuse(struct stream *stream, const struct grpc_status *status)
{
	struct grpc_trailers trailers;

	grpc_trailers_make(status, &trailers);
	const struct h2_header lines[] = {{"content-type", "application/grpc", false},
	        {"grpc-status", trailers.code, false}, {"grpc-message", trailers.message, false}};
	link_respond(stream, 200, lines, 3, true);
	stream_free(stream);
}

static void on_request(void *ctx, struct stream *stream, const struct h2_headers *headers)
{
	static const struct h2_header type = {"content-type", "application/grpc", false};
	struct server *server = ctx;
	const struct grpc_request_head head = {.method = h2_headers_get(headers, ":method"),
	        .path = h2_headers_get(headers, ":path"),
	        .content_type = h2_headers_get(headers, "content-type"),
	        .encoding = h2_headers_get(headers, "grpc-encoding"),
	        .timeout = h2_headers_get(headers, "grpc-timeout")};
	struct grpc_status status = {0};
	uint64_t timeout_ms = 0;
	int r = grpc_request_check(&head, &timeout_ms, &status);

	if (r > 0) {
		link_respond(stream, r, NULL, 0, true);
		stream_free(stream);
		return;
	}
	int kind = strcmp(head.path, "/t/Echo") == 0       ? CALL_ECHO
	           : strcmp(head.path, "/t/Fail") == 0     ? CALL_FAIL
	           : strcmp(head.path, "/t/Deadline") == 0 ? CALL_DEADLINE
	                                                   : CALL_NONE;
	if (r == 0 && kind == CALL_NONE)
		grpc_status_set(&status, GRPC_UNIMPLEMENTED, "no method %s", head.path);
	if (status.code != GRPC_OK) {
		refuse(stream, &status);
		return;
	}
	struct call *call = mem_zalloc(1, sizeof(*call));
	if (!call)
		abort();
	*call = (struct call){.io = server->io, .stream = stream, .kind = kind, .timeout_ms = timeout_ms};
	grpc_reader_init(&call->reader, MESSAGE_MAX);
	stream_set_events(stream, &call_events, call);
	link_respond(stream, 200, &type, 1, false);
	stream_read_start(stream);
}

/* A connection; it frees itself. */
struct conn {
	struct server *server;
	struct link *link;
};

static void on_conn_request(void *ctx, struct stream *stream, const struct h2_headers *headers)
{
	on_request(((struct conn *)ctx)->server, stream, headers);
}

static void on_closed(void *ctx, int code, const char *text)
{
	struct conn *conn = ctx;

	link_free(conn->link);
	mem_free(conn);
}

static const struct link_events conn_events = {.on_request = on_conn_request, .on_closed = on_closed};

static void on_accept(void *ctx, int fd)
{
	struct server *server = ctx;
	struct link_opts opts = {.env = server->env, .is_server = true, .h2 = &server->h2};
	struct conn *conn = mem_zalloc(1, sizeof(*conn));
	struct stream *sock;
	struct err err;

	if (!conn || sock_new(server->io, fd, &sock) < 0)
		abort();
	conn->server = server;
	if (link_new(server->io, sock, &opts, &conn_events, conn, &conn->link, &err) < 0)
		abort();
}

static const struct listen_events listen_events = {.on_accept = on_accept};

int main(void)
{
	static const struct io_opts io_opts;
	static const struct listen_opts listen_opts = {.nodelay = true};
	struct server server = {0};
	struct listener *listener;
	struct err err = {0};
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t sa_len = sizeof(sa);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (bind(fd, (struct sockaddr *)&sa, sa_len) < 0 || listen(fd, 16) < 0 ||
	        getsockname(fd, (struct sockaddr *)&sa, &sa_len) < 0)
		return 1;
	if (io_new(&io_opts, &server.io, &err) < 0 || h2_env_new(0, &server.env) < 0) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	h2_config_init(&server.h2, true);
	server.h2.keep_headers = kept;
	if (listen_start(server.io, fd, &listen_opts, &listen_events, &server, &listener) < 0)
		return 1;
	printf("%u\n", ntohs(sa.sin_port));
	fflush(stdout);
	return io_run(server.io) < 0;
}

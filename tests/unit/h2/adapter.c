/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One of our sessions behind stdin and stdout, for test_peer.py to drive with
 * another HTTP/2 implementation. A command is a letter, a 32-bit length and a
 * body; the answer is any number of the same ('D' bytes for the peer, 'L' a
 * line of events) and an empty '.'. Streams whose authority begins with
 * "stall" are not consumed.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/chain.h"
#include "h2/session.h"

#define BODY_MAX (16u << 20)

struct adapter {
	struct chunk_pool pool;
	struct h2_env *env;
	struct h2_session *session;
	struct h2_stream *streams[4096]; /* by number */
	bool stalled[4096];
	uint64_t now;
};

static uint32_t get32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void put(char type, const void *bytes, size_t len)
{
	uint8_t head[5] = {
	        (uint8_t)type, (uint8_t)(len >> 24), (uint8_t)(len >> 16), (uint8_t)(len >> 8), (uint8_t)len};

	fwrite(head, 1, sizeof(head), stdout);
	if (len)
		fwrite(bytes, 1, len, stdout);
}

__attribute__((format(printf, 1, 2))) static void say(const char *fmt, ...)
{
	char line[512];
	va_list args;

	va_start(args, fmt);
	vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	put('L', line, strlen(line));
}

static void on_response(void *user, struct h2_stream *stream, int status, const struct h2_headers *headers)
{
	const char *baggage = h2_headers_get(headers, "baggage");

	say("response %u %d %s", h2_stream_id(stream), status, baggage ? baggage : "-");
}

static void on_data(void *user, struct h2_stream *stream, const uint8_t *bytes, size_t len)
{
	struct adapter *adapter = user;

	say("data %u %zu", h2_stream_id(stream), len);
	if (!adapter->stalled[h2_stream_id(stream)])
		h2_stream_consume(stream, len);
}

static void on_end(void *user, struct h2_stream *stream)
{
	say("end %u", h2_stream_id(stream));
}

static void on_reset(void *user, struct h2_stream *stream, const struct h2_reset *reset)
{
	say("reset %u %s %s", h2_stream_id(stream), h2_code_name(reset->code),
	        reset->is_remote ? "remote" : "own");
}

static void on_writable(void *user, struct h2_stream *stream)
{
	say("writable %u", h2_stream_id(stream));
}

static void on_drained(void *user, struct h2_stream *stream)
{
	say("drained %u", h2_stream_id(stream));
}

static const struct h2_stream_ops stream_ops = {
        .on_response = on_response,
        .on_data = on_data,
        .on_end = on_end,
        .on_reset = on_reset,
        .on_writable = on_writable,
        .on_drained = on_drained,
};

static const char *line_or_dash(const struct h2_headers *headers, const char *name)
{
	const char *value = h2_headers_get(headers, name);

	return value ? value : "-";
}

static void on_request(void *ctx, struct h2_stream *stream, const struct h2_headers *headers)
{
	struct adapter *adapter = ctx;
	const char *authority = line_or_dash(headers, ":authority");
	uint32_t id = h2_stream_id(stream);

	if (id >= 4096)
		abort();
	adapter->streams[id] = stream;
	adapter->stalled[id] = strncmp(authority, "stall", 5) == 0;
	h2_stream_bind(stream, &stream_ops, adapter);
	say("request %u %s %s %s", id, line_or_dash(headers, ":method"), authority,
	        line_or_dash(headers, "baggage"));
}

static void on_settings(void *ctx)
{
	say("settings %u", h2_peer_max_streams(((struct adapter *)ctx)->session));
}

static void on_goaway(void *ctx, uint32_t last, uint32_t code)
{
	say("goaway %u %s", last, h2_code_name(code));
}

static const struct h2_session_ops session_ops = {
        .on_request = on_request,
        .on_settings = on_settings,
        .on_goaway = on_goaway,
};

static void do_open(struct adapter *adapter, const char *authority)
{
	struct h2_header lines[] = {
	        {"baggage", "k8s.pod.name=a", false},
	        {"forwarded", "for=\"10.0.0.1:999\"", true},
	        {"traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00", true},
	};
	struct h2_stream *stream = NULL;
	int err = h2_connect(adapter->session, authority, lines, 3, &stream_ops, adapter, &stream);

	if (!err)
		adapter->streams[h2_stream_id(stream)] = stream;
	say("open %d %u", err, err ? 0 : h2_stream_id(stream));
}

static void do_write(struct adapter *adapter, struct h2_stream *stream, size_t len)
{
	struct chain chain = {0};
	int err;

	while (chain.len < len) {
		struct chunk *c = chunk_new(&adapter->pool, 15 * H2_DATA_MAX);
		size_t n = len - chain.len < 15 * H2_DATA_MAX ? len - chain.len : 15 * H2_DATA_MAX;

		for (size_t i = 0; i < n; i++)
			chunk_bytes(c)[i] = (uint8_t)((chain.len + i) % 251);
		c->len = (uint32_t)n;
		chain_append(&chain, c);
	}
	err = h2_stream_write(stream, &chain);
	chain_clear(&chain);
	say("write %d", err);
}

static void do_stream(struct adapter *adapter, char what, const uint8_t *body)
{
	struct h2_stream **at = &adapter->streams[get32(body) % 4096];
	struct h2_stream *stream = *at;
	uint32_t arg = get32(body + 4);

	switch (what) {
	case 'W':
		do_write(adapter, stream, arg);
		break;
	case 'E':
		say("end %d", h2_stream_end(stream));
		break;
	case 'S':
		say("respond %d", h2_respond(stream, (int)(arg & 0xffff), NULL, 0, arg >> 16));
		break;
	case 'C':
		h2_stream_consume(stream, arg ? arg : h2_stream_unconsumed(stream));
		break;
	case 'R':
		*at = NULL;
		h2_stream_release(stream);
		break;
	case 'X':
		*at = NULL;
		h2_stream_reset(stream, arg);
		break;
	default:
		abort();
	}
}

static void do_command(struct adapter *adapter, char what, uint8_t *body, size_t len)
{
	switch (what) {
	case 'D':
		say("feed %d", h2_feed(adapter->session, body, len, adapter->now));
		break;
	case 'T':
		adapter->now += get32(body);
		say("tick %d", h2_tick(adapter->session, adapter->now));
		break;
	case 'G':
		h2_drain(adapter->session);
		break;
	case 'I':
		h2_close_when_idle(adapter->session);
		break;
	case 'A':
		h2_goaway(adapter->session, get32(body));
		break;
	case 'O':
		body[len] = '\0';
		do_open(adapter, (const char *)body);
		break;
	default:
		do_stream(adapter, what, body);
		break;
	}
}

static void pull_all(struct adapter *adapter)
{
	const uint8_t *piece;
	size_t len;

	while (h2_pull(adapter->session, &piece, &len) == 1)
		put('D', piece, len);
	if (h2_is_over(adapter->session))
		say("over %s", h2_fault(adapter->session));
}

int main(int argc, char **argv)
{
	static struct adapter adapter;
	struct h2_config config;
	uint8_t *body = calloc(1, BODY_MAX + 8);
	uint8_t head[5];

	h2_config_init(&config, argc > 1 && strcmp(argv[1], "server") == 0);
	chunk_pool_init(&adapter.pool, 256u << 20);
	if (!body || h2_env_new(0, &adapter.env) ||
	        h2_session_new(adapter.env, &config, &session_ops, &adapter, 0, &adapter.session))
		return 1;
	while (fread(head, 1, sizeof(head), stdin) == sizeof(head)) {
		size_t len = get32(head + 1);

		if (len > BODY_MAX || fread(body, 1, len, stdin) != len)
			return 1;
		do_command(&adapter, (char)head[0], body, len);
		pull_all(&adapter);
		put('.', NULL, 0);
		fflush(stdout);
	}
	h2_session_free(adapter.session);
	h2_env_free(adapter.env);
	chunk_pool_done(&adapter.pool);
	free(body);
	return 0;
}

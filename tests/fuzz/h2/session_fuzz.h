/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the two HTTP/2 fuzz targets share: an owner whose doings are drawn from
 * the input, and the loop that feeds and pulls.
 */
#ifndef CULVERT_FUZZ_H2_SESSION_H
#define CULVERT_FUZZ_H2_SESSION_H

#include <stdlib.h>
#include <string.h>

#include "base/chain.h"
#include "base/check.h"
#include "h2/session.h"

#define FUZZ_STREAMS 64u

struct fuzz {
	struct chunk_pool pool;
	struct h2_env *env;
	struct h2_session *session;
	struct h2_stream *streams[FUZZ_STREAMS]; /* those not let go */
	unsigned stream_cnt;
	uint32_t choice; /* state of the generator of decisions */
	uint64_t now;
};

static unsigned fuzz_choose(struct fuzz *fuzz, unsigned cnt)
{
	fuzz->choice = fuzz->choice * 1664525u + 1013904223u;
	return (fuzz->choice >> 16) % cnt;
}

static void fuzz_forget(struct fuzz *fuzz, struct h2_stream *stream)
{
	for (unsigned i = 0; i < fuzz->stream_cnt; i++)
		if (fuzz->streams[i] == stream)
			fuzz->streams[i] = fuzz->streams[--fuzz->stream_cnt];
}

static void fuzz_write(struct fuzz *fuzz, struct h2_stream *stream)
{
	static const size_t sizes[] = {1, 100, 4096, H2_DATA_MAX, 3 * H2_DATA_MAX + 5};
	size_t len = sizes[fuzz_choose(fuzz, 5)];
	struct chunk *chunk = chunk_new(&fuzz->pool, len);
	struct chain chain = {0};

	if (!chunk)
		return;
	memset(chunk_bytes(chunk), 'w', len);
	chunk->len = (uint32_t)len;
	chain_append(&chain, chunk);
	h2_stream_write(stream, &chain);
	chain_clear(&chain);
}

/* One thing that an owner may do at any time. */
static void fuzz_act(struct fuzz *fuzz, struct h2_stream *stream)
{
	switch (fuzz_choose(fuzz, 10)) {
	case 0:
		fuzz_forget(fuzz, stream);
		h2_stream_release(stream);
		break;
	case 1:
		fuzz_forget(fuzz, stream);
		h2_stream_reset(stream, fuzz_choose(fuzz, 16));
		break;
	case 2:
		h2_stream_end(stream);
		break;
	case 3:
		h2_respond(stream, 200 + (int)fuzz_choose(fuzz, 300), NULL, 0, fuzz_choose(fuzz, 2));
		break;
	case 4:
	case 5:
	case 6:
		fuzz_write(fuzz, stream);
		break;
	case 7:
		h2_stream_consume(stream, h2_stream_unconsumed(stream));
		break;
	default:
		break;
	}
}

static void fuzz_on_head(void *user, struct h2_stream *stream, int status, const struct h2_headers *headers)
{
	struct h2_headers_it it = {0};

	ASSERT(status >= 200);
	while (h2_headers_next(headers, NULL, &it))
		ASSERT(strlen(it.value) == it.value_len);
	fuzz_act(user, stream);
}

static void fuzz_on_data(void *user, struct h2_stream *stream, const uint8_t *bytes, size_t len)
{
	ASSERT(len > 0 && h2_stream_unconsumed(stream) >= len);
	if (fuzz_choose(user, 4))
		h2_stream_consume(stream, len);
	fuzz_act(user, stream);
}

static void fuzz_on_event(void *user, struct h2_stream *stream)
{
	fuzz_act(user, stream);
}

static void fuzz_on_reset(void *user, struct h2_stream *stream, const struct h2_reset *reset)
{
	ASSERT(h2_reset_read_error(reset) <= 0 && h2_code_name(reset->code));
	fuzz_act(user, stream);
}

static void fuzz_on_trailers(void *user, struct h2_stream *stream, const struct h2_headers *headers)
{
	fuzz_act(user, stream);
}

static const struct h2_stream_ops fuzz_stream_ops = {
        .on_response = fuzz_on_head,
        .on_data = fuzz_on_data,
        .on_end = fuzz_on_event,
        .on_reset = fuzz_on_reset,
        .on_writable = fuzz_on_event,
        .on_drained = fuzz_on_event,
        .on_trailers = fuzz_on_trailers,
};

static void fuzz_on_request(void *ctx, struct h2_stream *stream, const struct h2_headers *headers)
{
	struct fuzz *fuzz = ctx;
	const char *method = h2_headers_get(headers, ":method");

	ASSERT(method && (strcmp(method, "CONNECT") != 0 || !h2_headers_get(headers, ":path")));
	if (fuzz->stream_cnt == FUZZ_STREAMS)
		return;
	fuzz->streams[fuzz->stream_cnt++] = stream;
	h2_stream_bind(stream, &fuzz_stream_ops, fuzz);
	fuzz_act(fuzz, stream);
}

static const struct h2_session_ops fuzz_session_ops = {.on_request = fuzz_on_request};

static void fuzz_open(struct fuzz *fuzz, bool is_server)
{
	struct h2_config config;

	memset(fuzz, 0, sizeof(*fuzz));
	chunk_pool_init(&fuzz->pool, 64u << 20);
	h2_config_init(&config, is_server);
	config.stream_window_start = 1000;
	config.conn_window_start = 70000;
	if (h2_env_new(1u << 20, &fuzz->env) ||
	        h2_session_new(fuzz->env, &config, &fuzz_session_ops, fuzz, 0, &fuzz->session))
		abort();
}

static void fuzz_pull(struct fuzz *fuzz, size_t max)
{
	const uint8_t *piece;
	size_t len;

	for (size_t done = 0; done < max && h2_pull(fuzz->session, &piece, &len) == 1; done += len)
		ASSERT(len > 0 && len <= H2_PIECE_MAX && piece[len - 1] + 1 > 0);
}

/* Between two inputs: time passes, owners act, output leaves or not. */
static void fuzz_between(struct fuzz *fuzz)
{
	fuzz->now += fuzz_choose(fuzz, 3) * 4000;
	h2_tick(fuzz->session, fuzz->now);
	if (fuzz->stream_cnt)
		fuzz_act(fuzz, fuzz->streams[fuzz_choose(fuzz, fuzz->stream_cnt)]);
	switch (fuzz_choose(fuzz, 40)) {
	case 0:
		h2_drain(fuzz->session);
		break;
	case 1:
		h2_close_when_idle(fuzz->session);
		break;
	case 2:
		h2_goaway(fuzz->session, H2_INTERNAL_ERROR);
		break;
	case 3:
		h2_abort(fuzz->session, 0);
		break;
	default:
		break;
	}
	if (fuzz_choose(fuzz, 4))
		fuzz_pull(fuzz, fuzz_choose(fuzz, 4) ? SIZE_MAX : 20000);
}

/* The input in slices; its first byte seeds the decisions. */
static void fuzz_feed(struct fuzz *fuzz, const uint8_t *data, size_t len)
{
	fuzz->choice = len ? data[0] : 0;
	for (size_t at = 1; at < len;) {
		size_t n = 1 + fuzz_choose(fuzz, 200);

		if (n > len - at)
			n = len - at;
		h2_feed(fuzz->session, data + at, n, fuzz->now);
		at += n;
		fuzz_between(fuzz);
	}
}

static void fuzz_close(struct fuzz *fuzz)
{
	fuzz_pull(fuzz, SIZE_MAX);
	h2_abort(fuzz->session, 0);
	while (fuzz->stream_cnt) {
		h2_stream_release(fuzz->streams[fuzz->stream_cnt - 1]);
		fuzz->stream_cnt--;
	}
	h2_session_free(fuzz->session);
	ASSERT(h2_env_budget(fuzz->env)->used == 0);
	h2_env_free(fuzz->env);
	ASSERT(fuzz->pool.used == 0);
	chunk_pool_done(&fuzz->pool);
}

#endif

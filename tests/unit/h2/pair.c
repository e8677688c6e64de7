/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The bench of pair.h.
 */
#include "pair.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MANY 4096

static void act(struct rec *rec, char what)
{
	struct h2_stream *stream = rec->stream;

	if (!what)
		return;
	rec->stream = NULL;
	if (what == 'r')
		h2_stream_release(stream);
	else
		h2_stream_reset(stream, H2_CANCEL);
}

static void copy_line(char *dst, size_t cap, const struct h2_headers *headers, const char *name)
{
	const char *value = h2_headers_get(headers, name);

	snprintf(dst, cap, "%s", value ? value : "-");
}

static void on_response(void *user, struct h2_stream *stream, int status, const struct h2_headers *headers)
{
	struct rec *rec = user;

	rec->responses++;
	rec->status = status;
	copy_line(rec->baggage, sizeof(rec->baggage), headers, "baggage");
	act(rec, rec->on_response_do);
}

static uint64_t sum_add(uint64_t sum, size_t at, const uint8_t *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		sum += (at + i + 1) * (uint64_t)bytes[i];
	return sum;
}

static void on_data(void *user, struct h2_stream *stream, const uint8_t *bytes, size_t len)
{
	struct rec *rec = user;

	assert_true(len > 0);
	assert_ptr_equal(stream, rec->stream);
	rec->data_sum = sum_add(rec->data_sum, rec->data_len, bytes, len);
	rec->data_len += len;
	if (!rec->is_lazy)
		h2_stream_consume(stream, len);
	act(rec, rec->on_data_do);
}

static void on_end(void *user, struct h2_stream *stream)
{
	struct rec *rec = user;

	rec->ends++;
	assert_int_equal(rec->resets, 0);
	act(rec, rec->on_end_do);
}

static void on_reset(void *user, struct h2_stream *stream, const struct h2_reset *reset)
{
	struct rec *rec = user;

	rec->resets++;
	rec->reset = *reset;
	act(rec, rec->on_reset_do);
}

static void on_writable(void *user, struct h2_stream *stream)
{
	struct rec *rec = user;

	rec->writables++;
}

static void on_drained(void *user, struct h2_stream *stream)
{
	struct rec *rec = user;

	rec->drains++;
	act(rec, rec->on_drained_do);
}

static void on_trailers(void *user, struct h2_stream *stream, const struct h2_headers *headers)
{
	struct rec *rec = user;

	rec->trailers++;
	copy_line(rec->baggage, sizeof(rec->baggage), headers, "baggage");
}

const struct h2_stream_ops rec_ops = {
        .on_response = on_response,
        .on_data = on_data,
        .on_end = on_end,
        .on_reset = on_reset,
        .on_writable = on_writable,
        .on_drained = on_drained,
        .on_trailers = on_trailers,
};

static void on_request(void *ctx, struct h2_stream *stream, const struct h2_headers *headers)
{
	struct end *end = ctx;
	struct rec *rec = &end->recs[end->rec_cnt++];

	assert_true(end->rec_cnt <= end->rec_max);
	rec->stream = stream;
	rec->end = end;
	rec->is_lazy = end->is_lazy;
	copy_line(rec->baggage, sizeof(rec->baggage), headers, "baggage");
	copy_line(rec->authority, sizeof(rec->authority), headers, ":authority");
	copy_line(rec->method, sizeof(rec->method), headers, ":method");
	if (end->is_unbound)
		return;
	if (end->on_request_do != 'r')
		h2_stream_bind(stream, &rec_ops, rec);
	if (end->answer)
		assert_int_equal(h2_respond(stream, end->answer, NULL, 0, end->answer_end), 0);
	if (end->answer && end->answer_end) {
		rec->stream = NULL;
		h2_stream_release(stream);
	} else {
		act(rec, end->on_request_do);
	}
}

static void on_settings(void *ctx)
{
	((struct end *)ctx)->settings++;
}

static void on_stream_room(void *ctx)
{
	((struct end *)ctx)->rooms++;
}

static void on_goaway(void *ctx, uint32_t last, uint32_t code)
{
	struct end *end = ctx;

	end->goaways++;
	end->goaway_last = last;
	end->goaway_code = code;
}

const struct h2_session_ops end_ops = {
        .on_request = on_request,
        .on_settings = on_settings,
        .on_stream_room = on_stream_room,
        .on_goaway = on_goaway,
};

void end_open(struct end *end, uint64_t now)
{
	assert_int_equal(h2_env_new(0, &end->env), 0);
	end->rec_max = MANY;
	end->recs = calloc(MANY, sizeof(*end->recs));
	assert_int_equal(h2_session_new(end->env, &end->config, &end_ops, end, now, &end->session), 0);
}

void end_close(struct end *end)
{
	h2_session_free(end->session);
	h2_env_free(end->env);
	free(end->recs);
}

struct pair *pair_new(void (*tune)(struct h2_config *client, struct h2_config *server))
{
	struct pair *pair = calloc(1, sizeof(*pair));

	chunk_pool_init(&pair->pool, 256u << 20);
	pair->now = 1000000;
	h2_config_init(&pair->client.config, false);
	h2_config_init(&pair->server.config, true);
	if (tune)
		tune(&pair->client.config, &pair->server.config);
	end_open(&pair->client, pair->now);
	end_open(&pair->server, pair->now);
	pair->server.answer = 200;
	return pair;
}

void pair_free(struct pair *pair)
{
	end_close(&pair->client);
	end_close(&pair->server);
	assert_int_equal(pair->pool.used, 0);
	chunk_pool_done(&pair->pool);
	free(pair);
}

size_t end_pump(struct end *from, struct end *to, uint64_t now, size_t max)
{
	size_t moved = 0;
	const uint8_t *piece;
	size_t len;

	while (moved < max && h2_pull(from->session, &piece, &len) == 1) {
		uint8_t *copy = malloc(len);

		assert_true(len <= H2_PIECE_MAX);
		memcpy(copy, piece, len);
		from->pieces++;
		if (len > from->piece_max)
			from->piece_max = len;
		h2_feed(to->session, copy, len, now);
		free(copy);
		moved += len;
	}
	from->sent += moved;
	return moved;
}

void pair_pump(struct pair *pair)
{
	while (end_pump(&pair->client, &pair->server, pair->now, SIZE_MAX) +
	        end_pump(&pair->server, &pair->client, pair->now, SIZE_MAX))
		;
}

int pair_connect(struct pair *pair, struct rec *rec, const char *authority)
{
	struct h2_header lines[] = {
	        {"baggage", "k8s.pod.name=a", false}, {"traceparent", "00-aa-bb-00", true}};

	rec->end = &pair->client;
	return h2_connect(pair->client.session, authority, lines, 2, &rec_ops, rec, &rec->stream);
}

static uint8_t pattern(size_t at)
{
	return (uint8_t)(at * 31 + (at >> 8) + 7);
}

uint64_t pattern_sum(size_t len)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < len; i++)
		sum += (i + 1) * (uint64_t)pattern(i);
	return sum;
}

int rec_write(struct pair *pair, struct rec *rec, size_t len, size_t each, size_t seed)
{
	struct chain chain = {0};
	int err;

	for (size_t at = 0; at < len;) {
		size_t n = each && each < len - at ? each : len - at;
		struct chunk *c = chunk_new(&pair->pool, n);

		if (n > chunk_room(c))
			n = chunk_room(c);
		for (size_t i = 0; i < n; i++)
			chunk_bytes(c)[i] = pattern(seed + at + i);
		c->len = (uint32_t)n;
		chain_append(&chain, c);
		at += n;
	}
	err = h2_stream_write(rec->stream, &chain);
	if (err < 0)
		assert_int_equal(chain.len, len);
	else
		assert_int_equal(chain.len, 0);
	chain_clear(&chain);
	return err;
}

void wire_raw(struct wire *wire, const void *bytes, size_t len)
{
	assert_true(wire->len + len <= sizeof(wire->bytes));
	memcpy(wire->bytes + wire->len, bytes, len);
	wire->len += len;
}

void wire_frame(
        struct wire *wire, uint8_t type, uint8_t flags, uint32_t stream, const void *payload, size_t len)
{
	uint8_t head[9] = {(uint8_t)(len >> 16), (uint8_t)(len >> 8), (uint8_t)len, type, flags,
	        (uint8_t)(stream >> 24), (uint8_t)(stream >> 16), (uint8_t)(stream >> 8), (uint8_t)stream};

	wire_raw(wire, head, sizeof(head));
	if (len)
		wire_raw(wire, payload, len);
}

void wire_hello(struct wire *wire)
{
	wire_raw(wire, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 24);
	wire_frame(wire, F_SETTINGS, 0, 0, NULL, 0);
}

/* RFC 7541 section 5.1 with a 7-bit prefix. */
static void put_string(uint8_t *block, size_t *at, const char *s)
{
	size_t len = strlen(s);

	assert_true(len < 127 + 128 * 127);
	if (len < 127) {
		block[(*at)++] = (uint8_t)len;
	} else {
		block[(*at)++] = 127;
		block[(*at)++] = (uint8_t)((len - 127) % 128 | 128);
		block[(*at)++] = (uint8_t)((len - 127) / 128);
	}
	memcpy(block + *at, s, len);
	*at += len;
}

void wire_headers(struct wire *wire, uint8_t flags, uint32_t stream, ...)
{
	static uint8_t block[16384];
	size_t len = 0;
	va_list args;

	va_start(args, stream);
	for (const char *name = va_arg(args, const char *); name; name = va_arg(args, const char *)) {
		block[len++] = 0;
		put_string(block, &len, name);
		put_string(block, &len, va_arg(args, const char *));
	}
	va_end(args);
	wire_frame(wire, F_HEADERS, flags, stream, block, len);
}

int wire_feed(struct wire *wire, struct end *end, uint64_t now)
{
	/* Exactly sized, so that a sanitizer sees reads past the end. */
	uint8_t *copy = malloc(wire->len ? wire->len : 1);
	int err;

	memcpy(copy, wire->bytes, wire->len);
	err = h2_feed(end->session, copy, wire->len, now);
	free(copy);
	wire->len = 0;
	return err;
}

uint32_t be32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

size_t end_frames(struct end *end, struct seen *seen, size_t max)
{
	static uint8_t all[4u << 20];
	size_t len = 0;
	size_t at = 0;
	size_t cnt = 0;
	const uint8_t *piece;
	size_t piece_len;

	while (h2_pull(end->session, &piece, &piece_len) == 1) {
		assert_true(len + piece_len <= sizeof(all));
		memcpy(all + len, piece, piece_len);
		len += piece_len;
	}
	if (len >= 24 && memcmp(all, "PRI * HTTP/2.0\r\n", 16) == 0)
		at = 24;
	for (; at < len; cnt++) {
		struct seen *s = &seen[cnt];

		assert_true(cnt < max);
		s->len = be32(all + at) >> 8;
		s->type = all[at + 3];
		s->flags = all[at + 4];
		s->stream = be32(all + at + 5);
		memcpy(s->payload, all + at + 9, s->len < sizeof(s->payload) ? s->len : sizeof(s->payload));
		at += 9 + s->len;
	}
	assert_int_equal(at, len);
	return cnt;
}

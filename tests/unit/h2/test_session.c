/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Connections: what is announced, PINGs, GOAWAY, draining, floods, limits.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pair.h"

static struct seen seen[4096];
static struct wire wire;

static void open_one(struct end *end, bool is_server)
{
	memset(end, 0, sizeof(*end));
	h2_config_init(&end->config, is_server);
	end_open(end, 1000);
}

static void assert_setting(const struct seen *s, int nth, uint16_t id, uint32_t value)
{
	const uint8_t *p = s->payload + nth * 6;

	assert_int_equal(p[0] << 8 | p[1], id);
	assert_int_equal(be32(p + 2), value);
}

static void announces_server(void **state)
{
	struct end end;

	open_one(&end, true);
	assert_int_equal(end_frames(&end, seen, 8), 2);
	assert_int_equal(seen[0].type, F_SETTINGS);
	assert_int_equal(seen[0].len, 24);
	assert_setting(&seen[0], 0, 3, 200);
	assert_setting(&seen[0], 1, 4, 262144);
	assert_setting(&seen[0], 2, 5, 1048576);
	assert_setting(&seen[0], 3, 6, 65536);
	assert_int_equal(seen[1].type, F_WINDOW);
	assert_int_equal(seen[1].stream, 0);
	assert_int_equal(be32(seen[1].payload), 1048576 - 65535);
	end_close(&end);
}

static void announces_client(void **state)
{
	struct end end;
	const uint8_t *piece;
	size_t len;

	open_one(&end, false);
	assert_int_equal(h2_pull(end.session, &piece, &len), 1);
	/* Preface, SETTINGS and WINDOW_UPDATE leave as one record. */
	assert_int_equal(len, 24 + 9 + 24 + 13);
	assert_memory_equal(piece, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 24);
	memcpy(seen[0].payload, piece + 33, 24);
	assert_setting(&seen[0], 0, 2, 0);
	assert_setting(&seen[0], 1, 4, 262144);
	assert_setting(&seen[0], 2, 5, 1048576);
	assert_setting(&seen[0], 3, 6, 16384);
	assert_int_equal(h2_pull(end.session, &piece, &len), 0);
	assert_false(h2_wants_pull(end.session));
	end_close(&end);
}

static void announces_small_maxima(void **state)
{
	struct end end = {0};

	h2_config_init(&end.config, true);
	end.config.stream_window_max = 100000;
	end.config.conn_window_max = 200000;
	end_open(&end, 0);
	assert_int_equal(end_frames(&end, seen, 8), 2);
	assert_setting(&seen[0], 1, 4, 100000);
	assert_int_equal(be32(seen[1].payload), 200000 - 65535);
	end_close(&end);
}

static void refuses_bad_config(void **state)
{
	struct h2_env *env;
	struct h2_session *session = NULL;
	struct h2_config good, bad;

	assert_int_equal(h2_env_new(0, &env), 0);
	h2_config_init(&good, true);
	bad = good;
	bad.frame_max = 16383;
	assert_int_equal(h2_session_new(env, &bad, &end_ops, NULL, 0, &session), -EINVAL);
	bad = good;
	bad.frame_max = 1u << 24;
	assert_int_equal(h2_session_new(env, &bad, &end_ops, NULL, 0, &session), -EINVAL);
	bad = good;
	bad.stream_window_max = 1u << 31;
	assert_int_equal(h2_session_new(env, &bad, &end_ops, NULL, 0, &session), -EINVAL);
	bad = good;
	bad.stream_window_max = 0;
	assert_int_equal(h2_session_new(env, &bad, &end_ops, NULL, 0, &session), -EINVAL);
	bad = good;
	bad.max_streams = 0;
	assert_int_equal(h2_session_new(env, &bad, &end_ops, NULL, 0, &session), -EINVAL);
	bad = good;
	bad.queue_low = bad.queue_high + 1;
	assert_int_equal(h2_session_new(env, &bad, &end_ops, NULL, 0, &session), -EINVAL);
	assert_null(session);
	assert_int_equal(h2_env_budget(env)->used, 0);
	h2_env_free(env);
}

static void settings_are_exchanged(void **state)
{
	struct pair *pair = pair_new(NULL);

	assert_false(h2_settings_seen(pair->client.session));
	assert_int_equal(h2_peer_max_streams(pair->client.session), 100);
	assert_true(h2_can_open(pair->client.session));
	assert_false(h2_can_open(pair->server.session));
	pair_pump(pair);
	assert_true(h2_settings_seen(pair->client.session));
	assert_int_equal(pair->client.settings, 1);
	assert_int_equal(pair->server.settings, 1);
	assert_int_equal(h2_peer_max_streams(pair->client.session), 200);
	assert_int_equal(pair->client.rooms, 1);
	assert_false(h2_is_over(pair->client.session));
	pair_free(pair);
}

static void bad_preface_is_an_error(void **state)
{
	struct end end;
	const uint8_t *piece;
	size_t len;

	open_one(&end, true);
	wire_raw(&wire, "GET / HTTP/1.1\r\n\r\n", 18);
	assert_int_equal(wire_feed(&wire, &end, 1000), -EPROTO);
	assert_true(h2_is_over(end.session));
	assert_true(h2_fault(end.session)[0] != '\0');
	assert_int_equal(h2_pull(end.session, &piece, &len), -EPROTO);
	assert_int_equal(h2_feed(end.session, (const uint8_t *)"x", 1, 1000), -EPROTO);
	end_close(&end);
}

static void first_frame_must_be_settings(void **state)
{
	struct end end;
	size_t cnt;

	open_one(&end, true);
	wire_raw(&wire, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 24);
	wire_frame(&wire, F_PING, 0, 0, "12345678", 8);
	assert_int_equal(wire_feed(&wire, &end, 1000), 0);
	cnt = end_frames(&end, seen, 8);
	assert_int_equal(seen[cnt - 1].type, F_GOAWAY);
	assert_int_equal(be32(seen[cnt - 1].payload + 4), H2_PROTOCOL_ERROR);
	assert_true(h2_is_over(end.session));
	assert_string_equal(h2_fault(end.session), "SETTINGS expected");
	end_close(&end);
}

static void pings_keep_time(void **state)
{
	struct pair *pair = pair_new(NULL);
	struct h2_session *client = pair->client.session;
	uint64_t start = pair->now;

	pair_pump(pair);
	assert_int_equal(h2_deadline(client), start + 10000);
	assert_int_equal(h2_rtt_ms(client), -1);
	assert_int_equal(h2_tick(client, start + 9999), 0);
	assert_false(h2_wants_pull(client));
	assert_int_equal(h2_tick(client, start + 10000), 0);
	assert_true(h2_wants_pull(client));
	assert_int_equal(h2_deadline(client), start + 30000);
	pair->now = start + 10007;
	pair_pump(pair);
	assert_int_equal(h2_rtt_ms(client), 7);
	/* The next comes 10 s after the answer, not after the question. */
	assert_int_equal(h2_deadline(client), start + 20007);
	assert_int_equal(h2_tick(client, start + 30000), 0);
	assert_int_equal(h2_tick(client, start + 49999), 0);
	assert_int_equal(h2_tick(client, start + 50000), -ETIMEDOUT);
	assert_string_equal(h2_fault(client), "no answer to PING");
	pair_free(pair);
}

static void dead_peer_after_30_s(void **state)
{
	struct end end;
	size_t cnt;

	open_one(&end, true);
	assert_int_equal(h2_tick(end.session, 11000), 0);
	assert_int_equal(h2_tick(end.session, 30999), 0);
	assert_int_equal(h2_tick(end.session, 31000), -ETIMEDOUT);
	assert_int_equal(h2_goaway(end.session, H2_NO_ERROR), 0);
	cnt = end_frames(&end, seen, 8);
	assert_int_equal(seen[cnt - 1].type, F_GOAWAY);
	assert_int_equal(be32(seen[cnt - 1].payload + 4), H2_NO_ERROR);
	assert_true(h2_is_over(end.session));
	end_close(&end);
}

static void wrong_pong_does_not_count(void **state)
{
	struct end end;

	open_one(&end, true);
	wire_hello(&wire);
	assert_int_equal(wire_feed(&wire, &end, 1000), 0);
	assert_int_equal(h2_tick(end.session, 11000), 0);
	end_frames(&end, seen, 16);
	wire_frame(&wire, F_PING, FLAG_ACK, 0, "\0\0\0\0\0\0\0\2", 8);
	wire_frame(&wire, F_PING, FLAG_ACK, 0, "\377\377\377\377\377\377\377\377", 8);
	assert_int_equal(wire_feed(&wire, &end, 12000), 0);
	assert_int_equal(h2_deadline(end.session), 31000);
	wire_frame(&wire, F_PING, FLAG_ACK, 0, "\0\0\0\0\0\0\0\1", 8);
	assert_int_equal(wire_feed(&wire, &end, 12000), 0);
	assert_int_equal(h2_rtt_ms(end.session), 1000);
	assert_int_equal(h2_deadline(end.session), 22000);
	end_close(&end);
}

static void no_pings_tune(struct h2_config *client, struct h2_config *server)
{
	client->ping_interval_ms = 0;
}

static void pings_can_be_off(void **state)
{
	struct pair *pair = pair_new(no_pings_tune);

	assert_true(h2_deadline(pair->client.session) == H2_NEVER);
	assert_int_equal(h2_tick(pair->client.session, UINT64_MAX - 1), 0);
	pair_free(pair);
}

static void drain_is_goaway_ping_goaway(void **state)
{
	struct end end;
	size_t cnt;

	open_one(&end, true);
	wire_hello(&wire);
	wire_headers(&wire, FLAG_END_HEADERS, 1, ":method", "CONNECT", ":authority", "a:1", NULL);
	assert_int_equal(wire_feed(&wire, &end, 1000), 0);
	end_frames(&end, seen, 16);
	assert_int_equal(h2_drain(end.session), 0);
	assert_int_equal(h2_drain(end.session), 0);
	assert_true(h2_deadline(end.session) == H2_NEVER);
	assert_int_equal(end_frames(&end, seen, 16), 2);
	assert_int_equal(seen[0].type, F_GOAWAY);
	assert_int_equal(be32(seen[0].payload), 0x7fffffff);
	assert_int_equal(be32(seen[0].payload + 4), H2_NO_ERROR);
	assert_int_equal(seen[1].type, F_PING);
	assert_int_equal(seen[1].flags, 0);
	/* A stream that crosses the first GOAWAY is served and counted in the last. */
	wire_headers(&wire, FLAG_END_HEADERS, 3, ":method", "CONNECT", ":authority", "a:1", NULL);
	wire_frame(&wire, F_PING, FLAG_ACK, 0, seen[1].payload, 8);
	assert_int_equal(wire_feed(&wire, &end, 1000), 0);
	assert_int_equal(end.rec_cnt, 2);
	cnt = end_frames(&end, seen, 16);
	assert_int_equal(cnt, 1);
	assert_int_equal(seen[0].type, F_GOAWAY);
	assert_int_equal(be32(seen[0].payload), 3);
	assert_int_equal(be32(seen[0].payload + 4), H2_NO_ERROR);
	assert_false(h2_is_over(end.session));
	/* Later ones are not. */
	wire_headers(&wire, FLAG_END_HEADERS, 5, ":method", "CONNECT", ":authority", "a:1", NULL);
	assert_int_equal(wire_feed(&wire, &end, 1000), 0);
	assert_int_equal(end.rec_cnt, 2);
	h2_stream_reset(end.recs[0].stream, H2_CANCEL);
	h2_stream_reset(end.recs[1].stream, H2_CANCEL);
	end_frames(&end, seen, 16);
	assert_true(h2_is_over(end.session));
	end_close(&end);
}

static void drain_seen_by_client(void **state)
{
	struct pair *pair = pair_new(NULL);
	struct rec a = {0}, b = {0};

	assert_int_equal(pair_connect(pair, &a, "a:1"), 0);
	pair_pump(pair);
	assert_int_equal(h2_drain(pair->client.session), -EINVAL);
	assert_int_equal(h2_drain(pair->server.session), 0);
	pair_pump(pair);
	assert_int_equal(pair->client.goaways, 2);
	assert_int_equal(pair->client.goaway_last, 1);
	assert_true(h2_goaway_seen(pair->client.session));
	assert_false(h2_can_open(pair->client.session));
	assert_int_equal(pair_connect(pair, &b, "b:1"), -EAGAIN);
	/* The stream goes on and ends in peace, and then it is over. */
	assert_int_equal(rec_write(pair, &a, 1000, 0, 0), 0);
	assert_int_equal(h2_stream_end(a.stream), 0);
	pair_pump(pair);
	assert_int_equal(pair->server.recs[0].data_len, 1000);
	assert_false(h2_is_over(pair->client.session));
	assert_int_equal(h2_stream_end(pair->server.recs[0].stream), 0);
	pair_pump(pair);
	assert_int_equal(a.ends, 1);
	assert_int_equal(a.resets, 0);
	assert_true(h2_is_over(pair->client.session));
	assert_true(h2_is_over(pair->server.session));
	pair_free(pair);
}

static void client_closes_when_idle(void **state)
{
	struct pair *pair = pair_new(NULL);
	struct rec a = {0}, b = {0};

	assert_int_equal(pair_connect(pair, &a, "a:1"), 0);
	pair_pump(pair);
	assert_int_equal(h2_close_when_idle(pair->client.session), 0);
	assert_int_equal(pair_connect(pair, &b, "b:1"), -EAGAIN);
	pair_pump(pair);
	assert_int_equal(pair->server.goaways, 1);
	assert_int_equal(pair->server.goaway_code, H2_NO_ERROR);
	assert_false(h2_is_over(pair->client.session));
	assert_int_equal(h2_stream_end(a.stream), 0);
	assert_int_equal(h2_stream_end(pair->server.recs[0].stream), 0);
	pair_pump(pair);
	assert_int_equal(a.ends, 1);
	assert_true(h2_is_over(pair->client.session));
	assert_true(h2_is_over(pair->server.session));
	pair_free(pair);
}

static void goaway_refuses_unserved(void **state)
{
	struct end end;
	struct rec a = {0}, b = {0};

	open_one(&end, false);
	assert_int_equal(h2_connect(end.session, "a:1", NULL, 0, &rec_ops, &a, &a.stream), 0);
	assert_int_equal(h2_connect(end.session, "b:1", NULL, 0, &rec_ops, &b, &b.stream), 0);
	end_frames(&end, seen, 16);
	wire_frame(&wire, F_SETTINGS, 0, 0, NULL, 0);
	wire_frame(&wire, F_GOAWAY, 0, 0, "\0\0\0\1\0\0\0\0", 8);
	assert_int_equal(wire_feed(&wire, &end, 1000), 0);
	assert_int_equal(a.resets, 0);
	assert_int_equal(b.resets, 1);
	assert_int_equal(b.reset.code, H2_REFUSED_STREAM);
	assert_true(b.reset.is_remote);
	assert_int_equal(end.goaway_last, 1);
	/* The transport ends: after a GOAWAY NO_ERROR that is a clean end. */
	h2_abort(end.session, 0);
	assert_int_equal(a.resets, 1);
	assert_int_equal(h2_reset_read_error(&a.reset), 0);
	assert_int_equal(b.resets, 1);
	h2_stream_release(a.stream);
	h2_stream_release(b.stream);
	end_close(&end);
}

static void unsent_requests_fall_to_goaway(void **state)
{
	struct end end;
	struct rec a = {0};

	open_one(&end, false);
	end_frames(&end, seen, 16);
	wire_frame(&wire, F_SETTINGS, 0, 0, NULL, 0);
	assert_int_equal(h2_connect(end.session, "a:1", NULL, 0, &rec_ops, &a, &a.stream), 0);
	wire_frame(&wire, F_GOAWAY, 0, 0, "\0\0\0\0\0\0\0\0", 8);
	assert_int_equal(wire_feed(&wire, &end, 1000), 0);
	end_frames(&end, seen, 16);
	end_frames(&end, seen, 16);
	assert_int_equal(a.resets, 1);
	assert_int_equal(a.reset.code, H2_REFUSED_STREAM);
	assert_true(a.reset.is_remote);
	h2_stream_release(a.stream);
	assert_int_equal(h2_streams_in_use(end.session), 0);
	end_close(&end);
}

static void abort_tells_streams(void **state)
{
	struct pair *pair = pair_new(NULL);
	struct rec a = {.on_reset_do = 'r'}, b = {0};

	assert_int_equal(pair_connect(pair, &a, "a:1"), 0);
	assert_int_equal(pair_connect(pair, &b, "b:1"), 0);
	pair_pump(pair);
	assert_int_equal(rec_write(pair, &a, 100000, 0, 0), 0);
	h2_abort(pair->client.session, -ECONNRESET);
	h2_abort(pair->client.session, -EIO);
	assert_int_equal(a.resets, 1);
	assert_int_equal(b.resets, 1);
	assert_int_equal(h2_reset_read_error(&b.reset), -ECONNRESET);
	assert_true(h2_is_over(pair->client.session));
	assert_false(h2_wants_pull(pair->client.session));
	assert_false(h2_can_open(pair->client.session));
	assert_int_equal(rec_write(pair, &b, 10, 0, 0), -EPIPE);
	assert_int_equal(h2_stream_end(b.stream), -EPIPE);
	assert_int_equal(end_pump(&pair->client, &pair->server, pair->now, SIZE_MAX), 0);
	h2_stream_reset(b.stream, H2_CANCEL);
	/* Lost without a word: broken pipe. */
	h2_abort(pair->server.session, 0);
	assert_int_equal(pair->server.recs[0].resets, 1);
	assert_int_equal(h2_reset_read_error(&pair->server.recs[0].reset), -EPIPE);
	pair_free(pair);
}

static void fault_of(const char *name, void (*make)(void), uint32_t code)
{
	struct end end;
	size_t cnt;

	open_one(&end, true);
	wire_hello(&wire);
	make();
	assert_int_equal(wire_feed(&wire, &end, 1000), 0);
	cnt = end_frames(&end, seen, 4096);
	if (seen[cnt - 1].type != F_GOAWAY || be32(seen[cnt - 1].payload + 4) != code)
		fail_msg("%s: frame type %d, code %s", name, seen[cnt - 1].type,
		        h2_code_name(be32(seen[cnt - 1].payload + 4)));
	assert_true(h2_is_over(end.session));
	if (h2_fault(end.session)[0] == '\0')
		fail_msg("%s: no text", name);
	end_close(&end);
}

static void make_data_on_idle(void)
{
	wire_frame(&wire, F_DATA, 0, 1, "x", 1);
}

static void make_even_stream(void)
{
	wire_headers(&wire, FLAG_END_HEADERS, 2, ":method", "CONNECT", ":authority", "a:1", NULL);
}

static void make_zero_increment(void)
{
	wire_frame(&wire, F_WINDOW, 0, 0, "\0\0\0\0", 4);
}

static void make_window_overflow(void)
{
	wire_frame(&wire, F_WINDOW, 0, 0, "\177\377\377\377", 4);
}

static void make_bad_hpack(void)
{
	wire_frame(&wire, F_HEADERS, FLAG_END_HEADERS, 1, "\377\377\377\377\377\377\377", 7);
}

static void make_short_ping(void)
{
	wire_frame(&wire, F_PING, 0, 0, "1234567", 7);
}

static void make_big_frame(void)
{
	uint8_t head[9] = {0x10, 0, 1, F_DATA, 0, 0, 0, 0, 1};

	wire_raw(&wire, head, 9);
}

static void make_lone_continuation(void)
{
	wire_frame(&wire, F_CONT, FLAG_END_HEADERS, 1, "", 0);
}

static void make_torn_headers(void)
{
	wire_headers(&wire, 0, 1, ":method", "CONNECT", NULL);
	wire_frame(&wire, F_PING, 0, 0, "12345678", 8);
}

static void make_push(void)
{
	wire_frame(&wire, F_PUSH, FLAG_END_HEADERS, 1, "\0\0\0\2", 4);
}

static void make_priority_flood(void)
{
	for (int i = 0; i < 2500; i++)
		wire_frame(&wire, F_PRIORITY, 0, 3, "\0\0\0\0\20", 5);
}

static void make_empty_data_flood(void)
{
	wire_headers(&wire, FLAG_END_HEADERS, 1, ":method", "CONNECT", ":authority", "a:1", NULL);
	for (int i = 0; i < 2500; i++)
		wire_frame(&wire, F_DATA, 0, 1, "", 0);
}

static void make_rapid_reset(void)
{
	for (uint32_t i = 0; i < 1200; i++) {
		wire_headers(
		        &wire, FLAG_END_HEADERS, 2 * i + 1, ":method", "CONNECT", ":authority", "a:1", NULL);
		wire_frame(&wire, F_RST, 0, 2 * i + 1, "\0\0\0\10", 4);
	}
}

static void make_malformed_flood(void)
{
	for (uint32_t i = 0; i < 1200; i++) {
		wire_headers(&wire, FLAG_END_HEADERS, 2 * i + 1, ":method", "CONNECT", ":path", "/", NULL);
		wire_frame(&wire, F_RST, 0, 2 * i + 1, "\0\0\0\10", 4);
	}
}

static void make_continuation_flood(void)
{
	wire_headers(&wire, 0, 1, ":method", "CONNECT", NULL);
	for (int i = 0; i < 20; i++)
		wire_frame(&wire, F_CONT, 0, 1, "\0\1x\1y", 5);
}

/* One line in the compression table, then named again and again: 1 byte each. */
static void make_header_bomb(void)
{
	static uint8_t block[16000];
	char big[3001];
	size_t at = 0;

	memset(big, 'x', 3000);
	big[3000] = '\0';
	block[at++] = 0x40;
	block[at++] = 1;
	block[at++] = 'b';
	block[at++] = 127;
	block[at++] = (3000 - 127) % 128 | 128;
	block[at++] = (3000 - 127) / 128;
	memcpy(block + at, big, 3000);
	at += 3000;
	memset(block + at, 0x80 | 62, sizeof(block) - at);
	wire_frame(&wire, F_HEADERS, FLAG_END_HEADERS, 1, block, sizeof(block));
}

static void faults(void **state)
{
	fault_of("DATA on an idle stream", make_data_on_idle, H2_PROTOCOL_ERROR);
	fault_of("even stream", make_even_stream, H2_PROTOCOL_ERROR);
	fault_of("increment 0", make_zero_increment, H2_PROTOCOL_ERROR);
	fault_of("window overflow", make_window_overflow, H2_FLOW_CONTROL_ERROR);
	fault_of("HPACK", make_bad_hpack, H2_COMPRESSION_ERROR);
	fault_of("short PING", make_short_ping, H2_FRAME_SIZE_ERROR);
	fault_of("big frame", make_big_frame, H2_FRAME_SIZE_ERROR);
	fault_of("lone CONTINUATION", make_lone_continuation, H2_PROTOCOL_ERROR);
	fault_of("torn HEADERS", make_torn_headers, H2_PROTOCOL_ERROR);
	fault_of("PUSH_PROMISE", make_push, H2_PROTOCOL_ERROR);
}

static void floods(void **state)
{
	fault_of("PRIORITY", make_priority_flood, H2_ENHANCE_YOUR_CALM);
	fault_of("empty DATA", make_empty_data_flood, H2_ENHANCE_YOUR_CALM);
	fault_of("rapid reset", make_rapid_reset, H2_ENHANCE_YOUR_CALM);
	fault_of("malformed requests", make_malformed_flood, H2_ENHANCE_YOUR_CALM);
	fault_of("header bomb", make_header_bomb, H2_ENHANCE_YOUR_CALM);
}

static void continuation_flood_ends_session(void **state)
{
	struct end end;

	open_one(&end, true);
	wire_hello(&wire);
	make_continuation_flood();
	assert_int_equal(wire_feed(&wire, &end, 1000), -EPROTO);
	assert_true(h2_is_over(end.session));
	end_close(&end);
}

static void ping_flood_without_reader_ends_session(void **state)
{
	struct end end;
	int err = 0;

	open_one(&end, true);
	wire_hello(&wire);
	for (int i = 0; i < 600; i++)
		wire_frame(&wire, F_PING, 0, 0, "12345678", 8);
	err = wire_feed(&wire, &end, 1000);
	assert_int_equal(err, -EPROTO);
	end_close(&end);
}

static void slow_resets_are_fine(void **state)
{
	struct end end;
	size_t cnt;

	open_one(&end, true);
	wire_hello(&wire);
	for (uint32_t i = 0; i < 3000; i++) {
		wire_headers(
		        &wire, FLAG_END_HEADERS, 2 * i + 1, ":method", "CONNECT", ":authority", "a:1", NULL);
		wire_frame(&wire, F_RST, 0, 2 * i + 1, "\0\0\0\10", 4);
		assert_int_equal(wire_feed(&wire, &end, 1000 + i * 5), 0);
		assert_int_equal(end.recs[i].resets, 1);
		h2_stream_release(end.recs[i].stream);
	}
	cnt = end_frames(&end, seen, 4096);
	for (size_t i = 0; i < cnt; i++)
		assert_int_not_equal(seen[i].type, F_GOAWAY);
	end_close(&end);
}

static void answered_streams_may_be_reset(void **state)
{
	struct end end;
	const uint8_t *piece;
	size_t len;

	open_one(&end, true);
	end.answer = 200;
	wire_hello(&wire);
	for (uint32_t i = 0; i < 3000; i++) {
		wire_headers(
		        &wire, FLAG_END_HEADERS, 2 * i + 1, ":method", "CONNECT", ":authority", "a:1", NULL);
		wire_frame(&wire, F_RST, 0, 2 * i + 1, "\0\0\0\10", 4);
		assert_int_equal(wire_feed(&wire, &end, 1000), 0);
		while (h2_pull(end.session, &piece, &len) == 1)
			;
	}
	assert_false(h2_is_over(end.session));
	assert_int_equal(end.rec_cnt, 3000);
	end_close(&end);
}

static void stream_limit_holds(void **state)
{
	struct end end;
	size_t cnt;

	/* Before the peer has acknowledged the limit: refused one by one. */
	open_one(&end, true);
	wire_hello(&wire);
	for (uint32_t i = 0; i < 201; i++)
		wire_headers(
		        &wire, FLAG_END_HEADERS, 2 * i + 1, ":method", "CONNECT", ":authority", "a:1", NULL);
	assert_int_equal(wire_feed(&wire, &end, 1000), 0);
	assert_int_equal(end.rec_cnt, 200);
	assert_int_equal(h2_streams_in_use(end.session), 200);
	cnt = end_frames(&end, seen, 16);
	assert_int_equal(seen[cnt - 1].type, F_RST);
	assert_int_equal(seen[cnt - 1].stream, 401);
	assert_int_equal(be32(seen[cnt - 1].payload), H2_REFUSED_STREAM);
	/* After it: a broken peer. */
	wire_frame(&wire, F_SETTINGS, FLAG_ACK, 0, NULL, 0);
	wire_headers(&wire, FLAG_END_HEADERS, 403, ":method", "CONNECT", ":authority", "a:1", NULL);
	assert_int_equal(wire_feed(&wire, &end, 1000), 0);
	cnt = end_frames(&end, seen, 16);
	assert_int_equal(seen[cnt - 1].type, F_GOAWAY);
	assert_int_equal(be32(seen[cnt - 1].payload + 4), H2_PROTOCOL_ERROR);
	end_close(&end);
}

static void limit_tune(struct h2_config *client, struct h2_config *server)
{
	server->max_streams = 2;
}

static void peer_limit_is_respected(void **state)
{
	struct pair *pair = pair_new(limit_tune);
	struct rec recs[3] = {0};
	int rooms;

	pair_pump(pair);
	assert_int_equal(pair_connect(pair, &recs[0], "a:1"), 0);
	assert_int_equal(pair_connect(pair, &recs[1], "a:1"), 0);
	assert_int_equal(pair_connect(pair, &recs[2], "a:1"), -EAGAIN);
	pair_pump(pair);
	rooms = pair->client.rooms;
	h2_stream_reset(recs[0].stream, H2_CANCEL);
	assert_int_equal(pair_connect(pair, &recs[2], "a:1"), -EAGAIN);
	pair_pump(pair);
	assert_int_equal(pair->client.rooms, rooms + 1);
	assert_int_equal(pair_connect(pair, &recs[2], "a:1"), 0);
	pair_pump(pair);
	assert_int_equal(recs[2].status, 200);
	pair_free(pair);
}

static void unknown_frames_are_skipped(void **state)
{
	struct end end;

	open_one(&end, true);
	wire_hello(&wire);
	wire_headers(&wire, FLAG_END_HEADERS, 1, ":method", "CONNECT", ":authority", "a:1", NULL);
	wire_frame(&wire, 0xbb, 0xff, 1, "whatever", 8);
	wire_frame(&wire, 0xbb, 0, 0, "", 0);
	wire_frame(&wire, F_DATA, FLAG_PADDED, 1, "\2abcd\0\0", 7);
	assert_int_equal(wire_feed(&wire, &end, 1000), 0);
	assert_int_equal(end.recs[0].data_len, 4);
	assert_false(h2_is_over(end.session));
	end_close(&end);
}

static void input_may_come_bytewise(void **state)
{
	struct pair *pair = pair_new(NULL);
	struct rec a = {0};
	const uint8_t *piece;
	size_t len;

	assert_int_equal(pair_connect(pair, &a, "a:1"), 0);
	rec_write(pair, &a, 40000, 0, 0);
	while (h2_pull(pair->client.session, &piece, &len) == 1)
		for (size_t i = 0; i < len; i++)
			assert_int_equal(h2_feed(pair->server.session, piece + i, 1, pair->now), 0);
	assert_int_equal(pair->server.recs[0].data_len, 40000);
	assert_true(pair->server.recs[0].data_sum == pattern_sum(40000));
	pair_free(pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(announces_server),
	        cmocka_unit_test(announces_client),
	        cmocka_unit_test(announces_small_maxima),
	        cmocka_unit_test(refuses_bad_config),
	        cmocka_unit_test(settings_are_exchanged),
	        cmocka_unit_test(bad_preface_is_an_error),
	        cmocka_unit_test(first_frame_must_be_settings),
	        cmocka_unit_test(pings_keep_time),
	        cmocka_unit_test(dead_peer_after_30_s),
	        cmocka_unit_test(wrong_pong_does_not_count),
	        cmocka_unit_test(pings_can_be_off),
	        cmocka_unit_test(drain_is_goaway_ping_goaway),
	        cmocka_unit_test(drain_seen_by_client),
	        cmocka_unit_test(client_closes_when_idle),
	        cmocka_unit_test(goaway_refuses_unserved),
	        cmocka_unit_test(unsent_requests_fall_to_goaway),
	        cmocka_unit_test(abort_tells_streams),
	        cmocka_unit_test(faults),
	        cmocka_unit_test(floods),
	        cmocka_unit_test(continuation_flood_ends_session),
	        cmocka_unit_test(ping_flood_without_reader_ends_session),
	        cmocka_unit_test(slow_resets_are_fine),
	        cmocka_unit_test(answered_streams_may_be_reset),
	        cmocka_unit_test(stream_limit_holds),
	        cmocka_unit_test(peer_limit_is_respected),
	        cmocka_unit_test(unknown_frames_are_skipped),
	        cmocka_unit_test(input_may_come_bytewise),
	};
	return cmocka_run_group_tests_name("h2 session", tests, NULL, NULL);
}

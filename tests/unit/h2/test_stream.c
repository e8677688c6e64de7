/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Streams between two sessions: requests, answers, data, half-close, resets,
 * owners that let go at awkward moments.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pair.h"

static struct seen seen[4096];
static struct wire wire;

/* One stream open and answered. */
static struct pair *pair_with(struct rec *rec)
{
	struct pair *pair = pair_new(NULL);

	assert_int_equal(pair_connect(pair, rec, "10.0.0.1:8080"), 0);
	pair_pump(pair);
	assert_int_equal(rec->status, 200);
	return pair;
}

static void connect_carries_headers(void **state)
{
	struct rec a = {0};
	struct pair *pair = pair_with(&a);
	struct rec *b = &pair->server.recs[0];

	assert_string_equal(b->method, "CONNECT");
	assert_string_equal(b->authority, "10.0.0.1:8080");
	assert_string_equal(b->baggage, "k8s.pod.name=a");
	assert_int_equal(a.responses, 1);
	assert_int_equal(h2_stream_id(a.stream), 1);
	assert_ptr_equal(h2_stream_user(a.stream), &a);
	assert_ptr_equal(h2_stream_session(a.stream), pair->client.session);
	assert_int_equal(h2_streams_in_use(pair->client.session), 1);
	assert_int_equal(h2_streams_in_use(pair->server.session), 1);
	pair_free(pair);
}

static void answer_carries_headers(void **state)
{
	struct pair *pair = pair_new(NULL);
	struct h2_header line = {"baggage", "k8s.pod.name=b", false};
	struct rec a = {0};

	pair->server.answer = 0;
	assert_int_equal(pair_connect(pair, &a, "a:1"), 0);
	pair_pump(pair);
	assert_int_equal(a.responses, 0);
	assert_int_equal(h2_respond(pair->server.recs[0].stream, 199, NULL, 0, false), -EINVAL);
	assert_int_equal(h2_respond(pair->server.recs[0].stream, 200, &line, 1, false), 0);
	assert_int_equal(h2_respond(pair->server.recs[0].stream, 200, &line, 1, false), -EINVAL);
	assert_int_equal(h2_respond(a.stream, 200, NULL, 0, false), -EINVAL);
	pair_pump(pair);
	assert_int_equal(a.status, 200);
	assert_string_equal(a.baggage, "k8s.pod.name=b");
	pair_free(pair);
}

static void requests_are_checked(void **state)
{
	struct pair *pair = pair_new(NULL);
	struct h2_session *session = pair->client.session;
	struct h2_header many[H2_SEND_LINES_MAX + 1];
	struct h2_header bad = {"Bad", "x", false};
	struct h2_header big = {"baggage", NULL, false};
	char *value = calloc(1, H2_SEND_BYTES_MAX + 1);
	struct h2_stream *stream = NULL;
	struct h2_request request = {.method = "CONNECT", .authority = "a:1", .path = "/"};

	for (size_t i = 0; i <= H2_SEND_LINES_MAX; i++)
		many[i] = (struct h2_header){"baggage", "x", false};
	big.value = memset(value, 'x', H2_SEND_BYTES_MAX);
	assert_int_equal(h2_connect(session, "a b", NULL, 0, &rec_ops, NULL, &stream), -EINVAL);
	assert_int_equal(h2_connect(session, "a:1", &bad, 1, &rec_ops, NULL, &stream), -EINVAL);
	assert_int_equal(h2_connect(session, "a:1", &big, 1, &rec_ops, NULL, &stream), -EINVAL);
	assert_int_equal(
	        h2_connect(session, "a:1", many, H2_SEND_LINES_MAX + 1, &rec_ops, NULL, &stream), -EINVAL);
	assert_int_equal(h2_request(session, &request, &rec_ops, NULL, &stream), -EINVAL);
	request.method = "GET";
	assert_int_equal(h2_request(session, &request, &rec_ops, NULL, &stream), -EINVAL);
	request.method = "G T";
	request.scheme = "https";
	assert_int_equal(h2_request(session, &request, &rec_ops, NULL, &stream), -EINVAL);
	assert_null(stream);
	assert_int_equal(h2_streams_in_use(session), 0);
	free(value);
	pair_free(pair);
}

static void ordinary_requests_pass(void **state)
{
	struct pair *pair = pair_new(NULL);
	struct h2_request request = {.method = "POST", .scheme = "https", .authority = "a", .path = "/x"};
	struct rec a = {0};

	assert_int_equal(h2_request(pair->client.session, &request, &rec_ops, &a, &a.stream), 0);
	pair_pump(pair);
	assert_string_equal(pair->server.recs[0].method, "POST");
	assert_int_equal(a.status, 200);
	pair_free(pair);
}

static void data_flows_both_ways(void **state)
{
	struct rec a = {0};
	struct pair *pair = pair_with(&a);
	struct rec *b = &pair->server.recs[0];

	assert_int_equal(rec_write(pair, &a, 5, 0, 0), 0);
	assert_int_equal(rec_write(pair, b, 200000, 0, 0), 0);
	pair_pump(pair);
	assert_int_equal(b->data_len, 5);
	assert_true(b->data_sum == pattern_sum(5));
	assert_int_equal(a.data_len, 200000);
	assert_true(a.data_sum == pattern_sum(200000));
	assert_int_equal(h2_stream_queued(a.stream), 0);
	pair_free(pair);
}

static void half_close_client_first(void **state)
{
	struct rec a = {0};
	struct pair *pair = pair_with(&a);
	struct rec *b = &pair->server.recs[0];

	rec_write(pair, &a, 100, 0, 0);
	assert_int_equal(h2_stream_end(a.stream), 0);
	assert_int_equal(h2_stream_end(a.stream), 0);
	assert_int_equal(rec_write(pair, &a, 1, 0, 0), -EPIPE);
	pair_pump(pair);
	assert_int_equal(b->data_len, 100);
	assert_int_equal(b->ends, 1);
	assert_int_equal(a.drains, 1);
	assert_int_equal(a.ends, 0);
	/* The other direction goes on. */
	rec_write(pair, b, 50000, 0, 0);
	pair_pump(pair);
	assert_int_equal(a.data_len, 50000);
	assert_int_equal(h2_stream_end(b->stream), 0);
	pair_pump(pair);
	assert_int_equal(a.ends, 1);
	assert_int_equal(b->drains, 1);
	assert_int_equal(a.resets + b->resets, 0);
	assert_int_equal(h2_streams_in_use(pair->client.session), 0);
	assert_int_equal(h2_streams_in_use(pair->server.session), 0);
	/* Finished streams stay harmless until released. */
	assert_int_equal(rec_write(pair, &a, 1, 0, 0), -EPIPE);
	h2_stream_release(a.stream);
	h2_stream_release(b->stream);
	pair_pump(pair);
	pair_free(pair);
}

static void half_close_server_first(void **state)
{
	struct rec a = {0};
	struct pair *pair = pair_with(&a);
	struct rec *b = &pair->server.recs[0];

	h2_stream_end(b->stream);
	pair_pump(pair);
	assert_int_equal(a.ends, 1);
	rec_write(pair, &a, 70000, 0, 0);
	h2_stream_end(a.stream);
	pair_pump(pair);
	assert_int_equal(b->data_len, 70000);
	assert_int_equal(b->ends, 1);
	assert_int_equal(a.resets + b->resets, 0);
	assert_int_equal(h2_streams_in_use(pair->client.session), 0);
	pair_free(pair);
}

static void end_with_the_answer(void **state)
{
	struct pair *pair = pair_new(NULL);
	struct rec a = {0};

	pair->server.answer = 401;
	pair->server.answer_end = true;
	assert_int_equal(pair_connect(pair, &a, "a:1"), 0);
	end_pump(&pair->client, &pair->server, pair->now, SIZE_MAX);
	/* Refused: the answer ends the stream, then the request is reset with NO_ERROR. */
	size_t cnt = end_frames(&pair->server, seen, 16);

	assert_int_equal(seen[cnt - 2].type, F_HEADERS);
	assert_int_equal(seen[cnt - 2].flags & FLAG_END, FLAG_END);
	assert_int_equal(seen[cnt - 1].type, F_RST);
	assert_int_equal(be32(seen[cnt - 1].payload), H2_NO_ERROR);
	assert_int_equal(h2_streams_in_use(pair->server.session), 0);
	pair_free(pair);
}

static void refusal_seen_by_client(void **state)
{
	struct pair *pair = pair_new(NULL);
	struct rec a = {0};

	pair->server.answer = 503;
	pair->server.answer_end = true;
	assert_int_equal(pair_connect(pair, &a, "a:1"), 0);
	pair_pump(pair);
	assert_int_equal(a.status, 503);
	assert_int_equal(a.ends, 1);
	assert_int_equal(a.resets, 1);
	assert_int_equal(a.reset.code, H2_NO_ERROR);
	assert_true(a.reset.is_remote);
	h2_stream_release(a.stream);
	pair_free(pair);
}

static void connect_with_end_stream(void **state)
{
	struct end end = {0};

	h2_config_init(&end.config, true);
	end_open(&end, 0);
	wire_hello(&wire);
	wire_headers(&wire, FLAG_END_HEADERS | FLAG_END, 1, ":method", "CONNECT", ":authority", "a:1", NULL);
	assert_int_equal(wire_feed(&wire, &end, 0), 0);
	assert_int_equal(end.recs[0].ends, 1);
	assert_int_equal(h2_respond(end.recs[0].stream, 200, NULL, 0, true), 0);
	end_frames(&end, seen, 16);
	assert_int_equal(h2_streams_in_use(end.session), 0);
	h2_stream_release(end.recs[0].stream);
	assert_int_equal(end_frames(&end, seen, 16), 0);
	end_close(&end);
}

static void unbound_is_refused(void **state)
{
	struct pair *pair = pair_new(NULL);
	struct rec a = {0};

	pair->server.is_unbound = true;
	assert_int_equal(pair_connect(pair, &a, "a:1"), 0);
	pair_pump(pair);
	assert_int_equal(a.resets, 1);
	assert_int_equal(a.reset.code, H2_REFUSED_STREAM);
	assert_int_equal(h2_streams_in_use(pair->server.session), 0);
	pair_free(pair);
}

/* What the other side sees when one lets go in a given state. */
static void abandoning(void **state)
{
	struct rec a = {0};
	struct pair *pair = pair_with(&a);

	/* A client in the middle: CANCEL, which reads as a clean end. */
	h2_stream_release(a.stream);
	pair_pump(pair);
	assert_int_equal(pair->server.recs[0].reset.code, H2_CANCEL);
	assert_int_equal(h2_reset_read_error(&pair->server.recs[0].reset), 0);
	assert_int_equal(h2_stream_end(pair->server.recs[0].stream), -EPIPE);
	pair_free(pair);

	/* A client that has finished writing: CANCEL. */
	memset(&a, 0, sizeof(a));
	pair = pair_with(&a);
	h2_stream_end(a.stream);
	pair_pump(pair);
	h2_stream_release(a.stream);
	pair_pump(pair);
	assert_int_equal(pair->server.recs[0].ends, 1);
	assert_int_equal(pair->server.recs[0].reset.code, H2_CANCEL);
	pair_free(pair);

	/* A server that has not finished: CANCEL. */
	memset(&a, 0, sizeof(a));
	pair = pair_with(&a);
	h2_stream_release(pair->server.recs[0].stream);
	pair_pump(pair);
	assert_int_equal(a.reset.code, H2_CANCEL);
	pair_free(pair);

	/* A server that has: NO_ERROR, after everything queued. */
	memset(&a, 0, sizeof(a));
	pair = pair_with(&a);
	rec_write(pair, &pair->server.recs[0], 200000, 0, 0);
	h2_stream_end(pair->server.recs[0].stream);
	h2_stream_release(pair->server.recs[0].stream);
	pair_pump(pair);
	assert_int_equal(a.data_len, 200000);
	assert_int_equal(a.ends, 1);
	assert_int_equal(a.resets, 1);
	assert_int_equal(a.reset.code, H2_NO_ERROR);
	assert_int_equal(h2_streams_in_use(pair->server.session), 0);
	pair_free(pair);
}

static void released_after_end_lingers(void **state)
{
	struct rec a = {0};
	struct pair *pair = pair_with(&a);
	struct rec *b = &pair->server.recs[0];

	/* Both directions end by themselves: no reset at all. */
	h2_stream_end(a.stream);
	pair_pump(pair);
	rec_write(pair, b, 100000, 0, 0);
	h2_stream_end(b->stream);
	h2_stream_release(b->stream);
	pair_pump(pair);
	assert_int_equal(a.data_len, 100000);
	assert_int_equal(a.ends, 1);
	assert_int_equal(a.resets, 0);
	assert_int_equal(h2_streams_in_use(pair->server.session), 0);
	pair_free(pair);
}

static void reset_maps(void **state)
{
	static const uint32_t codes[] = {H2_NO_ERROR, H2_CANCEL, H2_STREAM_CLOSED, H2_INTERNAL_ERROR};

	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		struct rec a = {0};
		struct pair *pair = pair_with(&a);

		rec_write(pair, &a, 100000, 0, 0);
		h2_stream_reset(pair->server.recs[0].stream, codes[i]);
		end_pump(&pair->server, &pair->client, pair->now, SIZE_MAX);
		assert_int_equal(a.resets, 1);
		assert_int_equal(a.reset.code, codes[i]);
		assert_true(a.reset.is_remote);
		assert_int_equal(a.reset.transport_err, 0);
		assert_int_equal(h2_stream_queued(a.stream), 0);
		assert_int_equal(rec_write(pair, &a, 1, 0, 0), -EPIPE);
		h2_stream_release(a.stream);
		pair_pump(pair);
		assert_int_equal(h2_streams_in_use(pair->server.session), 0);
		pair_free(pair);
	}
}

/* Owners that let go inside each callback, in both ways. */
static void letting_go_inside_callbacks(void **state)
{
	static const char ways[] = {'r', 'c'};

	for (size_t w = 0; w < 2; w++) {
		for (int where = 0; where < 5; where++) {
			struct pair *pair = pair_new(NULL);
			struct rec a = {0};

			a.on_response_do = where == 0 ? ways[w] : 0;
			a.on_data_do = where == 1 ? ways[w] : 0;
			a.on_end_do = where == 2 ? ways[w] : 0;
			a.on_drained_do = where == 3 ? ways[w] : 0;
			a.on_reset_do = where == 4 ? ways[w] : 0;
			assert_int_equal(pair_connect(pair, &a, "a:1"), 0);
			rec_write(pair, &a, 40000, 0, 0);
			h2_stream_end(a.stream);
			pair_pump(pair);
			if (where == 4)
				h2_stream_reset(pair->server.recs[0].stream, H2_CANCEL);
			else if (where != 0 && where != 3)
				rec_write(pair, &pair->server.recs[0], 40000, 0, 0);
			if (where != 4)
				h2_stream_end(pair->server.recs[0].stream);
			pair_pump(pair);
			if (where != 3 || w == 0)
				assert_null(a.stream);
			assert_int_equal(h2_streams_in_use(pair->client.session), 0);
			pair_free(pair);
		}
	}
}

static void letting_go_inside_request(void **state)
{
	static const char ways[] = {'r', 'c'};

	for (size_t w = 0; w < 2; w++) {
		struct pair *pair = pair_new(NULL);
		struct rec a = {0};

		pair->server.answer = 0;
		pair->server.on_request_do = ways[w];
		assert_int_equal(pair_connect(pair, &a, "a:1"), 0);
		rec_write(pair, &a, 40000, 0, 0);
		pair_pump(pair);
		assert_int_equal(a.resets, 1);
		assert_int_equal(a.reset.code, H2_CANCEL);
		assert_int_equal(h2_streams_in_use(pair->server.session), 0);
		pair_free(pair);
	}
}

static void unsent_request_can_be_dropped(void **state)
{
	struct pair *pair = pair_new(NULL);
	struct rec a = {0}, b = {0};

	pair_pump(pair);
	assert_int_equal(pair_connect(pair, &a, "a:1"), 0);
	assert_int_equal(pair_connect(pair, &b, "b:1"), 0);
	h2_stream_reset(a.stream, H2_CANCEL);
	pair_pump(pair);
	assert_int_equal(pair->server.rec_cnt, 1);
	assert_string_equal(pair->server.recs[0].authority, "b:1");
	assert_int_equal(h2_streams_in_use(pair->client.session), 1);
	pair_free(pair);
}

static void session_freed_with_streams(void **state)
{
	struct rec a = {0}, b = {0};
	struct pair *pair = pair_with(&a);

	assert_int_equal(pair_connect(pair, &b, "b:1"), 0);
	rec_write(pair, &a, 300000, 0, 0);
	rec_write(pair, &b, 300000, 0, 0);
	end_pump(&pair->client, &pair->server, pair->now, 50000);
	h2_stream_reset(b.stream, H2_CANCEL);
	pair_free(pair);
	assert_int_equal(a.resets, 0);
}

/* Malformed requests never reach the owner and cost one stream, not the connection. */
static void malformed_requests(void **state)
{
	struct end end = {0};
	size_t cnt;

	h2_config_init(&end.config, true);
	end_open(&end, 0);
	wire_hello(&wire);
	assert_int_equal(wire_feed(&wire, &end, 0), 0);
	end_frames(&end, seen, 16);
	wire_headers(&wire, FLAG_END_HEADERS, 1, ":authority", "a:1", NULL);
	wire_headers(&wire, FLAG_END_HEADERS, 3, ":method", "CONNECT", ":authority", "a:1", ":scheme",
	        "https", ":path", "/", NULL);
	wire_headers(&wire, FLAG_END_HEADERS | FLAG_END, 5, ":method", "CONNECT", ":authority", "a:1",
	        ":protocol", "websocket", NULL);
	wire_headers(&wire, FLAG_END_HEADERS, 7, ":method", "CONNECT", ":authority", "a b", NULL);
	wire_headers(
	        &wire, FLAG_END_HEADERS, 9, ":method", "CONNECT", ":authority", "a:1", "Upper", "x", NULL);
	wire_frame(&wire, F_DATA, 0, 9, "junk", 4);
	wire_headers(&wire, FLAG_END_HEADERS, 11, ":method", "CONNECT", NULL);
	assert_int_equal(wire_feed(&wire, &end, 0), 0);
	assert_int_equal(end.rec_cnt, 1);
	assert_string_equal(end.recs[0].authority, "-");
	assert_int_equal(h2_stream_id(end.recs[0].stream), 11);
	cnt = end_frames(&end, seen, 16);
	assert_int_equal(cnt, 5);
	for (size_t i = 0; i < cnt; i++) {
		assert_int_equal(seen[i].type, F_RST);
		assert_int_equal(seen[i].stream, 2 * i + 1);
		assert_int_equal(be32(seen[i].payload), H2_PROTOCOL_ERROR);
	}
	assert_int_equal(h2_streams_in_use(end.session), 1);
	end_close(&end);
}

static void big_requests_get_431(void **state)
{
	struct end end = {0};
	char value[4001];
	size_t cnt;

	memset(value, 'x', 4000);
	value[4000] = '\0';
	h2_config_init(&end.config, true);
	end.config.header_list_max = 10000;
	end_open(&end, 0);
	wire_hello(&wire);
	assert_int_equal(wire_feed(&wire, &end, 0), 0);
	end_frames(&end, seen, 16);
	wire_headers(&wire, FLAG_END_HEADERS, 1, ":method", "CONNECT", ":authority", "a:1", "baggage", value,
	        "x", value, NULL);
	wire_headers(&wire, FLAG_END_HEADERS, 3, ":method", "CONNECT", ":authority", "a:1", "baggage", value,
	        "x", value, "y", value, NULL);
	assert_int_equal(wire_feed(&wire, &end, 0), 0);
	assert_int_equal(end.rec_cnt, 1);
	cnt = end_frames(&end, seen, 16);
	assert_int_equal(cnt, 2);
	assert_int_equal(seen[0].type, F_HEADERS);
	assert_int_equal(seen[0].stream, 3);
	assert_int_equal(seen[0].flags & FLAG_END, FLAG_END);
	assert_int_equal(seen[1].type, F_RST);
	assert_int_equal(be32(seen[1].payload), H2_NO_ERROR);
	end_close(&end);
}

/* A client with one open stream, before the answer. */
static void client_open(struct end *end, struct rec *a)
{
	memset(end, 0, sizeof(*end));
	memset(a, 0, sizeof(*a));
	h2_config_init(&end->config, false);
	end_open(end, 0);
	assert_int_equal(h2_connect(end->session, "a:1", NULL, 0, &rec_ops, a, &a->stream), 0);
	end_frames(end, seen, 16);
	wire_frame(&wire, F_SETTINGS, 0, 0, NULL, 0);
}

/* Feeds what was made, expects the stream to be reset by us. */
static void client_refuses(struct end *end, struct rec *a, uint32_t code)
{
	size_t cnt;

	assert_int_equal(wire_feed(&wire, end, 0), 0);
	cnt = end_frames(end, seen, 16);
	assert_int_equal(seen[cnt - 1].type, F_RST);
	assert_int_equal(be32(seen[cnt - 1].payload), code);
	end_frames(end, seen, 16);
	assert_int_equal(a->resets, 1);
	assert_int_equal(a->reset.code, code);
	assert_false(a->reset.is_remote);
	h2_stream_release(a->stream);
	assert_int_equal(h2_streams_in_use(end->session), 0);
	assert_false(h2_is_over(end->session));
	end_close(end);
}

static void malformed_answers(void **state)
{
	struct end end;
	struct rec a;
	char value[9001];

	client_open(&end, &a);
	wire_headers(&wire, FLAG_END_HEADERS, 1, "server", "x", NULL);
	client_refuses(&end, &a, H2_PROTOCOL_ERROR);
	assert_int_equal(a.responses, 0);

	client_open(&end, &a);
	wire_headers(&wire, FLAG_END_HEADERS | FLAG_END, 1, ":status", "abc", NULL);
	assert_int_equal(wire_feed(&wire, &end, 0), 0);
	end_frames(&end, seen, 16);
	end_frames(&end, seen, 16);
	assert_int_equal(a.resets, 1);
	assert_int_equal(a.reset.code, H2_PROTOCOL_ERROR);
	assert_int_equal(a.ends, 0);
	end_close(&end);

	client_open(&end, &a);
	wire_headers(&wire, FLAG_END_HEADERS, 1, ":status", "100", NULL);
	wire_frame(&wire, F_DATA, 0, 1, "early", 5);
	client_refuses(&end, &a, H2_PROTOCOL_ERROR);

	client_open(&end, &a);
	wire_headers(&wire, FLAG_END_HEADERS | FLAG_END, 1, ":status", "100", NULL);
	client_refuses(&end, &a, H2_PROTOCOL_ERROR);

	client_open(&end, &a);
	wire_headers(&wire, FLAG_END_HEADERS, 1, ":status", "200", NULL);
	wire_headers(&wire, FLAG_END_HEADERS, 1, "not", "the end", NULL);
	client_refuses(&end, &a, H2_PROTOCOL_ERROR);
	assert_int_equal(a.responses, 1);

	client_open(&end, &a);
	memset(value, 'x', 9000);
	value[9000] = '\0';
	wire_headers(&wire, 0, 1, ":status", "200", "a", value, NULL);
	{
		struct wire more = {.len = 0};

		wire_headers(&more, FLAG_END_HEADERS, 1, "a", value, NULL);
		more.bytes[3] = F_CONT;
		wire_raw(&wire, more.bytes, more.len);
	}
	client_refuses(&end, &a, H2_REFUSED_STREAM);
}

/* nghttp2 takes this for a broken peer, not just a broken stream. */
static void data_before_the_answer(void **state)
{
	struct end end;
	struct rec a;
	size_t cnt;

	client_open(&end, &a);
	wire_frame(&wire, F_DATA, 0, 1, "early", 5);
	assert_int_equal(wire_feed(&wire, &end, 0), 0);
	cnt = end_frames(&end, seen, 16);
	assert_int_equal(seen[cnt - 1].type, F_GOAWAY);
	assert_int_equal(be32(seen[cnt - 1].payload + 4), H2_PROTOCOL_ERROR);
	assert_true(h2_is_over(end.session));
	assert_int_equal(a.data_len, 0);
	h2_abort(end.session, -EPROTO);
	assert_int_equal(a.resets, 1);
	end_close(&end);
}

static void interim_answers_are_skipped(void **state)
{
	struct end end;
	struct rec a;

	client_open(&end, &a);
	wire_headers(&wire, FLAG_END_HEADERS, 1, ":status", "103", "baggage", "no", NULL);
	wire_headers(&wire, FLAG_END_HEADERS, 1, ":status", "200", "baggage", "yes", NULL);
	wire_frame(&wire, F_DATA, 0, 1, "data", 4);
	wire_headers(&wire, FLAG_END_HEADERS | FLAG_END, 1, "baggage", "tail", NULL);
	assert_int_equal(wire_feed(&wire, &end, 0), 0);
	assert_int_equal(a.responses, 1);
	assert_int_equal(a.status, 200);
	assert_int_equal(a.data_len, 4);
	assert_int_equal(a.trailers, 1);
	assert_string_equal(a.baggage, "tail");
	assert_int_equal(a.ends, 1);
	end_close(&end);
}

static void trailers_end_the_answer(void **state)
{
	static const struct h2_header tail = {"baggage", "tail", false};
	static const struct h2_header bad = {"Baggage", "tail", false};
	static const size_t lens[] = {0, 30, 100000};

	for (size_t i = 0; i < 3; i++) {
		struct pair *pair = pair_new(NULL);
		struct rec a = {0};
		struct rec *b;

		pair->server.answer = 200;
		pair_pump(pair);
		assert_int_equal(pair_connect(pair, &a, "a:1"), 0);
		pair_pump(pair);
		b = &pair->server.recs[0];
		assert_int_equal(h2_stream_trailers(a.stream, &tail, 1), -EINVAL);
		assert_int_equal(h2_stream_trailers(b->stream, &bad, 1), -EINVAL);
		if (lens[i])
			rec_write(pair, b, lens[i], 0, 0);
		assert_int_equal(h2_stream_trailers(b->stream, &tail, 1), 0);
		assert_int_equal(h2_stream_trailers(b->stream, &tail, 1), -EINVAL);
		pair_pump(pair);
		assert_int_equal(a.ends, 0);
		assert_int_equal(h2_stream_end(b->stream), 0);
		pair_pump(pair);
		assert_int_equal(a.data_len, lens[i]);
		assert_int_equal(a.trailers, 1);
		assert_string_equal(a.baggage, "tail");
		assert_int_equal(a.ends, 1);
		assert_int_equal(a.resets, 0);
		assert_int_equal(b->drains, 1);
		assert_int_equal(h2_stream_trailers(b->stream, &tail, 1), -EINVAL);
		pair_free(pair);
	}
}

static void busy_only_tune(struct h2_config *client, struct h2_config *server)
{
	client->ping_busy_only = true;
	client->ping_interval_ms = 100;
	client->ping_timeout_ms = 50;
}

static void pings_sleep_without_streams(void **state)
{
	struct pair *pair = pair_new(busy_only_tune);
	struct rec a = {0};

	pair_pump(pair);
	assert_int_equal(h2_tick(pair->client.session, pair->now + 200), 0);
	assert_true(h2_deadline(pair->client.session) == H2_NEVER);
	assert_int_equal(h2_rtt_ms(pair->client.session), -1);
	assert_int_equal(pair_connect(pair, &a, "a:1"), 0);
	assert_true(h2_deadline(pair->client.session) != H2_NEVER);
	assert_int_equal(h2_tick(pair->client.session, pair->now + 400), 0);
	assert_int_equal(h2_tick(pair->client.session, pair->now + 500), -ETIMEDOUT);
	pair_free(pair);
}

static void a_thousand_streams_tune(struct h2_config *client, struct h2_config *server)
{
	server->max_streams = 1000;
}

static void a_thousand_streams(void **state)
{
	struct pair *pair = pair_new(a_thousand_streams_tune);
	struct rec *recs = calloc(1000, sizeof(*recs));

	pair_pump(pair);
	for (int i = 0; i < 1000; i++) {
		assert_int_equal(pair_connect(pair, &recs[i], "10.0.0.1:80"), 0);
		rec_write(pair, &recs[i], 3000, 0, 0);
	}
	pair_pump(pair);
	assert_int_equal(pair->server.rec_cnt, 1000);
	assert_int_equal(h2_streams_in_use(pair->client.session), 1000);
	for (int i = 0; i < 1000; i++) {
		struct rec *b = &pair->server.recs[i];

		assert_int_equal(b->data_len, 3000);
		assert_true(b->data_sum == pattern_sum(3000));
		rec_write(pair, b, 2000, 0, 0);
		h2_stream_end(b->stream);
		h2_stream_end(recs[i].stream);
	}
	pair_pump(pair);
	for (int i = 0; i < 1000; i++) {
		assert_int_equal(recs[i].data_len, 2000);
		assert_int_equal(recs[i].ends, 1);
		assert_int_equal(recs[i].resets + pair->server.recs[i].resets, 0);
		h2_stream_release(recs[i].stream);
	}
	assert_int_equal(h2_streams_in_use(pair->server.session), 0);
	free(recs);
	pair_free(pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(connect_carries_headers),
	        cmocka_unit_test(answer_carries_headers),
	        cmocka_unit_test(requests_are_checked),
	        cmocka_unit_test(ordinary_requests_pass),
	        cmocka_unit_test(data_flows_both_ways),
	        cmocka_unit_test(half_close_client_first),
	        cmocka_unit_test(half_close_server_first),
	        cmocka_unit_test(end_with_the_answer),
	        cmocka_unit_test(refusal_seen_by_client),
	        cmocka_unit_test(connect_with_end_stream),
	        cmocka_unit_test(unbound_is_refused),
	        cmocka_unit_test(abandoning),
	        cmocka_unit_test(released_after_end_lingers),
	        cmocka_unit_test(reset_maps),
	        cmocka_unit_test(letting_go_inside_callbacks),
	        cmocka_unit_test(letting_go_inside_request),
	        cmocka_unit_test(unsent_request_can_be_dropped),
	        cmocka_unit_test(session_freed_with_streams),
	        cmocka_unit_test(malformed_requests),
	        cmocka_unit_test(big_requests_get_431),
	        cmocka_unit_test(malformed_answers),
	        cmocka_unit_test(data_before_the_answer),
	        cmocka_unit_test(interim_answers_are_skipped),
	        cmocka_unit_test(trailers_end_the_answer),
	        cmocka_unit_test(pings_sleep_without_streams),
	        cmocka_unit_test(a_thousand_streams),
	};
	return cmocka_run_group_tests_name("h2 stream", tests, NULL, NULL);
}

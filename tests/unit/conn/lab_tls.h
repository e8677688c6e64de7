/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Links for tests: identities of one authority, a client and a server that note what they are told. */
#ifndef CULVERT_TESTS_UNIT_CONN_LAB_TLS_H
#define CULVERT_TESTS_UNIT_CONN_LAB_TLS_H

#include "lab.h"

#include "base/buf.h"
#include "base/mem.h"
#include "conn/link.h"
#include "conn/pump.h"
#include "tls/ca.h"
#include "tls/identity.h"
#include "tls/key.h"

#define CLIENT_ID "spiffe://cluster.local/ns/a/sa/client"
#define SERVER_ID "spiffe://cluster.local/ns/b/sa/server"

static inline struct tls_identity *identity_new(struct tls_ca *ca, const char *id)
{
	struct tls_key *key;
	struct tls_identity *identity;
	struct buf csr, leaf;
	struct tls_policy policy = {0};
	struct err err = {0};
	buf_init(&csr, 65536);
	buf_init(&leaf, 65536);
	assert_int_equal(tls_key_new(&key, &err), 0);
	assert_int_equal(tls_csr_make(key, id, &csr, &err), 0);
	assert_int_equal(tls_ca_sign(ca, (const char *)csr.data, csr.len, id, 0, &leaf, &err), 0);
	const char *chain[] = {buf_cstr(&leaf)};
	if (tls_identity_new(key, chain, 1, tls_ca_root_pem(ca), id, &policy, &identity, &err) < 0)
		fail_msg("identity: %s", err.text);
	tls_key_unref(key);
	buf_done(&csr);
	buf_done(&leaf);
	return identity;
}

enum { TUNNEL_STREAMS = 64 };

/* What a server does with a request. */
enum serve { SERVE_ECHO, SERVE_REFUSE, SERVE_PARK, SERVE_FORWARD };

struct tunnel_end;

/* One stream at one end. */
struct tunnel_stream {
	struct owner owner;
	struct tunnel_end *end;
	struct pump *pump;
	int status; /* of the answer */
	char baggage[64];
	char authority[64];
	int pump_done;
	int pump_code;
	char pump_text[160];
	uint64_t received;
	uint64_t sent;
};

/* One end of a link. */
struct tunnel_end {
	struct lab *lab;
	struct link *link;
	struct tunnel_stream streams[TUNNEL_STREAMS];
	int stream_cnt;
	int forward_fds[TUNNEL_STREAMS]; /* SERVE_FORWARD: where the n-th request goes */
	enum serve serve;
	int ready;
	int settings;
	int goaway;
	int closed;
	int code;
	char text[160];
	int streams_told; /* breaks told to streams before on_closed */
	bool free_on_ready;
	bool free_on_request;
};

/* The whole: two ends. */
struct tunnel {
	struct lab lab;
	struct tls_ca *ca;
	struct tls_identity *client_identity;
	struct tls_identity *server_identity;
	struct h2_env *env;
	struct tunnel_end client;
	struct tunnel_end server;
};

static inline void end_ready(void *ctx)
{
	struct tunnel_end *end = ctx;
	end->ready++;
	if (end->free_on_ready) {
		link_free(end->link);
		end->link = NULL;
	}
}

static inline void end_settings(void *ctx)
{
	((struct tunnel_end *)ctx)->settings++;
}

static inline void end_goaway(void *ctx)
{
	((struct tunnel_end *)ctx)->goaway++;
}

static inline void end_closed(void *ctx, int code, const char *text)
{
	struct tunnel_end *end = ctx;
	end->closed++;
	end->code = code;
	(void)snprintf(end->text, sizeof(end->text), "%s", text);
	for (int i = 0; i < end->stream_cnt; i++)
		end->streams_told += end->streams[i].owner.error != 0;
}

static inline void stream_pumped(void *ctx, int code, const char *text)
{
	struct tunnel_stream *s = ctx;
	s->pump_done++;
	s->pump_code = code;
	(void)snprintf(s->pump_text, sizeof(s->pump_text), "%s", text ? text : "");
	s->received = pump_received(s->pump);
	s->sent = pump_sent(s->pump);
	pump_free(s->pump);
	s->pump = NULL;
	s->owner.stream = NULL;
}

static const struct pump_events tunnel_pump_events = {.on_done = stream_pumped};

/* Copies between a stream of the link and a socket. */
static inline void stream_forward(struct tunnel_stream *s, int fd, bool is_server)
{
	struct stream *sock;
	assert_int_equal(sock_new(s->end->lab->io, fd, &sock), 0);
	struct stream *link_stream = s->owner.stream;
	int r = pump_start(is_server ? link_stream : sock, is_server ? sock : link_stream, NULL,
	        &tunnel_pump_events, s, &s->pump);
	assert_int_equal(r, 0);
}

static inline void end_request(void *ctx, struct stream *stream, const struct h2_headers *headers)
{
	struct tunnel_end *end = ctx;
	struct tunnel_stream *s = &end->streams[end->stream_cnt++];
	struct h2_header baggage = {.name = "baggage", .value = "k8s=v"};
	assert_true(end->stream_cnt <= TUNNEL_STREAMS);
	memset(s, 0, sizeof(*s));
	s->end = end;
	owner_init(&s->owner, end->lab, stream);
	const char *authority = h2_headers_get(headers, ":authority");
	(void)snprintf(s->authority, sizeof(s->authority), "%s", authority ? authority : "");
	if (end->free_on_request) {
		stream_free(stream);
		s->owner.stream = NULL;
		link_free(end->link);
		end->link = NULL;
		return;
	}
	if (end->serve == SERVE_REFUSE) {
		assert_int_equal(link_respond(stream, 401, NULL, 0, true), 0);
		stream_free(stream);
		s->owner.stream = NULL;
		return;
	}
	if (end->serve == SERVE_PARK)
		return;
	if (link_respond(stream, 200, &baggage, 1, false) < 0) {
		stream_free(stream);
		s->owner.stream = NULL;
		return;
	}
	if (end->serve == SERVE_FORWARD) {
		stream_forward(s, end->forward_fds[end->stream_cnt - 1], true);
		return;
	}
	s->owner.echo = stream;
	s->owner.obeys = true;
	stream_read_start(stream);
}

static const struct link_events end_events = {
        .on_ready = end_ready,
        .on_settings = end_settings,
        .on_request = end_request,
        .on_goaway = end_goaway,
        .on_closed = end_closed,
};

static inline void stream_answered(
        void *ctx, struct stream *stream, int status, const struct h2_headers *headers)
{
	struct tunnel_stream *s = ctx;
	const char *baggage = h2_headers_get(headers, "baggage");
	s->status = status;
	(void)snprintf(s->baggage, sizeof(s->baggage), "%s", baggage ? baggage : "");
}

static const struct link_answer_events answer_events = {.on_response = stream_answered};

/* The client's next stream. */
static inline struct tunnel_stream *tunnel_connect(struct tunnel *t, const char *authority)
{
	struct tunnel_end *end = &t->client;
	struct tunnel_stream *s = &end->streams[end->stream_cnt++];
	struct stream *stream = NULL;
	memset(s, 0, sizeof(*s));
	s->end = end;
	assert_true(end->stream_cnt <= TUNNEL_STREAMS);
	assert_int_equal(link_connect(end->link, authority, NULL, 0, &answer_events, s, &stream), 0);
	owner_init(&s->owner, &t->lab, stream);
	stream_read_start(stream);
	return s;
}

static inline void tunnel_setup(struct tunnel *t)
{
	struct err err = {0};
	memset(t, 0, sizeof(*t));
	lab_open(&t->lab, false, 0);
	assert_int_equal(tls_ca_new(&t->ca, &err), 0);
	t->client_identity = identity_new(t->ca, CLIENT_ID);
	t->server_identity = identity_new(t->ca, SERVER_ID);
	assert_int_equal(h2_env_new(0, &t->env), 0);
	t->client.lab = t->server.lab = &t->lab;
}

/* A link over `fd`. */
static inline void end_start(
        struct tunnel *t, struct tunnel_end *end, struct stream *transport, struct link_opts opts)
{
	struct err err = {0};
	opts.env = t->env;
	if (link_new(t->lab.io, transport, &opts, &end_events, end, &end->link, &err) < 0)
		fail_msg("link: %s", err.text);
}

static inline struct stream *lab_sock(struct lab *lab, int fd)
{
	struct stream *stream;
	assert_int_equal(sock_new(lab->io, fd, &stream), 0);
	return stream;
}

static inline struct link_opts client_opts(struct tunnel *t)
{
	static const char *const accept[] = {SERVER_ID};
	return (struct link_opts){.identity = t->client_identity, .accept = accept, .accept_cnt = 1};
}

static inline struct link_opts server_opts(struct tunnel *t)
{
	return (struct link_opts){.identity = t->server_identity, .is_server = true};
}

/* Both ends over loopback TCP. */
static inline void tunnel_start(struct tunnel *t)
{
	int fd[2];
	lab_tcp(fd);
	end_start(t, &t->client, lab_sock(&t->lab, fd[0]), client_opts(t));
	end_start(t, &t->server, lab_sock(&t->lab, fd[1]), server_opts(t));
	lab_until(&t->lab, t->client.ready && t->server.ready && t->client.settings);
}

static inline void end_stop(struct tunnel_end *end)
{
	for (int i = 0; i < end->stream_cnt; i++) {
		pump_free(end->streams[i].pump);
		if (!end->streams[i].pump)
			stream_free(end->streams[i].owner.stream);
	}
	link_free(end->link);
	struct lab *lab = end->lab;
	memset(end, 0, sizeof(*end));
	end->lab = lab;
}

/* Ends and streams go, the rest stays. */
static inline void tunnel_stop(struct tunnel *t)
{
	end_stop(&t->client);
	end_stop(&t->server);
	io_turn(t->lab.io, false);
}

static inline void tunnel_teardown(struct tunnel *t)
{
	tunnel_stop(t);
	/* Lingering transports have their time. */
	lab_until(&t->lab, io_in_flight(t->lab.io) == 0);
	assert_int_equal(h2_env_budget(t->env)->used, 0);
	h2_env_free(t->env);
	tls_identity_unref(t->client_identity);
	tls_identity_unref(t->server_identity);
	tls_ca_free(t->ca);
	lab_close(&t->lab);
}

#endif

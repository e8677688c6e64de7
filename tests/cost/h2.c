/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * HBONE requests: CONNECT, answer, 1 KB each way, end, one after the other on
 * one connection, as a tunnel from the pool carries them. Each side's work by
 * itself; TLS is not among it.
 */
#include <string.h>

#include "base/chain.h"
#include "base/check.h"
#include "cost.h"
#include "h2/session.h"

/* Before counting starts the header tables have settled. */
#define WARM_UP 50
#define REQUESTS 200
#define BODY 1024
#define POOL_MAX (16u << 20)

/* One side; each has an env of its own, as each is a process of its own. */
struct side {
	bool is_counted;
	struct chunk_pool pool;
	struct h2_env *env;
	struct h2_session *session;
	struct h2_stream *stream; /* the present request's */
	uint64_t now_ms;
	size_t got;      /* bytes of the present request's body or answer */
	unsigned served; /* requests that are complete */
	uint8_t wire[65536];
	size_t wire_len;
	const struct side *from; /* whose wire is fed */
};

static void send_body(struct side *s)
{
	struct chain body = {0};
	struct chunk *c = chunk_new(&s->pool, BODY);
	memset(chunk_bytes(c), 'x', BODY);
	c->len = BODY;
	chain_append(&body, c);
	int r = h2_stream_write(s->stream, &body);
	ASSERT(r == 0);
}

/* --- client ------------------------------------------------------------------- */

static void client_on_response(
        void *user, struct h2_stream *stream, int status, const struct h2_headers *headers)
{
	ASSERT(status == 200);
	send_body(user);
}

static void client_on_data(void *user, struct h2_stream *stream, const uint8_t *bytes, size_t len)
{
	struct side *s = user;
	s->got += len;
	h2_stream_consume(stream, len);
	if (s->got < BODY)
		return;
	int r = h2_stream_end(stream);
	ASSERT(r == 0);
}

static void client_on_end(void *user, struct h2_stream *stream)
{
	struct side *s = user;
	h2_stream_release(stream);
	s->stream = NULL;
	s->served++;
}

static const struct h2_stream_ops client_stream_ops = {
        .on_response = client_on_response, .on_data = client_on_data, .on_end = client_on_end};
static const struct h2_session_ops client_ops;

/* What changes with each connection changes here too, so that it costs what it costs there. */
static void client_open(void *ctx)
{
	struct side *s = ctx;
	char forwarded[] = "for=\"10.244.1.10:40000\";host=\"echo.default.svc.cluster.local\"";
	char traceparent[] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba90000-01";
	forwarded[19] = (char)('0' + s->served % 10);
	traceparent[51] = (char)('0' + s->served % 10);
	const struct h2_header headers[] = {
	        {"baggage",
	                "k8s.cluster.name=Kubernetes,k8s.namespace.name=default,k8s.deployment.name=client,"
	                "service.name=client,service.version=v1",
	                false},
	        {"forwarded", forwarded, true},
	        {"traceparent", traceparent, true},
	};
	s->got = 0;
	int r = h2_connect(s->session, "10.244.2.20:8080", headers, 3, &client_stream_ops, s, &s->stream);
	ASSERT(r == 0);
}

/* --- server ------------------------------------------------------------------- */

static void server_on_data(void *user, struct h2_stream *stream, const uint8_t *bytes, size_t len)
{
	struct side *s = user;
	s->got += len;
	h2_stream_consume(stream, len);
	if (s->got == BODY)
		send_body(s);
}

static void server_on_end(void *user, struct h2_stream *stream)
{
	struct side *s = user;
	ASSERT(s->got == BODY);
	int r = h2_stream_end(stream);
	ASSERT(r == 0);
	h2_stream_release(stream);
	s->stream = NULL;
	s->served++;
}

static const struct h2_stream_ops server_stream_ops = {.on_data = server_on_data, .on_end = server_on_end};

static void server_on_request(void *ctx, struct h2_stream *stream, const struct h2_headers *headers)
{
	struct side *s = ctx;
	const struct h2_header answer = {
	        "baggage", "k8s.cluster.name=Kubernetes,k8s.namespace.name=default,service.name=echo", false};
	s->stream = stream;
	s->got = 0;
	h2_stream_bind(stream, &server_stream_ops, s);
	int r = h2_respond(stream, 200, &answer, 1, false);
	ASSERT(r == 0);
}

static const struct h2_session_ops server_ops = {.on_request = server_on_request};

/* --- both --------------------------------------------------------------------- */

static void side_init(struct side *s, bool is_server)
{
	struct h2_config config;
	memset(s, 0, sizeof(*s));
	s->now_ms = 1000;
	chunk_pool_init(&s->pool, POOL_MAX);
	h2_config_init(&config, is_server);
	int r = h2_env_new(0, &s->env);
	ASSERT(r == 0);
	r = h2_session_new(s->env, &config, is_server ? &server_ops : &client_ops, s, s->now_ms, &s->session);
	ASSERT(r == 0);
}

static void side_done(struct side *s)
{
	h2_session_free(s->session);
	h2_env_free(s->env);
	chunk_pool_done(&s->pool);
}

/* All output to the wire: the copy stands for the encryption. */
static void side_pull(void *ctx)
{
	struct side *s = ctx;
	const uint8_t *piece;
	size_t len;
	while (h2_pull(s->session, &piece, &len) == 1) {
		ASSERT(len <= sizeof(s->wire) - s->wire_len);
		memcpy(s->wire + s->wire_len, piece, len);
		s->wire_len += len;
	}
}

static void side_feed(void *ctx)
{
	struct side *s = ctx;
	int r = h2_feed(s->session, s->from->wire, s->from->wire_len, s->now_ms);
	ASSERT(r == 0);
}

static void side_do(struct side *s, void (*piece)(void *ctx))
{
	if (s->is_counted)
		cost_count(piece, s);
	else
		piece(s);
}

/* What `from` has to say; false: nothing. */
static bool carry_over(struct side *from, struct side *to)
{
	from->wire_len = 0;
	side_do(from, side_pull);
	if (from->wire_len == 0)
		return false;
	to->from = from;
	side_do(to, side_feed);
	return true;
}

static void settle(struct side *client, struct side *server)
{
	bool is_moving = true;
	while (is_moving) {
		is_moving = carry_over(client, server);
		is_moving = carry_over(server, client) || is_moving;
	}
}

static void requests(struct side *client, struct side *server, unsigned cnt)
{
	for (unsigned i = 0; i < cnt; i++) {
		unsigned served = client->served;
		client->now_ms = ++server->now_ms;
		side_do(client, client_open);
		settle(client, server);
		ASSERT(client->served == served + 1 && server->served == client->served);
	}
}

void cost_requests(void)
{
	static struct side client, server;
	side_init(&client, false);
	side_init(&server, true);
	settle(&client, &server);
	requests(&client, &server, WARM_UP);
	client.is_counted = true;
	requests(&client, &server, REQUESTS);
	cost_figure_end("request-client", REQUESTS);
	client.is_counted = false;
	server.is_counted = true;
	requests(&client, &server, REQUESTS);
	cost_figure_end("request-server", REQUESTS);
	side_done(&client);
	side_done(&server);
}

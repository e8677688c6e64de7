/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * TLS: handshakes as they come with each tunnel, records as they come with
 * its bytes. The other side's work, and the way between, are not counted.
 */
#include <errno.h>
#include <string.h>

#include "base/check.h"
#include "cost.h"
#include "fixture.h"

#define ALICE "spiffe://cluster.local/ns/default/sa/alice"
#define BOB "spiffe://cluster.local/ns/default/sa/bob"

/* Enough that what a signature's value changes is lost in the average. */
#define HANDSHAKES 20
#define RECORDS 200
/* Of a silo with some hundred busy tunnels; nothing here comes near. */
#define POOL_MAX (64u << 20)
/* Flights of a handshake: ClientHello, ServerHello to Finished, Finished. */
#define ROUNDS 3

struct world {
	struct authority root;
	struct tls_identity *alice, *bob;
};

static void world_init(struct world *w)
{
	authority_root(&w->root, "cost");
	w->alice = identity_for(&w->root, ALICE);
	w->bob = identity_for(&w->root, BOB);
}

static void world_done(struct world *w)
{
	tls_identity_unref(w->alice);
	tls_identity_unref(w->bob);
	authority_done(&w->root);
}

/* --- handshakes --------------------------------------------------------------- */

/* One side of a handshake. */
struct side {
	struct world *world;
	bool is_client;
	bool is_counted;
	struct chunk_pool pool;
	struct chain out;
	struct tls_session *session;
	const uint8_t *in; /* bytes from the other side, lent */
	size_t in_len;
	int ret; /* of the last step */
};

static void side_open(void *ctx)
{
	struct side *s = ctx;
	const char *accept = BOB;
	struct err err;
	s->ret = s->is_client
	                 ? tls_client_new(s->world->alice, &accept, 1, &s->pool, &s->out, &s->session, &err)
	                 : tls_server_new(s->world->bob, &s->pool, &s->out, &s->session, &err);
}

static void side_step(void *ctx)
{
	struct side *s = ctx;
	struct err err;
	if (s->in_len)
		tls_feed(s->session, s->in, s->in_len);
	s->ret = tls_handshake(s->session, &err);
}

static void side_close(void *ctx)
{
	struct side *s = ctx;
	tls_free(s->session);
}

static void side_do(struct side *s, void (*piece)(void *ctx))
{
	if (s->is_counted)
		cost_count(piece, s);
	else
		piece(s);
}

/* A step of `s` with all that the other side has sent. */
static void side_turn(struct side *s, struct side *other, uint8_t *wire, size_t cap)
{
	s->in = wire;
	s->in_len = chain_copy(&other->out, 0, wire, cap);
	ASSERT(s->in_len == other->out.len);
	chain_clear(&other->out);
	side_do(s, side_step);
	ASSERT(s->ret == 0 || s->ret == -EAGAIN);
	ASSERT(tls_feed_left(s->session) == 0);
}

static void handshake(struct world *w, bool counts_client, bool counts_server)
{
	static uint8_t wire[65536];
	struct side client = {.world = w, .is_client = true, .is_counted = counts_client};
	struct side server = {.world = w, .is_counted = counts_server};
	chunk_pool_init(&client.pool, POOL_MAX);
	chunk_pool_init(&server.pool, POOL_MAX);
	side_do(&client, side_open);
	side_do(&server, side_open);
	ASSERT(client.ret == 0 && server.ret == 0);
	for (int i = 0; i < ROUNDS; i++) {
		if (!tls_is_established(client.session))
			side_turn(&client, &server, wire, sizeof(wire));
		side_turn(&server, &client, wire, sizeof(wire));
	}
	ASSERT(tls_is_established(client.session) && tls_is_established(server.session));
	ASSERT(strcmp(tls_peer_identity(server.session), ALICE) == 0);
	side_do(&client, side_close);
	side_do(&server, side_close);
	chunk_pool_done(&client.pool);
	chunk_pool_done(&server.pool);
}

void cost_handshakes(void)
{
	struct world w;
	world_init(&w);
	/* The first one makes what an identity makes once. */
	handshake(&w, false, false);
	for (unsigned i = 0; i < HANDSHAKES; i++)
		handshake(&w, true, false);
	cost_figure_end("handshake-client", HANDSHAKES);
	for (unsigned i = 0; i < HANDSHAKES; i++)
		handshake(&w, false, true);
	cost_figure_end("handshake-server", HANDSHAKES);
	world_done(&w);
}

/* --- records ------------------------------------------------------------------ */

/* A record on its way. */
struct passage {
	struct pair *pair;
	size_t len;                        /* of its plaintext */
	size_t wire_len;                   /* of its ciphertext */
	size_t got;                        /* plaintext that came out */
	uint8_t wire[TLS_RECORD_WIRE_MAX]; /* ciphertext */
	uint8_t in[TLS_RECORD_MAX];        /* plaintext */
	uint8_t out[TLS_RECORD_MAX + 1];   /* plaintext again; with room left, or nothing would be read */
};

static void seal(void *ctx)
{
	struct passage *p = ctx;
	struct err err;
	int ret = tls_write(p->pair->client, p->in, p->len, &err);
	ASSERT(ret == 0);
}

static void open_record(void *ctx)
{
	struct passage *p = ctx;
	struct err err;
	ssize_t ret;
	p->got = 0;
	tls_feed(p->pair->server, p->wire, p->wire_len);
	/* Until -EAGAIN, as a silo reads. */
	while ((ret = tls_read(p->pair->server, p->out + p->got, sizeof(p->out) - p->got, &err)) > 0)
		p->got += (size_t)ret;
	ASSERT(ret == -EAGAIN);
}

/* One record from client to server, either end of the way counted. */
static void pass(struct passage *p, bool counts_seal)
{
	struct chain *wire = &p->pair->to_server;
	if (counts_seal)
		cost_count(seal, p);
	else
		seal(p);
	p->wire_len = chain_copy(wire, 0, p->wire, sizeof(p->wire));
	ASSERT(p->wire_len == wire->len);
	chain_clear(wire);
	if (counts_seal)
		open_record(p);
	else
		cost_count(open_record, p);
	ASSERT(p->got == p->len && memcmp(p->in, p->out, p->len) == 0);
}

static void records(struct pair *pair, size_t len, const char *seal_name, const char *open_name)
{
	static struct passage p;
	uint64_t state = 0;
	p.pair = pair;
	p.len = len;
	for (size_t i = 0; i < len; i++)
		p.in[i] = (uint8_t)cost_number(&state);
	for (unsigned i = 0; i < RECORDS; i++)
		pass(&p, true);
	cost_figure_end(seal_name, RECORDS);
	for (unsigned i = 0; i < RECORDS; i++)
		pass(&p, false);
	cost_figure_end(open_name, RECORDS);
}

void cost_records(void)
{
	struct world w;
	struct pair pair;
	world_init(&w);
	pair_init(&pair, w.alice, w.bob, BOB);
	pair_handshake(&pair);
	ASSERT(pair.client_ret == 0 && pair.server_ret == 0);
	records(&pair, TLS_RECORD_MAX, "record-16k-seal", "record-16k-open");
	records(&pair, 64, "record-64-seal", "record-64-open");
	pair_done(&pair);
	world_done(&w);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Test bench: HTTP/2 sessions in memory, joined to each other or to bytes
 * written by hand, with everything their owners are told on record.
 */
#ifndef CULVERT_TEST_H2_PAIR_H
#define CULVERT_TEST_H2_PAIR_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/chain.h"
#include "h2/session.h"

/* What one stream's owner was told. */
struct rec {
	struct h2_stream *stream; /* NULL once let go */
	struct end *end;
	int responses, status;
	char baggage[128];   /* first baggage line of the request or answer */
	char authority[128]; /* of the request; "-" = absent */
	char method[32];
	size_t data_len;   /* bytes received */
	uint64_t data_sum; /* order-dependent sum of them */
	int ends, resets, writables, drains, trailers;
	struct h2_reset reset;
	bool is_lazy; /* does not consume */
	/* What to do when told: 0 nothing, 'r' release, 'c' reset CANCEL. */
	char on_data_do, on_end_do, on_reset_do, on_response_do, on_drained_do;
};

/* One side. */
struct end {
	struct h2_env *env;
	struct h2_session *session;
	struct h2_config config;
	struct rec *recs; /* of streams accepted, in order; servers */
	size_t rec_cnt, rec_max;
	int answer;         /* status that on_request answers with at once; 0 = none */
	bool answer_end;    /* with END_STREAM, and released */
	bool is_lazy;       /* accepted streams do not consume */
	bool is_unbound;    /* on_request does nothing */
	char on_request_do; /* as in struct rec */
	int settings, goaways, rooms;
	uint32_t goaway_last, goaway_code;
	size_t sent; /* bytes pulled by the pump */
	size_t pieces;
	size_t piece_max; /* longest */
};

/* Both sides, one memory pool, one clock. */
struct pair {
	struct chunk_pool pool;
	struct end client, server;
	uint64_t now;
};

/* Callbacks that record. */
extern const struct h2_session_ops end_ops;
extern const struct h2_stream_ops rec_ops;

/* Make one side with its config (h2_config_init() first). */
void end_open(struct end *end, uint64_t now);
void end_close(struct end *end);

/* Make both with defaults, `tune` (may be NULL) changing the configs; nothing is exchanged yet. */
struct pair *pair_new(void (*tune)(struct h2_config *client, struct h2_config *server));
void pair_free(struct pair *pair);

/* Move at most `max` bytes one way; returns the bytes moved. */
size_t end_pump(struct end *from, struct end *to, uint64_t now, size_t max);
/* Move everything both ways until silence. */
void pair_pump(struct pair *pair);

/* CONNECT from the client. */
int pair_connect(struct pair *pair, struct rec *rec, const char *authority);

/* Queue `len` bytes of a pattern that continues at `seed`; in chunks with `each` bytes (0 = as many as fit).
 */
int rec_write(struct pair *pair, struct rec *rec, size_t len, size_t each, size_t seed);
/* The sum that receiving `len` bytes of the pattern gives. */
uint64_t pattern_sum(size_t len);

/* Frames by hand. */
struct wire {
	uint8_t bytes[400000];
	size_t len;
};
void wire_raw(struct wire *wire, const void *bytes, size_t len);
void wire_frame(
        struct wire *wire, uint8_t type, uint8_t flags, uint32_t stream, const void *payload, size_t len);
/* Client preface and empty SETTINGS. */
void wire_hello(struct wire *wire);
/* HEADERS of literal lines: name, value, ..., NULL. */
void wire_headers(struct wire *wire, uint8_t flags, uint32_t stream, ...);
/* Give it to the session and start over. */
int wire_feed(struct wire *wire, struct end *end, uint64_t now);

/* A frame found in output. */
struct seen {
	uint8_t type, flags;
	uint32_t stream;
	uint32_t len;
	uint8_t payload[64]; /* its start */
};
/* Pull all output and take it apart; returns the number of frames (skipping the client preface). */
size_t end_frames(struct end *end, struct seen *seen, size_t max);
uint32_t be32(const uint8_t *p);

enum { F_DATA, F_HEADERS, F_PRIORITY, F_RST, F_SETTINGS, F_PUSH, F_PING, F_GOAWAY, F_WINDOW, F_CONT };
enum { FLAG_END = 1, FLAG_ACK = 1, FLAG_END_HEADERS = 4, FLAG_PADDED = 8 };

#endif

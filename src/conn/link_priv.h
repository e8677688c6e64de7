/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of a link share; nobody else includes this. */
#ifndef CULVERT_CONN_LINK_PRIV_H
#define CULVERT_CONN_LINK_PRIV_H

#include "base/list.h"
#include "conn/link.h"
#include "tls/session.h"

/* Live objects, checked where a pointer comes back from elsewhere. */
#define LINK_MAGIC 0x6c696e6bu
#define LINK_STREAM_MAGIC 0x6c737472u

/* Where a link stands; link_set_phase() is the only writer. */
enum link_phase {
	LINK_HANDSHAKE, /* TLS */
	LINK_OPEN,      /* requests may flow */
	LINK_LEAVING,   /* our farewell is being written */
	LINK_OVER,      /* nothing flows; the owner is being told */
	LINK_LINGERING, /* freed by its owner; the transport delivers our last words */
};

struct link {
	uint32_t magic;
	enum link_phase phase;
	struct io *io;
	struct h2_env *env;
	struct stream *transport; /* owned */
	struct tls_session *tls;  /* NULL = clear text */
	struct h2_session *h2;    /* made when the handshake is done */
	struct h2_config h2_config;
	const struct link_events *events; /* NULL = nobody */
	void *ctx;
	struct chain out;        /* output of TLS, or of HTTP/2 in clear text, on its way to the transport */
	struct list streams;     /* all struct link_stream */
	struct list dirty;       /* those with something for HTTP/2 */
	struct list busy;        /* those with bytes in HTTP/2's queue */
	struct io_task flush;    /* end of turn: output, or tear down */
	struct io_task work;     /* telling the owner */
	struct timer timer;      /* handshake, then PINGs, then lingering */
	int over_code;           /* why it is over */
	int abort_code;          /* what streams are told of the transport; 0 = the peer closed */
	char *over_text;         /* owned; NULL = the code's own text */
	bool is_freed : 1;       /* the owner let go */
	bool is_aborted : 1;     /* streams have been told that it is over */
	bool is_told : 1;        /* on_closed was called */
	bool has_last_words : 1; /* the transport closes gently */
	bool is_drain_wanted : 1;
	bool is_ready_told : 1;
};

/* One HTTP/2 stream as a struct stream. */
struct link_stream {
	struct stream stream;
	uint32_t magic;
	struct link *link;    /* NULL once the link is gone */
	struct h2_stream *h2; /* NULL once it is dead */
	const struct link_answer_events *answer;
	void *answer_ctx;
	struct list node;    /* in link->streams */
	struct list dirty;   /* in link->dirty */
	struct list busy;    /* in link->busy */
	struct io_task work; /* events that are due */
	struct chain rx;     /* received, not delivered; within the stream's window */
	struct chain tx;     /* written, not yet given to HTTP/2 */
	uint64_t given;      /* bytes given to HTTP/2 */
	int error;           /* 0, or what on_error will say */
	uint32_t reset_code; /* with error -EPROTO: HTTP/2's reason */
	bool is_reset_remote : 1;
	bool is_reset : 1; /* RST_STREAM or a refusal ended it, not the connection's end */
	bool is_reading : 1;
	bool is_ended : 1; /* the peer's direction is over */
	bool is_end_told : 1;
	bool is_blocked : 1;   /* HTTP/2's queue is full until on_writable */
	bool was_high : 1;     /* on_drained is due at the low mark */
	bool is_drained : 1;   /* ... and here */
	bool is_shutdown : 1;  /* our end follows tx */
	bool is_end_given : 1; /* HTTP/2 was told of it */
	bool is_finished : 1;  /* it left */
	bool is_fin_told : 1;
	bool is_dead : 1; /* on_error was called */
	bool is_freed : 1;
};

/* Has output pulled at the end of the turn. */
void link_mark(struct link *link);

/* Ends the link; the first reason stays. `text` NULL = the code's own. Streams and owner are told later. */
void link_end(struct link *link, int code, int abort_code, const char *text);

/* Events of the transport (link_io.c). */
extern const struct stream_events link_transport_events;

/* Takes the TLS handshake a step further; the link may end by it (link_io.c). */
void link_step_handshake(struct link *link);

/* Moves output from streams to the transport, as far as there is room (link_io.c). */
void link_flush_output(struct link *link);

/* Takes what HTTP/2 has to say out of it before link_end(), which the transport then delivers (link_io.c). */
void link_last_words(struct link *link);

/* The handshake is done (or there is none): HTTP/2 begins (link.c). */
void link_open(struct link *link);

/* Sets the PING timer again if it slept: a stream was opened (link.c). */
void link_wake_pings(struct link *link);

/* Calls on_ready if it is due: before the first request, never from inside link_new() (link.c). */
void link_tell_ready(struct link *link);

/* A request has arrived (link_stream.c). */
void link_stream_accept(struct link *link, struct h2_stream *h2, const struct h2_headers *headers);

/* Gives what is written to HTTP/2 as far as it takes it (link_stream.c). */
void link_stream_push(struct link_stream *st);

/* Looks how far HTTP/2 has come with what it was given (link_stream.c). */
void link_stream_progress(struct link_stream *st);

/* The link is gone: what is not dead yet dies (link_stream.c). */
void link_stream_orphan(struct link_stream *st);

#endif

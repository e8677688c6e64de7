/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What link.c (transport, TLS, session) and link_stream.c (its streams) share. */
#ifndef CULVERT_CONN_LINK_INT_H
#define CULVERT_CONN_LINK_INT_H

#include "base/list.h"
#include "conn/link.h"
#include "tls/session.h"

/* A link. */
struct link {
	struct io *io;
	struct stream *transport; /* owned */
	struct tls_session *tls;  /* NULL = none */
	struct h2_session *h2;
	struct chain out;                 /* for the transport, within a turn */
	const struct link_events *events; /* NULL once freed */
	void *ctx;
	struct list streams;    /* struct link_stream, all that point here */
	struct list writing;    /* of them, those with bytes queued */
	struct timer timer;     /* handshake, then what HTTP/2 wants */
	struct io_task output;  /* pulls and encrypts, once a turn */
	struct io_task report;  /* tells on_closed */
	struct io_task destroy; /* after link_free */
	unsigned in_h2;         /* depth of h2 calls that call back */
	unsigned destroy_round; /* the first one lets the transport's send go out */
	bool is_server;
	bool is_ready;   /* handshake done */
	bool is_over;    /* closed, reported or about to be */
	bool is_goodbye; /* link_goodbye() waits for the end of a callback */
	int code;        /* why it is over */
	char text[ERR_TEXT_MAX];
};

/* One HTTP/2 stream as a struct stream. */
struct link_stream {
	struct stream stream;
	struct list node;    /* in link->streams, or detached */
	struct list writing; /* in link->writing, or detached */
	struct link *link;   /* NULL = gone */
	struct io *io;
	struct h2_stream *h2s; /* NULL = gone */
	const struct link_answer_events *answer;
	void *answer_ctx;
	struct chain held;   /* received, not delivered; bounded by the window */
	struct io_task work; /* delivers and tells */
	uint64_t written;    /* bytes given to HTTP/2 */
	int error;           /* 0, or what on_error will say */
	char text[64];       /* words for error */
	bool is_reading : 1;
	bool is_end : 1; /* nothing more will be received */
	bool is_end_told : 1;
	bool was_high : 1; /* on_drained is due at the low mark */
	bool is_low : 1;   /* on_drained is to be told */
	bool is_shutdown : 1;
	bool is_finished : 1; /* our end was taken */
	bool is_fin_told : 1;
	bool is_dead : 1; /* on_error was told */
	bool is_write_broken : 1;
	bool is_freed : 1;
};

/* Output is due this turn. */
void link_want_output(struct link *link);

/* Takes over an HTTP/2 stream. NULL when memory is short. */
struct link_stream *link_stream_new(struct link *link);

/* The events of HTTP/2 streams. */
extern const struct h2_stream_ops link_stream_h2_ops;

/* The link is gone: the stream stands alone from here, told in its own turn. */
void link_stream_orphan(struct link_stream *s);

/* Frees a stream that its owner never saw. */
void link_stream_drop(struct link_stream *s);

/* Notes what the transport has taken of the streams' bytes. */
void link_streams_account(struct link *link);

#endif

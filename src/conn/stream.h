/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A duplex byte stream: one interface over a socket (conn/sock.h) and over an
 * HTTP/2 stream inside TLS (conn/link.h), so that pump and others need not
 * know which they have. Events never arrive from inside a call made here.
 */
#ifndef CULVERT_CONN_STREAM_H
#define CULVERT_CONN_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/chain.h"

struct io;
struct stream;

/* Marks of a write queue unless set otherwise, bytes: who writes pauses at high and resumes at low. */
#define STREAM_HIGH_LEN (512 * 1024)
#define STREAM_LOW_LEN (128 * 1024)

/* What a stream tells its owner. Any entry may be NULL. The owner may call anything, stream_free included,
 * from any of them. */
struct stream_events {
	/* Bytes arrived (only between read_start and read_stop). The owner takes what it wants out of `data`;
	 * the rest is freed. */
	void (*on_data)(void *ctx, struct chain *data);
	/* The peer finished its direction; no more on_data. Writing goes on. */
	void (*on_eof)(void *ctx);
	/* The write queue fell to the low mark after it had reached the high one. */
	void (*on_drained)(void *ctx);
	/* All written bytes and the end mark of stream_shutdown() have been handed to the transport. */
	void (*on_finished)(void *ctx);
	/*
	 * The stream broke; nothing else comes after, bytes not yet sent are lost. When only our direction
	 * broke (the peer stopped reading), stream_write() fails at once, what the peer still sends is read
	 * to its end, and then this comes. `code` is a negative errno
	 * (-ECONNRESET, -EPIPE, -ETIMEDOUT...) or an own code; `text` (never NULL, valid during
	 * the call) is the words for the log; is_broken says how the peer did it. The owner still has to
	 * stream_free().
	 */
	void (*on_error)(void *ctx, int code, const char *text);
};

/* How an owner lets go of a stream: stream_free(), stream_abort(), stream_reset(). */
enum stream_end { STREAM_END_QUIET, STREAM_END_ABORT, STREAM_END_RESET };

/* What an implementation provides; callers use the functions below. */
struct stream_ops {
	void (*read_start)(struct stream *stream);
	void (*read_stop)(struct stream *stream);
	int (*write)(struct stream *stream, struct chain *data);
	size_t (*queued)(const struct stream *stream);
	/* Bytes that a reset now would destroy: the queue, and what the kernel still holds. */
	size_t (*unsent)(const struct stream *stream);
	void (*shutdown)(struct stream *stream);
	void (*free)(struct stream *stream, enum stream_end end);
};

/* The part common to all streams; implementations embed it first. */
struct stream {
	const struct stream_ops *ops;
	/* The owner's callbacks; NULL = nobody listens. Borrowed. */
	const struct stream_events *events;
	/* First argument of the callbacks. */
	void *ctx;
	/* The loop it lives on. Borrowed. */
	struct io *io;
	/* Marks of the write queue, bytes; the owner may change them. */
	uint32_t high;
	uint32_t low;
	/* Bytes that the transport (kernel, HTTP/2 framing) has taken since birth. Read only. */
	uint64_t taken;
	/*
	 * Valid in on_error and after: the connection broke (RST, time-out, RST_STREAM of a failure, a lost
	 * tunnel), so that the peer's bytes may be incomplete. false: the peer only let go of the stream
	 * (RST_STREAM NO_ERROR or CANCEL, dataplane 6). Read only.
	 */
	bool is_broken;
};

/*
 * Moves all of `from` to the end of `to`; nearly empty chunks are copied into the room at the end instead, so
 * that a queue of many tiny pieces does not hold a chunk for each. For implementations.
 */
void stream_absorb(struct chain *to, struct chain *from);

/* Sets who is told; may be changed at any time, e.g. when a pump takes over. */
static inline void stream_set_events(struct stream *stream, const struct stream_events *events, void *ctx)
{
	stream->events = events;
	stream->ctx = ctx;
}

/* Lets on_data and on_eof come. A new stream does not read. */
static inline void stream_read_start(struct stream *stream)
{
	stream->ops->read_start(stream);
}

/* Holds on_data and on_eof back (back-pressure to the peer); bytes in hand stay in the stream, bounded. */
static inline void stream_read_stop(struct stream *stream)
{
	stream->ops->read_stop(stream);
}

/*
 * Queues all bytes of `data`, which is empty afterwards whatever the result. Never refuses for lack of room:
 * the writer looks at stream_is_high() and holds back until on_drained. Returns 0, or -EPIPE when the stream
 * broke or was shut down (the bytes are freed).
 */
static inline int stream_write(struct stream *stream, struct chain *data)
{
	return stream->ops->write(stream, data);
}

/* Bytes written but not yet taken by the transport (kernel, or HTTP/2 framing). */
static inline size_t stream_queued(const struct stream *stream)
{
	return stream->ops->queued(stream);
}

/* Whether who writes should pause until on_drained. */
static inline bool stream_is_high(const struct stream *stream)
{
	return stream_queued(stream) >= stream->high;
}

/* Ends our direction after the queue (FIN or END_STREAM); on_finished tells when. Idempotent. */
static inline void stream_shutdown(struct stream *stream)
{
	stream->ops->shutdown(stream);
}

/*
 * Lets go of the stream: no event comes after, memory is freed as soon as the kernel is done with it.
 * A stream that has ended both ways closes in silence; any other ends as an abandoned one does: a socket is
 * closed (the kernel answers later bytes with RST), an HTTP/2 stream is reset
 * with CANCEL, or NO_ERROR from a server that had finished (dataplane 6). NULL is fine.
 */
static inline void stream_free(struct stream *stream)
{
	if (stream)
		stream->ops->free(stream, STREAM_END_QUIET);
}

/* The same, but tells the peer at once that the stream is cut: RST on a socket, RST_STREAM CANCEL on HTTP/2.
 * NULL is fine. */
static inline void stream_abort(struct stream *stream)
{
	if (stream)
		stream->ops->free(stream, STREAM_END_ABORT);
}

/* How long stream_reset() waits for written bytes to leave, ms: a reader that is that slow loses them. */
#define STREAM_RESET_MS 1000

/*
 * Passes on that the other end of a connection broke: what was written is delivered first, as bytes that
 * arrived before a RST are, then comes RST on a socket, RST_STREAM CONNECT_ERROR on HTTP/2 (RFC 9113
 * section 8.5). The stream is the caller's no longer. NULL is fine.
 */
void stream_reset(struct stream *stream);

/*
 * Lets go of a connection that could not be made further: by RST, the nearest to a refused connect that a
 * transparent proxy can show; if it was told something already, that is delivered and an end follows; by a
 * plain end if `is_faithful` is false (CULVERT_RESET_FIDELITY). NULL is fine.
 */
void stream_refuse(struct stream *stream, bool is_faithful);

#endif

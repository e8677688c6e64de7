/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two-way copy between two streams with independent half-close, resets passed
 * on as such after the bytes before them, live counters and the end reason in the words of the access log
 * (dataplane 13). Does not know whether a stream is a socket or an HTTP/2 stream.
 *
 * "Down" is the side that opened the connection (on 15001 the application, on 15008
 * the HBONE stream), "up" the side that we dialled. Received = down to up.
 */
#ifndef CULVERT_CONN_PUMP_H
#define CULVERT_CONN_PUMP_H

#include "conn/stream.h"

struct pump;

/* Told once when the copy is over: both directions ended, or one broke. */
struct pump_events {
	/*
	 * `code` 0 = normal end, `text` NULL. Otherwise `text` (valid during the call) is the reason as the
	 * access log has it, e.g. "send: io error: ..." The owner then frees the pump.
	 */
	void (*on_done)(void *ctx, int code, const char *text);
};

/*
 * Starts to copy; takes both streams on success only and starts their reading. Bytes that arrived earlier
 * (still in the owner's hands) go in by `early_up` (towards up), may be NULL. `events` is borrowed. Returns 0
 * or -ENOMEM.
 */
int pump_start(struct stream *down, struct stream *up, struct chain *early_up,
        const struct pump_events *events, void *ctx, struct pump **ret_pump);

/*
 * A side that breaks (stream.is_broken) ends the other as upstream does, by an ordinary end, instead of
 * breaking it as well (CULVERT_RESET_FIDELITY=false).
 */
void pump_soften(struct pump *pump);

/* Its two streams, for observers; borrowed for the life of the pump. */
const struct stream *pump_down(const struct pump *pump);
const struct stream *pump_up(const struct pump *pump);

/* Bytes from down that the up side has taken so far ("received", dataplane 13). Also valid in and after
 * on_done. */
uint64_t pump_received(const struct pump *pump);

/* Bytes from up that the down side has taken so far ("sent"). */
uint64_t pump_sent(const struct pump *pump);

/* Which side was the first to end or break its direction. */
enum pump_first { PUMP_FIRST_NONE, PUMP_FIRST_DOWN, PUMP_FIRST_UP };

/* How the copy went, for observers; also valid in on_done. */
struct pump_story {
	uint64_t first_byte_us; /* clock_us() of the first byte from up; 0 = none came */
	enum pump_first first;  /* who ended first */
	bool is_broken;         /* by a break, as a reset is, not by an end */
};

/* The copy's story so far. */
struct pump_story pump_story(const struct pump *pump);

/* Ends and frees the pump with both its streams; no event comes after. Streams that had not ended are
 * abandoned, or reset when the other one broke. NULL is fine. */
void pump_free(struct pump *pump);

/* The same, but both sides are told at once that it broke (policy change, immediate drain). NULL is fine. */
void pump_abort(struct pump *pump);

#endif

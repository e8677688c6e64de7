/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copying both ways (dataplane 13). Each direction is reader -> writer and
 * ends by itself; the pump ends with the second one or with the first
 * failure. A break of one side becomes a break of the other, not an end.
 * Bytes move from chain to chain, none are touched.
 */
#include "conn/pump.h"

#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"

/* Room for the reason: prefix, "io error: " and a stream's text. */
#define TEXT_MAX 256

/* One of the two streams. */
struct side {
	struct pump *pump;
	struct side *peer;
	struct stream *stream;
	uint64_t taken_before; /* what had been written to the stream when the copy began */
	bool is_read_over;     /* nothing more comes out of it */
	bool is_write_over;    /* its end was sent, or it takes nothing any more */
	bool is_stopped;       /* its reading waits for the peer's queue */
	bool is_reset;         /* the other end broke: it is told so */
};

struct pump {
	const struct pump_events *events; /* NULL = told */
	void *ctx;
	struct side down;
	struct side up;
	struct pump_story story;
	bool is_soft; /* breaks become ends */
};

static uint64_t taken(const struct side *side)
{
	uint64_t all = side->stream->taken;
	return all > side->taken_before ? all - side->taken_before : 0;
}

const struct stream *pump_down(const struct pump *pump)
{
	return pump->down.stream;
}

const struct stream *pump_up(const struct pump *pump)
{
	return pump->up.stream;
}

uint64_t pump_received(const struct pump *pump)
{
	return taken(&pump->up);
}

uint64_t pump_sent(const struct pump *pump)
{
	return taken(&pump->down);
}

struct pump_story pump_story(const struct pump *pump)
{
	return pump->story;
}

/* A direction ends at `side`: whoever is the first of the two is remembered. */
static void note_end(const struct side *side, bool is_broken)
{
	struct pump *p = side->pump;
	if (p->story.first != PUMP_FIRST_NONE)
		return;
	p->story.first = side == &p->down ? PUMP_FIRST_DOWN : PUMP_FIRST_UP;
	p->story.is_broken = is_broken;
}

/* The other end is gone, which ends a connection but is no error. */
static bool is_goodbye(int code)
{
	return code == -ECONNRESET || code == -EPIPE || code == -ENOTCONN;
}

/* The pump may be gone when this returns. */
static void tell(struct pump *p, int code, const char *text)
{
	const struct pump_events *events = p->events;
	p->events = NULL;
	stream_read_stop(p->down.stream);
	stream_read_stop(p->up.stream);
	events->on_done(p->ctx, code, text);
}

/* The pump may be gone when this returns. */
static void check_end(struct pump *p)
{
	const struct side *down = &p->down;
	const struct side *up = &p->up;
	if (down->is_read_over && down->is_write_over && up->is_read_over && up->is_write_over)
		tell(p, 0, NULL);
}

/* Nothing more comes out of `side`; its peer is told after what is queued. */
static void end_reading(struct side *side)
{
	if (side->is_read_over)
		return;
	side->is_read_over = true;
	stream_read_stop(side->stream);
	if (!side->peer->is_write_over)
		stream_shutdown(side->peer->stream);
}

static void write_to(struct side *to, struct side *from, struct chain *data)
{
	if (stream_write(to->stream, data) < 0) {
		to->is_write_over = true;
		end_reading(from);
		return;
	}
	if (stream_is_high(to->stream) && !from->is_stopped) {
		from->is_stopped = true;
		stream_read_stop(from->stream);
	}
}

static void on_data(void *ctx, struct chain *data)
{
	struct side *side = ctx;
	struct pump *p = side->pump;
	if (!p->events)
		return;
	if (side == &p->up && !p->story.first_byte_us)
		p->story.first_byte_us = clock_us();
	write_to(side->peer, side, data);
	check_end(p);
}

static void on_eof(void *ctx)
{
	struct side *side = ctx;
	if (!side->pump->events)
		return;
	note_end(side, false);
	end_reading(side);
	check_end(side->pump);
}

static void on_drained(void *ctx)
{
	struct side *from = ((struct side *)ctx)->peer;
	if (!from->is_stopped || from->is_read_over || !from->pump->events)
		return;
	from->is_stopped = false;
	stream_read_start(from->stream);
}

static void on_finished(void *ctx)
{
	struct side *side = ctx;
	if (!side->pump->events)
		return;
	side->is_write_over = true;
	check_end(side->pump);
}

static void on_error(void *ctx, int code, const char *text)
{
	struct side *side = ctx;
	struct pump *p = side->pump;
	if (!p->events)
		return;
	note_end(side, side->stream->is_broken || !is_goodbye(code));
	side->peer->is_reset = side->stream->is_broken && !p->is_soft;
	if (is_goodbye(code) && side->peer->is_reset) {
		tell(p, 0, NULL);
		return;
	}
	if (is_goodbye(code)) {
		side->is_write_over = true;
		end_reading(side);
		end_reading(side->peer);
		check_end(p);
		return;
	}
	/* Words of their own, not those of an operation. */
	if (code == ERR_REVOKED) {
		tell(p, code, text);
		return;
	}
	/* A direction is named after its reader; a stream that was read to its end broke as a writer. */
	bool is_send = side->is_read_over ? side == &p->up : side == &p->down;
	char reason[TEXT_MAX];
	(void)snprintf(reason, sizeof(reason), "%s%s: io error: %s",
	        side->is_read_over && side->peer->is_read_over ? "while closing connection: " : "",
	        is_send ? "send" : "receive", text);
	tell(p, code, reason);
}

static const struct stream_events side_events = {
        .on_data = on_data,
        .on_eof = on_eof,
        .on_drained = on_drained,
        .on_finished = on_finished,
        .on_error = on_error,
};

static void side_init(struct side *side, struct pump *p, struct side *peer, struct stream *stream)
{
	*side = (struct side){.pump = p,
	        .peer = peer,
	        .stream = stream,
	        .taken_before = stream->taken + stream_queued(stream)};
	stream_set_events(stream, &side_events, side);
}

int pump_start(struct stream *down, struct stream *up, struct chain *early_up,
        const struct pump_events *events, void *ctx, struct pump **ret_pump)
{
	struct pump *p = mem_zalloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->events = events;
	p->ctx = ctx;
	side_init(&p->down, p, &p->up, down);
	side_init(&p->up, p, &p->down, up);
	stream_read_start(down);
	stream_read_start(up);
	if (early_up && !chain_empty(early_up))
		write_to(&p->up, &p->down, early_up);
	*ret_pump = p;
	return 0;
}

void pump_soften(struct pump *pump)
{
	pump->is_soft = true;
}

static void side_free(struct side *side)
{
	if (side->is_reset)
		stream_reset(side->stream);
	else
		stream_free(side->stream);
}

void pump_free(struct pump *pump)
{
	if (!pump)
		return;
	side_free(&pump->down);
	side_free(&pump->up);
	mem_free(pump);
}

void pump_abort(struct pump *pump)
{
	if (!pump)
		return;
	stream_abort(pump->down.stream);
	stream_abort(pump->up.stream);
	mem_free(pump);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The gentle ways to let go of a stream: bytes first, then the reset, or the
 * end. Before a reset the stream is asked every few milliseconds whether all
 * has left, because the kernel does not tell. Knows neither sockets nor HTTP/2.
 */
#include "base/list.h"
#include "base/mem.h"
#include "conn/stream.h"
#include "io/ring.h"

/* First pause between two looks, ms; doubled each time up to the second. */
#define PAUSE_MIN_MS 1
#define PAUSE_MAX_MS 32

/* A stream on its way out; nobody else has it. */
struct leaver {
	struct stream *stream;
	struct timer timer;
	uint64_t deadline_ms;
	uint32_t pause_ms;
};

static void leave(struct leaver *leaver)
{
	struct stream *stream = leaver->stream;
	io_timer_stop(stream->io, &leaver->timer);
	mem_free(leaver);
	stream->ops->free(stream, STREAM_END_RESET);
}

static void on_timer(struct timer *timer, uint64_t now)
{
	struct leaver *leaver = list_entry(timer, struct leaver, timer);
	if (now >= leaver->deadline_ms || leaver->stream->ops->unsent(leaver->stream) == 0) {
		leave(leaver);
		return;
	}
	io_timer_start(leaver->stream->io, &leaver->timer, leaver->pause_ms);
	if (leaver->pause_ms < PAUSE_MAX_MS)
		leaver->pause_ms *= 2;
}

static void on_error(void *ctx, int code, const char *text)
{
	(void)code;
	(void)text;
	leave(ctx);
}

static const struct stream_events events = {.on_error = on_error};

void stream_reset(struct stream *stream)
{
	if (!stream)
		return;
	stream_read_stop(stream);
	struct leaver *leaver = stream->ops->unsent(stream) ? mem_zalloc(1, sizeof(*leaver)) : NULL;
	if (!leaver) {
		stream->ops->free(stream, STREAM_END_RESET);
		return;
	}
	leaver->stream = stream;
	leaver->deadline_ms = io_now_ms(stream->io) + STREAM_RESET_MS;
	leaver->pause_ms = PAUSE_MIN_MS;
	stream_set_events(stream, &events, leaver);
	timer_init(&leaver->timer, on_timer);
	io_timer_start(stream->io, &leaver->timer, PAUSE_MIN_MS);
}

static void on_farewell_timer(struct timer *timer, uint64_t now)
{
	struct leaver *leaver = list_entry(timer, struct leaver, timer);
	struct stream *stream = leaver->stream;
	(void)now;
	io_timer_stop(stream->io, &leaver->timer);
	mem_free(leaver);
	stream_free(stream);
}

static void on_farewell_end(void *ctx)
{
	struct leaver *leaver = ctx;
	on_farewell_timer(&leaver->timer, 0);
}

static void on_farewell_error(void *ctx, int code, const char *text)
{
	(void)code;
	(void)text;
	on_farewell_end(ctx);
}

/* What still comes is read and dropped: unread, it would make the kernel answer with a reset, which can
 * overtake what was said. */
static const struct stream_events farewell_events = {
        .on_eof = on_farewell_end, .on_error = on_farewell_error};

/* What was written, then the end, then the peer's end or a while. */
static void say_farewell(struct stream *stream)
{
	struct leaver *leaver = mem_zalloc(1, sizeof(*leaver));
	if (!leaver) {
		stream_free(stream);
		return;
	}
	leaver->stream = stream;
	stream_set_events(stream, &farewell_events, leaver);
	stream_shutdown(stream);
	stream_read_start(stream);
	timer_init(&leaver->timer, on_farewell_timer);
	io_timer_start(stream->io, &leaver->timer, STREAM_RESET_MS);
}

void stream_refuse(struct stream *stream, bool is_faithful)
{
	if (!stream)
		return;
	if (stream->taken > 0 || stream_queued(stream) > 0)
		say_farewell(stream);
	else if (is_faithful)
		stream_reset(stream);
	else
		stream_free(stream);
}

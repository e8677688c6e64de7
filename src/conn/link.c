/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The life of a link: handshake, open, leaving, over, and a transport that
 * may linger to deliver our last words. Everything that ends is told from the
 * loop. Knows no policy.
 */
#include "conn/link.h"

#include <errno.h>

#include "base/err.h"
#include "base/mem.h"
#include "conn/link_priv.h"

/* Marks of the queue below a link, bytes: a full send, but small enough for fair shares. */
#define TRANSPORT_HIGH_LEN (512u * 1024u)
#define TRANSPORT_LOW_LEN (128u * 1024u)

static void set_phase(struct link *link, enum link_phase phase)
{
	ASSERT(phase > link->phase);
	link->phase = phase;
}

void link_mark(struct link *link)
{
	io_defer(link->io, &link->flush, IO_PHASE_LINK);
}

void link_end(struct link *link, int code, int abort_code, const char *text)
{
	if (link->phase >= LINK_OVER)
		return;
	set_phase(link, LINK_OVER);
	link->over_code = code;
	link->abort_code = abort_code;
	link->over_text = text ? mem_strdup(text) : NULL;
	io_timer_stop(link->io, &link->timer);
	stream_read_stop(link->transport);
	io_defer(link->io, &link->work, IO_PHASE_WORK);
	link_mark(link);
}

static void on_h2_request(void *ctx, struct h2_stream *h2, const struct h2_headers *headers)
{
	link_stream_accept(ctx, h2, headers);
}

static void on_h2_settings(void *ctx)
{
	struct link *link = ctx;
	if (link->events && link->events->on_settings)
		link->events->on_settings(link->ctx);
}

static void on_h2_room(void *ctx)
{
	struct link *link = ctx;
	if (link->events && link->events->on_room)
		link->events->on_room(link->ctx);
}

static void on_h2_goaway(void *ctx, uint32_t last_stream_id, uint32_t code)
{
	struct link *link = ctx;
	if (link->events && link->events->on_goaway)
		link->events->on_goaway(link->ctx);
}

static const struct h2_session_ops h2_ops = {
        .on_request = on_h2_request,
        .on_settings = on_h2_settings,
        .on_stream_room = on_h2_room,
        .on_goaway = on_h2_goaway,
};

/* Sets the timer to HTTP/2's next wish; a wish that moves later meanwhile is found out when it fires. */
static void set_ping_timer(struct link *link)
{
	uint64_t due = h2_deadline(link->h2);
	uint64_t now = io_now_ms(link->io);
	if (due != H2_NEVER)
		io_timer_start(link->io, &link->timer, due > now ? due - now : 0);
}

void link_wake_pings(struct link *link)
{
	if (link->phase == LINK_OPEN && !timer_is_set(&link->timer))
		set_ping_timer(link);
}

void link_open(struct link *link)
{
	int r = h2_session_new(link->env, &link->h2_config, &h2_ops, link, io_now_ms(link->io), &link->h2);
	if (r < 0) {
		link_end(link, r, -EPIPE, NULL);
		return;
	}
	set_phase(link, LINK_OPEN);
	set_ping_timer(link);
	link_mark(link);
	if (link->is_drain_wanted)
		link_drain(link);
}

void link_tell_ready(struct link *link)
{
	if (link->phase != LINK_OPEN || link->is_ready_told)
		return;
	link->is_ready_told = true;
	if (link->events && link->events->on_ready)
		link->events->on_ready(link->ctx);
}

static void step_pings(struct link *link)
{
	int r = h2_tick(link->h2, io_now_ms(link->io));
	if (r == -ETIMEDOUT) {
		/* A server says good-bye even to a peer that seems dead (dataplane 6). */
		if (link->h2_config.is_server && h2_goaway(link->h2, H2_NO_ERROR) == 0)
			link_last_words(link);
		link_end(link, ERR_H2_PING_TIMEOUT, -ETIMEDOUT, NULL);
		return;
	}
	set_ping_timer(link);
	link_mark(link);
}

/* The transport has delivered what it could. */
static void destroy(struct link *link)
{
	io_timer_stop(link->io, &link->timer);
	io_undefer(&link->flush);
	io_undefer(&link->work);
	stream_free(link->transport);
	link->magic = 0;
	mem_free(link);
}

static void on_timer(struct timer *timer, uint64_t now)
{
	(void)now;
	struct link *link = list_entry(timer, struct link, timer);
	ASSERT(link->magic == LINK_MAGIC);
	if (link->phase == LINK_HANDSHAKE)
		link_end(link, ERR_TIMEOUT_HANDSHAKE, -ETIMEDOUT, NULL);
	else if (link->phase == LINK_OPEN)
		step_pings(link);
	else if (link->phase == LINK_LINGERING)
		destroy(link);
}

/* Bytes that come now are dropped, so that the kernel does not answer them with RST, which could overtake our
 * last words. */
static void on_linger_data(void *ctx, struct chain *data)
{
	(void)ctx;
	(void)data;
}

static void on_linger_eof(void *ctx)
{
	struct link *link = ctx;
	if (stream_queued(link->transport) == 0)
		destroy(link);
}

static void on_linger_error(void *ctx, int code, const char *text)
{
	destroy(ctx);
}

static const struct stream_events linger_events = {
        .on_data = on_linger_data,
        .on_eof = on_linger_eof,
        .on_error = on_linger_error,
};

static void linger(struct link *link)
{
	set_phase(link, LINK_LINGERING);
	stream_set_events(link->transport, &linger_events, link);
	stream_shutdown(link->transport);
	stream_read_start(link->transport);
	io_timer_start(link->io, &link->timer, LINK_LINGER_MS);
}

static void abort_streams(struct link *link)
{
	if (link->is_aborted)
		return;
	link->is_aborted = true;
	if (link->h2)
		h2_abort(link->h2, link->abort_code);
}

/* Frees all but the transport and this. */
static void tear_down(struct link *link)
{
	abort_streams(link);
	while (!list_empty(&link->streams))
		link_stream_orphan(list_entry(link->streams.next, struct link_stream, node));
	h2_session_free(link->h2);
	link->h2 = NULL;
	tls_free(link->tls);
	link->tls = NULL;
	chain_clear(&link->out);
	mem_free(link->over_text);
	link->over_text = NULL;
	if (link->has_last_words)
		linger(link);
	else
		destroy(link);
}

static void on_flush(struct io_task *task)
{
	struct link *link = list_entry(task, struct link, flush);
	ASSERT(link->magic == LINK_MAGIC);
	if (link->phase == LINK_LINGERING)
		return;
	if (!link->is_freed || link->has_last_words)
		link_flush_output(link);
	if (link->is_freed)
		tear_down(link);
}

static void on_work(struct io_task *task)
{
	struct link *link = list_entry(task, struct link, work);
	if (link->is_freed)
		return;
	link_tell_ready(link);
	if (link->is_freed || link->phase != LINK_OVER || link->is_told)
		return;
	if (!link->is_aborted) {
		/* The streams' tasks queue up first, then this comes again. */
		abort_streams(link);
		io_defer(link->io, &link->work, IO_PHASE_WORK);
		return;
	}
	link->is_told = true;
	if (link->events && link->events->on_closed)
		link->events->on_closed(link->ctx, link->over_code,
		        link->over_text ? link->over_text : err_str(link->over_code));
}

/* The peer became revoked: cut at once; a server says GOAWAY first (dataplane 12.3). */
static void on_revoked(void *ctx)
{
	struct link *link = ctx;
	if (link->phase == LINK_OPEN && link->h2_config.is_server && h2_goaway(link->h2, H2_NO_ERROR) == 0)
		link_last_words(link);
	link_end(link, ERR_REVOKED, ERR_REVOKED, NULL);
}

static int new_tls(struct link *link, const struct link_opts *opts, struct err *err)
{
	struct chunk_pool *pool = io_pool(link->io);
	if (opts->identity && opts->is_server)
		return tls_server_new(opts->identity, pool, &link->out, &link->tls, err);
	if (opts->identity)
		return tls_client_new(
		        opts->identity, opts->accept, opts->accept_cnt, pool, &link->out, &link->tls, err);
	if (opts->trust)
		return tls_control_new(opts->trust, pool, &link->out, &link->tls, err);
	return 0;
}

static void init(struct link *link, struct io *io, const struct link_opts *opts)
{
	link->magic = LINK_MAGIC;
	link->io = io;
	link->env = opts->env;
	if (opts->h2)
		link->h2_config = *opts->h2;
	else
		h2_config_init(&link->h2_config, opts->is_server);
	link->h2_config.is_server = opts->is_server;
	list_init(&link->streams);
	list_init(&link->dirty);
	list_init(&link->busy);
	io_task_init(&link->flush, on_flush);
	io_task_init(&link->work, on_work);
	timer_init(&link->timer, on_timer);
}

/* From here on the transport is ours. */
static void start(struct link *link, struct stream *transport, const struct link_opts *opts)
{
	link->transport = transport;
	transport->high = TRANSPORT_HIGH_LEN;
	transport->low = TRANSPORT_LOW_LEN;
	stream_set_events(transport, &link_transport_events, link);
	stream_read_start(transport);
	/* HTTP/2's deadlines take its place when it is open. */
	io_timer_start(link->io, &link->timer, opts->handshake_ms ? opts->handshake_ms : LINK_HANDSHAKE_MS);
	if (!link->tls) {
		link_open(link);
		io_defer(link->io, &link->work, IO_PHASE_WORK);
	} else if (!opts->is_server) {
		link_step_handshake(link);
	}
	link_mark(link);
}

int link_new(struct io *io, struct stream *transport, const struct link_opts *opts,
        const struct link_events *events, void *ctx, struct link **ret_link, struct err *err)
{
	struct link *link = mem_zalloc(1, sizeof(*link));
	if (!link)
		return err_set(err, -ENOMEM, "%s", err_str(-ENOMEM));
	init(link, io, opts);
	int r = new_tls(link, opts, err);
	if (r < 0) {
		mem_free(link);
		return r;
	}
	if (link->tls)
		tls_on_revoked(link->tls, on_revoked, link);
	link->events = events;
	link->ctx = ctx;
	start(link, transport, opts);
	*ret_link = link;
	return 0;
}

void link_free(struct link *link)
{
	if (!link)
		return;
	ASSERT(link->magic == LINK_MAGIC && !link->is_freed);
	link->is_freed = true;
	link->events = NULL;
	stream_read_stop(link->transport);
	link_mark(link);
}

void link_set_events(struct link *link, const struct link_events *events, void *ctx)
{
	link->events = events;
	link->ctx = ctx;
}

void link_drain(struct link *link)
{
	link->is_drain_wanted = true;
	if (link->phase != LINK_OPEN)
		return;
	(void)(link->h2_config.is_server ? h2_drain(link->h2) : h2_close_when_idle(link->h2));
	link_mark(link);
}

void link_goodbye(struct link *link)
{
	if (link->phase > LINK_OPEN)
		return;
	if (link->phase == LINK_HANDSHAKE) {
		link_end(link, 0, 0, NULL);
		return;
	}
	(void)h2_goaway(link->h2, H2_NO_ERROR);
	link->has_last_words = true;
	set_phase(link, LINK_LEAVING);
	link_mark(link);
}

bool link_is_ready(const struct link *link)
{
	return link->phase == LINK_OPEN && !link->is_freed;
}

bool link_can_open(const struct link *link)
{
	return link_is_ready(link) && h2_can_open(link->h2);
}

uint32_t link_streams(const struct link *link)
{
	return link->h2 ? h2_streams_in_use(link->h2) : 0;
}

uint32_t link_peer_max_streams(const struct link *link)
{
	return link->h2 ? h2_peer_max_streams(link->h2) : link->h2_config.initial_peer_streams;
}

const char *link_peer_identity(const struct link *link)
{
	const char *id = link->tls ? tls_peer_identity(link->tls) : NULL;
	return id ? id : "";
}

const char *link_tls_version(const struct link *link)
{
	return link->tls ? tls_version_name(link->tls) : "";
}

const char *link_tls_cipher(const struct link *link)
{
	return link->tls ? tls_cipher_name(link->tls) : "";
}

const char *link_tls_group(const struct link *link)
{
	return link->tls ? tls_group_name(link->tls) : "";
}

struct stream *link_transport(const struct link *link)
{
	return link->transport;
}

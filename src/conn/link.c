/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Transport, TLS and HTTP/2 session of a link; see link.h. What HTTP/2 calls
 * back may call anything here, so sessions are aborted and freed only outside
 * of its calls: in_h2 says when, tasks do it later.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "conn/link_int.h"

/* Plaintext decrypted at once: four full records. */
#define READ_LEN CHUNK_LARGE

/* --- closing ------------------------------------------------------------- */

/* Tells all streams that the transport is gone, each in its own turn. */
static void abort_streams(struct link *link, int transport_err)
{
	link->in_h2++;
	h2_abort(link->h2, transport_err);
	link->in_h2--;
}

/* The link is over; `transport_err` is what pending reads and writes see. */
static void close_with(struct link *link, int code, const char *text, int transport_err)
{
	if (link->is_over)
		return;
	link->is_over = true;
	link->code = code;
	snprintf(link->text, sizeof(link->text), "%s", text && text[0] ? text : code ? err_str(code) : "");
	io_timer_stop(link->io, &link->timer);
	if (!chain_empty(&link->out))
		stream_write(link->transport, &link->out);
	stream_shutdown(link->transport);
	abort_streams(link, transport_err);
	io_defer(link->io, &link->report, IO_PHASE_WORK);
}

static void report_closed(struct io_task *task)
{
	struct link *link = list_entry(task, struct link, report);
	if (link->events && link->events->on_closed)
		link->events->on_closed(link->ctx, link->code, link->text);
}

/* GOAWAY and close_notify on their way, then over. */
static void say_goodbye(struct link *link);

/* --- output -------------------------------------------------------------- */

void link_want_output(struct link *link)
{
	io_defer(link->io, &link->output, IO_PHASE_LINK);
}

static void watch_time(struct link *link)
{
	uint64_t now = io_now_ms(link->io);
	uint64_t due = link->is_ready ? h2_deadline(link->h2) : H2_NEVER;
	/* During the handshake the timer is its deadline. */
	if (!link->is_ready)
		return;
	if (due == H2_NEVER)
		io_timer_stop(link->io, &link->timer);
	else
		io_timer_start(link->io, &link->timer, due > now ? due - now : 0);
}

/* Moves what HTTP/2 has to say into records, while the transport has room. */
static int pull(struct link *link, struct err *err)
{
	const uint8_t *piece;
	size_t len;
	int r = 0;
	while (stream_queued(link->transport) + link->out.len < STREAM_HIGH_LEN) {
		link->in_h2++;
		r = h2_pull(link->h2, &piece, &len);
		link->in_h2--;
		if (r <= 0)
			break;
		r = link->tls ? tls_write(link->tls, piece, len, err)
		              : chain_write(&link->out, io_pool(link->io), piece, len);
		if (r < 0)
			break;
	}
	link_streams_account(link);
	if (!chain_empty(&link->out))
		stream_write(link->transport, &link->out);
	return r < 0 ? r : 0;
}

static void finish_session(struct link *link)
{
	const char *fault = h2_fault(link->h2);
	struct err err = {0};
	if (link->tls && link->is_ready)
		tls_close_notify(link->tls, &err);
	close_with(link, fault[0] ? ERR_H2 : 0, fault, 0);
}

static void run_output(struct io_task *task)
{
	struct link *link = list_entry(task, struct link, output);
	struct err err = {0};
	if (link->is_over)
		return;
	if (link->is_goodbye) {
		say_goodbye(link);
		return;
	}
	if (!link->is_ready) {
		if (!chain_empty(&link->out))
			stream_write(link->transport, &link->out);
		return;
	}
	int r = pull(link, &err);
	if (r < 0)
		close_with(link, r, err.text, r);
	else if (h2_is_over(link->h2))
		finish_session(link);
	else
		watch_time(link);
}

static void say_goodbye(struct link *link)
{
	struct err err = {0};
	if (link->is_over)
		return;
	if (link->is_ready) {
		h2_goaway(link->h2, H2_NO_ERROR);
		if (pull(link, &err) == 0 && link->tls)
			tls_close_notify(link->tls, &err);
	}
	close_with(link, 0, NULL, -EPIPE);
}

/* --- input --------------------------------------------------------------- */

static int feed_h2(struct link *link, const uint8_t *bytes, size_t len, struct err *err)
{
	link->in_h2++;
	int r = h2_feed(link->h2, bytes, len, io_now_ms(link->io));
	link->in_h2--;
	if (r < 0)
		return err_set(err, r == -EPROTO ? ERR_H2 : r, "%s", h2_fault(link->h2));
	link_want_output(link);
	return 0;
}

/* Everything that can be decrypted goes to HTTP/2. 1 = the peer has closed. */
static int read_records(struct link *link, struct err *err)
{
	struct chunk *chunk = chunk_new(io_pool(link->io), READ_LEN);
	int r = chunk ? 0 : -ENOMEM;
	while (r == 0 && !link->is_over) {
		ssize_t n = tls_read(link->tls, chunk_bytes(chunk), chunk_room(chunk), err);
		if (n == -EAGAIN)
			break;
		if (n <= 0)
			r = n == 0 ? 1 : (int)n;
		else
			r = feed_h2(link, chunk_bytes(chunk), (size_t)n, err);
	}
	chunk_free(chunk);
	return r;
}

static void become_ready(struct link *link)
{
	link->is_ready = true;
	io_timer_stop(link->io, &link->timer);
	link_want_output(link);
	if (link->events && link->events->on_ready)
		link->events->on_ready(link->ctx);
}

static int shake_hands(struct link *link, struct err *err)
{
	int r = tls_handshake(link->tls, err);
	link_want_output(link);
	if (r == 0)
		become_ready(link);
	return r;
}

static int take_tls(struct link *link, const struct chunk *chunk, struct err *err)
{
	int r = 0;
	tls_feed(link->tls, chunk_bytes(chunk), chunk->len);
	if (!link->is_ready)
		r = shake_hands(link, err);
	if (link->is_ready && r == 0 && !link->is_over)
		r = read_records(link, err);
	return r == -EAGAIN ? 0 : r;
}

static void on_data(void *ctx, struct chain *data)
{
	struct link *link = ctx;
	struct chunk *chunk;
	while (!link->is_over && (chunk = chain_take(data))) {
		struct err err = {0};
		int r = link->tls ? take_tls(link, chunk, &err)
		                  : feed_h2(link, chunk_bytes(chunk), chunk->len, &err);
		chunk_free(chunk);
		if (r == 1)
			close_with(link, 0, "peer closed the connection", 0);
		else if (r < 0)
			close_with(link, r, err.text, r);
	}
}

static void on_eof(void *ctx)
{
	struct link *link = ctx;
	if (link->is_ready)
		close_with(link, 0, "peer closed the connection", 0);
	else
		close_with(link, -EPIPE, "peer closed the connection during the TLS handshake", -EPIPE);
}

static void on_drained(void *ctx)
{
	link_want_output(ctx);
}

static void on_error(void *ctx, int code, const char *text)
{
	close_with(ctx, code, text, code);
}

static const struct stream_events TRANSPORT_EVENTS = {
        .on_data = on_data,
        .on_eof = on_eof,
        .on_drained = on_drained,
        .on_error = on_error,
};

/* --- session events ------------------------------------------------------ */

static void on_request(void *ctx, struct h2_stream *h2s, const struct h2_headers *headers)
{
	struct link *link = ctx;
	struct link_stream *s;
	/* Freed from inside another callback of the same feed: the stream stays unbound and is refused. */
	if (!link->events || !link->events->on_request || !(s = link_stream_new(link)))
		return;
	s->h2s = h2s;
	h2_stream_bind(h2s, &link_stream_h2_ops, s);
	link->events->on_request(link->ctx, &s->stream, headers);
}

static void on_settings(void *ctx)
{
	struct link *link = ctx;
	if (link->events && link->events->on_settings)
		link->events->on_settings(link->ctx);
}

static void on_stream_room(void *ctx)
{
	struct link *link = ctx;
	if (link->events && link->events->on_room)
		link->events->on_room(link->ctx);
}

static void on_goaway(void *ctx, uint32_t last_stream_id, uint32_t code)
{
	struct link *link = ctx;
	(void)last_stream_id;
	(void)code;
	if (link->events && link->events->on_goaway)
		link->events->on_goaway(link->ctx);
}

static const struct h2_session_ops SESSION_OPS = {
        .on_request = on_request,
        .on_settings = on_settings,
        .on_stream_room = on_stream_room,
        .on_goaway = on_goaway,
};

/* --- time ---------------------------------------------------------------- */

static void on_timer(struct timer *timer, uint64_t now)
{
	struct link *link = list_entry(timer, struct link, timer);
	if (!link->is_ready) {
		close_with(link, ERR_TIMEOUT_HANDSHAKE, err_str(ERR_TIMEOUT_HANDSHAKE), -ETIMEDOUT);
		return;
	}
	link->in_h2++;
	int r = h2_tick(link->h2, now);
	link->in_h2--;
	if (r == 0) {
		link_want_output(link);
		return;
	}
	if (link->is_server) {
		struct err err = {0};
		h2_goaway(link->h2, H2_NO_ERROR);
		pull(link, &err);
	}
	close_with(link, ERR_H2_PING_TIMEOUT, err_str(ERR_H2_PING_TIMEOUT), -ETIMEDOUT);
}

/* --- life ---------------------------------------------------------------- */

static void free_parts(struct link *link)
{
	tls_free(link->tls);
	h2_session_free(link->h2);
	chain_clear(&link->out);
	mem_free(link);
}

static void destroy(struct io_task *task)
{
	struct link *link = list_entry(task, struct link, destroy);
	/* Once round the queue: the transport's send of this turn stands before us then. */
	if (link->destroy_round++ == 0) {
		io_defer(link->io, &link->destroy, IO_PHASE_SOCK);
		return;
	}
	abort_streams(link, -EPIPE);
	while (!list_empty(&link->streams))
		link_stream_orphan(list_entry(link->streams.next, struct link_stream, node));
	io_undefer(&link->output);
	io_undefer(&link->report);
	io_timer_stop(link->io, &link->timer);
	stream_free(link->transport);
	free_parts(link);
}

static int make_tls(struct link *link, const struct link_opts *opts, struct err *err)
{
	struct chunk_pool *pool = io_pool(link->io);
	if (opts->is_server && opts->identity)
		return tls_server_new(opts->identity, pool, &link->out, &link->tls, err);
	if (opts->identity)
		return tls_client_new(
		        opts->identity, opts->accept, opts->accept_cnt, pool, &link->out, &link->tls, err);
	if (opts->trust)
		return tls_control_new(opts->trust, pool, &link->out, &link->tls, err);
	return 0;
}

static int make_session(struct link *link, const struct link_opts *opts, struct err *err)
{
	struct h2_config config;
	if (opts->h2)
		config = *opts->h2;
	else
		h2_config_init(&config, opts->is_server);
	config.is_server = opts->is_server;
	/* The marks that users of streams go by. */
	config.queue_high = STREAM_HIGH_LEN;
	config.queue_low = STREAM_LOW_LEN;
	int r = h2_session_new(opts->env, &config, &SESSION_OPS, link, io_now_ms(link->io), &link->h2);
	return r < 0 ? err_set(err, r, "http2: %s", err_str(r)) : 0;
}

int link_new(struct io *io, struct stream *transport, const struct link_opts *opts,
        const struct link_events *events, void *ctx, struct link **ret_link, struct err *err)
{
	struct link *link = mem_zalloc(1, sizeof(*link));
	if (!link)
		return err_set(err, -ENOMEM, "out of memory");
	link->io = io;
	link->events = events;
	link->ctx = ctx;
	link->is_server = opts->is_server;
	list_init(&link->streams);
	list_init(&link->writing);
	timer_init(&link->timer, on_timer);
	io_task_init(&link->output, run_output);
	io_task_init(&link->report, report_closed);
	io_task_init(&link->destroy, destroy);
	int r = make_tls(link, opts, err);
	if (r == 0)
		r = make_session(link, opts, err);
	/* A client speaks first. */
	if (r == 0 && link->tls && !link->is_server)
		r = tls_handshake(link->tls, err);
	if (r < 0 && r != -EAGAIN) {
		free_parts(link);
		return r;
	}
	link->transport = transport;
	link->is_ready = !link->tls;
	stream_set_events(transport, &TRANSPORT_EVENTS, link);
	stream_read_start(transport);
	if (link->tls)
		io_timer_start(io, &link->timer, opts->handshake_ms ? opts->handshake_ms : LINK_HANDSHAKE_MS);
	link_want_output(link);
	*ret_link = link;
	return 0;
}

void link_free(struct link *link)
{
	if (!link)
		return;
	link->events = NULL;
	stream_read_stop(link->transport);
	stream_set_events(link->transport, NULL, NULL);
	io_timer_stop(link->io, &link->timer);
	io_defer(link->io, &link->destroy, IO_PHASE_SOCK);
}

void link_set_events(struct link *link, const struct link_events *events, void *ctx)
{
	link->events = events;
	link->ctx = ctx;
}

void link_drain(struct link *link)
{
	if (link->is_over)
		return;
	if (link->is_server)
		h2_drain(link->h2);
	else
		h2_close_when_idle(link->h2);
	link_want_output(link);
}

void link_goodbye(struct link *link)
{
	if (link->in_h2 == 0) {
		say_goodbye(link);
		return;
	}
	link->is_goodbye = true;
	link_want_output(link);
}

bool link_is_ready(const struct link *link)
{
	return link->is_ready && !link->is_over;
}

bool link_can_open(const struct link *link)
{
	return !link->is_over && h2_can_open(link->h2);
}

uint32_t link_streams(const struct link *link)
{
	return h2_streams_in_use(link->h2);
}

uint32_t link_peer_max_streams(const struct link *link)
{
	return h2_peer_max_streams(link->h2);
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

struct stream *link_transport(const struct link *link)
{
	return link->transport;
}

int link_request(struct link *link, const struct h2_request *request, const struct link_answer_events *answer,
        void *ctx, struct stream **ret_stream)
{
	if (link->is_over)
		return -EPIPE;
	struct link_stream *s = link_stream_new(link);
	if (!s)
		return -ENOMEM;
	s->answer = answer;
	s->answer_ctx = ctx;
	int r = h2_request(link->h2, request, &link_stream_h2_ops, s, &s->h2s);
	if (r < 0) {
		link_stream_drop(s);
		return r;
	}
	link_want_output(link);
	*ret_stream = &s->stream;
	return 0;
}

int link_connect(struct link *link, const char *authority, const struct h2_header *headers, size_t header_cnt,
        const struct link_answer_events *answer, void *ctx, struct stream **ret_stream)
{
	const struct h2_request request = {
	        .method = "CONNECT", .authority = authority, .headers = headers, .header_cnt = header_cnt};
	return link_request(link, &request, answer, ctx, ret_stream);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A link's bytes: transport -> TLS -> HTTP/2 as they arrive, and the way back
 * once per turn, as far as the transport has room. Knows no owner.
 */
#include "conn/link_priv.h"

#include <errno.h>

#include "base/err.h"

/* Whether input and output still mean anything. */
static bool is_flowing(const struct link *link)
{
	return !link->is_freed && link->phase <= LINK_OPEN;
}

static void feed_h2(struct link *link, const uint8_t *bytes, size_t len)
{
	int r = h2_feed(link->h2, bytes, len, io_now_ms(link->io));
	if (r < 0)
		link_end(link, r == -ENOMEM ? r : ERR_H2, -EPIPE, r == -ENOMEM ? NULL : h2_fault(link->h2));
}

/* An error of TLS has left an alert, which the peer should see. */
static void fail_tls(struct link *link, const struct err *err)
{
	link->has_last_words = true;
	link_end(link, err->code, -EPIPE, err->text);
}

void link_step_handshake(struct link *link)
{
	struct err err = {0};
	int r = tls_handshake(link->tls, &err);
	if (r == 0)
		link_open(link);
	else if (r != -EAGAIN)
		fail_tls(link, &err);
	link_tell_ready(link);
}

/* Whether the peer may close now without cutting anything off. */
static bool is_idle(const struct link *link)
{
	return h2_goaway_seen(link->h2) || h2_streams_in_use(link->h2) == 0;
}

/* The peer ended the transport; streams that it had not ended are broken (RFC 9113 section 8.5). */
static void end_by_peer(struct link *link)
{
	int code = is_idle(link) ? 0 : -EPIPE;
	link_end(link, code, code, NULL);
}

/* Everything that can be decrypted now, by way of one lent buffer. */
static void read_tls(struct link *link)
{
	struct err err = {0};
	struct chunk *plain = chunk_new(io_pool(link->io), CHUNK_LARGE);
	ssize_t n = -ENOMEM;
	if (plain) {
		do {
			n = tls_read(link->tls, chunk_bytes(plain), CHUNK_LARGE, &err);
			if (n > 0)
				feed_h2(link, chunk_bytes(plain), (size_t)n);
		} while (n > 0 && is_flowing(link));
		chunk_free(plain);
	} else {
		err_set(&err, -ENOMEM, "%s", err_str(-ENOMEM));
	}
	if (n < 0 && n != -EAGAIN)
		fail_tls(link, &err);
	else if (n == 0)
		end_by_peer(link);
}

static void feed_tls(struct link *link, const uint8_t *bytes, size_t len)
{
	tls_feed(link->tls, bytes, len);
	if (link->phase == LINK_HANDSHAKE)
		link_step_handshake(link);
	if (is_flowing(link) && link->phase == LINK_OPEN)
		read_tls(link);
	tls_feed_drop(link->tls);
}

static void on_data(void *ctx, struct chain *data)
{
	struct link *link = ctx;
	link_tell_ready(link);
	for (const struct chunk *c = data->head; c && is_flowing(link); c = c->next) {
		if (link->tls)
			feed_tls(link, chunk_bytes(c), c->len);
		else
			feed_h2(link, chunk_bytes(c), c->len);
	}
	link_mark(link);
}

static void on_eof(void *ctx)
{
	struct link *link = ctx;
	if (link->phase == LINK_HANDSHAKE)
		link_end(link, -EPIPE, 0, "tls handshake eof");
	else
		end_by_peer(link);
}

static void on_error(void *ctx, int code, const char *text)
{
	struct link *link = ctx;
	link->has_last_words = false;
	link_end(link, code, code, text);
}

static void on_drained(void *ctx)
{
	link_mark(ctx);
}

const struct stream_events link_transport_events = {
        .on_data = on_data,
        .on_eof = on_eof,
        .on_error = on_error,
        .on_drained = on_drained,
};

static void push_dirty(struct link *link)
{
	struct list *node;
	while ((node = list_pop(&link->dirty)))
		link_stream_push(list_entry(node, struct link_stream, dirty));
}

static bool has_room(const struct link *link)
{
	return stream_queued(link->transport) + link->out.len < link->transport->high;
}

static int put(struct link *link, const uint8_t *piece, size_t len, struct err *err)
{
	if (link->tls)
		return tls_write(link->tls, piece, len, err);
	int r = chain_write(&link->out, io_pool(link->io), piece, len);
	return r < 0 ? err_set(err, r, "%s", err_str(r)) : 0;
}

/* Pulls until HTTP/2 has nothing more or the transport no more room. */
static void pull(struct link *link)
{
	struct err err = {0};
	const uint8_t *piece;
	size_t len;
	int r = 0;
	do {
		push_dirty(link);
		while (has_room(link) && (r = h2_pull(link->h2, &piece, &len)) > 0) {
			r = put(link, piece, len, &err);
			if (r < 0) {
				link_end(link, r, -EPIPE, err.text);
				return;
			}
		}
	} while (r == 0 && !list_empty(&link->dirty) && has_room(link));
	if (r < 0)
		link_end(link, r == -ENOMEM ? r : ERR_H2, -EPIPE, h2_fault(link->h2));
}

void link_last_words(struct link *link)
{
	link->has_last_words = true;
	pull(link);
}

static void send_out(struct link *link)
{
	if (!chain_empty(&link->out))
		(void)stream_write(link->transport, &link->out);
}

void link_flush_output(struct link *link)
{
	if (link->h2 && (link->phase == LINK_OPEN || link->phase == LINK_LEAVING)) {
		pull(link);
		list_for_each_safe(it, &link->busy)
		        link_stream_progress(list_entry(it, struct link_stream, busy));
	}
	if (link->phase == LINK_OPEN && link->h2 && h2_is_over(link->h2)) {
		const char *fault = h2_fault(link->h2);
		link->has_last_words = true;
		link_end(link, fault[0] ? ERR_H2 : 0, fault[0] ? -EPIPE : 0, fault[0] ? fault : NULL);
	}
	if (link->phase == LINK_LEAVING) {
		/* The farewell is whole: after it nothing may be written. */
		if (link->tls)
			(void)tls_close_notify(link->tls, NULL);
		link_end(link, 0, 0, NULL);
	}
	send_out(link);
}

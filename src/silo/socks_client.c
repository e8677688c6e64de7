/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The descriptor's way from accept to outbound_begin(); see socks_client.h. */
#include "silo/socks_client.h"

#include <errno.h>
#include <string.h>

#include "base/chain.h"
#include "base/fd.h"
#include "base/mem.h"
#include "conn/sock.h"
#include "silo/outbound.h"
#include "silo/silo.h"
#include "silo/socks.h"

static const char TARGET[] = "ztunnel::proxy::socks5";

/* Time for the negotiation, ms; upstream has none. */
#define NEGOTIATION_MS 10000

struct client {
	struct conn conn;
	struct stream *stream;
	struct socks socks;
	struct timer timer;
	struct fetch_wait wait; /* for what is behind a name */
	struct addr src;
	struct chain early; /* what the application said behind its request */
	bool is_refused;    /* the reply is on its way, only the end is awaited */
};

static void step_name(struct client *client);
static void step_resolver(struct client *client);

/* --- ends ---------------------------------------------------------------- */

static void client_free(struct client *client)
{
	fetch_wait_cancel(&client->wait);
	io_timer_stop(client->conn.silo->io, &client->timer);
	stream_free(client->stream);
	chain_clear(&client->early);
	silo_conn_del(&client->conn);
	mem_free(client);
}

static void client_cut(struct conn *conn)
{
	client_free(list_entry(conn, struct client, conn));
}

static const struct conn_ops CONN_OPS = {.cut = client_cut};

static void say(struct client *client, const uint8_t *bytes, size_t len)
{
	struct chain out = {0};
	if (chain_write(&out, io_pool(client->conn.silo->io), bytes, len) == 0)
		(void)stream_write(client->stream, &out);
	chain_clear(&out);
}

/* The socket goes when the client has seen the reply and closed, or after a while. */
static void refuse(struct client *client, const uint8_t reply[SOCKS_REPLY_LEN])
{
	char text[ADDR_STR_MAX];
	log_msg(&client->conn.silo->log, LOG_WARN, TARGET, "%s: %s: code %u", addr_format(&client->src, text),
	        err_str(ERR_SOCKS), reply[1]);
	say(client, reply, SOCKS_REPLY_LEN);
	stream_shutdown(client->stream);
	stream_read_start(client->stream);
	client->is_refused = true;
	io_timer_start(client->conn.silo->io, &client->timer, NEGOTIATION_MS);
}

static void refuse_code(struct client *client, enum socks_code code)
{
	uint8_t reply[SOCKS_REPLY_LEN];
	socks_reply(code, reply);
	refuse(client, reply);
}

/* --- the target ---------------------------------------------------------- */

/* Success is said before anything is dialled, as upstream does; later failures are just a close. */
static void hand_over(struct client *client)
{
	struct silo *silo = client->conn.silo;
	struct stream *stream = client->stream;
	struct chain early = {0};
	uint8_t reply[SOCKS_REPLY_LEN];
	socks_reply(SOCKS_SUCCEEDED, reply);
	say(client, reply, sizeof(reply));
	stream_set_events(stream, NULL, NULL);
	client->stream = NULL;
	chain_move(&early, &client->early);
	outbound_begin(silo, stream, &client->src, &client->socks.dst, &early);
	client_free(client);
}

/* The first address of the client's family: of the service, else of who serves it (a headless one). */
static const struct ip *mesh_address(const struct view *view, uint8_t family)
{
	for (size_t i = 0; view->service && i < view->service->vip_cnt; i++)
		if (view->service->vips[i].ip.family == family)
			return &view->service->vips[i].ip;
	for (size_t i = 0; view->service && i < view->endpoint_cnt; i++) {
		const struct workload *workload = view->endpoints[i].workload;
		for (size_t k = 0; k < workload->ip_cnt; k++)
			if (workload->ips[k].family == family)
				return &workload->ips[k];
	}
	return NULL;
}

static void on_resolved(struct fetch_wait *wait, int code, void *value)
{
	struct client *client = list_entry(wait, struct client, wait);
	(void)value;
	if (code == 0)
		step_resolver(client);
	else
		refuse_code(client, SOCKS_HOST_UNREACHABLE);
}

/* Names that the mesh does not have. */
static void step_resolver(struct client *client)
{
	struct silo *silo = client->conn.silo;
	struct ip ips[ROUTE_RESOLVED_MAX];
	struct fetch *missing;
	size_t cnt = 0;
	int r = resolver_get(&silo->resolver, client->socks.host, ips, ROUTE_RESOLVED_MAX, &cnt, &missing);
	if (r == -EAGAIN) {
		fetch_wait_start(missing, &client->wait, SILO_FETCH_MS, on_resolved);
		return;
	}
	for (size_t i = 0; r == 0 && i < cnt; i++) {
		if (ips[i].family != client->src.ip.family)
			continue;
		client->socks.dst.ip = ips[i];
		hand_over(client);
		return;
	}
	refuse_code(client, SOCKS_HOST_UNREACHABLE);
}

static void on_view(struct fetch_wait *wait, int code, void *value)
{
	struct client *client = list_entry(wait, struct client, wait);
	(void)value;
	if (code == 0)
		step_name(client);
	else
		refuse_code(client, SOCKS_HOST_UNREACHABLE);
}

static void step_name(struct client *client)
{
	struct silo *silo = client->conn.silo;
	struct view_key key = view_key_name(client->socks.host);
	struct view *view;
	struct fetch *missing;
	int r = cache_view(&silo->cache, &key, &view, &missing);
	if (r == -EAGAIN) {
		fetch_wait_start(missing, &client->wait, SILO_FETCH_MS, on_view);
		return;
	}
	if (r < 0) {
		refuse_code(client, SOCKS_HOST_UNREACHABLE);
		return;
	}
	const struct ip *ip = mesh_address(view, client->src.ip.family);
	bool is_known = view->known;
	if (ip)
		client->socks.dst.ip = *ip;
	view_unref(view);
	if (ip)
		hand_over(client);
	else if (is_known)
		refuse_code(client, SOCKS_HOST_UNREACHABLE);
	else
		step_resolver(client);
}

/* DNS does not know case, nor the dot at the end. */
static void tidy_name(char *host)
{
	size_t len = strlen(host);
	if (len > 1 && host[len - 1] == '.')
		host[len - 1] = '\0';
	for (; *host; host++)
		if (*host >= 'A' && *host <= 'Z')
			*host = (char)(*host - 'A' + 'a');
}

static void step_target(struct client *client)
{
	io_timer_stop(client->conn.silo->io, &client->timer);
	if (!client->socks.host[0]) {
		hand_over(client);
		return;
	}
	tidy_name(client->socks.host);
	step_name(client);
}

/* --- negotiation --------------------------------------------------------- */

/* One message of what has arrived; false: something else is to happen before the next. */
static bool step_message(struct client *client, struct chain *data)
{
	const struct chunk *head = data->head;
	size_t taken;
	enum socks_step step = socks_feed(&client->socks, chunk_bytes(head), head->len, &taken);
	chain_consume(data, taken);
	switch (step) {
	case SOCKS_MORE:
		return true;
	case SOCKS_SAY:
		say(client, client->socks.reply, client->socks.reply_len);
		return true;
	case SOCKS_REFUSE:
		refuse(client, client->socks.reply);
		return false;
	case SOCKS_DONE:
		stream_read_stop(client->stream);
		chain_move(&client->early, data);
		step_target(client);
		return false;
	}
	return false;
}

static void on_data(void *ctx, struct chain *data)
{
	struct client *client = ctx;
	/* After a refusal the rest is read so that the kernel does not answer with a reset, which could
	 * overtake the reply. */
	while (!client->is_refused && !chain_empty(data) && step_message(client, data))
		;
}

static void on_end(void *ctx)
{
	client_free(ctx);
}

static void on_error(void *ctx, int code, const char *text)
{
	(void)code;
	(void)text;
	client_free(ctx);
}

static const struct stream_events EVENTS = {.on_data = on_data, .on_eof = on_end, .on_error = on_error};

static void negotiation_expired(struct timer *timer, uint64_t now)
{
	(void)now;
	client_free(list_entry(timer, struct client, timer));
}

void socks_accept(struct silo *silo, int fd)
{
	struct client *client = mem_zalloc(1, sizeof(*client));
	if (!client || !silo_conn_add(silo, &client->conn, &CONN_OPS)) {
		mem_free(client);
		fd_close(&fd);
		return;
	}
	timer_init(&client->timer, negotiation_expired);
	int r = sock_peer_addr(fd, &client->src);
	if (r == 0)
		r = sock_new(silo->io, fd, &client->stream);
	if (r < 0) {
		fd_close(&fd);
		client_free(client);
		return;
	}
	stream_set_events(client->stream, &EVENTS, client);
	stream_read_start(client->stream);
	io_timer_start(silo->io, &client->timer, NEGOTIATION_MS);
}

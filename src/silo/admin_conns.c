/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Open connections as JSON, inbound ones first; see admin_conns.h. Changes nothing. */
#include "silo/admin_conns.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "base/mem.h"
#include "conn/link.h"
#include "conn/sock.h"
#include "conn/web.h"
#include "silo/delivery.h"
#include "silo/outbound.h"
#include "silo/silo.h"

/* What the kernel says of a TCP connection (tcp(7), TCP_INFO). */
static void put_tcp(struct json *json, int fd)
{
	struct tcp_info info = {0};
	socklen_t len = sizeof(info);
	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) < 0)
		return;
	json_key(json, "tcp");
	json_obj(json);
	json_kv_u64(json, "congestionWindow", info.tcpi_snd_cwnd);
	json_kv_u64(json, "lost", info.tcpi_lost);
	json_kv_u64(json, "retransmits", info.tcpi_total_retrans);
	json_kv_u64(json, "rttMicroseconds", info.tcpi_rtt);
	json_kv_u64(json, "rttVarianceMicroseconds", info.tcpi_rttvar);
	json_kv_u64(json, "state", info.tcpi_state);
	json_kv_u64(json, "unacked", info.tcpi_unacked);
	json_obj_end(json);
}

static void put_tls(struct json *json, const struct link *link)
{
	if (!link_tls_version(link)[0])
		return;
	json_key(json, "tls");
	json_obj(json);
	json_kv_str(json, "cipher", link_tls_cipher(link));
	json_kv_str(json, "group", link_tls_group(link));
	json_kv_str(json, "peerIdentity", link_peer_identity(link));
	json_kv_str(json, "version", link_tls_version(link));
	json_obj_end(json);
}

/* One side of a connection, that lies in so many tunnels; what is inside of the outermost is its stream's. */
static void put_leg(struct json *json, const char *key, const struct stream *stream, unsigned tunnels)
{
	struct link *link = NULL;
	for (; stream && tunnels > 0; tunnels--) {
		struct link *outer = link_of(stream);
		/* The inner handshake is with the peer that counts. */
		link = link ? link : outer;
		stream = outer ? link_transport(outer) : NULL;
	}
	if (!stream)
		return;
	json_key(json, key);
	json_obj(json);
	put_tcp(json, sock_fd(stream));
	if (link)
		put_tls(json, link);
	json_obj_end(json);
}

/* The list being written, as far as the client has read. */
struct listing {
	struct web_source source;
	struct silo *silo;
	struct json json;
	struct silo_walk walk;
	bool is_begun;
	bool is_outbound; /* the second of the two lists */
	size_t left; /* rows of the present list: those that came meanwhile are no reason to go on for ever */
	size_t cnt;  /* rows so far */
};

static void put_addr(struct json *json, const char *key, const struct addr *addr)
{
	char text[ADDR_STR_MAX];
	json_kv_str(json, key, addr_format(addr, text));
}

static void put_age(struct listing *list, uint64_t start_ms)
{
	uint64_t now = clock_ms();
	json_kv_u64(&list->json, "ageMilliseconds", now > start_ms ? now - start_ms : 0);
}

static void put_outbound(struct listing *list, const struct outbound_view *view)
{
	struct json *json = &list->json;
	json_obj(json);
	put_addr(json, "actualDst", &view->actual_dst);
	put_age(list, view->start_ms);
	json_kv_str(json, "direction", "outbound");
	if (view->pump) {
		put_leg(json, "down", pump_down(view->pump), 0);
		put_leg(json, "up", pump_up(view->pump), view->tunnels);
	}
	put_addr(json, "originalDst", &view->original_dst);
	json_kv_str(json, "peerIdentity", view->peer_identity[0] ? view->peer_identity : NULL);
	json_kv_str(json, "protocol", view->protocol);
	json_kv_u64(json, "received", view->pump ? pump_sent(view->pump) : 0);
	json_kv_u64(json, "sent", view->pump ? pump_received(view->pump) : 0);
	put_addr(json, "src", &view->src);
	json_obj_end(json);
}

/* The policy that lets it in now; null when none is needed. */
static void put_policy(struct json *json, struct silo *silo, const struct delivery *d)
{
	const struct policy_set *set = context_policies(silo);
	struct rbac_result result = {0};
	if (set)
		result = rbac_check(set->policies, set->cnt, &d->track.conn, NULL);
	json_key(json, "policy");
	if (!result.policy) {
		json_null(json);
		return;
	}
	struct buf name;
	buf_init(&name, LIMIT_LOG_LINE);
	buf_printf(&name, "%s/%s", result.policy->ns, result.policy->name);
	json_strn(json, (const char *)name.data, name.len);
	buf_done(&name);
}

static void put_inbound(struct listing *list, const struct delivery *d)
{
	struct json *json = &list->json;
	/* Not by the parsed identity: a peer of a tunnel may have one that is no workload's. */
	bool is_tunnel = d->access.src_identity != NULL;
	json_obj(json);
	put_addr(json, "actualDst", &d->upstream);
	put_age(list, d->start_ms);
	json_kv_str(json, "direction", "inbound");
	if (d->pump) {
		put_leg(json, "down", pump_down(d->pump), is_tunnel ? 1 : 0);
		put_leg(json, "up", pump_up(d->pump), 0);
	}
	json_kv_str(json, "originalDst", d->original_dst);
	json_kv_str(json, "peerIdentity", d->access.src_identity);
	put_policy(json, list->silo, d);
	json_kv_str(json, "protocol", is_tunnel ? "HBONE" : "TCP");
	json_kv_u64(json, "received", d->pump ? pump_received(d->pump) : 0);
	json_kv_u64(json, "sent", d->pump ? pump_sent(d->pump) : 0);
	put_addr(json, "src", &d->access.src);
	json_obj_end(json);
}

/* --- pieces -------------------------------------------------------------- */

static const struct list *head_of(const struct listing *list)
{
	return list->is_outbound ? &list->silo->outbounds : &list->silo->deliveries;
}

static void enter_list(struct listing *list, bool is_outbound)
{
	list->is_outbound = is_outbound;
	list->walk.next = head_of(list)->next;
	list->left = 0;
	for (const struct list *it = list->walk.next; it != head_of(list); it = it->next)
		list->left++;
}

static void put_entry(struct listing *list, struct list *entry)
{
	struct outbound_view view;
	if (!list->is_outbound)
		put_inbound(list, list_entry(entry, struct delivery, node));
	else if (outbound_view(entry, &view))
		put_outbound(list, &view);
	else
		return;
	list->cnt++;
}

/* Writes rows of the present list; false when there are no more. */
static bool put_rows(struct listing *list, const struct buf *out)
{
	while (list->left > 0 && list->walk.next != head_of(list)) {
		struct list *entry = (struct list *)(uintptr_t)list->walk.next;
		if (out->len >= WEB_PIECE_LEN)
			return true;
		list->walk.next = entry->next;
		list->left--;
		put_entry(list, entry);
	}
	return false;
}

static int next_piece(struct web_source *source, struct buf *out)
{
	struct listing *list = list_entry(source, struct listing, source);
	if (!list->is_begun) {
		json_init(&list->json, out, true);
		json_obj(&list->json);
		json_key(&list->json, "connections");
		json_arr(&list->json);
		enter_list(list, false);
		list->is_begun = true;
	}
	list->json.out = out;
	if (put_rows(list, out))
		return 1;
	if (!list->is_outbound) {
		enter_list(list, true);
		return 1;
	}
	json_arr_end(&list->json);
	json_kv_u64(&list->json, "total", list->cnt);
	json_obj_end(&list->json);
	buf_add_u8(out, '\n');
	return 0;
}

static void on_done(struct web_source *source)
{
	struct listing *list = list_entry(source, struct listing, source);
	list_del(&list->walk.node);
	mem_free(list);
}

void admin_conns_serve(struct silo *silo, struct web_conn *conn)
{
	const struct http_header type = {.name = "content-type", .value = "application/json"};
	struct listing *list = mem_zalloc(1, sizeof(*list));
	if (!list) {
		web_reply_text(conn, 500, "text/plain", err_str(-ENOMEM));
		return;
	}
	list->silo = silo;
	list->source = (struct web_source){.next = next_piece, .done = on_done};
	list_init(&list->walk.node);
	list_add_tail(&silo->walks, &list->walk.node);
	web_stream(conn, 200, &type, 1, &list->source);
}

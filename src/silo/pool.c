/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Outbound tunnels by key; see pool.h. */
#include "silo/pool.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "conn/dial.h"
#include "silo/metrics.h"
#include "silo/revocation.h"
#include "silo/silo.h"

/* Longest key: address, uid and a service's identities; a service above it cannot be pooled and is refused.
 */
#define KEY_MAX 65536
/* Words of a failure: a prefix and an error's text. */
#define TEXT_MAX (ERR_TEXT_MAX + 64)

/* Tunnels of one key. */
struct pool_group {
	uint8_t *key; /* map key, owned */
	size_t key_len;
	struct list tunnels; /* struct pool_tunnel */
};

/* One tunnel, being made or in use. */
struct pool_tunnel {
	struct pool *pool;
	struct pool_group *group; /* NULL = retired: takes no new streams, ends with its last */
	struct list node;         /* in group->tunnels, or detached */
	struct list recent;       /* in pool->recent, or detached */
	struct list all;          /* in pool->all */
	struct list waits;        /* struct pool_wait: for the link, or for room on it */
	struct addr dst;
	struct tls_identity *identity;
	char **accept; /* copies, for the handshake after the dial */
	size_t accept_cnt;
	struct dial *dial;    /* connecting */
	struct link *link;    /* handshaking or ready */
	uint64_t dialled_us;  /* when it was connected; 0 = not yet */
	uint64_t ready_us;    /* and when the handshake was done */
	bool has_settings;    /* the peer has said how many streams it takes */
	struct timer preface; /* from the end of the handshake to the peer's SETTINGS */
	struct timer idle;    /* since the last new stream */
	struct io_task serve; /* hands the link to waiters, outside of pool_get() */
};

/* --- keys ---------------------------------------------------------------- */

static struct map_key group_key(const void *item)
{
	const struct pool_group *group = item;
	return (struct map_key){.p = group->key, .len = group->key_len};
}

/* Own identity, destination, uid and acceptable identities in order, each terminated. */
static int make_key(const struct pool_target *target, struct buf *key)
{
	char dst[ADDR_STR_MAX];
	addr_format(&target->dst, dst);
	buf_add(key, dst, strlen(dst) + 1);
	const char *own = tls_identity_id(target->identity);
	buf_add(key, own, strlen(own) + 1);
	buf_add(key, target->uid, strlen(target->uid) + 1);
	for (size_t i = 0; i < target->accept->cnt; i++)
		buf_add(key, target->accept->texts[i], strlen(target->accept->texts[i]) + 1);
	return key->err;
}

static int group_get(struct pool *pool, const struct pool_target *target, struct pool_group **ret_group)
{
	struct buf key;
	buf_init(&key, KEY_MAX);
	int r = make_key(target, &key);
	struct pool_group *group = r == 0 ? map_get(&pool->groups, key.data, key.len) : NULL;
	if (r < 0 || group) {
		buf_done(&key);
		*ret_group = group;
		return r;
	}
	group = mem_zalloc(1, sizeof(*group));
	if (!group) {
		buf_done(&key);
		return -ENOMEM;
	}
	list_init(&group->tunnels);
	group->key = buf_take(&key, &group->key_len);
	r = map_put(&pool->groups, group, NULL);
	if (r < 0) {
		mem_free(group->key);
		mem_free(group);
		return r;
	}
	*ret_group = group;
	return 0;
}

/* A group without tunnels has no reason to be. */
static void group_drop_if_empty(struct pool *pool, struct pool_group *group)
{
	if (!list_empty(&group->tunnels))
		return;
	map_del(&pool->groups, group->key, group->key_len);
	mem_free(group->key);
	mem_free(group);
}

/* --- tunnels ------------------------------------------------------------- */

static struct io *io_of(const struct pool_tunnel *tunnel)
{
	return tunnel->pool->silo->io;
}

/* Takes a tunnel out of its group: it gets no new streams. */
static void retire(struct pool_tunnel *tunnel)
{
	struct pool_group *group = tunnel->group;
	if (!group)
		return;
	tunnel->group = NULL;
	list_del(&tunnel->node);
	list_del(&tunnel->recent);
	io_timer_stop(io_of(tunnel), &tunnel->idle);
	tunnel->pool->tunnel_cnt--;
	group_drop_if_empty(tunnel->pool, group);
}

static void tunnel_free(struct pool_tunnel *tunnel)
{
	retire(tunnel);
	list_del(&tunnel->all);
	io_undefer(&tunnel->serve);
	io_timer_stop(io_of(tunnel), &tunnel->preface);
	dial_cancel(tunnel->dial);
	link_free(tunnel->link);
	for (size_t i = 0; i < tunnel->accept_cnt; i++)
		mem_free(tunnel->accept[i]);
	mem_free(tunnel->accept);
	tls_identity_unref(tunnel->identity);
	mem_free(tunnel);
}

/* Takes somebody out who is told now. */
static void take_wait(const struct pool_tunnel *tunnel, struct pool_wait *wait)
{
	pool_wait_cancel(wait);
	wait->dialled_us = tunnel->dialled_us;
	wait->ready_us = tunnel->ready_us;
}

/* Everyone who waits fails now and together; the tunnel is gone afterwards. */
static void fail(struct pool_tunnel *tunnel, int code, const char *text)
{
	retire(tunnel);
	while (!list_empty(&tunnel->waits)) {
		struct pool_wait *wait = list_entry(tunnel->waits.next, struct pool_wait, node);
		take_wait(tunnel, wait);
		wait->on_failed(wait, code, text);
	}
	tunnel_free(tunnel);
}

/* Whether one more stream may be opened. Before the peer's SETTINGS one is safe, more might be refused. */
static bool has_room(const struct pool_tunnel *tunnel)
{
	uint32_t limit = tunnel->pool->silo->settings.pool_max_streams;
	if (!tunnel->link || !link_is_ready(tunnel->link) || !link_can_open(tunnel->link))
		return false;
	if (!tunnel->has_settings)
		limit = 1;
	return link_streams(tunnel->link) < limit;
}

/* Waiters that this tunnel will not serve soon go to another one. */
static void move_waits(struct pool_tunnel *tunnel);

static void serve_waits(struct io_task *task)
{
	struct pool_tunnel *tunnel = list_entry(task, struct pool_tunnel, serve);
	while (!list_empty(&tunnel->waits) && has_room(tunnel)) {
		struct pool_wait *wait = list_entry(tunnel->waits.next, struct pool_wait, node);
		take_wait(tunnel, wait);
		if (tunnel->group)
			io_timer_start(
			        io_of(tunnel), &tunnel->idle, tunnel->pool->silo->settings.pool_idle_ms);
		wait->on_link(wait, tunnel->link);
	}
	/* Fewer have found room than it seemed when they came. */
	if (tunnel->has_settings && tunnel->group)
		move_waits(tunnel);
}

static void on_link_ready(void *ctx)
{
	struct pool_tunnel *tunnel = ctx;
	tunnel->ready_us = clock_us();
	metrics_handshake(tunnel->pool->silo, tunnel->link, false);
	io_timer_start(io_of(tunnel), &tunnel->preface, tunnel->pool->silo->settings.tls_handshake_ms);
	io_defer(io_of(tunnel), &tunnel->serve, IO_PHASE_WORK);
}

static void on_link_settings(void *ctx)
{
	struct pool_tunnel *tunnel = ctx;
	tunnel->has_settings = true;
	io_timer_stop(io_of(tunnel), &tunnel->preface);
	serve_waits(&tunnel->serve);
}

/* Before its SETTINGS a peer gets one stream: without a limit all others would wait for them. */
static void preface_expired(struct timer *timer, uint64_t now)
{
	(void)now;
	struct pool_tunnel *tunnel = list_entry(timer, struct pool_tunnel, preface);
	char words[TEXT_MAX];
	snprintf(words, sizeof(words), "%s: no SETTINGS", err_str(ERR_H2_HANDSHAKE));
	fail(tunnel, ERR_H2_HANDSHAKE, words);
}

static void on_link_room(void *ctx)
{
	struct pool_tunnel *tunnel = ctx;
	io_defer(io_of(tunnel), &tunnel->serve, IO_PHASE_WORK);
}

static void on_link_goaway(void *ctx)
{
	struct pool_tunnel *tunnel = ctx;
	move_waits(tunnel);
	retire(tunnel);
}

static void on_link_closed(void *ctx, int code, const char *text)
{
	struct pool_tunnel *tunnel = ctx;
	char words[TEXT_MAX];
	revocation_note(tunnel->pool->silo, false, code);
	if (code == ERR_H2 || code == ERR_H2_HANDSHAKE)
		snprintf(words, sizeof(words), "%s: %s", err_str(ERR_H2_HANDSHAKE), text);
	else
		snprintf(words, sizeof(words), "io error: %s", text);
	fail(tunnel, code ? code : -EPIPE, words);
}

static const struct link_events LINK_EVENTS = {
        .on_ready = on_link_ready,
        .on_settings = on_link_settings,
        .on_room = on_link_room,
        .on_goaway = on_link_goaway,
        .on_closed = on_link_closed,
};

static void on_dialled(void *ctx, int code, struct stream *stream)
{
	struct pool_tunnel *tunnel = ctx;
	struct silo *silo = tunnel->pool->silo;
	struct err err = {0};
	char words[TEXT_MAX];
	char os[128];
	tunnel->dial = NULL;
	if (code == -ETIMEDOUT) {
		snprintf(words, sizeof(words), "%s: deadline has elapsed", err_str(ERR_NETWORK_POLICY));
		fail(tunnel, ERR_NETWORK_POLICY, words);
		return;
	}
	if (code < 0) {
		snprintf(words, sizeof(words), "io error: %s", err_io_text(code, os, sizeof(os)));
		fail(tunnel, code, words);
		return;
	}
	struct h2_config h2;
	tunnel->dialled_us = clock_us();
	silo_h2_config(silo, false, &h2);
	const struct link_opts opts = {.env = silo->h2_env,
	        .identity = tunnel->identity,
	        .accept = (const char *const *)tunnel->accept,
	        .accept_cnt = tunnel->accept_cnt,
	        .h2 = &h2,
	        .handshake_ms = (uint32_t)silo->settings.tls_handshake_ms};
	int r = link_new(silo->io, stream, &opts, &LINK_EVENTS, tunnel, &tunnel->link, &err);
	if (r < 0) {
		stream_free(stream);
		snprintf(words, sizeof(words), "%s: %s", err_str(ERR_TLS_SETUP), err.text);
		fail(tunnel, ERR_TLS_SETUP, words);
	}
}

static const struct dial_events DIAL_EVENTS = {.on_done = on_dialled};

/* Nobody asked for a stream for a long time: no new ones here; it closes with its last (dataplane 5, idle
 * rule). */
static void idle_expired(struct timer *timer, uint64_t now)
{
	(void)now;
	struct pool_tunnel *tunnel = list_entry(timer, struct pool_tunnel, idle);
	if (!list_empty(&tunnel->waits)) {
		io_timer_start(io_of(tunnel), &tunnel->idle, tunnel->pool->silo->settings.pool_idle_ms);
		return;
	}
	retire(tunnel);
	link_drain(tunnel->link);
}

static int copy_accept(struct pool_tunnel *tunnel, const struct route_identities *accept)
{
	tunnel->accept = mem_zalloc(accept->cnt ? accept->cnt : 1, sizeof(*tunnel->accept));
	if (!tunnel->accept)
		return -ENOMEM;
	for (size_t i = 0; i < accept->cnt; i++) {
		tunnel->accept[i] = mem_strdup(accept->texts[i]);
		if (!tunnel->accept[i])
			return -ENOMEM;
		tunnel->accept_cnt++;
	}
	return 0;
}

/* A tunnel that starts to connect, outside of any group yet. */
static int tunnel_new(struct pool *pool, const struct pool_target *target, struct pool_tunnel **ret_tunnel)
{
	struct pool_tunnel *tunnel = mem_zalloc(1, sizeof(*tunnel));
	if (!tunnel)
		return -ENOMEM;
	tunnel->pool = pool;
	tunnel->dst = target->dst;
	tunnel->identity = tls_identity_ref(target->identity);
	io_task_init(&tunnel->serve, serve_waits);
	list_init(&tunnel->node);
	list_init(&tunnel->recent);
	list_init(&tunnel->waits);
	list_init(&tunnel->all);
	list_add_tail(&pool->all, &tunnel->all);
	timer_init(&tunnel->idle, idle_expired);
	timer_init(&tunnel->preface, preface_expired);
	struct dial_opts opts = silo_dial_opts(pool->silo, &target->dst);
	opts.is_local = target->is_local;
	int r = copy_accept(tunnel, target->accept);
	if (r == 0)
		r = dial_start(pool->silo->io, &opts, &DIAL_EVENTS, tunnel, &tunnel->dial);
	if (r < 0) {
		tunnel_free(tunnel);
		return r;
	}
	*ret_tunnel = tunnel;
	return 0;
}

/* Above the ceiling the longest unused tunnel without streams goes; if all are in use, the newcomer is
 * welcome all the same. */
static void make_room(struct pool *pool)
{
	if (pool->tunnel_cnt < POOL_TUNNELS_MAX)
		return;
	for (struct list *it = pool->recent.prev; it != &pool->recent; it = it->prev) {
		struct pool_tunnel *tunnel = list_entry(it, struct pool_tunnel, recent);
		if (!tunnel->link || link_streams(tunnel->link) > 0 || !list_empty(&tunnel->waits))
			continue;
		retire(tunnel);
		link_drain(tunnel->link);
		return;
	}
}

static void wait_at(struct pool_tunnel *tunnel, struct pool_wait *wait)
{
	wait->tunnel = tunnel;
	list_init(&wait->node);
	list_add_tail(&tunnel->waits, &wait->node);
	list_del(&tunnel->recent);
	list_add(&tunnel->pool->recent, &tunnel->recent);
	if (has_room(tunnel))
		io_defer(io_of(tunnel), &tunnel->serve, IO_PHASE_WORK);
}

/* Waiters that a tunnel can still take: what its room leaves, or, while it connects, as many as it may ever
 * carry. */
static size_t places(const struct pool_tunnel *tunnel)
{
	size_t limit = tunnel->pool->silo->settings.pool_max_streams;
	size_t used = 0;
	if (tunnel->link && link_is_ready(tunnel->link)) {
		if (tunnel->has_settings && link_peer_max_streams(tunnel->link) < limit)
			limit = link_peer_max_streams(tunnel->link);
		used = link_streams(tunnel->link);
	}
	for (const struct list *it = tunnel->waits.next; it != &tunnel->waits && used < limit; it = it->next)
		used++;
	return limit > used ? limit - used : 0;
}

static struct pool_tunnel *find_place(struct pool_group *group)
{
	list_for_each(it, &group->tunnels)
	{
		struct pool_tunnel *tunnel = list_entry(it, struct pool_tunnel, node);
		if (places(tunnel) > 0)
			return tunnel;
	}
	return NULL;
}

int pool_get(struct pool *pool, const struct pool_target *target, struct pool_wait *wait)
{
	struct pool_group *group;
	struct pool_tunnel *tunnel;
	int r = group_get(pool, target, &group);
	if (r < 0)
		return r;
	tunnel = find_place(group);
	if (!tunnel) {
		r = tunnel_new(pool, target, &tunnel);
		if (r < 0) {
			group_drop_if_empty(pool, group);
			return r;
		}
		make_room(pool);
		tunnel->group = group;
		list_add_tail(&group->tunnels, &tunnel->node);
		pool->tunnel_cnt++;
	}
	wait_at(tunnel, wait);
	return 0;
}

void pool_wait_cancel(struct pool_wait *wait)
{
	if (!wait->tunnel)
		return;
	list_del(&wait->node);
	wait->tunnel = NULL;
}

/*
 * More wait here than the peer takes at once (its SETTINGS came late), or the tunnel takes no more: the
 * surplus goes to other tunnels of the same key, new ones if need be.
 */
static void move_waits(struct pool_tunnel *tunnel)
{
	struct pool *pool = tunnel->pool;
	struct route_identities accept = {
	        .texts = (const char *const *)tunnel->accept, .cnt = tunnel->accept_cnt};
	struct pool_group *group = tunnel->group;
	while (!list_empty(&tunnel->waits) && !has_room(tunnel) && group) {
		struct pool_wait *wait = list_entry(tunnel->waits.prev, struct pool_wait, node);
		struct pool_tunnel *other = NULL;
		list_for_each(it, &group->tunnels)
		{
			struct pool_tunnel *candidate = list_entry(it, struct pool_tunnel, node);
			if (candidate != tunnel && places(candidate) > 0)
				other = candidate;
		}
		struct pool_target target = {
		        .dst = tunnel->dst, .accept = &accept, .uid = "", .identity = tunnel->identity};
		if (!other && tunnel_new(pool, &target, &other) == 0) {
			make_room(pool);
			other->group = group;
			list_add_tail(&group->tunnels, &other->node);
			pool->tunnel_cnt++;
		}
		pool_wait_cancel(wait);
		if (other)
			wait_at(other, wait);
		else
			wait->on_failed(wait, -ENOMEM, err_str(-ENOMEM));
	}
}

void pool_init(struct pool *pool, struct silo *silo)
{
	*pool = (struct pool){.silo = silo};
	map_init(&pool->groups, SILO_CONN_MAX, group_key);
	list_init(&pool->recent);
	list_init(&pool->all);
}

void pool_drain(struct pool *pool)
{
	list_for_each_safe(it, &pool->recent)
	{
		struct pool_tunnel *tunnel = list_entry(it, struct pool_tunnel, recent);
		if (!tunnel->link || !list_empty(&tunnel->waits))
			continue;
		retire(tunnel);
		link_drain(tunnel->link);
	}
}

void pool_done(struct pool *pool)
{
	while (!list_empty(&pool->all))
		tunnel_free(list_entry(pool->all.next, struct pool_tunnel, all));
	map_done(&pool->groups);
}

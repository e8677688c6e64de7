/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Silos and their questions; see silo_peer.h. */
#include "broker/silo_peer.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/mem.h"
#include "broker/broker.h"
#include "broker/certs.h"
#include "broker/crl.h"
#include "broker/silo_names.h"
#include "broker/infer.h"
#include "broker/resolv_send.h"
#include "broker/xds.h"
#include "broker/metrics.h"
#include "dns/names.h"
#include "ipc/ring_chan.h"
#include "ipc/view_key.h"
#include "mesh/identity.h"

static const char TARGET[] = "culvert::broker::silo";

/* Records that may wait at a silo's channel before pushes hold back: half of what the channel takes. */
#define QUEUE_MAX (CHAN_QUEUE_MAX / 2)
/* When a silo that did not read is looked at again, ms. */
#define RETRY_MS 20
/* Time for the answer to a dump, ms: a silo that hangs costs its own rows only. */
#define STATE_MS 1000
/* Views that one silo gets before the next silo's turn. */
#define TURN_MAX 16

/* A key that a silo has asked about. */
struct asked {
	struct list dirty; /* in peer->dirty, or peer->parked, or detached */
	bool is_parked;    /* waits for the control plane */
	struct interest_view interest;
	struct silo_peer *peer;
	struct view_key key; /* strings in names */
	size_t bytes_len;
	uint8_t *bytes; /* map key, owned */
	char *names;    /* owned */
	uint32_t id;    /* of the ask that is to be answered; 0 = a push */
};

struct silo_peer {
	struct list node; /* in broker.silos */
	struct interest_owner interest;
	struct broker *broker;
	char *uid; /* owned, like the next three */
	struct workload_info info;
	char *names; /* one block behind info */
	struct ring_chan *chan;
	struct log_pipe *log_pipe;
	struct map asked;    /* struct asked by bytes */
	struct list dirty;   /* struct asked */
	struct list parked;  /* struct asked that wait for the control plane's word */
	bool wants_workload; /* has asked; later versions are pushed */
	bool wants_policies;
	uint32_t workload_id; /* ask to be answered, 0 = push */
	uint32_t policies_id;
	bool is_workload_dirty;
	bool is_policies_dirty;
	bool had_workload; /* it may hold a record: found the last time, or given by a former broker */
	struct io_task flush;
	struct timer retry;
	struct cert_ask cert; /* one at a time: a new ask replaces the former */
	bool cert_open;
	uint32_t cert_id;
	char *cert_identity;          /* owned while cert_open */
	char *cert_csr;               /* owned while cert_open */
	struct list state_asks;       /* struct silo_state_ask */
	struct silo_names host_names; /* lookups under way */
	uint32_t last_state_id;
	struct metrics_peer metrics;
};

/* --- keys ---------------------------------------------------------------- */

static struct map_key asked_key(const void *item)
{
	const struct asked *asked = item;
	return (struct map_key){.p = asked->bytes, .len = asked->bytes_len};
}

static void asked_free(struct asked *asked)
{
	list_del(&asked->dirty);
	interest_view_leave(&asked->peer->broker->interest, &asked->interest);
	mem_free(asked->bytes);
	mem_free(asked->names);
	mem_free(asked);
}

/* The entry of a key, made if it is new. */
static int asked_get(
        struct silo_peer *peer, const struct view_key *key, struct asked **ret_asked, struct err *err)
{
	uint8_t bytes[VIEW_KEY_BYTES_MAX];
	int len = view_key_bytes(key, bytes, sizeof(bytes));
	if (len < 0)
		return err_set(err, ERR_TOO_LARGE, "key of a view is too large");
	struct asked *asked = map_get(&peer->asked, bytes, (size_t)len);
	if (asked) {
		*ret_asked = asked;
		return 0;
	}
	if (map_cnt(&peer->asked) >= SILO_PEER_KEYS_MAX)
		return err_set(err, ERR_TOO_MANY, "more than %d views open", SILO_PEER_KEYS_MAX);
	asked = mem_zalloc(1, sizeof(*asked));
	if (!asked)
		return err_set(err, -ENOMEM, "out of memory");
	asked->peer = peer;
	list_init(&asked->dirty);
	int r = view_key_copy(key, &asked->key, &asked->names);
	if (r == 0 && !(asked->bytes = mem_alloc((size_t)len)))
		r = -ENOMEM;
	if (r == 0) {
		memcpy(asked->bytes, bytes, (size_t)len);
		asked->bytes_len = (size_t)len;
		r = map_put(&peer->asked, asked, NULL);
	}
	if (r == 0) {
		r = interest_view_enter(&peer->broker->interest, &asked->interest, &asked->key);
		if (r < 0)
			map_del(&peer->asked, bytes, (size_t)len);
	}
	if (r < 0) {
		asked_free(asked);
		return err_set(err, r, "out of memory");
	}
	*ret_asked = asked;
	return 0;
}

/* --- answers ------------------------------------------------------------- */

static int own_names(struct silo_peer *peer, const struct workload_info *info);

/* Whether nobody has said whose silo it is. */
static bool is_inferred(const struct broker *broker)
{
	return broker->settings.dedicated && !broker->settings.has_workload_info;
}

/* Dedicated mode without names: they are those of the record that has our address. */
static const struct workload *inferred_record(struct silo_peer *peer, struct arena *arena)
{
	struct broker *broker = peer->broker;
	const struct workload *own;
	if (infer_workload(broker->store, broker->settings.network, arena, &own) < 0)
		return NULL;
	const struct workload_info info = {
	        .name = own->name, .ns = own->ns, .service_account = own->service_account};
	if (strcmp(info.name, peer->info.name) == 0 && strcmp(info.ns, peer->info.ns) == 0 &&
	        strcmp(info.service_account, peer->info.service_account) == 0)
		return own;
	interest_owner_leave(&broker->interest, &peer->interest);
	if (own_names(peer, &info) < 0 ||
	        interest_owner_enter(&broker->interest, &peer->interest, &peer->info) < 0)
		return NULL;
	log_msg(&broker->log, LOG_INFO, TARGET, "this is %s/%s (%s), by its address", own->ns, own->name,
	        own->uid);
	return own;
}

/* The silo's own record in `arena`, or NULL. */
static const struct workload *own_record(struct silo_peer *peer, struct arena *arena)
{
	const struct workload *own;
	if (is_inferred(peer->broker))
		return inferred_record(peer, arena);
	return store_own_workload(peer->broker->store, &peer->info, arena, &own) == 0 ? own : NULL;
}

static struct store_asker asker_of(struct silo_peer *peer, const struct workload *own)
{
	/* The same silo gets the same part of a large service, another one another. */
	struct hash_seed seed = {0};
	return (struct store_asker){.workload = own, .seed = hash_bytes(&seed, peer->uid, strlen(peer->uid))};
}

static void answer_workload(struct silo_peer *peer, const struct workload *own)
{
	struct ipc_record rec = {.id = peer->workload_id,
	        .type = IPC_ANSWER_WORKLOAD,
	        .answer_workload = {.found = own != NULL,
	                .generation = store_generation(peer->broker->store),
	                .workload = own}};
	struct err err = {0};
	/* Still not known: the silo waits with its own deadline, and hears when it comes. */
	if (!own && !peer->had_workload)
		return;
	if (ring_chan_send(peer->chan, &rec, -1, &err) < 0)
		log_msg(&peer->broker->log, LOG_ERROR, TARGET, "record of %s/%s cannot be sent: %s",
		        peer->info.ns, peer->info.name, err.text);
	peer->workload_id = 0;
	peer->had_workload = own != NULL;
}

static void missing_policy(void *ctx, const char *key)
{
	struct silo_peer *peer = ctx;
	log_msg(&peer->broker->log, LOG_WARN, "ztunnel::state", "skipping unknown policy %s", key);
}

/* In pages, or in a file when one of them is longer than a record. */
static int send_policies(struct silo_peer *peer, struct ipc_record *rec, struct err *err)
{
	struct buf body;
	int fd = -1;
	if (ipc_fits_pages(rec))
		return ring_chan_send_pages(peer->chan, rec, err);
	buf_init(&body, LIMIT_FILE_POLICIES);
	rec->answer_policies.last = true;
	int r = ipc_file_encode(rec, &body, err);
	if (r == 0)
		r = file_anon("policies", body.data, body.len, &fd);
	buf_done(&body);
	rec->answer_policies.policy_cnt = 0;
	return r < 0 ? r : ring_chan_send(peer->chan, rec, fd, err);
}

static void answer_policies(struct silo_peer *peer, const struct workload *own)
{
	/* Without a record nothing is known of what applies: nothing is said, and the silo lets nothing in.
	 */
	struct arena *arena = own ? arena_new(LIMIT_POLICIES_ARENA) : NULL;
	const struct policy *const *list;
	struct policy *flat = NULL;
	size_t cnt;
	if (!arena)
		return;
	if (store_policies(peer->broker->store, own, arena, &list, &cnt, missing_policy, peer) == 0)
		flat = arena_zalloc(arena, cnt ? cnt : 1, sizeof(*flat));
	if (!flat)
		log_msg(&peer->broker->log, LOG_ERROR, TARGET,
		        "no memory for the policies of %s/%s: those that its silo has, or none, stay in force",
		        peer->info.ns, peer->info.name);
	if (flat) {
		struct err err = {0};
		for (size_t i = 0; i < cnt; i++)
			flat[i] = *list[i];
		struct ipc_record rec = {.id = peer->policies_id,
		        .type = IPC_ANSWER_POLICIES,
		        .answer_policies = {.generation = store_generation(peer->broker->store),
		                .policies = flat,
		                .policy_cnt = cnt}};
		if (send_policies(peer, &rec, &err) < 0)
			log_msg(&peer->broker->log, LOG_ERROR, TARGET, "policies of %s/%s cannot be sent: %s",
			        peer->info.ns, peer->info.name, err.text);
		peer->policies_id = 0;
	}
	arena_unref(arena);
}

/* For the walk over names: what the asker's DNS answers for. */
struct name_source {
	struct store *store;
	const struct store_asker *asker;
	struct store_dns dns;
};

static bool accept_name(void *ctx, const char *host)
{
	const struct name_source *source = ctx;
	return store_has_name(source->store, source->asker, &source->dns, host);
}

/* The view of a name that a DNS client asked for; the walk over its meanings is made here, where the mesh is.
 */
static int view_of_name(struct silo_peer *peer, const struct store_asker *asker, const struct view_key *key,
        struct view **ret_view)
{
	const struct settings *settings = &peer->broker->settings;
	struct name_source source = {.store = peer->broker->store,
	        .asker = asker,
	        .dns = {.domain = settings->cluster_domain, .preferred = settings->prefered_namespace}};
	struct dns_names names = {.ns = peer->info.ns, .domain = settings->cluster_domain};
	struct resolv_search search;
	struct dns_match match;
	/* Outside of Kubernetes it is the machine's own list (control.md 10.3, 3). */
	if (settings->dedicated)
		resolv_search(&search, &names);
	bool is_found = dns_names_walk(&names, key->hostname, accept_name, &source, &match);
	return store_view_name(source.store, asker, &source.dns, key, is_found ? match.host : NULL, ret_view);
}

/* Until the control plane was asked, a gap in the store means nothing. */
static bool park(struct silo_peer *peer, struct asked *asked)
{
	if (!xds_must_wait(peer->broker->xds, &asked->key))
		return false;
	asked->is_parked = true;
	list_add_tail(&peer->parked, &asked->dirty);
	return true;
}

/* What the codec said of a record's size. */
static int check_size(int rc, size_t len, struct err *err)
{
	return rc == 0 && len > IPC_ITEM_MAX ? err_set(err, ERR_TOO_LARGE, "%zu bytes", len) : rc;
}

/* Whether each of the view's two records goes into a page. 0 or a code with text. */
static int check_view(const struct view *view, struct err *err)
{
	size_t len = 0;
	int rc = view->workload ? ipc_workload_size(view->workload, &len, err) : 0;
	rc = check_size(rc, len, err);
	if (rc < 0 || !view->service)
		return rc;
	rc = ipc_service_size(view->service, &len, err);
	return check_size(rc, len, err);
}

static void answer_view(struct silo_peer *peer, struct asked *asked, const struct workload *own)
{
	struct store_asker asker = asker_of(peer, own);
	struct view *view;
	struct err err = {0};
	int r = asked->key.kind == VIEW_NAME ? view_of_name(peer, &asker, &asked->key, &view)
	                                     : store_view(peer->broker->store, &asker, &asked->key, &view);
	if (r < 0) {
		log_msg(&peer->broker->log, LOG_ERROR, TARGET, "a view cannot be made: %s", err_str(r));
		return;
	}
	if (!view->known && park(peer, asked)) {
		view_unref(view);
		return;
	}
	struct ipc_record rec = {.id = asked->id,
	        .type = IPC_ANSWER_VIEW,
	        .answer_view = {.key = ipc_key_of_view(&asked->key),
	                .known = view->known,
	                .generation = view->generation,
	                .workload = view->workload,
	                .service = view->service,
	                .endpoints = view->endpoints,
	                .endpoint_cnt = view->endpoint_cnt}};
	/* Left out, it would look like an address that nobody has, which means plaintext: known, and nothing
	 * more, is what the silo refuses. */
	if (check_view(view, &err) < 0) {
		rec.answer_view.workload = NULL;
		rec.answer_view.service = NULL;
		rec.answer_view.endpoint_cnt = 0;
		log_msg(&peer->broker->log, LOG_ERROR, TARGET, "%s is refused, no record can hold it: %s",
		        view->service ? view->service->hostname : view->workload->uid, err.text);
	}
	if (ring_chan_send_pages(peer->chan, &rec, &err) < 0)
		log_msg(&peer->broker->log, LOG_ERROR, TARGET, "a view cannot be sent: %s", err.text);
	asked->id = 0;
	view_unref(view);
}

/* The own record has been looked up: sends what is dirty, views of one turn. */
static void flush_with(struct silo_peer *peer, const struct workload *own)
{
	if (peer->is_workload_dirty && peer->wants_workload) {
		peer->is_workload_dirty = false;
		answer_workload(peer, own);
	}
	if (peer->is_policies_dirty && peer->wants_policies) {
		peer->is_policies_dirty = false;
		answer_policies(peer, own);
	}
	for (unsigned n = 0; n < TURN_MAX && peer->chan && !list_empty(&peer->dirty) &&
	                     ring_chan_queued(peer->chan) < QUEUE_MAX;
	        n++) {
		struct asked *asked = list_entry(peer->dirty.next, struct asked, dirty);
		list_del(&asked->dirty);
		answer_view(peer, asked, own);
	}
}

/* Sends what is dirty while the silo reads; the rest waits for its turn. */
static void flush(struct io_task *task)
{
	struct silo_peer *peer = list_entry(task, struct silo_peer, flush);
	/* "Not known" means plaintext to that address: nothing is said before the mesh is complete (design
	 * 2). */
	if (!peer->chan || !peer->broker->ready.mesh_complete)
		return;
	struct arena *arena = arena_new(LIMIT_RECORD_ARENA);
	if (arena)
		flush_with(peer, own_record(peer, arena));
	arena_unref(arena);
	if (arena && (!peer->chan || list_empty(&peer->dirty)))
		return;
	if (arena && ring_chan_queued(peer->chan) < QUEUE_MAX)
		io_defer(peer->broker->io, &peer->flush, IO_PHASE_LINK);
	else
		io_timer_start(peer->broker->io, &peer->retry, RETRY_MS);
}

static void retry_flush(struct timer *timer, uint64_t now)
{
	(void)now;
	struct silo_peer *peer = list_entry(timer, struct silo_peer, retry);
	io_defer(peer->broker->io, &peer->flush, IO_PHASE_LINK);
}

static void want_flush(struct silo_peer *peer)
{
	io_defer(peer->broker->io, &peer->flush, IO_PHASE_LINK);
}

static void mark(struct asked *asked, struct silo_peer *peer)
{
	if (asked->is_parked)
		list_del(&asked->dirty);
	asked->is_parked = false;
	if (list_empty(&asked->dirty))
		list_add_tail(&peer->dirty, &asked->dirty);
}

/* --- asks ---------------------------------------------------------------- */

static int on_ask_workload(struct silo_peer *peer, struct chan_msg *msg, struct err *err)
{
	(void)err;
	peer->wants_workload = true;
	peer->is_workload_dirty = true;
	peer->workload_id = msg->rec.id;
	want_flush(peer);
	return 0;
}

static int on_ask_policies(struct silo_peer *peer, struct chan_msg *msg, struct err *err)
{
	(void)err;
	peer->wants_policies = true;
	peer->is_policies_dirty = true;
	peer->policies_id = msg->rec.id;
	want_flush(peer);
	return 0;
}

static int on_ask_view(struct silo_peer *peer, struct chan_msg *msg, struct err *err)
{
	struct view_key key =
	        view_key_of_ipc(msg->rec.type == IPC_ASK_HOST ? &msg->rec.ask_host : &msg->rec.ask_address);
	struct asked *asked = NULL;
	int r = asked_get(peer, &key, &asked, err);
	if (r < 0)
		return r;
	asked->id = msg->rec.id;
	mark(asked, peer);
	want_flush(peer);
	return 0;
}

static int on_evict(struct silo_peer *peer, struct chan_msg *msg, struct err *err)
{
	uint8_t bytes[VIEW_KEY_BYTES_MAX];
	struct view_key key = view_key_of_ipc(&msg->rec.evict);
	(void)err;
	int len = view_key_bytes(&key, bytes, sizeof(bytes));
	struct asked *asked = len < 0 ? NULL : map_del(&peer->asked, bytes, (size_t)len);
	if (asked)
		asked_free(asked);
	return 0;
}

static void cert_close(struct silo_peer *peer)
{
	certs_cancel(peer->broker->certs, &peer->cert);
	peer->cert_open = false;
	mem_free(peer->cert_identity);
	mem_free(peer->cert_csr);
	peer->cert_identity = NULL;
	peer->cert_csr = NULL;
}

static void on_signed(struct cert_ask *ask, int code, const char *const *chain, size_t chain_cnt,
        const char *roots, const char *text)
{
	struct silo_peer *peer = list_entry(ask, struct silo_peer, cert);
	struct ipc_record rec = {.id = peer->cert_id, .type = IPC_ANSWER_CERTIFICATE};
	struct err err = {0};
	if (code == 0)
		rec.answer_certificate = (struct ipc_answer_certificate){
		        .chain = chain, .chain_cnt = chain_cnt, .roots = roots, .error = ""};
	else
		rec.answer_certificate = (struct ipc_answer_certificate){
		        .roots = "", .error = text && text[0] ? text : err_str(code)};
	if (ring_chan_send(peer->chan, &rec, -1, &err) < 0)
		log_msg(&peer->broker->log, LOG_ERROR, TARGET, "a certificate cannot be sent: %s", err.text);
	cert_close(peer);
}

/* The identity must be the silo's own: namespace and account as the node agent said, whatever trust domain
 * the mesh has. */
static bool is_own_identity(const struct silo_peer *peer, const char *text)
{
	struct identity identity;
	return identity_parse(text, strlen(text), &identity) == 0 &&
	       identity.ns_len == strlen(peer->info.ns) &&
	       memcmp(identity.ns, peer->info.ns, identity.ns_len) == 0 &&
	       identity.sa_len == strlen(peer->info.service_account) &&
	       memcmp(identity.sa, peer->info.service_account, identity.sa_len) == 0;
}

static int on_ask_resolve(struct silo_peer *peer, struct chan_msg *msg, struct err *err)
{
	return silo_names_ask(&peer->host_names, msg->rec.id, msg->rec.ask_resolve.host, err);
}

static int on_ask_certificate(struct silo_peer *peer, struct chan_msg *msg, struct err *err)
{
	const struct ipc_ask_certificate *ask = &msg->rec.ask_certificate;
	if (!is_own_identity(peer, ask->identity))
		return err_set(err, ERR_BAD_SENDER, "asks for the certificate of %s", ask->identity);
	/* The same request again: a connection has begun to wait for it. */
	if (peer->cert_open && strcmp(peer->cert_identity, ask->identity) == 0 &&
	        peer->cert.csr_len == ask->csr_len && memcmp(peer->cert_csr, ask->csr, ask->csr_len) == 0) {
		peer->cert_id = msg->rec.id;
		if (ask->waiting)
			certs_raise(peer->broker->certs, &peer->cert);
		return 0;
	}
	if (peer->cert_open)
		cert_close(peer);
	peer->cert_identity = mem_strdup(ask->identity);
	peer->cert_csr = mem_strndup((const char *)ask->csr, ask->csr_len);
	peer->cert_id = msg->rec.id;
	peer->cert_open = true;
	if (!peer->cert_identity || !peer->cert_csr) {
		cert_close(peer);
		return err_set(err, -ENOMEM, "out of memory");
	}
	peer->cert = (struct cert_ask){.identity = peer->cert_identity,
	        .csr = peer->cert_csr,
	        .csr_len = ask->csr_len,
	        .is_urgent = ask->waiting,
	        .done = on_signed};
	certs_ask(peer->broker->certs, &peer->cert);
	return 0;
}

static int on_log_pipe(struct silo_peer *peer, struct chan_msg *msg, struct err *err)
{
	int fd = msg->fd;
	(void)err;
	msg->fd = -1;
	log_pipe_free(peer->log_pipe);
	peer->log_pipe = NULL;
	if (log_pipe_new(&peer->broker->logs, fd, &peer->log_pipe) < 0)
		log_msg(&peer->broker->log, LOG_ERROR, TARGET, "no memory for the log of %s/%s",
		        peer->info.ns, peer->info.name);
	return 0;
}

/* --- state --------------------------------------------------------------- */

static void state_end(struct silo_state_ask *ask, const struct ipc_answer_state *state)
{
	silo_peer_cancel_state(ask);
	ask->page(ask, state);
}

static void state_expired(struct timer *timer, uint64_t now)
{
	(void)now;
	state_end(list_entry(timer, struct silo_state_ask, timer), NULL);
}

static int on_answer_state(struct silo_peer *peer, struct chan_msg *msg, struct err *err)
{
	(void)err;
	list_for_each_safe(it, &peer->state_asks)
	{
		struct silo_state_ask *ask = list_entry(it, struct silo_state_ask, node);
		if (ask->id != msg->rec.id)
			continue;
		if (msg->rec.answer_state.last)
			state_end(ask, &msg->rec.answer_state);
		else
			ask->page(ask, &msg->rec.answer_state);
		return 0;
	}
	/* Late: nobody waits any more. */
	return 0;
}

static struct silo_peer *peer_find(struct broker *broker, const char *uid)
{
	list_for_each(it, &broker->silos)
	{
		struct silo_peer *peer = list_entry(it, struct silo_peer, node);
		if (strcmp(peer->uid, uid) == 0)
			return peer;
	}
	return NULL;
}

int silo_peer_ask_state(struct broker *broker, const char *uid, uint32_t what, struct silo_state_ask *ask)
{
	struct silo_peer *peer = peer_find(broker, uid);
	struct ipc_record rec = {.type = IPC_ASK_STATE, .ask_state = {.what = what}};
	if (!peer || !peer->chan)
		return -ENOENT;
	if (++peer->last_state_id == 0)
		peer->last_state_id = 1;
	ask->id = rec.id = peer->last_state_id;
	if (ring_chan_send(peer->chan, &rec, -1, NULL) < 0)
		return -ENOENT;
	ask->peer = peer;
	list_init(&ask->node);
	list_add_tail(&peer->state_asks, &ask->node);
	timer_init(&ask->timer, state_expired);
	io_timer_start(broker->io, &ask->timer, STATE_MS);
	return 0;
}

void silo_peer_cancel_state(struct silo_state_ask *ask)
{
	if (!ask->peer)
		return;
	io_timer_stop(ask->peer->broker->io, &ask->timer);
	list_del(&ask->node);
	ask->peer = NULL;
}

/* --- metrics ------------------------------------------------------------- */

size_t silo_peers_ask_metrics(struct broker *broker)
{
	size_t cnt = 0;
	list_for_each(it, &broker->silos)
	{
		struct silo_peer *peer = list_entry(it, struct silo_peer, node);
		struct metrics_peer *metrics = &peer->metrics;
		if (!peer->chan || metrics->has_ended)
			continue;
		if (!metrics->is_asked) {
			if (++metrics->last_id == 0)
				metrics->last_id = 1;
			struct ipc_record rec = {.id = metrics->last_id, .type = IPC_ASK_METRICS};
			metrics->quota = (struct metrics_quota){0};
			metrics->is_asked = ring_chan_send(peer->chan, &rec, -1, NULL) == 0;
		}
		metrics->is_awaited = metrics->is_asked;
		cnt += metrics->is_awaited;
	}
	return cnt;
}

void silo_peers_forget_metrics(struct broker *broker)
{
	list_for_each(it, &broker->silos) list_entry(it, struct silo_peer, node)->metrics.is_awaited = false;
}

static int on_answer_metrics(struct silo_peer *peer, struct chan_msg *msg, struct err *err)
{
	(void)err;
	metrics_on_answer(peer->broker, &peer->metrics, &peer->info, msg->rec.id, &msg->rec.answer_metrics);
	return 0;
}

/* --- life ---------------------------------------------------------------- */

static int on_ask_resolver(struct silo_peer *peer, struct chan_msg *msg, struct err *err)
{
	struct err why = {0};
	(void)err;
	if (resolv_send(peer->chan, msg->rec.id, &why) < 0)
		log_msg(&peer->broker->log, LOG_ERROR, TARGET,
		        "the resolver's configuration cannot be sent: %s", why.text);
	return 0;
}

/* One handler a type; the guard let nothing else through. */
static const struct {
	enum ipc_type type;
	int (*handle)(struct silo_peer *peer, struct chan_msg *msg, struct err *err);
} HANDLERS[] = {
        {IPC_ASK_WORKLOAD, on_ask_workload},
        {IPC_ASK_POLICIES, on_ask_policies},
        {IPC_ASK_ADDRESS, on_ask_view},
        {IPC_ASK_HOST, on_ask_view},
        {IPC_EVICT, on_evict},
        {IPC_ASK_CERTIFICATE, on_ask_certificate},
        {IPC_LOG_PIPE, on_log_pipe},
        {IPC_ASK_RESOLVER, on_ask_resolver},
        {IPC_ASK_RESOLVE, on_ask_resolve},
        {IPC_ANSWER_STATE, on_answer_state},
        {IPC_ANSWER_METRICS, on_answer_metrics},
};

static int on_record(void *ctx, struct chan_msg *msg, struct err *err)
{
	for (size_t i = 0; i < sizeof(HANDLERS) / sizeof(HANDLERS[0]); i++)
		if (HANDLERS[i].type == msg->rec.type)
			return HANDLERS[i].handle(ctx, msg, err);
	return 0;
}

static void peer_free(struct silo_peer *peer)
{
	struct asked *asked;
	metrics_peer_gone(peer->broker, &peer->metrics);
	while (!list_empty(&peer->state_asks))
		state_end(list_entry(peer->state_asks.next, struct silo_state_ask, node), NULL);
	if (peer->cert_open)
		cert_close(peer);
	while ((asked = map_pop(&peer->asked)))
		asked_free(asked);
	map_done(&peer->asked);
	interest_owner_leave(&peer->broker->interest, &peer->interest);
	io_undefer(&peer->flush);
	io_timer_stop(peer->broker->io, &peer->retry);
	silo_names_done(&peer->host_names);
	ring_chan_free(peer->chan);
	log_pipe_free(peer->log_pipe);
	list_del(&peer->node);
	mem_free(peer->uid);
	mem_free(peer->names);
	mem_free(peer);
}

static void on_closed(void *ctx, int code, const char *text)
{
	struct silo_peer *peer = ctx;
	if (code != -EPIPE && code != -ECONNRESET)
		log_msg(&peer->broker->log, LOG_WARN, TARGET, "channel of %s/%s closed: %s", peer->info.ns,
		        peer->info.name, text);
	peer_free(peer);
}

static const struct ring_chan_events EVENTS = {.on_record = on_record, .on_closed = on_closed};

/* Copies names into one block. */
static int own_names(struct silo_peer *peer, const struct workload_info *info)
{
	size_t name = strlen(info->name) + 1;
	size_t ns = strlen(info->ns) + 1;
	size_t account = strlen(info->service_account) + 1;
	char *names = mem_alloc(name + ns + account);
	if (!names)
		return -ENOMEM;
	mem_free(peer->names);
	peer->names = names;
	peer->info.name = memcpy(peer->names, info->name, name);
	peer->info.ns = memcpy(peer->names + name, info->ns, ns);
	peer->info.service_account = memcpy(peer->names + name + ns, info->service_account, account);
	return 0;
}

/* Sends the filter in force. */
static void send_log_filter(struct silo_peer *peer)
{
	struct err err = {0};
	struct buf text;
	buf_init(&text, LIMIT_IPC_RECORD);
	log_filter_text(&peer->broker->log, &text);
	const char *filter = buf_cstr(&text);
	struct ipc_record rec = {.type = IPC_SET_LOG, .set_log = {.filter = filter ? filter : "info"}};
	if (peer->chan && ring_chan_send(peer->chan, &rec, -1, &err) < 0)
		log_msg(&peer->broker->log, LOG_ERROR, TARGET, "log filter cannot be sent: %s", err.text);
	buf_done(&text);
}

int silo_peer_attach(struct broker *broker, const char *uid, const struct workload_info *info, int fd)
{
	struct ipc_hello hello = {.uid = ""};
	struct silo_peer *former = peer_find(broker, uid);
	if (former)
		peer_free(former);
	struct silo_peer *peer = mem_zalloc(1, sizeof(*peer));
	if (!peer) {
		fd_close(&fd);
		return -ENOMEM;
	}
	peer->broker = broker;
	/* A former broker may have given it a record: one that is gone since must be taken back. */
	peer->had_workload = true;
	io_task_init(&peer->flush, flush);
	timer_init(&peer->retry, retry_flush);
	list_init(&peer->dirty);
	list_init(&peer->parked);
	list_init(&peer->state_asks);
	list_init(&peer->node);
	list_add_tail(&broker->silos, &peer->node);
	map_init(&peer->asked, SILO_PEER_KEYS_MAX, asked_key);
	peer->uid = mem_strdup(uid);
	int r = peer->uid ? own_names(peer, info) : -ENOMEM;
	if (r == 0)
		r = interest_owner_enter(&broker->interest, &peer->interest, &peer->info);
	if (r == 0)
		r = ring_chan_new(broker->io, fd, IPC_ROLE_BROKER, IPC_ROLE_SILO, true, &broker->scratch,
		        &EVENTS, peer, &peer->chan);
	if (r < 0) {
		fd_close(&fd);
		peer_free(peer);
		return r;
	}
	silo_names_init(&peer->host_names, broker->io, peer->chan, broker->settings.ipv6_enabled);
	ring_chan_send_hello(peer->chan, &hello, -1, NULL);
	if (broker->has_log_filter)
		send_log_filter(peer);
	crl_send(broker->crl, peer->chan);
	return 0;
}

void silo_peers_set_crl(struct broker *broker)
{
	list_for_each(it, &broker->silos) crl_send(broker->crl, list_entry(it, struct silo_peer, node)->chan);
}

void silo_peers_set_log(struct broker *broker)
{
	list_for_each(it, &broker->silos) send_log_filter(list_entry(it, struct silo_peer, node));
}

void silo_peers_flush(struct broker *broker)
{
	list_for_each(it, &broker->silos) want_flush(list_entry(it, struct silo_peer, node));
}

void silo_peers_recheck(struct broker *broker)
{
	list_for_each(it, &broker->silos)
	{
		struct silo_peer *peer = list_entry(it, struct silo_peer, node);
		if (list_empty(&peer->parked))
			continue;
		list_for_each(at, &peer->parked) list_entry(at, struct asked, dirty)->is_parked = false;
		list_move_all(&peer->dirty, &peer->parked);
		want_flush(peer);
	}
}

void silo_peers_done(struct broker *broker)
{
	while (!list_empty(&broker->silos))
		peer_free(list_entry(broker->silos.next, struct silo_peer, node));
}

/* --- changes ------------------------------------------------------------- */

static void on_view_changed(void *ctx, struct interest_view *interest)
{
	struct asked *asked = list_entry(interest, struct asked, interest);
	(void)ctx;
	mark(asked, asked->peer);
	want_flush(asked->peer);
}

static void on_own_changed(void *ctx, struct interest_owner *owner)
{
	struct silo_peer *peer = list_entry(owner, struct silo_peer, interest);
	struct asked *asked;
	size_t cursor = 0;
	(void)ctx;
	/* What it may see and what applies to it hang on its own record. */
	peer->is_workload_dirty = true;
	peer->is_policies_dirty = true;
	while ((asked = map_next(&peer->asked, &cursor)))
		mark(asked, peer);
	want_flush(peer);
}

static void on_policies_changed(void *ctx, struct interest_owner *owner)
{
	struct silo_peer *peer = list_entry(owner, struct silo_peer, interest);
	(void)ctx;
	peer->is_policies_dirty = true;
	want_flush(peer);
}

static const struct interest_events CHANGES = {
        .view = on_view_changed, .own = on_own_changed, .policies = on_policies_changed};

static void infer_again(struct broker *broker)
{
	list_for_each(it, &broker->silos)
	{
		struct silo_peer *peer = list_entry(it, struct silo_peer, node);
		if (!peer->had_workload)
			on_own_changed(NULL, &peer->interest);
	}
}

void silo_peers_changed(void *ctx, const struct store_change *change)
{
	struct broker *broker = ctx;
	interest_tell(&broker->interest, change, &CHANGES, NULL);
	/* Who has no name yet may get one by any workload. */
	if (is_inferred(broker) && change->subject == STORE_OWN)
		infer_again(broker);
}

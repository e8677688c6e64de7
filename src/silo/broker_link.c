/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The channel to the broker; see broker_link.h. */
#include "silo/broker_link.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/mem.h"
#include "ipc/gather.h"
#include "ipc/ring_chan.h"
#include "ipc/view_key.h"
#include "silo/dns.h"
#include "silo/access.h"
#include "silo/dump.h"
#include "silo/metrics.h"
#include "silo/revocation.h"
#include "silo/silo.h"

static const char TARGET[] = "culvert::silo::broker";

struct broker_link {
	struct silo *silo;
	struct ring_chan *chan;        /* NULL = no broker */
	uint32_t last_id;              /* of the asks on this channel */
	uint32_t certificate_id;       /* ask in flight, 0 = none */
	unsigned view_asks;            /* asks for views without an answer */
	struct gather view_gather;     /* pages of one view */
	struct gather policies_gather; /* pages of the policies */
	int log_fd;                    /* write end of the log pipe, -1 = none */
	uint64_t log_dropped;          /* lines lost since the last report */
};

/* --- asks ---------------------------------------------------------------- */

/* Sends a record that is an ask; returns its id, or a negative code. */
static int64_t send_ask(struct broker_link *link, struct ipc_record *rec)
{
	struct err err = {0};
	if (!link->chan)
		return -ENOTCONN;
	/* Zero means "no ask". */
	if (++link->last_id == 0)
		link->last_id = 1;
	rec->id = link->last_id;
	int r = ring_chan_send(link->chan, rec, -1, &err);
	if (r < 0) {
		log_msg(&link->silo->log, LOG_WARN, TARGET, "cannot send %s: %s", ipc_type_str(rec->type),
		        err.text);
		return r;
	}
	return rec->id;
}

void broker_link_ask_workload(struct broker_link *link)
{
	struct ipc_record rec = {.type = IPC_ASK_WORKLOAD};
	send_ask(link, &rec);
}

void broker_link_ask_policies(struct broker_link *link)
{
	struct ipc_record rec = {.type = IPC_ASK_POLICIES};
	gather_done(&link->policies_gather);
	send_ask(link, &rec);
}

int broker_link_ask_certificate(
        struct broker_link *link, const char *identity, const uint8_t *csr, size_t csr_len, bool is_urgent)
{
	struct ipc_record rec = {
	        .type = IPC_ASK_CERTIFICATE,
	        .ask_certificate = {.identity = identity,
	                .csr = csr,
	                .csr_len = csr_len,
	                .waiting = is_urgent},
	};
	int64_t id = send_ask(link, &rec);
	if (id < 0)
		return (int)id;
	link->certificate_id = (uint32_t)id;
	return 0;
}

bool broker_link_ask_resolver(struct broker_link *link)
{
	struct ipc_record rec = {.type = IPC_ASK_RESOLVER};
	return send_ask(link, &rec) >= 0;
}

void broker_link_ask_resolve(struct broker_link *link, const char *host)
{
	struct ipc_record rec = {.type = IPC_ASK_RESOLVE, .ask_resolve = {.host = host}};
	send_ask(link, &rec);
}

bool broker_link_ask_view(struct broker_link *link, const struct view_key *key)
{
	struct ipc_record rec = {.type = key->kind != VIEW_ADDRESS ? IPC_ASK_HOST : IPC_ASK_ADDRESS};
	if (link->view_asks >= BROKER_LINK_ASKS_MAX)
		return false;
	if (key->kind != VIEW_ADDRESS)
		rec.ask_host = ipc_key_of_view(key);
	else
		rec.ask_address = ipc_key_of_view(key);
	if (send_ask(link, &rec) < 0)
		return false;
	link->view_asks++;
	return true;
}

void broker_link_evict(struct broker_link *link, const struct view_key *key)
{
	struct ipc_record rec = {.type = IPC_EVICT, .evict = ipc_key_of_view(key)};
	if (link->chan)
		ring_chan_send(link->chan, &rec, -1, NULL);
}

/* --- answers ------------------------------------------------------------- */

static int on_workload(struct broker_link *link, struct chan_msg *msg, struct err *err)
{
	(void)err;
	const struct ipc_answer_workload *answer = &msg->rec.answer_workload;
	context_on_workload(link->silo, msg->arena, answer->found ? answer->workload : NULL);
	return 0;
}

static int on_certificate(struct broker_link *link, struct chan_msg *msg, struct err *err)
{
	(void)err;
	const struct ipc_answer_certificate *answer = &msg->rec.answer_certificate;
	/* Only the answer to the newest request fits the key that we hold. */
	if (msg->rec.id != link->certificate_id)
		return 0;
	link->certificate_id = 0;
	if (answer->error[0])
		context_on_certificate_failed(link->silo, answer->error, answer->retry_ms);
	else
		context_on_certificate(link->silo, answer->chain, answer->chain_cnt, answer->roots);
	return 0;
}

static int on_view(struct broker_link *link, struct chan_msg *msg, struct err *err)
{
	struct arena *arena;
	struct ipc_record whole;
	struct view *view;
	int r = gather_add(&link->view_gather, msg->arena, &msg->rec, &arena, &whole, err);
	if (r == -EAGAIN)
		return 0;
	if (r < 0)
		return r;
	const struct ipc_answer_view *answer = &whole.answer_view;
	struct view_key key = view_key_of_ipc(&answer->key);
	if (msg->rec.id != 0 && link->view_asks > 0)
		link->view_asks--;
	/* Known, and nothing told: no record could hold it. Taken for unknown it would mean plaintext. */
	bool is_withheld = answer->known && !answer->workload && !answer->service;
	r = is_withheld ? ERR_TOO_LARGE
	                : view_new(arena, &key, answer->generation, answer->workload, answer->service,
	                          answer->endpoints, answer->endpoint_cnt, &view);
	if (r < 0) {
		/* First: the key's texts are in the arena. */
		cache_fail(&link->silo->cache, &key, r);
		arena_unref(arena);
	} else {
		cache_answer(&link->silo->cache, view);
	}
	cache_ask_pending(&link->silo->cache);
	return 0;
}

static int on_resolve(struct broker_link *link, struct chan_msg *msg, struct err *err)
{
	(void)err;
	resolver_answer(&link->silo->resolver, &msg->rec.answer_resolve);
	return 0;
}

/* Policies that no record can hold come as a file. One that cannot be read leaves what was in force. */
static void on_policies_file(struct broker_link *link, int fd)
{
	struct arena *arena = arena_new(LIMIT_POLICIES_ARENA);
	struct ipc_record rec;
	struct err err = {0};
	struct buf body;
	buf_init(&body, LIMIT_FILE_POLICIES);
	int r = arena ? file_read_at(fd, &body) : -ENOMEM;
	if (r < 0)
		err_set(&err, r, "%s", err_str(r));
	else
		r = ipc_file_decode(IPC_ANSWER_POLICIES, body.data, body.len, arena, &rec, &err);
	buf_done(&body);
	if (r == 0) {
		context_on_policies(
		        link->silo, arena, rec.answer_policies.policies, rec.answer_policies.policy_cnt);
		return;
	}
	log_msg(&link->silo->log, LOG_ERROR, TARGET, "policies are not used, the former stay: %s", err.text);
	arena_unref(arena);
}

static int on_policies(struct broker_link *link, struct chan_msg *msg, struct err *err)
{
	struct arena *arena;
	struct ipc_record whole;
	if (msg->fd >= 0) {
		gather_done(&link->policies_gather);
		on_policies_file(link, msg->fd);
		return 0;
	}
	int r = gather_add(&link->policies_gather, msg->arena, &msg->rec, &arena, &whole, err);
	if (r == -EAGAIN)
		return 0;
	if (r < 0)
		return r;
	context_on_policies(
	        link->silo, arena, whole.answer_policies.policies, whole.answer_policies.policy_cnt);
	return 0;
}

static int on_resolver(struct broker_link *link, struct chan_msg *msg, struct err *err)
{
	(void)err;
	dns_on_resolver(link->silo, &msg->rec.answer_resolver);
	return 0;
}

static int on_forget_all(struct broker_link *link, struct chan_msg *msg, struct err *err)
{
	(void)msg;
	(void)err;
	cache_forget_asks(&link->silo->cache);
	broker_link_ask_workload(link);
	broker_link_ask_policies(link);
	cache_ask_pending(&link->silo->cache);
	return 0;
}

static int on_set_log(struct broker_link *link, struct chan_msg *msg, struct err *err)
{
	(void)err;
	struct err bad = {0};
	if (log_set(&link->silo->log, msg->rec.set_log.filter, &bad) < 0 ||
	        access_limit(&link->silo->log, link->silo->settings.access_log, &bad) < 0)
		log_msg(&link->silo->log, LOG_WARN, TARGET, "log filter refused: %s", bad.text);
	return 0;
}

static int on_crl(struct broker_link *link, struct chan_msg *msg, struct err *err)
{
	(void)err;
	revocation_on_file(link->silo, msg->fd);
	return 0;
}

static int on_ask_state(struct broker_link *link, struct chan_msg *msg, struct err *err)
{
	struct arena *arena = arena_new(DUMP_ARENA_MAX);
	struct ipc_record rec = {.id = msg->rec.id, .type = IPC_ANSWER_STATE};
	if (!arena)
		return 0;
	dump_state(link->silo, msg->rec.ask_state.what, arena, &rec.answer_state);
	int r = ring_chan_send_pages(link->chan, &rec, err);
	arena_unref(arena);
	if (r < 0)
		log_msg(&link->silo->log, LOG_WARN, TARGET, "cannot answer for a dump: %s", err->text);
	return 0;
}

void broker_link_send_pages(struct broker_link *link, const struct ipc_record *rec)
{
	struct err err = {0};
	if (link->chan && ring_chan_send_pages(link->chan, rec, &err) < 0)
		log_msg(&link->silo->log, LOG_WARN, TARGET, "cannot send %s: %s", ipc_type_str(rec->type),
		        err.text);
}

static int on_ask_metrics(struct broker_link *link, struct chan_msg *msg, struct err *err)
{
	(void)err;
	metrics_answer(link->silo, msg->rec.id);
	return 0;
}

/* An ask that this broker does not know: an older release beside us. */
static int on_unsupported(struct broker_link *link, struct chan_msg *msg, struct err *err)
{
	(void)err;
	log_msg(&link->silo->log, LOG_WARN, TARGET, "the broker does not support ask %u",
	        msg->rec.unsupported.type);
	if (msg->rec.id == link->certificate_id) {
		link->certificate_id = 0;
		context_on_certificate_failed(link->silo, err_str(ERR_UNSUPPORTED), 0);
	}
	return 0;
}

/* One handler a type; the guard let nothing else through. */
static const struct {
	enum ipc_type type;
	int (*handle)(struct broker_link *link, struct chan_msg *msg, struct err *err);
} HANDLERS[] = {
        {IPC_ANSWER_VIEW, on_view},
        {IPC_ANSWER_WORKLOAD, on_workload},
        {IPC_ANSWER_POLICIES, on_policies},
        {IPC_ANSWER_RESOLVE, on_resolve},
        {IPC_ANSWER_CERTIFICATE, on_certificate},
        {IPC_ANSWER_RESOLVER, on_resolver},
        {IPC_FORGET_ALL, on_forget_all},
        {IPC_SET_LOG, on_set_log},
        {IPC_CRL, on_crl},
        {IPC_ASK_STATE, on_ask_state},
        {IPC_ASK_METRICS, on_ask_metrics},
        {IPC_UNSUPPORTED, on_unsupported},
};

static int on_record(void *ctx, struct chan_msg *msg, struct err *err)
{
	struct broker_link *link = ctx;
	for (size_t i = 0; i < sizeof(HANDLERS) / sizeof(HANDLERS[0]); i++)
		if (HANDLERS[i].type == msg->rec.type)
			return HANDLERS[i].handle(link, msg, err);
	return 0;
}

/* --- log pipe ------------------------------------------------------------ */

static void write_report(void *ctx, const char *text, size_t len)
{
	struct broker_link *link = ctx;
	if (write(link->log_fd, text, len) == (ssize_t)len)
		link->log_dropped = 0;
}

static void report_dropped(struct broker_link *link)
{
	struct log form = link->silo->log;
	struct log_line line;
	form.write = write_report;
	form.ctx = link;
	if (!log_begin(&line, &form, LOG_WARN, TARGET, "log lines were dropped")) {
		link->log_dropped = 0;
		return;
	}
	log_u64(&line, "lines", link->log_dropped);
	log_str(&line, "pod", link->silo->info.name);
	log_end(&line);
}

void broker_link_log(void *ctx, const char *line, size_t len)
{
	struct silo *silo = ctx;
	struct broker_link *link = silo->broker;
	if (!link)
		return;
	if (link->log_fd >= 0 && link->log_dropped > 0)
		report_dropped(link);
	/* Lines fit PIPE_BUF: taken whole or not at all, and never waited for. */
	if (link->log_fd < 0 || write(link->log_fd, line, len) != (ssize_t)len)
		link->log_dropped++;
}

/* Makes the pipe and hands its reading end to the broker. */
static void send_log_pipe(struct broker_link *link)
{
	struct ipc_record rec = {.type = IPC_LOG_PIPE};
	int ends[2];
	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
		return;
	fd_close(&link->log_fd);
	link->log_fd = ends[1];
	ring_chan_send(link->chan, &rec, ends[0], NULL);
}

/* --- life ---------------------------------------------------------------- */

static void detach(struct broker_link *link)
{
	ring_chan_free(link->chan);
	link->chan = NULL;
	link->view_asks = 0;
	link->certificate_id = 0;
	gather_done(&link->view_gather);
	gather_done(&link->policies_gather);
	cache_forget_asks(&link->silo->cache);
}

static void on_closed(void *ctx, int code, const char *text)
{
	struct broker_link *link = ctx;
	detach(link);
	fd_close(&link->log_fd);
	if (code != -EPIPE)
		log_msg(&link->silo->log, LOG_WARN, TARGET, "channel to the broker ended: %s", text);
}

static const struct ring_chan_events EVENTS = {.on_record = on_record, .on_closed = on_closed};

int broker_link_new(struct silo *silo, struct broker_link **ret_link)
{
	struct broker_link *link = mem_zalloc(1, sizeof(*link));
	if (!link)
		return -ENOMEM;
	link->silo = silo;
	link->log_fd = -1;
	*ret_link = link;
	return 0;
}

void broker_link_free(struct broker_link *link)
{
	if (!link)
		return;
	detach(link);
	fd_close(&link->log_fd);
	mem_free(link);
}

int broker_link_attach(struct broker_link *link, int fd)
{
	struct silo *silo = link->silo;
	struct ring_chan *chan;
	int r = ring_chan_new(
	        silo->io, fd, IPC_ROLE_SILO, IPC_ROLE_BROKER, false, &silo->scratch, &EVENTS, link, &chan);
	if (r < 0) {
		fd_close(&fd);
		return r;
	}
	detach(link);
	link->chan = chan;
	struct ipc_hello hello = {.uid = silo->uid,
	        .info = silo->info,
	        .netns_dev = silo->netns_dev,
	        .netns_ino = silo->netns_ino,
	        .pid = getpid(),
	        .broker_attached = true,
	        .is_ready = silo->phase == SILO_SERVING};
	ring_chan_send_hello(chan, &hello, -1, NULL);
	send_log_pipe(link);
	context_ask_all(silo);
	cache_ask_pending(&silo->cache);
	resolver_ask_again(&silo->resolver);
	dns_ask_again(silo->dns);
	return 0;
}

bool broker_link_is_up(const struct broker_link *link)
{
	return link && link->chan;
}

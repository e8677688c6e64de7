/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The queue to the CA, embedded or remote; see certs.h. The embedded CA answers within the turn, so a turn
 * signs at most the in-flight ceiling. */
#include "broker/certs.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "broker/broker.h"
#include "broker/ca_client.h"
#include "tls/ca.h"

/* Room for a leaf in PEM. */
#define LEAF_MAX 16384
/* Most seconds that SECRET_TTL may ask for; the CA caps it again. */
#define TTL_MAX_S TLS_CA_TTL_MAX

struct certs {
	struct broker *broker;
	struct tls_ca *ca;        /* the embedded one, NULL: a remote one */
	struct ca_client *client; /* the remote one, NULL: the embedded one */
	unsigned in_flight;       /* calls under way, <= CERTS_IN_FLIGHT_MAX */
	struct list urgent;       /* struct cert_ask: connections wait */
	struct list calm;         /* the others */
	struct io_task work;      /* signs the next few */
};

static uint32_t ttl_s(const struct settings *settings)
{
	uint64_t s = settings->secret_ttl_ms / 1000;
	return s > TTL_MAX_S ? TTL_MAX_S : s == 0 ? 1 : (uint32_t)s;
}

static void answer(struct certs *certs, struct cert_ask *ask)
{
	struct err err = {0};
	struct buf leaf;
	buf_init(&leaf, LEAF_MAX);
	int r = tls_ca_sign(certs->ca, ask->csr, ask->csr_len, ask->identity, ttl_s(&certs->broker->settings),
	        &leaf, &err);
	const char *pem = r == 0 ? buf_cstr(&leaf) : NULL;
	if (pem)
		ask->done(ask, 0, &pem, 1, tls_ca_root_pem(certs->ca), NULL);
	else
		ask->done(ask, r < 0 ? r : -ENOMEM, NULL, 0, NULL, err.text);
	buf_done(&leaf);
}

/* One place is free. */
static void landed(struct certs *certs, struct cert_ask *ask)
{
	ask->sign = NULL;
	certs->in_flight--;
	io_defer(certs->broker->io, &certs->work, IO_PHASE_LINK);
}

static void on_signed(
        void *ctx, int code, const char *const *chain, size_t chain_cnt, const char *roots, const char *text)
{
	struct cert_ask *ask = ctx;
	landed(ask->certs, ask);
	ask->done(ask, code, chain, chain_cnt, roots, text);
}

static void call(struct certs *certs, struct cert_ask *ask)
{
	struct err err = {0};
	int r = ca_client_sign(
	        certs->client, ask->identity, ask->csr, ask->csr_len, on_signed, ask, &ask->sign, &err);
	if (r < 0)
		ask->done(ask, r, NULL, 0, NULL, err.text);
	else
		certs->in_flight++;
}

static void work(struct io_task *task)
{
	struct certs *certs = list_entry(task, struct certs, work);
	for (unsigned i = 0; i < CERTS_IN_FLIGHT_MAX && certs->in_flight < CERTS_IN_FLIGHT_MAX; i++) {
		struct list *node = list_pop(&certs->urgent);
		if (!node)
			node = list_pop(&certs->calm);
		if (!node)
			return;
		struct cert_ask *ask = list_entry(node, struct cert_ask, node);
		if (certs->ca)
			answer(certs, ask);
		else
			call(certs, ask);
	}
	if (certs->in_flight < CERTS_IN_FLIGHT_MAX)
		io_defer(certs->broker->io, &certs->work, IO_PHASE_LINK);
}

int certs_new(struct broker *broker, struct certs **ret_certs, struct err *err)
{
	struct certs *certs = mem_zalloc(1, sizeof(*certs));
	if (!certs)
		return err_set(err, -ENOMEM, "out of memory");
	certs->broker = broker;
	io_task_init(&certs->work, work);
	list_init(&certs->urgent);
	list_init(&certs->calm);
	int r;
	if (broker->settings.fake_ca) {
		r = tls_ca_open(broker->run_fd, &certs->ca, err);
		if (r < 0)
			err_wrap(err, "embedded CA");
	} else {
		r = ca_client_new(broker, &certs->client, err);
	}
	if (r < 0) {
		mem_free(certs);
		return r;
	}
	*ret_certs = certs;
	return 0;
}

void certs_free(struct certs *certs)
{
	if (!certs)
		return;
	io_undefer(&certs->work);
	ca_client_free(certs->client);
	tls_ca_free(certs->ca);
	mem_free(certs);
}

void certs_ask(struct certs *certs, struct cert_ask *ask)
{
	list_init(&ask->node);
	ask->certs = certs;
	ask->sign = NULL;
	list_add_tail(ask->is_urgent ? &certs->urgent : &certs->calm, &ask->node);
	io_defer(certs->broker->io, &certs->work, IO_PHASE_LINK);
}

void certs_raise(struct certs *certs, struct cert_ask *ask)
{
	/* What is under way is not begun anew. */
	if (ask->is_urgent || list_empty(&ask->node))
		return;
	ask->is_urgent = true;
	list_del(&ask->node);
	list_add_tail(&certs->urgent, &ask->node);
}

void certs_cancel(struct certs *certs, struct cert_ask *ask)
{
	/* A zeroed ask was never queued. */
	if (!ask->certs)
		return;
	ask->certs = NULL;
	list_del(&ask->node);
	if (!ask->sign)
		return;
	ca_sign_cancel(ask->sign);
	landed(certs, ask);
}

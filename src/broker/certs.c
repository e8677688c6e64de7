/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The queue to the CA; see certs.h. The embedded CA answers within the turn, so a turn signs at most the
 * in-flight ceiling. */
#include "broker/certs.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "broker/broker.h"
#include "tls/ca.h"

/* Room for a leaf in PEM. */
#define LEAF_MAX 16384
/* Most seconds that SECRET_TTL may ask for; the CA caps it again. */
#define TTL_MAX_S TLS_CA_TTL_MAX

struct certs {
	struct broker *broker;
	struct tls_ca *ca;   /* the embedded one; NULL: there is no CA */
	struct list urgent;  /* struct cert_ask: connections wait */
	struct list calm;    /* the others */
	struct io_task work; /* signs the next few */
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
	if (!certs->ca) {
		ask->done(ask, ERR_SIGNING, NULL, 0, NULL, "no certificate authority is configured");
		return;
	}
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

static void work(struct io_task *task)
{
	struct certs *certs = list_entry(task, struct certs, work);
	for (unsigned i = 0; i < CERTS_IN_FLIGHT_MAX; i++) {
		struct list *node = list_pop(&certs->urgent);
		if (!node)
			node = list_pop(&certs->calm);
		if (!node)
			return;
		answer(certs, list_entry(node, struct cert_ask, node));
	}
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
	int r = broker->settings.fake_ca ? tls_ca_open(broker->run_fd, &certs->ca, err) : 0;
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
	tls_ca_free(certs->ca);
	mem_free(certs);
}

void certs_ask(struct certs *certs, struct cert_ask *ask)
{
	list_init(&ask->node);
	list_add_tail(ask->is_urgent ? &certs->urgent : &certs->calm, &ask->node);
	io_defer(certs->broker->io, &certs->work, IO_PHASE_LINK);
}

void certs_cancel(struct certs *certs, struct cert_ask *ask)
{
	(void)certs;
	/* A zeroed ask was never queued. */
	if (ask->node.next)
		list_del(&ask->node);
}

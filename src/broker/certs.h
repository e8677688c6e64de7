/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Certificate requests of the silos on their way to the CA: at most eight
 * under way, those with a waiting connection first (design 2, Certificates).
 * Back-off is the silos' own, so that a failing identity delays no other.
 * Never sees a private key.
 */
#ifndef CULVERT_BROKER_CERTS_H
#define CULVERT_BROKER_CERTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/list.h"

struct broker;
struct ca_sign;
struct certs;

/* Requests at the CA at the same time (reference control.md 6.4). */
#define CERTS_IN_FLIGHT_MAX 8

/* One request; embed it. */
struct cert_ask {
	struct list node;     /* in the queue, or detached */
	const char *identity; /* SPIFFE id asked for; the owner's until done */
	const char *csr;      /* PEM; likewise */
	size_t csr_len;
	bool is_urgent;       /* a connection waits */
	struct certs *certs;  /* certs.c's own: set while the ask is queued or under way */
	struct ca_sign *sign; /* certs.c's own: the call under way */
	/*
	 * The end, once, unless cancelled: code 0 and the chain (PEM, leaf first) and roots, or a negative
	 * code and its words. All texts are borrowed for the call.
	 */
	void (*done)(struct cert_ask *ask, int code, const char *const *chain, size_t chain_cnt,
	        const char *roots, const char *text);
};

/* Opens the CA that the settings name: the embedded one keeps its root in the run directory. 0 or a code with
 * text. */
int certs_new(struct broker *broker, struct certs **ret_certs, struct err *err);

/* Frees; asks still queued are forgotten. NULL is fine. */
void certs_free(struct certs *certs);

/* Queues a request; `done` comes later, never from inside this call. */
void certs_ask(struct certs *certs, struct cert_ask *ask);

/* A connection has begun to wait for a queued request: it goes before those without one. Fine when it is not
 * queued. */
void certs_raise(struct certs *certs, struct cert_ask *ask);

/* Takes a request back; fine when it is not queued. */
void certs_cancel(struct certs *certs, struct cert_ask *ask);

#endif

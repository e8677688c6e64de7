/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The WorkloadContext: the awaitable fetches of this silo's own workload
 * record, its certificate and the policies in force (design 2). Makes the
 * private key, asks for certificates, renews them, and refuses a record that
 * is not this namespace's (second lock on identity).
 */
#ifndef CULVERT_SILO_CONTEXT_H
#define CULVERT_SILO_CONTEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/wheel.h"
#include "culvert/records.h"
#include "mesh/identity.h"
#include "silo/fetch.h"
#include "silo/meta.h"
#include "tls/identity.h"
#include "tls/key.h"

struct silo;

/* Value of the workload fetch: our own record and what is derived from it once. */
struct own_workload {
	unsigned ref_cnt;
	struct arena *arena; /* holds the record */
	const struct workload *workload;
	char spiffe[IDENTITY_STR_MAX]; /* our identity: trust domain of the record, ns and account of the node
	                                  agent */
	char baggage[META_BAGGAGE_MAX]; /* what our requests and answers carry; "" = nothing */
};

/* Value of the policies fetch. */
struct policy_set {
	unsigned ref_cnt;
	struct arena *arena;                  /* holds the policies */
	const struct policy *const *policies; /* array of cnt */
	size_t cnt;
};

/* The awaitable fetches of a silo. */
struct workload_context {
	struct fetch workload;    /* struct own_workload */
	struct fetch certificate; /* struct tls_identity */
	struct fetch policies;    /* struct policy_set */

	/* Counts the waits on these, on views and on names. */
	struct fetch_observer observer;

	/* What follows is the context's own. */
	struct own_workload *refused;    /* a record none of whose addresses is ours yet */
	struct timer refused_timer;      /* looks again: addresses may come later */
	struct tls_key *key;             /* of the request in flight */
	struct buf csr;                  /* the request itself, to raise it; empty when none is in flight */
	bool is_asking;                  /* a certificate request is in flight */
	bool is_asking_urgent;           /* it was sent as one that connections wait for */
	struct timer renew_timer;        /* renewal, or retry after a failure */
	uint64_t backoff_ms;             /* delay of the next retry; 0 = last attempt was good */
	char asked_id[IDENTITY_STR_MAX]; /* identity that the request in flight, or the certificate, is for */
};

/* Prepares the fetches; nothing is asked yet. */
void context_init(struct silo *silo);

/* Ends them; waiters get -ECANCELED. */
void context_done(struct silo *silo);

/* A (new) broker is attached: asks for everything again. */
void context_ask_all(struct silo *silo);

/* The broker's answer or push: our record in `arena` (a reference is taken), NULL = not known. */
void context_on_workload(struct silo *silo, struct arena *arena, const struct workload *workload);

/* The broker's answer or push of all policies in force; takes the arena's reference over. */
void context_on_policies(struct silo *silo, struct arena *arena, const struct policy *policies, size_t cnt);

/* A certificate came; all texts are only read. */
void context_on_certificate(struct silo *silo, const char *const *chain, size_t chain_cnt, const char *roots);

/* The request for a certificate failed; retried after `retry_ms` (0 = by the back-off). */
void context_on_certificate_failed(struct silo *silo, const char *text, uint64_t retry_ms);

/*
 * Our certificate for a connection that needs it now: 0 and a borrowed
 * identity; -EAGAIN: wait on context.certificate; another negative code: the
 * stored failure, whose words are in context.certificate.text.
 */
int context_certificate(struct silo *silo, struct tls_identity **ret_identity);

/* The policies, borrowed, or NULL: wait on context.policies. */
const struct policy_set *context_policies(const struct silo *silo);

/* Our record, borrowed, or NULL: wait on context.workload. */
const struct own_workload *context_workload(struct silo *silo);

/* References to the counted values, for connections that keep the one they started with. */
struct own_workload *own_workload_ref(const struct own_workload *own);
void own_workload_unref(struct own_workload *own);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The silo's own record, certificate and policies; see context.h. */
#include "silo/context.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/rand.h"
#include "silo/broker_link.h"
#include "silo/netif.h"
#include "silo/metrics.h"
#include "silo/silo.h"

static const char TARGET[] = "ztunnel::identity::manager";

/* How often a refused record's addresses are looked for again, ms: an address may be set after the pod was
 * handed over. */
#define REFUSED_CHECK_MS 500
/* Retries of a failed certificate request: first, growth and cap (reference control.md 6.4). */
#define RETRY_FIRST_MS 1000
#define RETRY_MAX_MS 150000
#define RETRY_JITTER_PERCENT 20
/* Renewal is moved earlier by up to this share of the life, so that a node's pods do not renew together. */
#define RENEW_JITTER_PERCENT 5
/* A CA that issues certificates already past their half life must not make a busy loop of us, ms. */
#define RENEW_MIN_MS 1000
/* Room for a request in PEM; ours have about 500 bytes with the longest identity. */
#define CSR_MAX 8192

/* --- counted values ------------------------------------------------------ */

struct own_workload *own_workload_ref(const struct own_workload *own)
{
	struct own_workload *mine = (struct own_workload *)(uintptr_t)own;
	mine->ref_cnt++;
	return mine;
}

void own_workload_unref(struct own_workload *own)
{
	if (!own || --own->ref_cnt > 0)
		return;
	arena_unref(own->arena);
	mem_free(own);
}

static void workload_kind_ref(void *value)
{
	own_workload_ref(value);
}

static void workload_kind_unref(void *value)
{
	own_workload_unref(value);
}

static void policies_kind_ref(void *value)
{
	((struct policy_set *)value)->ref_cnt++;
}

static void policies_kind_unref(void *value)
{
	struct policy_set *set = value;
	if (--set->ref_cnt > 0)
		return;
	arena_unref(set->arena);
	mem_free(set);
}

static void identity_kind_ref(void *value)
{
	tls_identity_ref(value);
}

static void identity_kind_unref(void *value)
{
	tls_identity_unref(value);
}

static const struct fetch_kind WORKLOAD_KIND = {workload_kind_ref, workload_kind_unref};
static const struct fetch_kind POLICIES_KIND = {policies_kind_ref, policies_kind_unref};
static const struct fetch_kind IDENTITY_KIND = {identity_kind_ref, identity_kind_unref};

/* --- certificate --------------------------------------------------------- */

/* The identity that our certificate must have, "" while our record is unknown. */
static const char *wanted_id(const struct silo *silo)
{
	const struct own_workload *own = fetch_peek(&silo->context.workload);
	return own ? own->spiffe : "";
}

static void drop_request(struct workload_context *context)
{
	tls_key_unref(context->key);
	context->key = NULL;
	buf_done(&context->csr);
}

/* The request under way once more, because a connection waits for it now: it is not begun anew. */
static bool raise_request(struct silo *silo)
{
	struct workload_context *context = &silo->context;
	if (!context->is_asking || context->csr.len == 0 || strcmp(context->asked_id, wanted_id(silo)) != 0)
		return false;
	context->is_asking_urgent = broker_link_ask_certificate(silo->broker, context->asked_id,
	                                    context->csr.data, context->csr.len, true) == 0;
	return context->is_asking_urgent;
}

/* Makes a key and a request and sends it. Failures count like those of the CA. */
static void request_certificate(struct silo *silo, bool is_urgent)
{
	struct workload_context *context = &silo->context;
	struct err err = {0};
	if (!wanted_id(silo)[0] || !broker_link_is_up(silo->broker))
		return;
	if (is_urgent && raise_request(silo))
		return;
	io_timer_stop(silo->io, &context->renew_timer);
	drop_request(context);
	snprintf(context->asked_id, sizeof(context->asked_id), "%s", wanted_id(silo));
	buf_init(&context->csr, CSR_MAX);
	int r = tls_key_new(&context->key, &err);
	if (r == 0)
		r = tls_csr_make(context->key, context->asked_id, &context->csr, &err);
	if (r == 0)
		r = broker_link_ask_certificate(
		        silo->broker, context->asked_id, context->csr.data, context->csr.len, is_urgent);
	if (r < 0) {
		context_on_certificate_failed(silo, err.text[0] ? err.text : err_str(r), 0);
		return;
	}
	context->is_asking = true;
	context->is_asking_urgent = is_urgent;
}

static void renew_due(struct timer *timer, uint64_t now)
{
	(void)now;
	struct workload_context *context = list_entry(timer, struct workload_context, renew_timer);
	struct silo *silo = list_entry(context, struct silo, context);
	if (!context->is_asking)
		request_certificate(silo, fetch_is_awaited(&context->certificate));
}

static int64_t wall_s(void)
{
	return (int64_t)(clock_wall_us() / 1000000);
}

static uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Time until the certificate has expired; once it has, no limit. */
static uint64_t left_ms(const struct tls_identity *identity)
{
	int64_t left_s = tls_identity_not_after(identity) - wall_s();
	return left_s > 0 ? (uint64_t)left_s * 1000 : UINT64_MAX;
}

static void schedule_renewal(struct silo *silo, const struct tls_identity *identity)
{
	int64_t before = tls_identity_not_before(identity);
	int64_t after = tls_identity_not_after(identity);
	int64_t life = after > before ? after - before : 0;
	int64_t early = (int64_t)rand_below((uint64_t)(life * RENEW_JITTER_PERCENT / 100) + 1);
	int64_t delay_s = before + life / 2 - early - wall_s();
	uint64_t delay_ms = delay_s > 0 ? (uint64_t)delay_s * 1000 : 0;
	if (delay_ms < RENEW_MIN_MS)
		delay_ms = RENEW_MIN_MS;
	io_timer_start(silo->io, &silo->context.renew_timer, delay_ms);
}

void context_on_certificate(struct silo *silo, const char *const *chain, size_t chain_cnt, const char *roots)
{
	struct workload_context *context = &silo->context;
	struct tls_policy policy = {.tls12 = silo->settings.tls12_enabled,
	        .pqc_only = silo->settings.pqc_only,
	        .revocation = silo->revocation};
	struct tls_identity *identity = NULL;
	struct err err = {0};
	context->is_asking = false;
	if (!context->key)
		return;
	/* Our record changed while the request was under way: this certificate is for who we were. */
	if (strcmp(context->asked_id, wanted_id(silo)) != 0) {
		request_certificate(silo, fetch_is_awaited(&context->certificate));
		return;
	}
	int r = tls_identity_new(
	        context->key, chain, chain_cnt, roots, context->asked_id, &policy, &identity, &err);
	if (r == 0 && tls_identity_not_after(identity) <= wall_s()) {
		tls_identity_unref(identity);
		r = err_set(&err, ERR_CERT_EXPIRED, "%s", err_str(ERR_CERT_EXPIRED));
	}
	if (r < 0) {
		context_on_certificate_failed(silo, err.text, 0);
		return;
	}
	drop_request(context);
	context->backoff_ms = 0;
	schedule_renewal(silo, identity);
	fetch_set(&context->certificate, identity);
}

void context_on_certificate_failed(struct silo *silo, const char *text, uint64_t retry_ms)
{
	struct workload_context *context = &silo->context;
	const struct tls_identity *held = fetch_peek(&context->certificate);
	context->is_asking = false;
	drop_request(context);
	context->backoff_ms = context->backoff_ms ? context->backoff_ms * 2 : RETRY_FIRST_MS;
	if (context->backoff_ms > RETRY_MAX_MS)
		context->backoff_ms = RETRY_MAX_MS;
	uint64_t delay_ms = retry_ms ? retry_ms : rand_jitter(context->backoff_ms, RETRY_JITTER_PERCENT);
	/* One try more when the certificate in use ends. */
	if (held && !retry_ms)
		delay_ms = min_u64(delay_ms, left_ms(held));
	log_msg(&silo->log, LOG_WARN, TARGET, "certificate for %s failed, trying again in %llu ms: %s",
	        context->asked_id, (unsigned long long)delay_ms, text);
	/* A valid certificate is kept to its last second; an expired one serves nobody. */
	if (held && tls_identity_not_after(held) <= wall_s())
		fetch_forget(&context->certificate);
	io_timer_start(silo->io, &context->renew_timer, delay_ms);
	fetch_fail(&context->certificate, ERR_SIGNING, text);
}

int context_certificate(struct silo *silo, struct tls_identity **ret_identity)
{
	struct workload_context *context = &silo->context;
	struct tls_identity *identity = fetch_peek(&context->certificate);
	if (identity && tls_identity_not_after(identity) > wall_s()) {
		*ret_identity = identity;
		return 0;
	}
	fetch_forget(&context->certificate);
	/* A stored failure is told at once; only the scheduled retry clears it (control.md 6.4). */
	if (context->certificate.code != 0 && timer_is_set(&context->renew_timer))
		return context->certificate.code;
	if (!context->is_asking || !context->is_asking_urgent)
		request_certificate(silo, true);
	return context->certificate.code != 0 && timer_is_set(&context->renew_timer)
	               ? context->certificate.code
	               : -EAGAIN;
}

/* --- own record ---------------------------------------------------------- */

/* Dedicated mode without PROXY_WORKLOAD_INFO: the record was found by our address and says all. */
static bool is_inferred(const struct silo *silo)
{
	return silo->settings.dedicated && !silo->settings.has_workload_info;
}

/* Makes the value out of a record; NULL when memory is short or the names are absurd. */
static struct own_workload *own_new(struct silo *silo, struct arena *arena, const struct workload *workload)
{
	struct own_workload *own = mem_zalloc(1, sizeof(*own));
	if (!own)
		return NULL;
	/* Trust domain from the mesh, the rest from the node agent: upstream's rule (dataplane.md 7). */
	struct identity identity = identity_of(workload);
	if (!is_inferred(silo)) {
		identity.ns = silo->info.ns;
		identity.ns_len = strlen(silo->info.ns);
		identity.sa = silo->info.service_account;
		identity.sa_len = strlen(silo->info.service_account);
	}
	if (identity_format(&identity, own->spiffe, sizeof(own->spiffe)) < 0) {
		mem_free(own);
		return NULL;
	}
	own->ref_cnt = 1;
	own->arena = arena_ref(arena);
	own->workload = workload;
	meta_baggage_format(workload, own->baggage);
	return own;
}

/* The value is good: publishes it and sees to a certificate. */
static void accept_own(struct silo *silo, struct own_workload *own)
{
	struct workload_context *context = &silo->context;
	const struct tls_identity *held = fetch_peek(&context->certificate);
	/* Dedicated mode fetches on demand only (control.md 14). */
	bool needs_certificate = !silo->settings.dedicated &&
	                         (own->workload->protocol == WORKLOAD_HBONE || own->workload->native_tunnel);
	bool is_other = held && strcmp(tls_identity_id(held), own->spiffe) != 0;
	own_workload_unref(context->refused);
	context->refused = NULL;
	io_timer_stop(silo->io, &context->refused_timer);
	if (is_other)
		fetch_forget(&context->certificate);
	fetch_set(&context->workload, own);
	if ((needs_certificate || fetch_is_awaited(&context->certificate)) &&
	        !fetch_peek(&context->certificate) && !context->is_asking &&
	        !timer_is_set(&context->renew_timer))
		request_certificate(silo, fetch_is_awaited(&context->certificate));
}

static bool is_ours(const struct own_workload *own)
{
	return netif_has_any(own->workload->ips, own->workload->ip_cnt);
}

static void refused_check(struct timer *timer, uint64_t now)
{
	(void)now;
	struct workload_context *context = list_entry(timer, struct workload_context, refused_timer);
	struct silo *silo = list_entry(context, struct silo, context);
	struct own_workload *own = context->refused;
	if (is_ours(own)) {
		context->refused = NULL;
		accept_own(silo, own);
		return;
	}
	/* Only while somebody waits: an idle silo does not tick. */
	if (fetch_is_awaited(&context->workload))
		io_timer_start(silo->io, &context->refused_timer, REFUSED_CHECK_MS);
}

static void refuse_own(struct silo *silo, struct own_workload *own)
{
	struct workload_context *context = &silo->context;
	log_msg(&silo->log, LOG_ERROR, "ztunnel::proxy",
	        "workload record of %s/%s (%s) is refused: none of its addresses is on an interface of this network namespace",
	        own->workload->ns, own->workload->name, own->workload->uid);
	own_workload_unref(context->refused);
	context->refused = own;
	fetch_forget(&context->workload);
	io_timer_start(silo->io, &context->refused_timer, REFUSED_CHECK_MS);
}

void context_on_workload(struct silo *silo, struct arena *arena, const struct workload *workload)
{
	struct workload_context *context = &silo->context;
	if (!workload) {
		/* Gone from the mesh: new connections wait for it as they do at the start. */
		fetch_forget(&context->workload);
		return;
	}
	struct own_workload *own = own_new(silo, arena, workload);
	if (!own) {
		log_msg(&silo->log, LOG_ERROR, "ztunnel::proxy", "workload record %s cannot be used",
		        workload->uid);
		return;
	}
	if (is_ours(own) || silo->is_self)
		accept_own(silo, own);
	else
		refuse_own(silo, own);
}

const struct own_workload *context_workload(struct silo *silo)
{
	struct workload_context *context = &silo->context;
	if (!fetch_peek(&context->workload) && context->refused && !timer_is_set(&context->refused_timer))
		io_timer_start(silo->io, &context->refused_timer, 0);
	return fetch_peek(&context->workload);
}

/* --- policies ------------------------------------------------------------ */

void context_on_policies(struct silo *silo, struct arena *arena, const struct policy *policies, size_t cnt)
{
	struct policy_set *set = mem_zalloc(1, sizeof(*set));
	const struct policy **all = arena_zalloc(arena, cnt ? cnt : 1, sizeof(*all));
	if (!set || !all) {
		/* The older set stays in force; the broker is asked again. */
		mem_free(set);
		arena_unref(arena);
		broker_link_ask_policies(silo->broker);
		return;
	}
	for (size_t i = 0; i < cnt; i++)
		all[i] = &policies[i];
	*set = (struct policy_set){.ref_cnt = 1, .arena = arena, .policies = all, .cnt = cnt};
	fetch_set(&silo->context.policies, set);
}

const struct policy_set *context_policies(const struct silo *silo)
{
	return fetch_peek(&silo->context.policies);
}

/* --- life ---------------------------------------------------------------- */

static void count_wait(struct fetch_observer *observer, uint64_t ms)
{
	metrics_waited(list_entry(observer, struct silo, context.observer), ms);
}

void context_init(struct silo *silo)
{
	struct workload_context *context = &silo->context;
	fetch_init(&context->workload, silo->io, &WORKLOAD_KIND);
	fetch_init(&context->certificate, silo->io, &IDENTITY_KIND);
	fetch_init(&context->policies, silo->io, &POLICIES_KIND);
	context->observer.waited = count_wait;
	context->workload.observer = &context->observer;
	context->certificate.observer = &context->observer;
	context->policies.observer = &context->observer;
	timer_init(&context->renew_timer, renew_due);
	timer_init(&context->refused_timer, refused_check);
}

void context_done(struct silo *silo)
{
	struct workload_context *context = &silo->context;
	io_timer_stop(silo->io, &context->renew_timer);
	io_timer_stop(silo->io, &context->refused_timer);
	fetch_done(&context->workload);
	fetch_done(&context->certificate);
	fetch_done(&context->policies);
	own_workload_unref(context->refused);
	context->refused = NULL;
	drop_request(context);
}

void context_ask_all(struct silo *silo)
{
	struct workload_context *context = &silo->context;
	broker_link_ask_workload(silo->broker);
	broker_link_ask_policies(silo->broker);
	/* A request that the former broker took along is made anew. */
	bool was_asking = context->is_asking;
	context->is_asking = false;
	if (was_asking || (fetch_peek(&context->workload) && fetch_is_awaited(&context->certificate)))
		request_certificate(silo, fetch_is_awaited(&context->certificate));
}

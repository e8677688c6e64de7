/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The silo's side of the channel to the broker: asks go out, answers and
 * pushes are handed to context and cache, log lines go down a pipe. Survives
 * the broker: values stay, a new broker is asked for everything again.
 */
#ifndef CULVERT_SILO_BROKER_LINK_H
#define CULVERT_SILO_BROKER_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mesh/view.h"

struct ipc_record;
struct silo;
struct broker_link;

/* Asks for views without an answer; more wait in the cache (design 2: outstanding asks are capped). */
#define BROKER_LINK_ASKS_MAX 64

/* Makes a link without a broker. 0 or -ENOMEM. */
int broker_link_new(struct silo *silo, struct broker_link **ret_link);

/* Closes and frees. NULL is fine. */
void broker_link_free(struct broker_link *link);

/* Takes channel `fd` to a (new) broker over, whatever was there before, says Hello and asks for everything. 0
 * or -ENOMEM. */
int broker_link_attach(struct broker_link *link, int fd);

/* Whether a broker is attached. */
bool broker_link_is_up(const struct broker_link *link);

/* Asks for our record and every later version; harmless without a broker. */
void broker_link_ask_workload(struct broker_link *link);

/* Asks for the policies in force and every later version; harmless without a broker. */
void broker_link_ask_policies(struct broker_link *link);

/* Asks for a certificate; its answer goes to context. 0, or a negative code when it could not be sent. */
int broker_link_ask_certificate(
        struct broker_link *link, const char *identity, const uint8_t *csr, size_t csr_len, bool is_urgent);

/* Asks for the addresses of a host name; without a broker nothing happens. For resolver. */
void broker_link_ask_resolve(struct broker_link *link, const char *host);

/* Asks for a view; false when not now. For cache. */
bool broker_link_ask_view(struct broker_link *link, const struct view_key *key);

/* Asks how the daemon resolves names; the answer goes to dns_on_resolver(). False: not now. */
bool broker_link_ask_resolver(struct broker_link *link);

/* Says that a view is no longer wanted. For cache. */
void broker_link_evict(struct broker_link *link, const struct view_key *key);

/* Sends an answer that is already complete, in pages; dropped without a broker. */
void broker_link_send_pages(struct broker_link *link, const struct ipc_record *rec);

/* Writes a log line to the broker; counted and reported later when it cannot be taken. For struct log. */
void broker_link_log(void *ctx, const char *line, size_t len);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Certificates from a CA over gRPC: one call for each request, on one channel,
 * and what is wrong with an answer (reference control.md 6.2, 6.3, 6.8). Knows
 * no silo and no queue, never sees a private key.
 */
#ifndef CULVERT_BROKER_CA_CLIENT_H
#define CULVERT_BROKER_CA_CLIENT_H

#include <stddef.h>

#include "base/err.h"

struct broker;
struct ca_client;
struct ca_sign;

/* Time of one call, ms: a CA that hangs must not hold its place in the queue for ever. */
#define CA_DEADLINE_MS 10000

/*
 * The end of a request, once unless cancelled: code 0, the chain (PEM, leaf
 * first, without roots) and the roots; or a negative code and its words. All
 * texts are borrowed for the call.
 */
typedef void ca_done(
        void *ctx, int code, const char *const *chain, size_t chain_cnt, const char *roots, const char *text);

/* A client for the CA that the settings name; no connection is made yet. 0 or a code with text. */
int ca_client_new(struct broker *broker, struct ca_client **ret_client, struct err *err);

/* Frees it; requests under way end without a word. NULL is fine. */
void ca_client_free(struct ca_client *client);

/* Asks for a certificate; `csr` is PEM of csr_len bytes, all texts are only read. `done` never comes from
 * inside this call. 0 or a code with text. */
int ca_client_sign(struct ca_client *client, const char *identity, const char *csr, size_t csr_len,
        ca_done *done, void *ctx, struct ca_sign **ret_sign, struct err *err);

/* Gives a request up: `done` does not come. NULL is fine. */
void ca_sign_cancel(struct ca_sign *sign);

#endif

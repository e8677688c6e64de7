/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the operations of the data path cost, in instructions. The program
 * does each of them many times, always the same way: no network, no clock
 * that counts, random numbers that are the same in every run. It counts
 * nothing by itself: callgrind does, inside of cost_count() only, and
 * cost_figure_end() tells it that a figure is complete (cost.py).
 */
#ifndef TESTS_COST_H
#define TESTS_COST_H

#include <stdint.h>

/* Calls piece(ctx); what it does belongs to the present figure. Not to be nested. */
void cost_count(void (*piece)(void *ctx), void *ctx);

/* The figure `name` is complete: what was counted since the last one was `times` operations. Prints both. */
void cost_figure_end(const char *name, unsigned times);

/* Numbers that look random and are the same in every run. */
uint64_t cost_number(uint64_t *state);

void cost_records(void);    /* TLS records, sealed and opened */
void cost_handshakes(void); /* mutual TLS 1.3, each side */
void cost_requests(void);   /* HBONE requests over HTTP/2, each side */
void cost_mesh(void);       /* routing by what a silo knows, policies, cutting a view */
void cost_xds(void);        /* a store is filled by the control plane, and kept up to date */

#endif

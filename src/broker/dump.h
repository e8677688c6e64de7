/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The config dump, in upstream's schema (reference control.md 11.5): the mesh, and what the silos say of
 * themselves. */
#ifndef CULVERT_BROKER_DUMP_H
#define CULVERT_BROKER_DUMP_H

struct broker;
struct web_conn;

/* Answers with the dump once all silos have told their state, or their time is up. */
void dump_serve(struct broker *broker, struct web_conn *conn);

#endif

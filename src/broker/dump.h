/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The config dump, in upstream's schema (reference control.md 11.5): the mesh, the settings, and what the
 * silos say of themselves. Written piece by piece as the client reads: a mesh of any size costs the keys of
 * one kind of records and one piece. */
#ifndef CULVERT_BROKER_DUMP_H
#define CULVERT_BROKER_DUMP_H

struct broker;
struct web_conn;

/* Dumps under way at once; one more is answered 503. */
#define DUMPS_MAX 4

/* Answers with the dump once all silos have told their state, or their time is up. */
void dump_serve(struct broker *broker, struct web_conn *conn);

/*
 * Answers with the short dump of /culvert/state: certificates, version and workloadState as there, and
 * `health` with isReady and pending, what 15021 says.
 */
void dump_serve_state(struct broker *broker, struct web_conn *conn);

#endif

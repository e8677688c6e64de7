/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * `/culvert/explain?from=POD&to=NAME-OR-IP&port=N`: what would become of a connection, by the same pure
 * functions that silos use, over the store. Nothing is connected and nothing resolved.
 *
 *     {
 *       "from": {"name", "namespace", "identity", "address", "node", "isLocal", "isCaptured"},
 *       "to": {"asked", "address", "service", "workload"},     service namespace/hostname or null; workload
 *                                                              name.namespace or null
 *       "route": {"kind", "connectTo", "authority", "workload", "service", "isWaypoint", "endpoints",
 *                 "peerIdentities", "innerIdentities"},        null when the connection is refused
 *       "error": text or null,                                 why it is refused before anything is dialled
 *       "policy": {"isJudged", "isAllowed", "decidedBy", "reason", "checked"},
 *       "observer": text
 *     }
 *
 * kind: passthrough, tcp, hbone, doublehbone. endpoints: how many the service offers to this workload, of
 * which chance takes one. isJudged false: nobody on this way is known to check, reason says why. checked:
 * policies looked at. observer: what somebody who sees the wire between the two sees.
 *
 * from: name, name.namespace or namespace/name of a pod, or its address. to: an address, a name as DNS in
 * that pod has it, or a pod as for from. Unknown: 404; ambiguous or malformed: 400.
 */
#ifndef CULVERT_BROKER_EXPLAIN_H
#define CULVERT_BROKER_EXPLAIN_H

struct broker;
struct http_request;
struct web_conn;

/* Path of the endpoint. */
#define EXPLAIN_PATH "/culvert/explain"

/* Serves one request. */
void explain_serve(struct broker *broker, struct web_conn *conn, const struct http_request *request);

#endif

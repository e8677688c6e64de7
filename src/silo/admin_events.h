/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * `/events` of the pod's admin socket: the flight recorder as JSON.
 *
 *     GET /events[?after=SEQ][&wait=MS]
 *
 * Events behind SEQ (all without it), oldest first. With `wait` an empty answer is held back until there is
 * an event, at most MS milliseconds (10,000 is the most; more counts as that). A SEQ above the last one is of
 * an earlier silo: all events are shown. A number that is none: 400.
 *
 *     {
 *       "events": [
 *         {
 *           "seq": 17,                                  from 1, without gaps, for the life of the silo
 *           "time": "2026-11-21T08:00:00.123456Z",      when the connection came
 *           "direction": "outbound",                    or "inbound"
 *           "protocol": "HBONE",                        or "DOUBLEHBONE", "TCP"
 *           "src": "10.0.0.1:51234",
 *           "originalDst": "10.0.0.2:8080",             what the client dialled; our 15008 for HBONE inbound
 *           "actualDst": "10.0.0.2:15008",              where its way led; null when it led nowhere
 *           "peerIdentity": "spiffe://...",             null without a tunnel
 *           "attempts": 1,                              endpoints tried
 *           "phases": {                                 microseconds; null = the connection had no such phase
 *             "lookup": 85, "policy": null, "certificate": 3, "tcp": 210, "tls": 1900, "connect": 400,
 *             "firstByte": 350
 *           },
 *           "durationMicroseconds": 5123,               until it was over
 *           "sent": 78, "received": 152,                bytes, as in the access log
 *           "closedBy": "client",                       or "server", "proxy": who ended it first
 *           "closeReason": "end",                       or reset, error, refused, drain, policy, revoked
 *           "flags": "-",                               the metric's response_flags
 *           "error": null                               the access log's words
 *         }
 *       ],
 *       "lastSeq": 17,                                  0 = none yet; the next `after`
 *       "missed": 0                                     events behind SEQ that are no longer held
 *     }
 *
 * Keys may be added. An event is entered when its connection is over; open ones are at /connections.
 */
#ifndef CULVERT_SILO_ADMIN_EVENTS_H
#define CULVERT_SILO_ADMIN_EVENTS_H

struct http_request;
struct silo;
struct web_conn;

/* The longest `wait`, ms: shorter than what clients give an idle connection. */
#define ADMIN_EVENTS_WAIT_MAX 10000

/* Serves one request. */
void admin_events_serve(struct silo *silo, struct web_conn *conn, const struct http_request *request);

#endif

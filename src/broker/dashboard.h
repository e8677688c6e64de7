/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The page that shows the node's pods in a browser: three files that the build
 * puts into the program (src/broker/dashboard/). What the page shows it asks
 * for itself, at /culvert/pods, /culvert/state and /culvert/metrics.
 */
#ifndef CULVERT_BROKER_DASHBOARD_H
#define CULVERT_BROKER_DASHBOARD_H

struct http_request;
struct web_conn;

/* Serves /culvert/, /culvert/dashboard.css and /culvert/dashboard.js; `ctx` is not looked at. */
void dashboard_serve(void *ctx, struct web_conn *conn, const struct http_request *request);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The broker's endpoints: readiness on 15021, admin on 15000 of loopback and on the unix socket. Tables for
 * web.h. */
#ifndef CULVERT_BROKER_ADMIN_H
#define CULVERT_BROKER_ADMIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct broker;
struct web;
struct web_route;

/* File name of the admin socket in the run directory. */
#define ADMIN_SOCKET "admin.sock"
/* Readiness port (reference control.md 3.8); fixed. */
#define ADMIN_READINESS_PORT 15021

/* Starts the servers. 0 or a negative errno with text ("readiness server starts: ..."). */
int admin_start(struct broker *broker, struct err *err);

/* Stops to listen; requests under way are still answered. */
void admin_drain(struct broker *broker);

/* Stops everything. */
void admin_stop(struct broker *broker);

/* Listens on a TCP port of every address, dual stack where there is IPv6; waits a little for a killed
 * predecessor's socket to go. 0 or a negative errno. */
int admin_listen(uint16_t port, bool has_v6, int *ret_fd);

/* Serves on a listening socket, which is taken over in any case, and says so under the component's name. 0 or
 * -ENOMEM. */
int admin_serve(struct broker *broker, int fd, const char *component, const struct web_route *routes,
        size_t cnt, struct web **ret_web);

/* web_drain(), and says so. NULL is fine. */
void admin_end(struct broker *broker, struct web *web, const char *component);

#endif

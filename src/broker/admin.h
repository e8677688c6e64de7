/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The broker's endpoints: readiness on 15021, culvert's own paths on the unix socket. Tables for web.h. */
#ifndef CULVERT_BROKER_ADMIN_H
#define CULVERT_BROKER_ADMIN_H

#include "base/err.h"

struct broker;

/* File name of the admin socket in the run directory. */
#define ADMIN_SOCKET "admin.sock"
/* Readiness port (reference control.md 3.8); fixed. */
#define ADMIN_READINESS_PORT 15021

/* Starts both servers. 0 or a negative errno with text ("readiness server starts: ..."). */
int admin_start(struct broker *broker, struct err *err);

/* Stops both. */
void admin_stop(struct broker *broker);

#endif

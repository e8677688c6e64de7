/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The broker's side of the channel to the warden: listens on broker.sock, the
 * newest warden counts; silos' channels and the node's state come in, the gate
 * for ZDS goes out.
 */
#ifndef CULVERT_BROKER_WARDEN_H
#define CULVERT_BROKER_WARDEN_H

#include <stdbool.h>

#include "base/err.h"

struct broker;
struct warden;

/* File name of the listening socket in the run directory. */
#define WARDEN_SOCKET "broker.sock"

/* Listens in the run directory. 0 or a negative errno with text. */
int warden_new(struct broker *broker, struct warden **ret_warden, struct err *err);

/* Closes listener and channel. NULL is fine. */
void warden_free(struct warden *warden);

/* Tells the warden whether the mesh state is complete; harmless without one. */
void warden_tell_mesh(struct warden *warden, bool is_complete);

/* Asks the warden to end the daemon (quitquitquit); harmless without one. */
void warden_ask_stop(struct warden *warden);

/* Frees the list of pods. */
void pods_done(struct broker *broker);

/* Tells the warden the log filter in force. */
void warden_set_log(struct warden *warden);

#endif

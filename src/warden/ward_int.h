/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What ward.c and ward_open.c share; for nobody else. */
#ifndef CULVERT_WARDEN_WARD_INT_H
#define CULVERT_WARDEN_WARD_INT_H

#include "warden/ward.h"

/* An empty ward; NULL when out of memory. */
struct ward *ward_new(const struct ward_env *env, const struct ward_events *events, void *owner);

/* Sets the one timer of the ward: what it means follows from its state. */
void ward_set_timer(struct ward *ward, uint64_t delay_ms);

/* Sends a signal to the process, if it is known. */
void ward_signal(struct ward *ward, int number);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which addresses this network namespace has: the second lock on identity (design 2). */
#ifndef CULVERT_SILO_NETIF_H
#define CULVERT_SILO_NETIF_H

#include <stdbool.h>
#include <stddef.h>

#include "base/addr.h"

/*
 * Whether one of the `cnt` addresses is on an interface of this process's
 * network namespace. False also when the kernel cannot be asked: who cannot
 * prove it is not let in.
 */
bool netif_has_any(const struct ip *ips, size_t cnt);

#endif

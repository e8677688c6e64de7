/* SPDX-License-Identifier: GPL-2.0-only */
/* The only libnftables. For the short-lived child of job.c, which is in the pod's namespace. */
#ifndef CULVERT_CNI_AGENT_NFT_H
#define CULVERT_CNI_AGENT_NFT_H

#include "base/err.h"

/* Runs commands as one transaction in the namespace of the caller: all or nothing. -EIO with nft's own words,
 * -ENOMEM. */
int nft_run(const char *commands, struct err *err);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The lists that istioctl makes of a config dump: which records, in which
 * order, with which columns (reference istiod-istioctl.md A.5), and the same
 * as JSON or YAML. Knows neither daemons nor files.
 */
#ifndef CULVERT_CTL_LISTING_H
#define CULVERT_CTL_LISTING_H

#include <stdint.h>

#include "ctl/ctl.h"
#include "ctl/dump.h"

/* The lists. */
enum listing {
	LISTING_WORKLOAD,
	LISTING_SERVICE,
	LISTING_POLICY,
	LISTING_CERTIFICATE,
	LISTING_CONNECTIONS,
	LISTING_CNT,
};

/*
 * Prints a list with the filters and the form of the call. now_s: seconds since 1970, for the validity of
 * certificates. 0; -ESRCH when --pod names nothing in it; other codes with text.
 */
int listing_print(
        const struct dump *dump, const struct ctl *ctl, enum listing listing, int64_t now_s, struct err *err);

/* Prints the heading that `all --with-headers` puts above a list. */
void listing_heading(FILE *out, enum listing listing);

/* Whether --pod's text means the pod: its name, name.namespace or namespace/name. */
bool listing_is_pod(const char *text, const char *name, const char *ns);

#endif

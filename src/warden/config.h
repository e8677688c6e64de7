/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ProxyConfig for a process that reads no YAML: where there is one, the
 * broker's program is run once to turn it into environment variables, before
 * anybody reads settings. Knows neither keys nor their meaning.
 */
#ifndef CULVERT_WARDEN_CONFIG_H
#define CULVERT_WARDEN_CONFIG_H

#include "base/err.h"

/*
 * Puts the variables into our own environment, which warden, broker and silos
 * inherit. Variables that are set already stay. Nothing is run when neither
 * PROXY_CONFIG nor the mesh config file is there (reference control.md 3.3).
 * -errno with text, or -ECANCELED when the program has said on stderr what is
 * wrong.
 */
int config_apply(struct err *err);

#endif

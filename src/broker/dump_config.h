/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The settings and the version as members of the config dump (reference control.md 11.5): all keys of
 * upstream, as upstream would show the same environment. */
#ifndef CULVERT_BROKER_DUMP_CONFIG_H
#define CULVERT_BROKER_DUMP_CONFIG_H

#include "base/json.h"
#include "base/param.h"

/* The members of `config`, without the brackets. 0 or -ENOMEM. */
int dump_config(struct json *json, const struct settings *settings);

/* The members of `version`. */
void dump_version(struct json *json, const struct settings *settings);

#endif

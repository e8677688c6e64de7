/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ProxyConfig (reference control.md 3.3): the mesh config file and
 * PROXY_CONFIG, merged and given out as environment variables, which is the
 * one form of settings that every process of culvert reads. Runs before
 * anything else, in a process of its own, because YAML is read nowhere else.
 */
#ifndef CULVERT_BROKER_CONFIG_H
#define CULVERT_BROKER_CONFIG_H

#include "base/buf.h"
#include "base/err.h"

/* Argument that makes culvert-broker print the variables and end. */
#define CONFIG_ARGUMENT "--print-config"

/* Ceiling of what is printed. */
#define CONFIG_TEXT_MAX (2u << 20)

/* The mesh config file, relative to the working directory as upstream's. */
#define CONFIG_MESH_PATH "./etc/istio/config/mesh"

/*
 * Appends "NAME=value" with a zero byte behind each, for settings_load:
 * CULVERT_DISCOVERY_ADDRESS, _ADMIN_PORT, _STATS_PORT, _CONCURRENCY and
 * CULVERT_META_<key>. mesh_path: file that may be missing; proxy_config: YAML
 * or JSON text, NULL or "" = none. -EINVAL or -errno with text.
 */
int config_print(const char *mesh_path, const char *proxy_config, struct buf *out, struct err *err);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads both sources into one set of pairs, the later one winning, and prints it; see config.h. */
#include "broker/config.h"

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "culvert/limits.h"
#include "yaml/yaml.h"

/* All texts together; the environment takes no more either. */
#define CONFIG_ARENA_MAX (1u << 20)

/* The prefix that keys of proxyMetadata may have and lose. */
static const char META_PREFIX[] = "ISTIO_META_";

/* One variable. */
struct pair {
	const char *name;
	const char *value;
};

/* What is gathered; names are unique. */
struct config {
	struct arena *arena;
	struct pair pairs[LIMIT_SETTINGS_PAIRS];
	size_t cnt;
};

static int set(struct config *config, const struct yaml_node *node, const char *name, const char *value,
        struct err *err)
{
	size_t i = 0;
	char *copy = name ? arena_strdup(config->arena, value) : NULL;

	if (!copy)
		return err_set(err, -ENOMEM, "out of memory");
	while (i < config->cnt && strcmp(config->pairs[i].name, name) != 0)
		i++;
	if (i == LIMIT_SETTINGS_PAIRS)
		return yaml_error(node, err, "more than %d entries", LIMIT_SETTINGS_PAIRS);
	config->pairs[i] = (struct pair){name, copy};
	if (i == config->cnt)
		config->cnt++;
	return 0;
}

static int read_text(struct config *config, const struct yaml_node *node, const char *name, struct err *err)
{
	const char *text;
	int rc = node ? yaml_str(node, &text, err) : 0;
	return rc < 0 || !node ? rc : set(config, node, name, text, err);
}

static int read_u16(struct config *config, const struct yaml_node *node, const char *name, struct err *err)
{
	uint64_t value = 0;
	int rc = node ? yaml_u64(node, UINT16_MAX, &value, err) : 0;
	if (rc < 0 || !node)
		return rc;
	const char *text = arena_printf(config->arena, "%u", (unsigned)value);
	return text ? set(config, node, name, text, err) : err_set(err, -ENOMEM, "out of memory");
}

/* Keys lose upstream's prefix; what has none is kept all the same (control.md 18, 10). */
static int read_metadata(struct config *config, const struct yaml_node *map, struct err *err)
{
	int rc = 0;

	if (yaml_kind(map) != YAML_MAP)
		return yaml_error(map, err, "expected a map");
	for (const struct yaml_node *it = yaml_first(map); rc == 0 && it; it = yaml_next(it)) {
		const char *key, *value;
		rc = yaml_str(it, &key, err);
		if (rc == 0)
			rc = yaml_str(yaml_value(it), &value, err);
		if (rc < 0)
			return rc;
		if (strncmp(key, META_PREFIX, sizeof(META_PREFIX) - 1) == 0)
			key += sizeof(META_PREFIX) - 1;
		if (strchr(key, '='))
			return yaml_error(it, err, "a key with = cannot be handed on");
		rc = set(config, it, arena_printf(config->arena, "CULVERT_META_%s", key), value, err);
	}
	return rc;
}

static int read_proxy_config(struct config *config, const struct yaml_node *root, struct err *err)
{
	static const struct yaml_key keys[] = {
	        {"discoveryAddress", false},
	        {"proxyAdminPort", false},
	        {"statsPort", false},
	        {"concurrency", false},
	        {"proxyMetadata", false},
	};
	const struct yaml_node *values[5];
	int rc = yaml_map(root, keys, 5, true, values, err);

	if (rc == 0 && !values[4])
		rc = yaml_error(root, err, "missing field `proxyMetadata`");
	if (rc == 0)
		rc = read_text(config, values[0], "CULVERT_DISCOVERY_ADDRESS", err);
	if (rc == 0)
		rc = read_u16(config, values[1], "CULVERT_ADMIN_PORT", err);
	if (rc == 0)
		rc = read_u16(config, values[2], "CULVERT_STATS_PORT", err);
	if (rc == 0)
		rc = read_u16(config, values[3], "CULVERT_CONCURRENCY", err);
	return rc < 0 ? rc : read_metadata(config, values[4], err);
}

/* Of the mesh config only defaultConfig is ours. */
static int read_mesh(struct config *config, const char *path, struct err *err)
{
	struct yaml_doc *doc;
	int rc = yaml_load(path, NULL, &doc, err);

	if (rc == -ENOENT)
		return 0;
	if (rc < 0)
		return rc;
	const struct yaml_node *root = yaml_root(doc);
	if (yaml_kind(root) != YAML_NULL && yaml_kind(root) != YAML_MAP)
		rc = yaml_error(root, err, "expected a map");
	const struct yaml_node *ours = yaml_get(root, "defaultConfig");
	if (rc == 0 && yaml_kind(ours) != YAML_NULL)
		rc = read_proxy_config(config, ours, err);
	yaml_doc_free(doc);
	return rc;
}

static int read_env(struct config *config, const char *text, struct err *err)
{
	struct yaml_doc *doc;
	int rc = yaml_parse("PROXY_CONFIG", text, strlen(text), NULL, &doc, err);

	if (rc < 0)
		return rc;
	rc = read_proxy_config(config, yaml_root(doc), err);
	yaml_doc_free(doc);
	return rc;
}

int config_print(const char *mesh_path, const char *proxy_config, struct buf *out, struct err *err)
{
	struct config config = {.arena = arena_new(CONFIG_ARENA_MAX)};
	int rc = config.arena ? read_mesh(&config, mesh_path, err) : err_set(err, -ENOMEM, "out of memory");

	if (rc == 0 && proxy_config && proxy_config[0])
		rc = read_env(&config, proxy_config, err);
	for (size_t i = 0; rc == 0 && i < config.cnt; i++) {
		const struct pair *p = &config.pairs[i];
		rc = buf_printf(out, "%s=%s", p->name, p->value);
		if (rc == 0)
			rc = buf_add_u8(out, 0);
		if (rc < 0)
			err_set(err, rc, "too large");
	}
	if (rc < 0)
		err_wrap(err, "error parsing proxy config");
	arena_unref(config.arena);
	return rc;
}

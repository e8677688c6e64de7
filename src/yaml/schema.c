/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Accessors that check while they read and say where something is wrong:
 * file, line and path of keys. Knows the tree, not libyaml.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "yaml/yaml_int.h"

/* Depth of a path that is printed; deeper nodes don't exist (YAML_DEPTH_MAX). */
#define PATH_DEPTH (2 * YAML_DEPTH_MAX + 8)
/* Bytes of a path in a message; longer ones are cut so that the text behind still fits. */
#define PATH_TEXT_MAX 256

enum yaml_kind yaml_kind(const struct yaml_node *node)
{
	return node ? (enum yaml_kind)node->kind : YAML_NULL;
}

unsigned yaml_line(const struct yaml_node *node)
{
	return node->line;
}

const char *yaml_tag(const struct yaml_node *node)
{
	return node->tag;
}

size_t yaml_cnt(const struct yaml_node *node)
{
	return node ? node->cnt : 0;
}

const struct yaml_node *yaml_first(const struct yaml_node *node)
{
	enum yaml_kind kind = yaml_kind(node);
	return kind == YAML_LIST || kind == YAML_MAP ? node->first : NULL;
}

const struct yaml_node *yaml_next(const struct yaml_node *node)
{
	return node->place == YAML_IS_KEY ? node->next->next : node->next;
}

const struct yaml_node *yaml_value(const struct yaml_node *key)
{
	return key->next;
}

const struct yaml_node *yaml_get(const struct yaml_node *map, const char *key)
{
	if (yaml_kind(map) != YAML_MAP)
		return NULL;
	for (const struct yaml_node *k = yaml_first(map); k; k = yaml_next(k)) {
		if (strcmp(k->text, key) == 0)
			return yaml_value(k);
	}
	return NULL;
}

/* The node that stands above in a path: a value's key is part of its own step. */
static const struct yaml_node *above(const struct yaml_node *node)
{
	const struct yaml_node *up = node->up;
	return up && node->place == YAML_IS_VALUE ? up->up : up;
}

/* Prints the path of a node; returns the topmost node. */
static const struct yaml_node *print_path(const struct yaml_node *node, char *dst, size_t cap)
{
	const struct yaml_node *steps[PATH_DEPTH];
	size_t cnt = 0, at = 0;

	while (above(node) && cnt < PATH_DEPTH) {
		steps[cnt++] = node;
		node = above(node);
	}
	dst[0] = 0;
	while (cnt-- > 0 && at < cap) {
		const struct yaml_node *s = steps[cnt];
		const char *key = s->place == YAML_IS_VALUE ? s->up->text : s->text;
		int n = s->place == YAML_IN_LIST ? snprintf(dst + at, cap - at, "[%u]", s->index)
		                                 : snprintf(dst + at, cap - at, "%s%s", at ? "." : "", key);
		at += n > 0 ? (size_t)n : 0;
	}
	return node;
}

int yaml_error(const struct yaml_node *node, struct err *err, const char *fmt, ...)
{
	char path[PATH_TEXT_MAX], text[ERR_TEXT_MAX];
	const struct yaml_node *top = print_path(node, path, sizeof(path));
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return err_set(err, -EINVAL, "%s:%u: %s%s%s", top->file, node->line, path, path[0] ? ": " : "", text);
}

static const char *kind_name(const struct yaml_node *node)
{
	static const char *const names[] = {"nothing", "a text", "a list", "a map"};
	return names[yaml_kind(node)];
}

static int wrong_kind(const struct yaml_node *node, const char *expected, struct err *err)
{
	return yaml_error(node, err, "%s is expected, found %s", expected, kind_name(node));
}

static int check_keys(const struct yaml_node *node, const struct yaml_key *keys, size_t key_cnt,
        const struct yaml_node **ret_values, bool ignore_unknown, struct err *err)
{
	for (const struct yaml_node *k = yaml_first(node); k; k = yaml_next(k)) {
		size_t i = 0;
		while (i < key_cnt && strcmp(keys[i].name, k->text) != 0)
			i++;
		if (i < key_cnt) {
			if (yaml_kind(yaml_value(k)) != YAML_NULL)
				ret_values[i] = yaml_value(k);
		} else if (!ignore_unknown) {
			return yaml_error(k, err, "unknown key");
		}
	}
	return 0;
}

int yaml_map(const struct yaml_node *node, const struct yaml_key *keys, size_t key_cnt, bool ignore_unknown,
        const struct yaml_node **ret_values, struct err *err)
{
	if (yaml_kind(node) != YAML_MAP)
		return wrong_kind(node, "a map", err);
	for (size_t i = 0; i < key_cnt; i++)
		ret_values[i] = NULL;
	int rc = check_keys(node, keys, key_cnt, ret_values, ignore_unknown, err);
	if (rc < 0)
		return rc;
	for (size_t i = 0; i < key_cnt; i++) {
		if (keys[i].is_required && !ret_values[i])
			return yaml_error(node, err, "missing key `%s`", keys[i].name);
	}
	return 0;
}

int yaml_list(const struct yaml_node *node, struct err *err)
{
	return yaml_kind(node) == YAML_LIST ? 0 : wrong_kind(node, "a list", err);
}

int yaml_str(const struct yaml_node *node, const char **ret_text, struct err *err)
{
	if (yaml_kind(node) != YAML_SCALAR)
		return wrong_kind(node, "a text", err);
	*ret_text = node->text;
	return 0;
}

int yaml_bool(const struct yaml_node *node, bool *ret_value, struct err *err)
{
	if (yaml_kind(node) == YAML_SCALAR && node->is_plain) {
		if (strcmp(node->text, "true") == 0 || strcmp(node->text, "false") == 0) {
			*ret_value = node->text[0] == 't';
			return 0;
		}
	}
	return yaml_error(node, err, "true or false is expected");
}

int yaml_u64(const struct yaml_node *node, uint64_t max, uint64_t *ret_value, struct err *err)
{
	if (yaml_kind(node) == YAML_SCALAR && (node->is_plain || node->place == YAML_IS_KEY) &&
	        num_parse(node->text, strlen(node->text), max, ret_value) == 0)
		return 0;
	return yaml_error(node, err, "a number from 0 to %llu is expected", (unsigned long long)max);
}

int yaml_enum(const struct yaml_node *node, const struct yaml_word *words, int *ret_value, struct err *err)
{
	char list[200] = "";
	size_t at = 0;

	for (const struct yaml_word *w = words; w->text; w++) {
		if (yaml_kind(node) == YAML_SCALAR && strcmp(node->text, w->text) == 0) {
			*ret_value = w->value;
			return 0;
		}
		if (at < sizeof(list)) {
			int n = snprintf(list + at, sizeof(list) - at, "%s%s", at ? ", " : "", w->text);
			at += n > 0 ? (size_t)n : 0;
		}
	}
	return yaml_error(node, err, "one of %s is expected", list);
}

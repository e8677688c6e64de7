/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Any bytes as YAML: the tree is walked completely, every accessor is tried on every node. */
#include <stdint.h>
#include <stdlib.h>

#include "yaml/yaml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void walk(const struct yaml_node *node)
{
	static const struct yaml_word words[] = {{"a", 1}, {"b", 2}, {NULL, 0}};
	struct err err = {0};
	const char *text;
	bool flag;
	uint64_t number;
	int word;
	size_t cnt = 0;

	if (yaml_str(node, &text, &err) < 0 && err.text[0] == 0)
		abort();
	(void)yaml_bool(node, &flag, &err);
	(void)yaml_u64(node, 65535, &number, &err);
	(void)yaml_enum(node, words, &word, &err);
	(void)yaml_tag(node);
	for (const struct yaml_node *it = yaml_first(node); it; it = yaml_next(it)) {
		cnt++;
		walk(it);
		if (yaml_kind(node) == YAML_MAP)
			walk(yaml_value(it));
	}
	if (cnt != yaml_cnt(node))
		abort();
}

static int on_item(void *ctx, const struct yaml_node *item, struct err *err)
{
	walk(item);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static const struct yaml_limits limits = {.text_max = 65536, .node_max = 2000, .depth_max = 20};
	static const struct yaml_section sections[] = {
	        {"workloads", on_item}, {"services", on_item}, {"a", on_item}};
	struct yaml_doc *doc;
	struct err err = {0};

	if (yaml_parse("fuzz", (const char *)data, len, &limits, &doc, &err) == 0) {
		walk(yaml_root(doc));
		yaml_doc_free(doc);
	} else if (err.text[0] == 0) {
		abort();
	}
	(void)yaml_stream("fuzz", (const char *)data, len, &limits, sections, 3, NULL, &err);
	return 0;
}

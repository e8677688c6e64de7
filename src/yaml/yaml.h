/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Strict reader of YAML configuration, the only user of libyaml: a text
 * becomes a tree, and accessors check it against a schema, naming the file,
 * the line and the key of the first thing that is wrong. Knows no schema
 * itself.
 */
#ifndef CULVERT_YAML_YAML_H
#define CULVERT_YAML_YAML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* Ceilings of one document. 0 = the default beside each. */
struct yaml_limits {
	size_t text_max;  /* bytes of text; 1 MiB */
	size_t node_max;  /* nodes, those behind an alias counted each time; 100,000 */
	size_t depth_max; /* nesting; 32 */
};

/* Nesting is never deeper than this, whatever the limits say: parsing is recursive. */
#define YAML_DEPTH_MAX 200

/* What a node is. */
enum yaml_kind {
	YAML_NULL = 0, /* nothing, or plain `null` or `~` */
	YAML_SCALAR,
	YAML_LIST,
	YAML_MAP,
};

struct yaml_doc;  /* a parsed document; opaque */
struct yaml_node; /* a node; lives and dies with its document; opaque */

/*
 * Parses exactly one document (none = empty). `file` is the name used in
 * messages; it is copied. Refused: invalid UTF-8 and NUL, a second document, duplicate
 * keys in a map, keys that are no scalars, an alias inside its own anchor,
 * anything above a ceiling. 0, -EINVAL, -E2BIG or -ENOMEM with text.
 */
int yaml_parse(const char *file, const char *text, size_t len, const struct yaml_limits *limits,
        struct yaml_doc **ret_doc, struct err *err);

/* Reads a file and parses it. Errors of reading as well. */
int yaml_load(const char *path, const struct yaml_limits *limits, struct yaml_doc **ret_doc, struct err *err);

/* Frees the document and all nodes. NULL is fine. */
void yaml_doc_free(struct yaml_doc *doc);

/* One list under a top-level key, for yaml_stream. */
struct yaml_section {
	const char *name; /* of the key */
	/* Takes one element, which is gone when it returns; an error ends the reading. */
	int (*item)(void *ctx, const struct yaml_node *item, struct err *err);
};

/*
 * Reads a document whose top is a map of lists, all optional, element by
 * element, so that memory does not grow with their number: limits->node_max
 * counts for one element. An unknown key is an error; lists come in the order
 * of the text. Anchors are known within one element only. Errors as
 * yaml_parse, and whatever an item function returns.
 */
int yaml_stream(const char *file, const char *text, size_t len, const struct yaml_limits *limits,
        const struct yaml_section *sections, size_t section_cnt, void *ctx, struct err *err);

/* The top node; YAML_NULL for an empty document. Never NULL. */
const struct yaml_node *yaml_root(const struct yaml_doc *doc);

/* Kind of a node; NULL counts as YAML_NULL. */
enum yaml_kind yaml_kind(const struct yaml_node *node);

/* Line, from 1. */
unsigned yaml_line(const struct yaml_node *node);

/* Local tag with its exclamation mark ("!Exact"), or "" when the node has none. Tags of the YAML core
 * ("!!str") are "". */
const char *yaml_tag(const struct yaml_node *node);

/* Children of a list or map; 0 for other kinds. */
size_t yaml_cnt(const struct yaml_node *node);

/* First element of a list, or first key of a map; NULL when there is none. */
const struct yaml_node *yaml_first(const struct yaml_node *node);

/* The next element, or the next key; NULL at the end. */
const struct yaml_node *yaml_next(const struct yaml_node *node);

/* The value of a key that yaml_first or yaml_next gave. */
const struct yaml_node *yaml_value(const struct yaml_node *key);

/* The value under that key of a map, or NULL; NULL for other kinds too. */
const struct yaml_node *yaml_get(const struct yaml_node *map, const char *key);

/*
 * Sets "file:line: path: text" for a node, path being like
 * services[3].vips[0] (absent at the top). Returns -EINVAL.
 */
int yaml_error(const struct yaml_node *node, struct err *err, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));

/* One key that a map may have. */
struct yaml_key {
	const char *name;
	bool is_required; /* absence is an error; a null value counts as absent */
};

/*
 * Demands that `node` is a map without other keys than these (others are
 * passed over when ignore_unknown) and with all required ones. ret_values[i] is
 * the value of keys[i], NULL when absent or null. 0 or -EINVAL.
 */
int yaml_map(const struct yaml_node *node, const struct yaml_key *keys, size_t key_cnt, bool ignore_unknown,
        const struct yaml_node **ret_values, struct err *err);

/* Demands a list. 0 or -EINVAL. */
int yaml_list(const struct yaml_node *node, struct err *err);

/* Demands a scalar with any text; *ret_text lives with the document. 0 or -EINVAL. */
int yaml_str(const struct yaml_node *node, const char **ret_text, struct err *err);

/* Demands plain true or false. */
int yaml_bool(const struct yaml_node *node, bool *ret_value, struct err *err);

/* Demands a decimal number of at most max; keys of maps may be quoted, as JSON demands. */
int yaml_u64(const struct yaml_node *node, uint64_t max, uint64_t *ret_value, struct err *err);

/* One word of an enumeration. */
struct yaml_word {
	const char *text;
	int value;
};

/* Demands one of the words (array ended by text NULL), upper and lower case told apart; the message lists
 * them. */
int yaml_enum(const struct yaml_node *node, const struct yaml_word *words, int *ret_value, struct err *err);

#endif

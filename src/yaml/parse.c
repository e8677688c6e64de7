/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * libyaml's events become a tree in an arena, or, element by element, a
 * stream of small trees. All ceilings are enforced here: text, depth, nodes
 * (those behind an alias counted each time, which stops "billion laughs").
 */
#include "yaml/yaml.h"

#include <errno.h>
#include <string.h>
#include <yaml.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/map.h"
#include "base/mem.h"
#include "yaml/yaml_int.h"

#define TEXT_MAX (1u << 20)
#define NODE_MAX 100000u
#define DEPTH_MAX 32u
/* Maps up to this size are compared pair by pair; larger ones through a table. */
#define SMALL_MAP 16u
/* A core tag, as libyaml spells it out. */
#define CORE_TAG "tag:yaml.org,2002:"

struct yaml_doc {
	struct arena *arena;
	const struct yaml_node *root;
};

/* A finished node with a name. */
struct anchor {
	const char *name;
	const struct yaml_node *node;
	size_t nodes; /* in it, itself included */
};

/* A parse under way. */
struct parser {
	yaml_parser_t lib;
	yaml_event_t event;
	bool has_event;
	const char *file;
	struct yaml_limits limits;
	struct arena *arena; /* of the tree being built */
	struct map anchors;  /* struct anchor, in the arena */
	size_t node_cnt;
	size_t depth;
	struct err *err;
};

static struct map_key anchor_key(const void *item)
{
	return map_key_str(((const struct anchor *)item)->name);
}

static int fail(struct parser *p, size_t line, int code, const char *text)
{
	return err_set(p->err, code, "%s:%zu: %s", p->file, line + 1, text);
}

static int no_memory(struct parser *p)
{
	return err_set(p->err, -ENOMEM, "%s: %s", p->file, err_str(-ENOMEM));
}

static int parser_init(struct parser *p, const char *file, const char *text, size_t len,
        const struct yaml_limits *limits, struct err *err)
{
	*p = (struct parser){.file = file, .err = err};
	if (limits)
		p->limits = *limits;
	if (p->limits.text_max == 0)
		p->limits.text_max = TEXT_MAX;
	if (p->limits.node_max == 0)
		p->limits.node_max = NODE_MAX;
	if (p->limits.depth_max == 0)
		p->limits.depth_max = DEPTH_MAX;
	if (p->limits.depth_max > YAML_DEPTH_MAX)
		p->limits.depth_max = YAML_DEPTH_MAX;
	map_init(&p->anchors, p->limits.node_max, anchor_key);
	if (len > p->limits.text_max)
		return err_set(err, -E2BIG, "%s: more than %zu bytes", file, p->limits.text_max);
	if (!yaml_parser_initialize(&p->lib))
		return no_memory(p);
	yaml_parser_set_encoding(&p->lib, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&p->lib, (const unsigned char *)text, len);
	return 0;
}

static void parser_done(struct parser *p)
{
	if (p->has_event)
		yaml_event_delete(&p->event);
	yaml_parser_delete(&p->lib);
	map_done(&p->anchors);
}

/* Moves to the next event. */
static int next(struct parser *p)
{
	if (p->has_event)
		yaml_event_delete(&p->event);
	p->has_event = false;
	if (!yaml_parser_parse(&p->lib, &p->event)) {
		if (p->lib.error == YAML_MEMORY_ERROR)
			return no_memory(p);
		size_t line = p->lib.error == YAML_READER_ERROR ? p->lib.mark.line : p->lib.problem_mark.line;
		return fail(p, line, -EINVAL, p->lib.problem ? p->lib.problem : "not valid YAML");
	}
	p->has_event = true;
	return 0;
}

static size_t line_of(const struct parser *p)
{
	return p->event.start_mark.line;
}

static int count_nodes(struct parser *p, size_t cnt)
{
	if (cnt > p->limits.node_max - p->node_cnt)
		return fail(p, line_of(p), -E2BIG, "too many nodes");
	p->node_cnt += cnt;
	return 0;
}

static bool is_null_text(const char *text)
{
	static const char *const words[] = {"", "~", "null", "Null", "NULL"};
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcmp(text, words[i]) == 0)
			return true;
	}
	return false;
}

/* Sets tag from an event; core tags say nothing new and vanish. */
static int set_tag(struct parser *p, const yaml_char_t *tag, struct yaml_node *node)
{
	const char *text = (const char *)tag;

	node->tag = "";
	if (!text || strcmp(text, "!") == 0 || strncmp(text, CORE_TAG, strlen(CORE_TAG)) == 0)
		return 0;
	node->tag = arena_strdup(p->arena, text);
	return node->tag ? 0 : no_memory(p);
}

static int set_anchor(struct parser *p, const char *name, const struct yaml_node *node, size_t nodes)
{
	struct anchor *a = arena_zalloc(p->arena, 1, sizeof(*a));
	void *old;

	if (!a)
		return no_memory(p);
	*a = (struct anchor){.name = name, .node = node, .nodes = nodes};
	/* A later anchor of the same name takes over (YAML 1.2, 3.2.2.2). */
	return map_put(&p->anchors, a, &old) < 0 ? no_memory(p) : 0;
}

/* The name of an event's anchor copied into the arena, or NULL. */
static int take_anchor(struct parser *p, const yaml_char_t *name, const char **ret_name)
{
	*ret_name = NULL;
	if (!name)
		return 0;
	*ret_name = arena_strdup(p->arena, (const char *)name);
	return *ret_name ? 0 : no_memory(p);
}

static int build_scalar(struct parser *p, struct yaml_node *node)
{
	size_t len = p->event.data.scalar.length;
	const char *text = (const char *)p->event.data.scalar.value;

	if (memchr(text, 0, len))
		return fail(p, line_of(p), -EINVAL, "NUL in a text");
	node->is_plain = p->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
	node->kind = YAML_SCALAR;
	if (node->is_plain && !p->event.data.scalar.tag && is_null_text(text))
		node->kind = YAML_NULL;
	node->text = arena_strndup(p->arena, text, len);
	return node->text ? set_tag(p, p->event.data.scalar.tag, node) : no_memory(p);
}

/* A shallow copy of the node with that name: the copy has its own place, the children keep theirs. */
static int build_alias(struct parser *p, struct yaml_node *node)
{
	const struct anchor *a = map_get_str(&p->anchors, (const char *)p->event.data.alias.anchor);

	if (!a)
		return fail(p, line_of(p), -EINVAL, "unknown alias");
	int rc = count_nodes(p, a->nodes - 1);
	if (rc < 0)
		return rc;
	node->kind = a->node->kind;
	node->first = a->node->first;
	node->cnt = a->node->cnt;
	node->tag = a->node->tag;
	node->is_plain = a->node->is_plain;
	return 0;
}

static int build(struct parser *p, struct yaml_node **ret_node);

static int build_list(struct parser *p, struct yaml_node *list)
{
	struct yaml_node **tail = &list->first;
	int rc;

	list->kind = YAML_LIST;
	list->first = NULL;
	while ((rc = next(p)) == 0 && p->event.type != YAML_SEQUENCE_END_EVENT) {
		struct yaml_node *item;
		rc = build(p, &item);
		if (rc < 0)
			return rc;
		item->up = list;
		item->place = YAML_IN_LIST;
		item->index = list->cnt++;
		*tail = item;
		tail = &item->next;
	}
	return rc;
}

static struct map_key node_key(const void *item)
{
	return map_key_str(((const struct yaml_node *)item)->text);
}

/* Finds a key that is there twice: *ret_key, or NULL. */
static int find_duplicate(struct parser *p, const struct yaml_node *map, const struct yaml_node **ret_key)
{
	struct map seen;
	int rc = 0;

	*ret_key = NULL;
	if (map->cnt <= SMALL_MAP) {
		for (const struct yaml_node *a = map->first; a; a = a->next->next) {
			for (const struct yaml_node *b = a->next->next; b && !*ret_key; b = b->next->next) {
				if (strcmp(a->text, b->text) == 0)
					*ret_key = b;
			}
		}
		return 0;
	}
	map_init(&seen, map->cnt, node_key);
	for (struct yaml_node *key = map->first; key && rc == 0 && !*ret_key; key = key->next->next) {
		if (map_get_str(&seen, key->text))
			*ret_key = key;
		else
			rc = map_put(&seen, key, NULL);
	}
	map_done(&seen);
	return rc < 0 ? no_memory(p) : 0;
}

static int build_pair(struct parser *p, struct yaml_node *map, struct yaml_node ***tail)
{
	struct yaml_node *key, *value;
	size_t line = line_of(p);
	int rc = build(p, &key);

	if (rc < 0)
		return rc;
	if (key->kind == YAML_NULL && key->text)
		key->kind = YAML_SCALAR; /* the key `null` is a word like any other */
	if (key->kind != YAML_SCALAR)
		return fail(p, line, -EINVAL, "a key must be a plain word");
	rc = next(p);
	if (rc == 0)
		rc = build(p, &value);
	if (rc < 0)
		return rc;
	key->up = map;
	key->place = YAML_IS_KEY;
	key->next = value;
	value->up = key;
	value->place = YAML_IS_VALUE;
	**tail = key;
	*tail = &value->next;
	map->cnt++;
	return 0;
}

static int build_map(struct parser *p, struct yaml_node *map)
{
	struct yaml_node **tail = &map->first;
	const struct yaml_node *twice;
	int rc;

	map->kind = YAML_MAP;
	map->first = NULL;
	while ((rc = next(p)) == 0 && p->event.type != YAML_MAPPING_END_EVENT) {
		rc = build_pair(p, map, &tail);
		if (rc < 0)
			return rc;
	}
	if (rc == 0)
		rc = find_duplicate(p, map, &twice);
	if (rc == 0 && twice)
		rc = err_set(
		        p->err, -EINVAL, "%s:%u: duplicate key `%.64s`", p->file, twice->line, twice->text);
	return rc;
}

/* Name of the present event's anchor, and the body of its node. */
static int build_body(struct parser *p, struct yaml_node *node, const char **ret_name)
{
	int rc;

	*ret_name = NULL;
	switch (p->event.type) {
	case YAML_SCALAR_EVENT:
		rc = take_anchor(p, p->event.data.scalar.anchor, ret_name);
		return rc < 0 ? rc : build_scalar(p, node);
	case YAML_ALIAS_EVENT:
		return build_alias(p, node);
	case YAML_SEQUENCE_START_EVENT:
		rc = take_anchor(p, p->event.data.sequence_start.anchor, ret_name);
		if (rc == 0)
			rc = set_tag(p, p->event.data.sequence_start.tag, node);
		return rc < 0 ? rc : build_list(p, node);
	case YAML_MAPPING_START_EVENT:
		rc = take_anchor(p, p->event.data.mapping_start.anchor, ret_name);
		if (rc == 0)
			rc = set_tag(p, p->event.data.mapping_start.tag, node);
		return rc < 0 ? rc : build_map(p, node);
	default:
		return fail(p, line_of(p), -EINVAL, "not valid YAML");
	}
}

/* Builds the node that the present event starts; the event is its last one afterwards. */
static int build(struct parser *p, struct yaml_node **ret_node)
{
	size_t before = p->node_cnt;
	const char *name;
	int rc = count_nodes(p, 1);

	if (rc < 0)
		return rc;
	if (p->depth == p->limits.depth_max)
		return fail(p, line_of(p), -E2BIG, "nested too deep");
	struct yaml_node *node = arena_zalloc(p->arena, 1, sizeof(*node));
	if (!node)
		return no_memory(p);
	node->tag = "";
	node->file = p->file;
	node->line = (uint32_t)line_of(p) + 1;
	p->depth++;
	rc = build_body(p, node, &name);
	p->depth--;
	if (rc == 0 && name)
		rc = set_anchor(p, name, node, p->node_cnt - before);
	if (rc == 0)
		*ret_node = node;
	return rc;
}

/* From the start of the stream to the first event of the document's content; *ret_empty: there is none. */
static int open_document(struct parser *p, bool *ret_empty)
{
	int rc = next(p); /* start of the stream */

	if (rc == 0)
		rc = next(p);
	*ret_empty = rc == 0 && p->event.type == YAML_STREAM_END_EVENT;
	return rc < 0 || *ret_empty ? rc : next(p);
}

/* From the end of the content to the end of the stream, with nothing between. */
static int close_document(struct parser *p)
{
	int rc = next(p);
	if (rc == 0)
		rc = next(p);
	if (rc == 0 && p->event.type != YAML_STREAM_END_EVENT)
		return fail(p, line_of(p), -EINVAL, "more than one document");
	return rc;
}

static int parse_root(struct parser *p, struct yaml_node **ret_root)
{
	bool is_empty;
	int rc = open_document(p, &is_empty);

	if (rc < 0)
		return rc;
	if (!is_empty) {
		rc = build(p, ret_root);
		return rc < 0 ? rc : close_document(p);
	}
	struct yaml_node *root = arena_zalloc(p->arena, 1, sizeof(*root));
	if (!root)
		return no_memory(p);
	root->tag = "";
	root->file = p->file;
	root->line = 1;
	*ret_root = root;
	return 0;
}

int yaml_parse(const char *file, const char *text, size_t len, const struct yaml_limits *limits,
        struct yaml_doc **ret_doc, struct err *err)
{
	struct parser p;
	struct yaml_node *root;
	int rc = parser_init(&p, file, text, len, limits, err);

	if (rc < 0)
		return rc;
	p.arena = arena_new(SIZE_MAX); /* bounded by text and nodes */
	struct yaml_doc *doc = p.arena ? arena_zalloc(p.arena, 1, sizeof(*doc)) : NULL;
	const char *name = doc ? arena_strdup(p.arena, file) : NULL;
	if (!name) {
		rc = no_memory(&p);
		goto out;
	}
	p.file = name;
	rc = parse_root(&p, &root);
	if (rc == 0) {
		doc->arena = p.arena;
		doc->root = root;
		*ret_doc = doc;
	}
out:
	parser_done(&p);
	if (rc < 0)
		arena_unref(p.arena);
	return rc;
}

int yaml_load(const char *path, const struct yaml_limits *limits, struct yaml_doc **ret_doc, struct err *err)
{
	struct buf text;

	buf_init(&text, (limits && limits->text_max ? limits->text_max : TEXT_MAX) + 1);
	int rc = file_read(path, &text);
	if (rc < 0)
		err_sys(err, rc, "%s", path);
	else
		rc = yaml_parse(path, (const char *)text.data, text.len, limits, ret_doc, err);
	buf_done(&text);
	return rc;
}

void yaml_doc_free(struct yaml_doc *doc)
{
	if (doc)
		arena_unref(doc->arena);
}

const struct yaml_node *yaml_root(const struct yaml_doc *doc)
{
	return doc->root;
}

/* The nodes above an element of a stream, so that messages name its place. */
struct stream_place {
	struct yaml_node root, key, list;
};

static int stream_item(
        struct parser *p, struct stream_place *place, const struct yaml_section *section, void *ctx)
{
	struct yaml_node *item;

	p->arena = arena_new(SIZE_MAX);
	if (!p->arena)
		return no_memory(p);
	p->node_cnt = 0;
	int rc = build(p, &item);
	if (rc == 0) {
		item->up = &place->list;
		item->place = YAML_IN_LIST;
		item->index = place->list.cnt++;
		rc = section->item(ctx, item, p->err);
	}
	map_done(&p->anchors);
	arena_unref(p->arena);
	p->arena = NULL;
	return rc;
}

/* The value of a section's key: a list, or nothing. */
static int stream_list(struct parser *p, const struct yaml_section *section, size_t key_line, void *ctx)
{
	struct stream_place place = {
	        .root = {.kind = YAML_MAP, .tag = "", .file = p->file, .line = 1},
	        .key = {.kind = YAML_SCALAR, .tag = "", .place = YAML_IS_KEY, .text = section->name},
	        .list = {.kind = YAML_LIST, .tag = "", .place = YAML_IS_VALUE},
	};
	int rc;

	place.key.up = &place.root;
	place.key.line = (uint32_t)key_line + 1;
	place.list.up = &place.key;
	place.list.line = (uint32_t)line_of(p) + 1;
	if (p->event.type == YAML_SCALAR_EVENT && p->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
	        is_null_text((const char *)p->event.data.scalar.value))
		return 0;
	if (p->event.type != YAML_SEQUENCE_START_EVENT)
		return yaml_error(&place.list, p->err, "a list is expected");
	while ((rc = next(p)) == 0 && p->event.type != YAML_SEQUENCE_END_EVENT) {
		rc = stream_item(p, &place, section, ctx);
		if (rc < 0)
			return rc;
	}
	return rc;
}

static int stream_section(
        struct parser *p, const struct yaml_section *sections, size_t cnt, uint64_t *seen, void *ctx)
{
	size_t line = line_of(p), i = 0;

	if (p->event.type != YAML_SCALAR_EVENT)
		return fail(p, line, -EINVAL, "a key must be a plain word");
	const char *name = (const char *)p->event.data.scalar.value;
	while (i < cnt && strcmp(sections[i].name, name) != 0)
		i++;
	if (i == cnt)
		return err_set(p->err, -EINVAL, "%s:%zu: unknown key `%.64s`", p->file, line + 1, name);
	if (*seen & (UINT64_C(1) << i))
		return err_set(p->err, -EINVAL, "%s:%zu: duplicate key `%.64s`", p->file, line + 1, name);
	*seen |= UINT64_C(1) << i;
	int rc = next(p);
	return rc < 0 ? rc : stream_list(p, &sections[i], line, ctx);
}

static int stream_root(struct parser *p, const struct yaml_section *sections, size_t cnt, void *ctx)
{
	bool is_empty;
	uint64_t seen = 0;
	int rc = open_document(p, &is_empty);

	if (rc < 0 || is_empty)
		return rc;
	if (p->event.type == YAML_SCALAR_EVENT && is_null_text((const char *)p->event.data.scalar.value))
		return close_document(p);
	if (p->event.type != YAML_MAPPING_START_EVENT)
		return fail(p, line_of(p), -EINVAL, "a map is expected");
	p->depth = 2; /* elements stand two levels deep */
	while ((rc = next(p)) == 0 && p->event.type != YAML_MAPPING_END_EVENT) {
		rc = stream_section(p, sections, cnt, &seen, ctx);
		if (rc < 0)
			return rc;
	}
	return rc < 0 ? rc : close_document(p);
}

int yaml_stream(const char *file, const char *text, size_t len, const struct yaml_limits *limits,
        const struct yaml_section *sections, size_t section_cnt, void *ctx, struct err *err)
{
	struct parser p;

	if (section_cnt > 64)
		return -EINVAL;
	int rc = parser_init(&p, file, text, len, limits, err);
	if (rc < 0)
		return rc;
	rc = stream_root(&p, sections, section_cnt, ctx);
	parser_done(&p);
	return rc;
}

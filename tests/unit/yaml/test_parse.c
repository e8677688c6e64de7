/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The tree: kinds, tags, lines, aliases; everything that is refused; streams. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/mem.h"
#include "yaml/yaml.h"

static size_t fail_at;

bool mem_should_fail(size_t len)
{
	return fail_at && --fail_at == 0;
}

static struct yaml_doc *parse(const char *text)
{
	struct yaml_doc *doc;
	struct err err = {0};
	if (yaml_parse("f", text, strlen(text), NULL, &doc, &err) < 0)
		fail_msg("%s", err.text);
	return doc;
}

static void refuse(const char *text, const struct yaml_limits *limits, int code, const char *want)
{
	struct yaml_doc *doc;
	struct err err = {0};
	assert_int_equal(yaml_parse("f", text, strlen(text), limits, &doc, &err), code);
	assert_int_equal(err.code, code);
	assert_string_equal(err.text, want);
}

static void test_tree(void **state)
{
	struct yaml_doc *doc = parse("a: 1\n"
	                             "b: [x, 'y', !Exact z, !Presence []]\n"
	                             "c: {}\n"
	                             "d:\n"
	                             "e: !!str 7\n"
	                             "null: n\n");
	const struct yaml_node *root = yaml_root(doc), *b = yaml_get(root, "b");
	const char *text;

	assert_int_equal(yaml_kind(root), YAML_MAP);
	assert_int_equal(yaml_cnt(root), 6);
	assert_string_equal(yaml_tag(root), "");
	assert_int_equal(yaml_line(b), 2);
	assert_int_equal(yaml_kind(b), YAML_LIST);
	assert_int_equal(yaml_cnt(b), 4);
	const struct yaml_node *it = yaml_first(b);
	assert_int_equal(yaml_str(it, &text, NULL), 0);
	assert_string_equal(text, "x");
	it = yaml_next(yaml_next(it));
	assert_string_equal(yaml_tag(it), "!Exact");
	assert_int_equal(yaml_str(it, &text, NULL), 0);
	assert_string_equal(text, "z");
	it = yaml_next(it);
	assert_string_equal(yaml_tag(it), "!Presence");
	assert_int_equal(yaml_kind(it), YAML_LIST);
	assert_null(yaml_first(it));
	assert_null(yaml_next(it));
	assert_int_equal(yaml_kind(yaml_get(root, "c")), YAML_MAP);
	assert_int_equal(yaml_kind(yaml_get(root, "d")), YAML_NULL);
	assert_string_equal(yaml_tag(yaml_get(root, "e")), "");
	assert_non_null(yaml_get(root, "null"));
	assert_null(yaml_get(root, "zz"));
	assert_null(yaml_get(b, "a"));
	/* Keys in the order of the text. */
	const struct yaml_node *key = yaml_first(root);
	assert_int_equal(yaml_str(key, &text, NULL), 0);
	assert_string_equal(text, "a");
	assert_int_equal(yaml_str(yaml_value(key), &text, NULL), 0);
	assert_string_equal(text, "1");
	yaml_doc_free(doc);
}

static void test_empty(void **state)
{
	static const char *const texts[] = {"", "\n\n", "# remark\n", "---\n", "~", "null\n"};
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct yaml_doc *doc = parse(texts[i]);
		assert_int_equal(yaml_kind(yaml_root(doc)), YAML_NULL);
		assert_null(yaml_first(yaml_root(doc)));
		yaml_doc_free(doc);
	}
	yaml_doc_free(NULL);
	assert_int_equal(yaml_kind(NULL), YAML_NULL);
}

static void test_null_words(void **state)
{
	struct yaml_doc *doc = parse("[~, null, Null, NULL, '', '~', !Exact ~, nulL]");
	static const enum yaml_kind kinds[] = {YAML_NULL, YAML_NULL, YAML_NULL, YAML_NULL, YAML_SCALAR,
	        YAML_SCALAR, YAML_SCALAR, YAML_SCALAR};
	size_t i = 0;
	for (const struct yaml_node *it = yaml_first(yaml_root(doc)); it; it = yaml_next(it))
		assert_int_equal(yaml_kind(it), kinds[i++]);
	assert_int_equal(i, 8);
	yaml_doc_free(doc);
}

static void test_alias(void **state)
{
	struct yaml_doc *doc = parse("a: &x {k: [1, 2]}\nb: *x\nc: &x 7\nd: [*x, *x]\n");
	const struct yaml_node *b = yaml_get(yaml_root(doc), "b"), *d = yaml_get(yaml_root(doc), "d");
	const char *text;

	assert_int_equal(yaml_kind(b), YAML_MAP);
	assert_int_equal(yaml_cnt(yaml_get(b, "k")), 2);
	assert_int_equal(yaml_cnt(d), 2);
	assert_int_equal(yaml_str(yaml_next(yaml_first(d)), &text, NULL), 0);
	assert_string_equal(text, "7");
	yaml_doc_free(doc);
}

static void test_refused(void **state)
{
	static const struct yaml_limits small = {.text_max = 40, .node_max = 8, .depth_max = 3};

	refuse("a: 1\nb: 2\na: 3\n", NULL, -EINVAL, "f:3: duplicate key `a`");
	refuse("a: 1\n'a': 3\n", NULL, -EINVAL, "f:2: duplicate key `a`");
	refuse("a: &x [*x]\n", NULL, -EINVAL, "f:1: unknown alias");
	refuse("a: *x\n", NULL, -EINVAL, "f:1: unknown alias");
	refuse("a: 1\n---\nb: 2\n", NULL, -EINVAL, "f:2: more than one document");
	refuse("? [a]\n: 1\n", NULL, -EINVAL, "f:1: a key must be a plain word");
	refuse("\n\na: \"x\\0y\"\n", NULL, -EINVAL, "f:3: NUL in a text");
	refuse("a: 0123456789 0123456789 0123456789 0123456789", &small, -E2BIG, "f: more than 40 bytes");
	refuse("[1, 2, 3, 4, 5, 6, 7, 8]", &small, -E2BIG, "f:1: too many nodes");
	refuse("[[[[1]]]]", &small, -E2BIG, "f:1: nested too deep");
	refuse("a: &x [1, 2, 3]\nb: [*x, *x]\n", &small, -E2BIG, "f:2: too many nodes");
}

static void test_refused_syntax(void **state)
{
	static const char *const texts[] = {"a: [1", "a: {", "a: 'x", "a:\n\t- b\n", "\xff\xfe",
	        "a: \xc3\x28", "}", "a: b: c", "%YAML 3.0\n---\na", "!<tag", "- a\nb: c\n"};
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct yaml_doc *doc;
		struct err err = {0};
		assert_int_equal(yaml_parse("f", texts[i], strlen(texts[i]), NULL, &doc, &err), -EINVAL);
		assert_int_equal(strncmp(err.text, "f:", 2), 0);
	}
}

/* Nine levels of ten aliases each would be 10^9 nodes. */
static void test_bomb(void **state)
{
	char text[2048];
	size_t len = (size_t)snprintf(text, sizeof(text), "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");

	for (int i = 1; i < 10; i++) {
		len += (size_t)snprintf(text + len, sizeof(text) - len, "a%d: &a%d [", i, i);
		for (int k = 0; k < 10; k++)
			len += (size_t)snprintf(
			        text + len, sizeof(text) - len, "%s*a%d", k ? ", " : "", i - 1);
		len += (size_t)snprintf(text + len, sizeof(text) - len, "]\n");
	}
	refuse(text, NULL, -E2BIG, "f:5: too many nodes");
}

static void test_depth_has_a_hard_end(void **state)
{
	struct yaml_limits limits = {.depth_max = 1000000};
	char text[401];

	memset(text, '[', 400);
	text[400] = 0;
	refuse(text, &limits, -E2BIG, "f:1: nested too deep");
}

static void test_large_map(void **state)
{
	char text[8192];
	size_t len = 0;

	for (int i = 0; i < 500; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "k%d: %d\n", i, i);
	struct yaml_doc *doc = parse(text);
	assert_int_equal(yaml_cnt(yaml_root(doc)), 500);
	yaml_doc_free(doc);
	snprintf(text + len, sizeof(text) - len, "k77: 1\n");
	refuse(text, NULL, -EINVAL, "f:501: duplicate key `k77`");
}

static void test_load(void **state)
{
	char path[] = "/tmp/mesh-yaml-XXXXXX";
	struct yaml_limits limits = {.text_max = 4};
	struct yaml_doc *doc;
	struct err err = {0};
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(file_write(path, "a: 1", 4, 0600), 0);
	assert_int_equal(yaml_load(path, &limits, &doc, &err), 0);
	yaml_doc_free(doc);
	limits.text_max = 3;
	assert_int_equal(yaml_load(path, &limits, &doc, &err), -E2BIG);
	unlink(path);
	assert_int_equal(yaml_load(path, &limits, &doc, &err), -ENOENT);
	assert_non_null(strstr(err.text, path));
}

/* --- streams --- */

struct seen {
	char text[256];
	bool stop; /* fail at the first item */
};

static int on_item(void *ctx, const struct yaml_node *item, struct err *err)
{
	struct seen *seen = ctx;
	const char *text = "?";

	if (seen->stop)
		return yaml_error(item, err, "stop");
	if (yaml_kind(item) == YAML_SCALAR)
		yaml_str(item, &text, err);
	snprintf(seen->text + strlen(seen->text), sizeof(seen->text) - strlen(seen->text), "%s@%u ", text,
	        yaml_line(item));
	return 0;
}

static int stream(const char *text, struct seen *seen, struct err *err)
{
	static const struct yaml_section sections[] = {{"one", on_item}, {"two", on_item}};
	struct yaml_limits limits = {.node_max = 6, .depth_max = 5};
	return yaml_stream("f", text, strlen(text), &limits, sections, 2, seen, err);
}

static void test_stream(void **state)
{
	static const struct {
		const char *text;
		int rc;
		const char *seen; /* items, or the error's text */
	} rows[] = {
	        {"", 0, ""},
	        {"~", 0, ""},
	        {"{}", 0, ""},
	        {"one: []\ntwo:\n", 0, ""},
	        {"two: [x, {a: b}]\none: [y]\n", 0, "x@1 ?@1 y@2 "},
	        /* The ceiling of nodes counts for each element by itself. */
	        {"one: [[1, 2, 3], [1, 2, 3], [1, 2, 3]]\n", 0, "?@1 ?@1 ?@1 "},
	        {"one: [[1, 2, 3, 4, 5, 6]]\n", -E2BIG, "f:1: too many nodes"},
	        {"one: [[[[[x]]]]]\n", -E2BIG, "f:1: nested too deep"},
	        {"one: [&a x, *a]\n", -EINVAL, "f:1: unknown alias"},
	        {"one: [[&a x, *a]]\n", 0, "?@1 "},
	        {"three: []\n", -EINVAL, "f:1: unknown key `three`"},
	        {"one: []\none: []\n", -EINVAL, "f:2: duplicate key `one`"},
	        {"one: x\n", -EINVAL, "f:1: one: a list is expected"},
	        {"one: {a: b}\n", -EINVAL, "f:1: one: a list is expected"},
	        {"[one]\n", -EINVAL, "f:1: a map is expected"},
	        {"one\n", -EINVAL, "f:1: a map is expected"},
	        {"[a]: []\n", -EINVAL, "f:1: a key must be a plain word"},
	        {"one: [x]\n---\n{}\n", -EINVAL, "f:2: more than one document"},
	        {"one: [x]\n]\n", -EINVAL, NULL},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct seen seen = {.text = ""};
		struct err err = {0};
		assert_int_equal(stream(rows[i].text, &seen, &err), rows[i].rc);
		if (rows[i].seen)
			assert_string_equal(rows[i].rc < 0 ? err.text : seen.text, rows[i].seen);
	}
	struct seen seen = {.stop = true};
	struct err err = {0};
	assert_int_equal(stream("one:\n- x\n", &seen, &err), -EINVAL);
	assert_string_equal(err.text, "f:2: one[0]: stop");
}

static void test_allocation_failures(void **state)
{
	static const char text[] =
	        "a: &x [1, !T 2]\nb: *x\nc: {d: e}\n"
	        "k1: 1\nk2: 1\nk3: 1\nk4: 1\nk5: 1\nk6: 1\nk7: 1\nk8: 1\nk9: 1\nk10: 1\nk11: 1\nk12: 1\nk13: 1\nk14: 1\nk15: 1\n";
	int rc = -ENOMEM;
	size_t n = 1;

	for (; rc < 0 && n < 1000; n++) {
		struct yaml_doc *doc = NULL;
		struct err err = {0};
		fail_at = n;
		rc = yaml_parse("f", text, strlen(text), NULL, &doc, &err);
		fail_at = 0;
		assert_true(rc == 0 || (rc == -ENOMEM && err.code == -ENOMEM));
		yaml_doc_free(doc);
	}
	assert_int_equal(rc, 0);
	assert_true(n > 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_tree),
	        cmocka_unit_test(test_empty),
	        cmocka_unit_test(test_null_words),
	        cmocka_unit_test(test_alias),
	        cmocka_unit_test(test_refused),
	        cmocka_unit_test(test_refused_syntax),
	        cmocka_unit_test(test_bomb),
	        cmocka_unit_test(test_depth_has_a_hard_end),
	        cmocka_unit_test(test_large_map),
	        cmocka_unit_test(test_load),
	        cmocka_unit_test(test_stream),
	        cmocka_unit_test(test_allocation_failures),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

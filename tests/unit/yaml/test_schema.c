/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Accessors: what they take, and the place and words of every refusal. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "yaml/yaml.h"

static struct yaml_doc *parse(const char *text)
{
	struct yaml_doc *doc;
	struct err err = {0};
	if (yaml_parse("mesh.yaml", text, strlen(text), NULL, &doc, &err) < 0)
		fail_msg("%s", err.text);
	return doc;
}

static void test_place(void **state)
{
	struct yaml_doc *doc = parse("top: 1\nservices:\n- {}\n- vips: [a,\n    b]\n  'odd key': {x: 1}\n");
	const struct yaml_node *root = yaml_root(doc), *services = yaml_get(root, "services");
	const struct yaml_node *second = yaml_next(yaml_first(services));
	struct err err = {0};

	assert_int_equal(yaml_error(root, &err, "why %d", 7), -EINVAL);
	assert_string_equal(err.text, "mesh.yaml:1: why 7");
	assert_int_equal(err.code, -EINVAL);
	yaml_error(yaml_get(root, "top"), &err, "w");
	assert_string_equal(err.text, "mesh.yaml:1: top: w");
	yaml_error(yaml_next(yaml_first(yaml_get(second, "vips"))), &err, "w");
	assert_string_equal(err.text, "mesh.yaml:5: services[1].vips[1]: w");
	yaml_error(yaml_get(yaml_get(second, "odd key"), "x"), &err, "w");
	assert_string_equal(err.text, "mesh.yaml:6: services[1].odd key.x: w");
	/* A key is named itself. */
	yaml_error(yaml_first(yaml_get(second, "odd key")), &err, "w");
	assert_string_equal(err.text, "mesh.yaml:6: services[1].odd key.x: w");
	assert_int_equal(yaml_error(root, NULL, "w"), -EINVAL);
	yaml_doc_free(doc);
}

static void test_long_paths_are_cut(void **state)
{
	char text[1200];
	struct err err = {0};

	memset(text, 'k', 1000);
	snprintf(text + 1000, sizeof(text) - 1000, ": [1]\n");
	struct yaml_doc *doc = parse(text);
	yaml_error(yaml_first(yaml_value(yaml_first(yaml_root(doc)))), &err, "the reason");
	assert_non_null(strstr(err.text, "the reason"));
	yaml_doc_free(doc);
}

static void test_map(void **state)
{
	static const struct yaml_key keys[] = {{"need", true}, {"may", false}};
	static const struct {
		const char *text;
		bool ignore_unknown;
		const char *want; /* NULL = fine */
	} rows[] = {
	        {"need: 1\n", false, NULL},
	        {"need: 1\nmay:\n", false, NULL},
	        {"need: 1\nother: 2\n", true, NULL},
	        {"need: 1\nother: 2\n", false, "mesh.yaml:2: other: unknown key"},
	        {"may: 1\n", false, "mesh.yaml:1: missing key `need`"},
	        {"need: ~\n", false, "mesh.yaml:1: missing key `need`"},
	        {"[need]\n", false, "mesh.yaml:1: a map is expected, found a list"},
	        {"need\n", false, "mesh.yaml:1: a map is expected, found a text"},
	        {"", false, "mesh.yaml:1: a map is expected, found nothing"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct yaml_doc *doc = parse(rows[i].text);
		const struct yaml_node *values[2];
		struct err err = {0};
		int rc = yaml_map(yaml_root(doc), keys, 2, rows[i].ignore_unknown, values, &err);
		assert_int_equal(rc, rows[i].want ? -EINVAL : 0);
		if (rows[i].want) {
			assert_string_equal(err.text, rows[i].want);
		} else {
			assert_non_null(values[0]);
			assert_null(values[1]);
		}
		yaml_doc_free(doc);
	}
}

static void test_bool(void **state)
{
	struct yaml_doc *doc = parse("[true, false, 'true', True, yes, 1, ~, [true]]");
	const struct yaml_node *it = yaml_first(yaml_root(doc));
	struct err err = {0};
	bool value = false;

	assert_int_equal(yaml_bool(it, &value, &err), 0);
	assert_true(value);
	it = yaml_next(it);
	assert_int_equal(yaml_bool(it, &value, &err), 0);
	assert_false(value);
	while ((it = yaml_next(it))) {
		err.text[0] = 0;
		assert_int_equal(yaml_bool(it, &value, &err), -EINVAL);
		assert_non_null(strstr(err.text, "true or false is expected"));
	}
	yaml_doc_free(doc);
}

static void test_number(void **state)
{
	struct yaml_doc *doc =
	        parse("{'80': 65535, 81: '82', 83: 65536, 84: -1, 85: 0x10, 86: 1e3, 87: +5, 88: , 89: 1.0}");
	const struct yaml_node *key = yaml_first(yaml_root(doc));
	struct err err = {0};
	uint64_t value;

	/* JSON quotes keys. */
	assert_int_equal(yaml_u64(key, 65535, &value, &err), 0);
	assert_int_equal(value, 80);
	assert_int_equal(yaml_u64(yaml_value(key), 65535, &value, &err), 0);
	assert_int_equal(value, 65535);
	while ((key = yaml_next(key))) {
		assert_int_equal(yaml_u64(key, 65535, &value, &err), 0);
		assert_int_equal(yaml_u64(yaml_value(key), 65535, &value, &err), -EINVAL);
	}
	assert_string_equal(err.text, "mesh.yaml:1: 89: a number from 0 to 65535 is expected");
	yaml_doc_free(doc);
}

static void test_text_and_list(void **state)
{
	struct yaml_doc *doc = parse("{a: 12, b: '', c: [], d: }");
	const struct yaml_node *root = yaml_root(doc);
	struct err err = {0};
	const char *text;

	assert_int_equal(yaml_str(yaml_get(root, "a"), &text, &err), 0);
	assert_string_equal(text, "12");
	assert_int_equal(yaml_str(yaml_get(root, "b"), &text, &err), 0);
	assert_string_equal(text, "");
	assert_int_equal(yaml_str(yaml_get(root, "c"), &text, &err), -EINVAL);
	assert_string_equal(err.text, "mesh.yaml:1: c: a text is expected, found a list");
	assert_int_equal(yaml_str(yaml_get(root, "d"), &text, &err), -EINVAL);
	assert_int_equal(yaml_list(yaml_get(root, "c"), &err), 0);
	assert_int_equal(yaml_list(yaml_get(root, "a"), &err), -EINVAL);
	assert_string_equal(err.text, "mesh.yaml:1: a: a list is expected, found a text");
	yaml_doc_free(doc);
}

static void test_enum(void **state)
{
	static const struct yaml_word words[] = {{"TCP", 3}, {"HBONE", 4}, {NULL, 0}};
	struct yaml_doc *doc = parse("[HBONE, hbone, [TCP]]");
	const struct yaml_node *it = yaml_first(yaml_root(doc));
	struct err err = {0};
	int value = 0;

	assert_int_equal(yaml_enum(it, words, &value, &err), 0);
	assert_int_equal(value, 4);
	it = yaml_next(it);
	assert_int_equal(yaml_enum(it, words, &value, &err), -EINVAL);
	assert_string_equal(err.text, "mesh.yaml:1: [1]: one of TCP, HBONE is expected");
	assert_int_equal(yaml_enum(yaml_next(it), words, &value, &err), -EINVAL);
	yaml_doc_free(doc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_place),
	        cmocka_unit_test(test_long_paths_are_cut),
	        cmocka_unit_test(test_map),
	        cmocka_unit_test(test_bool),
	        cmocka_unit_test(test_number),
	        cmocka_unit_test(test_text_and_list),
	        cmocka_unit_test(test_enum),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

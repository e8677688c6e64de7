/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lines of metrics, good ones and others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ctl/samples.h"

static void reads_names_labels_and_values(void **state)
{
	const char *at = "# TYPE a counter\na_total{x=\"1\",pod=\"p \\\"q\\\\,}\\n\"} 2.5\nb 7 1000\n";
	struct sample sample;
	char text[16];
	(void)state;
	assert_true(samples_next(&at, &sample) && sample.is_comment);
	assert_true(samples_next(&at, &sample));
	assert_true(samples_is(&sample, "a_total") && !samples_is(&sample, "a") && sample.value == 2.5);
	assert_true(samples_label(&sample, "pod", text, sizeof(text)));
	assert_string_equal(text, "p \"q\\,}\n");
	assert_true(samples_label(&sample, "x", text, sizeof(text)));
	assert_string_equal(text, "1");
	assert_false(samples_label(&sample, "pod", text, 4));
	assert_false(samples_label(&sample, "po", text, sizeof(text)));
	assert_true(samples_next(&at, &sample));
	assert_true(samples_is(&sample, "b") && sample.value == 7);
	assert_false(samples_label(&sample, "x", text, sizeof(text)));
	assert_false(samples_next(&at, &sample));
}

static void takes_malformed_lines_for_comments(void **state)
{
	static const char *const lines[] = {"", "a", "a ", "a{ 1", "a{x=\"}\" 1", "a{x=\"1\"}1", "a x",
	        "a{x=\"1\"} 1111111111111111111111111111111111111111111111111", "{x=\"1\"} 1"};
	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		char text[128];
		struct sample sample;
		const char *at = text;
		strcpy(text, lines[i]);
		strcat(text, "\n");
		assert_true(samples_next(&at, &sample));
		assert_true(sample.is_comment);
		assert_false(samples_next(&at, &sample));
	}
}

static void finds_no_label_in_rubbish(void **state)
{
	static const char *const lines[] = {"a{} 1", "a{x} 1", "a{x=} 1", "a{=\"1\"} 1", "a{y=\"1\"x=\"} 1"};
	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		struct sample sample;
		char text[8];
		const char *at = lines[i];
		assert_true(samples_next(&at, &sample));
		assert_false(samples_label(&sample, "x", text, sizeof(text)));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(reads_names_labels_and_values),
	        cmocka_unit_test(takes_malformed_lines_for_comments),
	        cmocka_unit_test(finds_no_label_in_rubbish),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

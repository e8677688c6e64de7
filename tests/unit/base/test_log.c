/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Log lines byte for byte, apart from the time (reference dataplane.md 16), and at the ceiling. */
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "unit.h"

#define TIME_LEN 27

struct sink {
	char text[LIMIT_LOG_LINE + 1];
	size_t len;
	int cnt;
};

static void keep(void *ctx, const char *line, size_t len)
{
	struct sink *s = ctx;
	assert_true(len <= LIMIT_LOG_LINE);
	memcpy(s->text, line, len);
	s->text[len] = '\0';
	s->len = len;
	s->cnt++;
}

static void access_line(struct log *log)
{
	struct log_line line;
	if (!log_begin(&line, log, LOG_INFO, "access", "connection complete"))
		return;
	log_bare(&line, "src.addr", "10.1.1.2:56006");
	log_str(&line, "src.workload", "srv-pod");
	log_str(&line, "src.identity", NULL);
	log_bare(&line, "dst.hbone_addr", NULL);
	log_u64(&line, "bytes_sent", 10);
	log_bool(&line, "transparent", true);
	log_str(&line, "duration", "2ms");
	log_code(&line, "error", ERR_POLICY_CHANGE);
	log_end(&line);
}

static void text_form(void **state)
{
	struct sink s = {0};
	struct log log;
	assert_int_equal(log_init(&log, NULL, false, keep, &s, NULL), 0);
	access_line(&log);
	assert_string_equal(s.text + TIME_LEN,
	        "\tinfo\taccess\tconnection complete\tsrc.addr=10.1.1.2:56006 src.workload=\"srv-pod\" bytes_sent=10 transparent=true duration=\"2ms\" "
	        "error=\"connection closed due to policy change\"\n");
	assert_int_equal(s.text[TIME_LEN - 1], 'Z');
	log_msg(&log, LOG_WARN, "ztunnel::xds::client", "lost %d", 3);
	assert_string_equal(s.text + TIME_LEN, "\twarn\txds::client\tlost 3\t\n");
	log_msg(&log, LOG_DEBUG, "ztunnel::xds::client", "quiet");
	assert_int_equal(s.cnt, 2);
	struct log_line line;
	assert_true(log_begin(&line, &log, LOG_ERROR, "dns", NULL));
	log_u64(&line, "a", 1);
	log_end(&line);
	assert_string_equal(s.text + TIME_LEN, "\terror\tdns\ta=1\n");
	assert_false(log_begin(&line, NULL, LOG_ERROR, "dns", NULL));
	log_u64(&line, "a", 1);
	log_end(&line);
	log_msg(NULL, LOG_ERROR, "dns", "x");
	assert_int_equal(s.cnt, 3);
	log_done(&log);
}

static void json_form(void **state)
{
	struct sink s = {0};
	struct log log;
	assert_int_equal(log_init(&log, NULL, true, keep, &s, NULL), 0);
	access_line(&log);
	assert_memory_equal(s.text, "{\"level\":\"info\",\"time\":\"", 24);
	assert_string_equal(s.text + 24 + TIME_LEN,
	        "\",\"scope\":\"access\",\"message\":\"connection complete\",\"src.addr\":\"10.1.1.2:56006\",\"src.workload\":\"srv-pod\",\"bytes_sent\":10,"
	        "\"transparent\":true,\"duration\":\"2ms\",\"error\":\"connection closed due to policy change\"}\n");
	log_msg(&log, LOG_WARN, "ztunnel::xds::client", "a\"b\n");
	assert_string_equal(
	        s.text + 24 + TIME_LEN, "\",\"scope\":\"ztunnel::xds::client\",\"message\":\"a\\\"b\\n\"}\n");
	log_done(&log);
}

static void spans(void **state)
{
	struct sink s = {0};
	struct log log;
	struct log_line line;
	const struct log_field fields[] = {{"id", NULL, 1}, {"peer", "a\"b", 0}};
	const struct log_span span = {"xds", fields, 2}, bare = {"inbound", NULL, 0};
	assert_int_equal(log_init(&log, NULL, false, keep, &s, NULL), 0);
	log_begin_in(&line, &log, LOG_INFO, "ztunnel::xds", &span, "hello");
	log_u64(&line, "n", 2);
	log_end(&line);
	assert_string_equal(s.text + TIME_LEN, "\tinfo\txds:xds{id=1 peer=\"a\\\"b\"}\thello\tn=2\n");
	log_begin_in(&line, &log, LOG_INFO, "access", &bare, "hello");
	log_end(&line);
	assert_string_equal(s.text + TIME_LEN, "\tinfo\taccess:inbound\thello\t\n");
	log.json = true;
	log_begin_in(&line, &log, LOG_INFO, "ztunnel::xds", &span, "hello");
	log_u64(&line, "n", 2);
	log_end(&line);
	assert_string_equal(s.text + 24 + TIME_LEN,
	        "\",\"scope\":\"ztunnel::xds\",\"message\":\"hello\",\"n\":2,\"xds\":{\"id\":1,\"peer\":\"a\\\"b\"}}\n");
	log_done(&log);
}

static void hostile_values(void **state)
{
	struct sink s = {0};
	struct log log;
	struct log_line line;
	assert_int_equal(log_init(&log, NULL, false, keep, &s, NULL), 0);
	log_begin(&line, &log, LOG_INFO, "access", "m\nn\tk");
	log_strn(&line, "a", "x\n\"\\\t\r\0\x1b\xff\xc3\xa4", 11);
	log_bare(&line, "b", "1.2.3.4\n2026 fake line");
	log_end(&line);
	assert_string_equal(s.text + TIME_LEN,
	        "\tinfo\taccess\tm\\nn\\tk\ta=\"x\\n\\\"\\\\\\t\\r\\0\\u{1b}\xef\xbf\xbd\xc3\xa4\" b=1.2.3.4\\n2026 fake line\n");
	log_done(&log);
}

/* Every line stays within the ceiling, ends properly and says that it was cut, wherever the cut falls. */
static void cuts(void **state)
{
	static char value[2 * LIMIT_LOG_LINE];
	struct sink s = {0};
	struct log log;
	assert_int_equal(log_init(&log, NULL, false, keep, &s, NULL), 0);
	const struct log_field field = {"id", NULL, 1};
	const struct log_span span = {"xds", &field, 1};
	for (int json = 0; json < 2; json++) {
		log.json = json;
		for (size_t len = LIMIT_LOG_LINE - 300; len < LIMIT_LOG_LINE + 10; len++) {
			struct log_line line;
			memset(value, len % 3 ? 'v' : '\n', len);
			value[len] = '\0';
			log_begin_in(&line, &log, LOG_INFO, "access", &span, "m");
			log_str(&line, "a", value);
			log_u64(&line, "number", 18446744073709551615u);
			log_bool(&line, "t", true);
			log_str(&line, "last", "end");
			log_end(&line);
			bool cut = strstr(s.text, json ? "\"truncated\":true" : " truncated=true") != NULL;
			bool whole = strstr(s.text, json ? "\"last\":\"end\",\"xds\":{\"id\":1}"
			                                 : "last=\"end\"") != NULL;
			assert_int_equal(cut, !whole);
			assert_int_equal(s.text[s.len - 1], '\n');
			if (json)
				assert_int_equal(s.text[s.len - 2], '}');
			size_t quotes = 0;
			for (size_t i = 0; i < s.len; i++)
				quotes += s.text[i] == '"';
			assert_int_equal(quotes % 2, 0);
		}
	}
	memset(value, 'm', sizeof(value) - 1);
	log_msg(&log, LOG_INFO, "access", "%s", value);
	assert_non_null(strstr(s.text, "mm\",\"truncated\":true}\n"));
	log_done(&log);
}

static void to_descriptor(void **state)
{
	int fds[2];
	char text[8];
	assert_int_equal(pipe(fds), 0);
	log_write_fd((void *)(intptr_t)fds[1], "line\n", 5);
	assert_int_equal(read(fds[0], text, sizeof(text)), 5);
	close(fds[0]);
	close(fds[1]);
	log_write_fd((void *)(intptr_t)fds[1], "line\n", 5);
}

/* A storm of one text is cut after the first lines; other texts, milder levels and the next second are not.
 */
static void repeats_are_counted(void **state)
{
	(void)state;
	struct sink sink = {0};
	struct log log;
	struct err err;
	assert_int_equal(log_init(&log, NULL, false, keep, &sink, &err), 0);
	for (int i = 0; i < 3 * LOG_REPEAT_MAX; i++)
		log_msg(&log, LOG_WARN, "a", "accept failed: %s", "EMFILE");
	assert_in_range(sink.cnt, LOG_REPEAT_MAX, 3 * LOG_REPEAT_MAX - 1);
	int before = sink.cnt;
	log_msg(&log, LOG_WARN, "a", "accept failed: %s", "ENFILE");
	log_msg(&log, LOG_ERROR, "b", "accept failed: %s", "EMFILE");
	assert_int_equal(sink.cnt, before + 2);
	for (int i = 0; i < 3 * LOG_REPEAT_MAX; i++)
		log_msg(&log, LOG_INFO, "a", "all is well");
	assert_int_equal(sink.cnt, before + 2 + 3 * LOG_REPEAT_MAX);
	usleep((LOG_REPEAT_MS + 50) * 1000);
	log_msg(&log, LOG_WARN, "a", "accept failed: %s", "EMFILE");
	assert_non_null(strstr(sink.text, "accept failed: EMFILE\trepeated="));
	log_done(&log);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(text_form),
	        cmocka_unit_test(json_form),
	        cmocka_unit_test(spans),
	        cmocka_unit_test(hostile_values),
	        cmocka_unit_test(cuts),
	        cmocka_unit_test(to_descriptor),
	        cmocka_unit_test(repeats_are_counted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The lists against what istioctl printed of the same dump, a real ztunnel's (tests/golden/admin). */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "ctl/cells.h"
#include "ctl/listing.h"

/* 2026-11-21T12:00:00Z, when the certificates of the golden dump were valid. */
#define THEN 1795262400

static char *golden(const char *name)
{
	char path[4096];
	struct buf text;
	snprintf(path, sizeof(path), "%s/%s", getenv("GOLDEN"), name);
	buf_init(&text, 1u << 20);
	assert_int_equal(file_read(path, &text), 0);
	char *copy = strdup(buf_cstr(&text));
	buf_done(&text);
	return copy;
}

static int parse(const char *text, struct dump *ret_dump)
{
	struct err err = {0};
	return dump_parse(text, strlen(text), ret_dump, &err);
}

/* What a list prints, in memory that the caller frees. */
static char *printed(
        const struct dump *dump, struct ctl *ctl, enum listing listing, int64_t now_s, int wanted)
{
	char *text = NULL;
	size_t len = 0;
	struct err err = {0};
	ctl->out = open_memstream(&text, &len);
	assert_int_equal(listing_print(dump, ctl, listing, now_s, &err), wanted);
	fclose(ctl->out);
	return text;
}

static void assert_golden(struct ctl *ctl, enum listing listing, const char *name)
{
	struct dump dump;
	char *json = golden("ztunnel-config-dump.json");
	char *wanted = golden(name);
	assert_int_equal(parse(json, &dump), 0);
	char *text = printed(&dump, ctl, listing, THEN, 0);
	assert_string_equal(text, wanted);
	dump_done(&dump);
	free(text);
	free(json);
	free(wanted);
}

static void prints_what_istioctl_prints(void **state)
{
	static const struct {
		enum listing listing;
		enum ctl_output output;
		const char *raw;
		const char *name;
	} rows[] = {
	        {LISTING_WORKLOAD, CTL_OUTPUT_SHORT, NULL, "istioctl-workload-short.txt"},
	        {LISTING_SERVICE, CTL_OUTPUT_SHORT, NULL, "istioctl-service-short.txt"},
	        {LISTING_POLICY, CTL_OUTPUT_SHORT, NULL, "istioctl-policy-short.txt"},
	        {LISTING_CERTIFICATE, CTL_OUTPUT_SHORT, NULL, "istioctl-certificate-short.txt"},
	        {LISTING_CONNECTIONS, CTL_OUTPUT_SHORT, NULL, "istioctl-connections-short.txt"},
	        {LISTING_CONNECTIONS, CTL_OUTPUT_SHORT, "", "istioctl-connections-raw.txt"},
	        {LISTING_WORKLOAD, CTL_OUTPUT_JSON, NULL, "istioctl-workload-json.txt"},
	        {LISTING_POLICY, CTL_OUTPUT_JSON, NULL, "istioctl-policy-json.txt"},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct ctl ctl = {.output = rows[i].output, .options = {[CTL_OPT_RAW] = rows[i].raw}};
		assert_golden(&ctl, rows[i].listing, rows[i].name);
	}
}

static const char MESH[] =
        "{\"workloads\":[{\"uid\":\"1\",\"name\":\"b\",\"namespace\":\"x\",\"node\":\"n1\",\"status\":\"Healthy\","
        "\"workloadIps\":[\"10.0.0.1\",\"fd00::1\"],\"protocol\":\"HBONE\"},"
        "{\"uid\":\"2\",\"name\":\"a\",\"namespace\":\"x\",\"node\":\"n2\",\"waypoint\":{\"destination\":\"x/gone\"}},"
        "{\"uid\":\"3\",\"name\":\"c\",\"namespace\":\"y\"},{\"uid\":\"3\",\"name\":\"d\",\"namespace\":\"y\"}],"
        "\"services\":{\"k\":{\"name\":\"s\",\"namespace\":\"x\",\"hostname\":\"s.x\",\"vips\":[\"n/10.1.0.1\",\"bare\"],"
        "\"endpoints\":{\"1\":{\"workloadUid\":\"1\"},\"3\":{\"workloadUid\":\"3\"}}}},"
        "\"certificates\":[{\"identity\":\"spiffe://t/ns/x/sa/q\",\"state\":\"Unavailable: no CA\"}],"
        "\"workloadState\":{\"u1\":{\"info\":{\"name\":\"b\",\"namespace\":\"x\",\"serviceAccount\":\"q\"},"
        "\"connections\":{\"inbound\":[{\"src\":\"[fd00::9]:5\",\"actualDst\":\"10.0.0.1:80\",\"originalDst\":null}],"
        "\"outbound\":[{\"src\":\"10.0.0.1:7\",\"actualDst\":\"10.1.0.1:80\",\"originalDst\":\"\"}]}}}}";

static void assert_list(enum listing listing, enum ctl_opt opt, const char *value, const char *wanted)
{
	struct dump dump;
	struct ctl ctl = {.output = CTL_OUTPUT_SHORT};
	ctl.options[opt] = value;
	assert_int_equal(parse(MESH, &dump), 0);
	char *text = printed(&dump, &ctl, listing, THEN, 0);
	assert_string_equal(text, wanted);
	free(text);
	dump_done(&dump);
}

#define WORKLOADS "NAMESPACE POD NAME ADDRESS          NODE WAYPOINT PROTOCOL\n"
#define ROW_B "x         b        10.0.0.1,fd00::1 n1   None     HBONE\n"

static void filters(void **state)
{
	(void)state;
	assert_list(LISTING_WORKLOAD, CTL_OPT_NODE, "N1", WORKLOADS ROW_B);
	assert_list(LISTING_WORKLOAD, CTL_OPT_ADDRESS, "FD00::1", WORKLOADS ROW_B);
	assert_list(LISTING_WORKLOAD, CTL_OPT_POD, "b.x", WORKLOADS ROW_B);
	assert_list(LISTING_WORKLOAD, CTL_OPT_POD, "x/b", WORKLOADS ROW_B);
	assert_list(LISTING_WORKLOAD, CTL_OPT_NAMESPACE, "none",
	        "NAMESPACE POD NAME ADDRESS NODE WAYPOINT PROTOCOL\n");
	assert_list(LISTING_WORKLOAD, CTL_OPT_POD, "a",
	        "NAMESPACE POD NAME ADDRESS NODE WAYPOINT PROTOCOL\n"
	        "x         a                n2   NA       \n");
	assert_list(LISTING_SERVICE, CTL_OPT_NAMESPACE, "X",
	        "NAMESPACE SERVICE NAME SERVICE VIP WAYPOINT ENDPOINTS\n"
	        "x         s            10.1.0.1,   None     1/2\n");
	assert_list(LISTING_CERTIFICATE, CTL_OPT_POD, "b",
	        "CERTIFICATE NAME         TYPE     STATUS          VALID CERT     SERIAL NUMBER     NOT AFTER     NOT BEFORE\n"
	        "spiffe://t/ns/x/sa/q     NA       Unavailable     false          NA                NA            NA\n");
	assert_list(LISTING_CONNECTIONS, CTL_OPT_DIRECTION, "inbound",
	        "WORKLOAD DIRECTION LOCAL  REMOTE      REMOTE TARGET PROTOCOL\n"
	        "b.x      Inbound   b.x:80 [fd00::9]:5               \n");
	assert_list(LISTING_CONNECTIONS, CTL_OPT_NODE, "n1",
	        "WORKLOAD DIRECTION LOCAL  REMOTE      REMOTE TARGET PROTOCOL\n"
	        "b.x      Inbound   b.x:80 [fd00::9]:5               \n"
	        "b.x      Outbound  b.x:7  s.x:80                    \n");
	assert_list(LISTING_CONNECTIONS, CTL_OPT_NODE, "n2",
	        "WORKLOAD DIRECTION LOCAL REMOTE REMOTE TARGET PROTOCOL\n");
}

static void sorts_as_istioctl_does(void **state)
{
	struct dump dump;
	struct ctl ctl = {.output = CTL_OUTPUT_SHORT};
	(void)state;
	assert_int_equal(
	        parse("{\"workloads\":[{\"namespace\":\"a\",\"name\":\"x\",\"node\":\"2\"},"
	              "{\"namespace\":\"a\",\"name\":\"x\",\"node\":\"1\"},{\"namespace\":\"a-b\",\"name\":\"x\"},"
	              "{\"namespace\":\"a\"}],\"policies\":[{\"namespace\":\"a-b\"},{\"namespace\":\"a\"}]}",
	                &dump),
	        0);
	char *text = printed(&dump, &ctl, LISTING_WORKLOAD, THEN, 0);
	assert_string_equal(text, "NAMESPACE POD NAME ADDRESS NODE WAYPOINT PROTOCOL\n"
	                          "a-b       x                     None     \n"
	                          "a                               None     \n"
	                          "a         x                1    None     \n"
	                          "a         x                2    None     \n");
	free(text);
	text = printed(&dump, &ctl, LISTING_POLICY, THEN, 0);
	assert_non_null(strstr(text, "\na                            \na-b                          \n"));
	free(text);
	dump_done(&dump);
}

static void names_what_is_near(void **state)
{
	static const char *const typed[][2] = {
	        {"bb", "did you mean b.x"}, {"b.y", "did you mean b.x"}, {"quite-another", "quite-another"}};
	(void)state;
	for (size_t i = 0; i < sizeof(typed) / sizeof(typed[0]); i++) {
		struct dump dump;
		struct err err = {0};
		struct ctl ctl = {.out = stdout, .options = {[CTL_OPT_POD] = typed[i][0]}};
		assert_int_equal(parse(MESH, &dump), 0);
		assert_int_equal(listing_print(&dump, &ctl, LISTING_CONNECTIONS, THEN, &err), -ESRCH);
		assert_non_null(strstr(err.text, typed[i][1]));
		dump_done(&dump);
	}
}

static void survives_other_types(void **state)
{
	static const char *const texts[] = {"{}", "{\"workloads\":7,\"services\":null,\"workloadState\":[1]}",
	        "{\"workloads\":[null,1,{\"uid\":{},\"workloadIps\":[{}],\"waypoint\":[]}],"
	        "\"services\":[{\"vips\":\"x\",\"endpoints\":[1,null],\"ports\":3}],\"policies\":[{\"rules\":[[1]]}],"
	        "\"certificates\":[{\"certChain\":[1,{}],\"rootCerts\":{}}],"
	        "\"workloadState\":{\"\":{\"info\":3,\"connections\":{\"inbound\":{\"a\":1}}}}}"};
	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct dump dump;
		assert_int_equal(parse(texts[i], &dump), 0);
		for (int listing = 0; listing < LISTING_CNT; listing++) {
			for (int output = 0; output <= CTL_OUTPUT_YAML; output++) {
				struct ctl ctl = {.output = (enum ctl_output)output};
				free(printed(&dump, &ctl, (enum listing)listing, THEN, 0));
			}
		}
		dump_done(&dump);
	}
}

static void refuses_what_is_no_dump(void **state)
{
	static const char *const texts[] = {"", "[]", "null", "{\"workloads\":", "{} x"};
	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct dump dump;
		assert_int_equal(parse(texts[i], &dump), -EPROTO);
	}
}

static void turns_serials_to_hexadecimal(void **state)
{
	static const char *const rows[][2] = {
	        {"0", "0"},
	        {"16", "10"},
	        {"249898194162858192030122644956637077169", "bc00a43a91087bf62dc2cc85b1909eb1"},
	        {"-255", "-ff"},
	        {"", "<nil>"},
	        {"-", "<nil>"},
	        {"1f", "<nil>"},
	        {"1 ", "<nil>"},
	};
	char long_number[300];
	struct buf text;
	(void)state;
	buf_init(&text, 1000);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		buf_clear(&text);
		cells_hex(rows[i][0], &text);
		assert_string_equal(buf_cstr(&text), rows[i][1]);
	}
	memset(long_number, '9', sizeof(long_number) - 1);
	long_number[sizeof(long_number) - 1] = '\0';
	buf_clear(&text);
	cells_hex(long_number, &text);
	assert_string_equal(buf_cstr(&text), "<nil>");
	long_number[200] = '\0';
	buf_clear(&text);
	cells_hex(long_number, &text);
	assert_int_equal(text.len, 167);
	buf_done(&text);
}

static void judges_validity_by_the_clock(void **state)
{
	static const struct {
		int64_t now_s;
		const char *word;
	} rows[] = {{100, "false"}, {101, "true"}, {199, "true"}, {200, "false"}};
	struct dump dump;
	struct ctl ctl = {.output = CTL_OUTPUT_SHORT};
	(void)state;
	assert_int_equal(
	        parse("{\"certificates\":[{\"identity\":\"i\",\"state\":\"Available\",\"certChain\":"
	              "[{\"validFrom\":\"1970-01-01T00:01:40Z\",\"expirationTime\":\"1970-01-01T00:03:20Z\"}]}]}",
	                &dump),
	        0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *text = printed(&dump, &ctl, LISTING_CERTIFICATE, rows[i].now_s, 0);
		assert_non_null(strstr(text, rows[i].word));
		free(text);
	}
	dump_done(&dump);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(prints_what_istioctl_prints),
	        cmocka_unit_test(filters),
	        cmocka_unit_test(sorts_as_istioctl_does),
	        cmocka_unit_test(names_what_is_near),
	        cmocka_unit_test(survives_other_types),
	        cmocka_unit_test(refuses_what_is_no_dump),
	        cmocka_unit_test(turns_serials_to_hexadecimal),
	        cmocka_unit_test(judges_validity_by_the_clock),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Error codes, texts and wrapping. */
#include <errno.h>

#include "base/err.h"
#include "unit.h"

static void codes(void **state)
{
	assert_int_equal(ERR_SELF_CALL, -1001);
	assert_string_equal(err_str(ERR_SELF_CALL), "attempted recursive call to ourselves");
	assert_string_equal(err_str(ERR_CONFIG), "invalid configuration");
	assert_string_equal(err_str(-ECONNREFUSED), "Connection refused");
	assert_string_equal(err_str(0), "success");
	assert_string_equal(err_str(-999), "unknown error");
	assert_string_equal(err_str(5), "unknown error");
	assert_string_equal(err_str(-1001 - ERR_ROW_CNT), "unknown error");
	char text[64];
	assert_string_equal(
	        err_io_text(-ECONNREFUSED, text, sizeof(text)), "Connection refused (os error 111)");
	assert_string_equal(err_io_text(ERR_SEND, text, sizeof(text)), "send");
	assert_string_equal(err_io_text(ERR_SELF_CALL, text, 5), "atte");
}

static void flags(void **state)
{
	static const struct {
		int code;
		const char *flag;
	} rows[] = {
	        {0, "-"},
	        {-EPIPE, "CONNECT"},
	        {ERR_NOT_ALLOWED, "DENY"},
	        {ERR_REVOKED, "CERT_REVOKED"},
	        {ERR_NETWORK_POLICY, "NETWORK_POLICY"},
	        {ERR_IDENTITY, "IDENTITY_ERROR"},
	        {ERR_TLS_SETUP, "TLS_FAILURE"},
	        {ERR_H2, "H2_HANDSHAKE_FAILURE"},
	        {ERR_DRAINED, "-"},
	        {ERR_TLS_HANDSHAKE, "CONNECT"},
	};
	for (size_t i = 0; i < CNT(rows); i++)
		assert_string_equal(response_flag_str(err_flag(rows[i].code)), rows[i].flag);
	assert_string_equal(response_flag_str((enum response_flag)99), "-");
}

static void stories(void **state)
{
	struct err e = {0};
	assert_int_equal(err_sys(&e, -ENOENT, "open %s", "x"), -ENOENT);
	assert_string_equal(e.text, "open x: No such file or directory");
	assert_int_equal(err_wrap(&e, "start %d", 1), -ENOENT);
	assert_string_equal(e.text, "start 1: open x: No such file or directory");
	assert_int_equal(err_set(NULL, -5, "x"), -5);
	assert_int_equal(err_wrap(NULL, "x"), 0);
	for (int i = 0; i < 100; i++)
		err_wrap(&e, "long long long");
	assert_int_equal(strlen(e.text), ERR_TEXT_MAX - 1);
	assert_int_equal(e.code, -ENOENT);
}

/* The words of a failure in the access log give the same flag as its code would. */
static void test_flag_of_text(void **state)
{
	(void)state;
	assert_int_equal(err_text_flag(NULL), RESPONSE_FLAG_NONE);
	assert_int_equal(err_text_flag("connection closed due to connection drain"), RESPONSE_FLAG_NONE);
	assert_int_equal(
	        err_text_flag("connection closed due to policy rejection: explicitly denied by: ns/x"),
	        RESPONSE_FLAG_DENY);
	assert_int_equal(err_text_flag("connection closed due to policy change"), RESPONSE_FLAG_DENY);
	assert_int_equal(
	        err_text_flag("connection failed: Connection refused (os error 111)"), RESPONSE_FLAG_CONNECT);
	assert_int_equal(err_text_flag("io error: deadline has elapsed"), RESPONSE_FLAG_CONNECT);
	assert_int_equal(err_text_flag(""), RESPONSE_FLAG_CONNECT);
	assert_int_equal(err_text_flag("connection closed: peer certificate revoked by CRL"),
	        RESPONSE_FLAG_CERT_REVOKED);
	assert_int_equal(
	        err_text_flag("connection timed out, maybe a NetworkPolicy is blocking HBONE port 15008: x"),
	        RESPONSE_FLAG_NETWORK_POLICY);
	assert_int_equal(err_text_flag("identity error: no CA"), RESPONSE_FLAG_IDENTITY_ERROR);
	assert_int_equal(err_text_flag("h2 failed: peer is going away"), RESPONSE_FLAG_H2_HANDSHAKE_FAILURE);
	assert_int_equal(err_text_flag("tls error: x"), RESPONSE_FLAG_TLS_FAILURE);
	assert_int_equal(err_text_flag("tls handshake error: x"), RESPONSE_FLAG_CONNECT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_flag_of_text), cmocka_unit_test(codes),
	        cmocka_unit_test(flags), cmocka_unit_test(stories)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

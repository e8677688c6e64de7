/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The flight recorder: the ring with texts of any length, the watch, who ended a connection. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/err.h"
#include "mesh/identity.h"
#include "silo/recorder.h"
#include "silo/silo.h"

static struct silo *new_silo(void)
{
	static struct silo silo;
	memset(&silo, 0, sizeof(silo));
	return &silo;
}

/* Adds an event with texts of these lengths, every byte of them told by its number. */
static void add(struct silo *silo, size_t peer_len, size_t error_len)
{
	char peer[2 * IDENTITY_STR_MAX] = "";
	char error[2 * RECORDER_ERROR_MAX] = "";
	char c = (char)('a' + recorder_last(silo) % 26);
	struct record_clock clock;
	record_start(&clock);
	memset(peer, c, peer_len);
	memset(error, c, error_len);
	struct record_event event = {.peer = peer, .attempts = 1, .sent = recorder_last(silo) + 1};
	recorder_add(silo, &clock, NULL, error_len ? error : NULL, &event);
}

/* Every event that is held is whole. */
static void check(const struct silo *silo, size_t peer_len, size_t error_len)
{
	struct record_event event;
	uint64_t first = recorder_first(silo);
	assert_true(first > 0);
	for (uint64_t seq = first; seq <= recorder_last(silo); seq++) {
		char c = (char)('a' + (seq - 1) % 26);
		assert_true(recorder_get(silo, seq, &event));
		assert_int_equal(event.seq, seq);
		assert_int_equal(event.sent, seq);
		assert_int_equal(strlen(event.peer), peer_len);
		assert_int_equal(strlen(event.error), error_len);
		assert_true(peer_len == 0 || (event.peer[0] == c && event.peer[peer_len - 1] == c));
		assert_true(error_len == 0 || (event.error[0] == c && event.error[error_len - 1] == c));
	}
	assert_false(recorder_get(silo, first - 1, &event));
	assert_false(recorder_get(silo, recorder_last(silo) + 1, &event));
}

static void test_ring(void **state)
{
	struct record_event event;
	struct silo *silo = new_silo();
	(void)state;
	assert_int_equal(recorder_last(silo), 0);
	assert_int_equal(recorder_first(silo), 0);
	assert_false(recorder_get(silo, 0, &event));
	assert_null(silo->recorder);
	for (int i = 0; i < 1000; i++) {
		add(silo, 60, 0);
		check(silo, 60, 0);
		assert_int_equal(recorder_last(silo) - recorder_first(silo) + 1, i < 256 ? i + 1 : 256);
	}
	recorder_done(silo);
	assert_null(silo->recorder);
}

/* Long texts: fewer events, cut at their ceilings, none damaged. */
static void test_long_texts(void **state)
{
	struct silo *silo = new_silo();
	(void)state;
	for (int i = 0; i < 700; i++) {
		add(silo, IDENTITY_STR_MAX + 10, RECORDER_ERROR_MAX + 10);
		check(silo, IDENTITY_STR_MAX, RECORDER_ERROR_MAX);
	}
	uint64_t held = recorder_last(silo) - recorder_first(silo) + 1;
	assert_in_range(held,
	        RECORDER_BYTES_MAX /
	                (sizeof(struct record_event) + IDENTITY_STR_MAX + RECORDER_ERROR_MAX + 64),
	        256);
	recorder_done(silo);
}

/* All lengths mixed: whatever is overwritten is gone, the rest is whole. */
static void test_mixed(void **state)
{
	struct silo *silo = new_silo();
	struct record_event event;
	(void)state;
	for (unsigned i = 0; i < 5000; i++) {
		size_t peer_len = (i * 7919u) % IDENTITY_STR_MAX;
		add(silo, peer_len, (i * 104729u) % RECORDER_ERROR_MAX);
		for (uint64_t seq = recorder_first(silo); seq <= recorder_last(silo); seq++) {
			assert_true(recorder_get(silo, seq, &event));
			assert_int_equal(event.seq, seq);
			assert_int_equal(strlen(event.peer), ((seq - 1) * 7919u) % IDENTITY_STR_MAX);
		}
	}
	assert_int_equal(recorder_last(silo), 5000);
	recorder_done(silo);
}

static void test_clock(void **state)
{
	struct record_clock clock;
	struct record_clock other;
	(void)state;
	record_start(&clock);
	uint64_t start = clock.start_us;
	record_lap_at(&clock, RECORD_TCP, start + 100);
	record_lap_at(&clock, RECORD_TLS, start + 150);
	/* What was over before this phase began took no time of it. */
	record_lap_at(&clock, RECORD_CONNECT, start + 150);
	record_lap_at(&clock, RECORD_CONNECT, 0);
	record_lap_at(&clock, RECORD_TCP, start + 170);
	assert_int_equal(clock.us[RECORD_TCP], 120);
	assert_int_equal(clock.us[RECORD_TLS], 50);
	assert_int_equal(clock.present, 1u << RECORD_TCP | 1u << RECORD_TLS);
	record_start(&other);
	record_borrow(&other, &clock);
	record_lap(&other, RECORD_LOOKUP);
	assert_int_equal(other.us[RECORD_TCP], 120);
	assert_int_equal(other.present, 1u << RECORD_TCP | 1u << RECORD_TLS | 1u << RECORD_LOOKUP);
	/* Hours do not wrap. */
	record_lap_at(&clock, RECORD_TLS, start + 5000000000u);
	assert_int_equal(clock.us[RECORD_TLS], UINT32_MAX);
}

static struct record_event end_of(const char *error, unsigned attempts, enum record_by by)
{
	struct silo *silo = new_silo();
	struct record_clock clock;
	struct record_event event = {.attempts = (uint8_t)attempts};
	record_start(&clock);
	clock.by = (uint8_t)by;
	recorder_add(silo, &clock, NULL, error, &event);
	recorder_done(silo);
	return event;
}

static void test_ends(void **state)
{
	static const struct {
		const char *error;
		unsigned attempts;
		enum record_by told;
		enum record_by by;
		enum record_how how;
	} CASES[] = {
	        {"connection failed: refused", 1, RECORD_BY_NOBODY, RECORD_BY_PROXY, RECORD_HOW_ERROR},
	        {"no route", 0, RECORD_BY_NOBODY, RECORD_BY_PROXY, RECORD_HOW_REFUSED},
	        {"gave up", 1, RECORD_BY_CLIENT, RECORD_BY_CLIENT, RECORD_HOW_ERROR},
	        {NULL, 1, RECORD_BY_CLIENT, RECORD_BY_CLIENT, RECORD_HOW_RESET},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
		struct record_event event = end_of(CASES[i].error, CASES[i].attempts, CASES[i].told);
		assert_int_equal(event.by, CASES[i].by);
		assert_int_equal(event.how, CASES[i].how);
	}
	/* What we cut is ours, whoever had begun to go. */
	struct record_event event = end_of(err_str(ERR_DRAINED), 1, RECORD_BY_CLIENT);
	assert_int_equal(event.by, RECORD_BY_PROXY);
	assert_int_equal(event.how, RECORD_HOW_DRAIN);
	assert_int_equal(end_of(err_str(ERR_POLICY_CHANGE), 1, RECORD_BY_NOBODY).how, RECORD_HOW_POLICY);
	assert_int_equal(end_of(err_str(ERR_REVOKED), 1, RECORD_BY_NOBODY).how, RECORD_HOW_REVOKED);
	assert_int_equal(end_of(err_str(ERR_REVOKED), 1, RECORD_BY_NOBODY).flag, RESPONSE_FLAG_CERT_REVOKED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_ring),
	        cmocka_unit_test(test_long_texts),
	        cmocka_unit_test(test_mixed),
	        cmocka_unit_test(test_clock),
	        cmocka_unit_test(test_ends),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

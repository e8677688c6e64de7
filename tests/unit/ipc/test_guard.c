/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Permits: every record type against every origin, phase, id, descriptor and size. */
#include "../pb/unit.h"

#include "ipc/guard.h"

static struct err err;

/* clang-format off */
/* What is right for one record type; the sets are strings of the roles' initials. */
static const struct row {
	enum ipc_type type;
	const char *from, *to;
	char fd; /* y, n */
	char id; /* y, n, * */
} rows[] = {
	{IPC_HERITAGE, "w", "s", 'n', 'n'},
	{IPC_UNSUPPORTED, "wbs", "wbs", 'n', 'y'},
	{IPC_ATTACH_BROKER, "w", "s", 'y', 'n'},
	{IPC_DRAIN, "w", "sb", 'n', 'n'},
	{IPC_READY, "s", "w", 'n', 'n'},
	{IPC_START_FAILED, "s", "w", 'n', 'n'},
	{IPC_DRAINED, "s", "w", 'n', 'n'},
	{IPC_SILO_ATTACH, "w", "b", 'y', 'n'},
	{IPC_SILO_STATE, "w", "b", 'n', 'n'},
	{IPC_NODE_STATE, "w", "b", 'n', 'n'},
	{IPC_MESH_STATE, "b", "w", 'n', 'n'},
	{IPC_STOP_REQUEST, "b", "w", 'n', 'n'},
	{IPC_LOG_PIPE, "s", "b", 'y', 'n'},
	{IPC_ASK_WORKLOAD, "s", "b", 'n', 'y'},
	{IPC_ANSWER_WORKLOAD, "b", "s", 'n', '*'},
	{IPC_ASK_CERTIFICATE, "s", "b", 'n', 'y'},
	{IPC_ANSWER_CERTIFICATE, "b", "s", 'n', 'y'},
	{IPC_ASK_ADDRESS, "s", "b", 'n', 'y'},
	{IPC_ASK_HOST, "s", "b", 'n', 'y'},
	{IPC_ANSWER_VIEW, "b", "s", 'n', '*'},
	{IPC_ASK_POLICIES, "s", "b", 'n', 'y'},
	{IPC_ANSWER_POLICIES, "b", "s", '?', '*'},
	{IPC_EVICT, "s", "b", 'n', 'n'},
	{IPC_FORGET_ALL, "b", "s", 'n', 'n'},
	{IPC_SET_LOG, "b", "ws", 'n', 'n'},
	{IPC_ASK_STATE, "b", "s", 'n', 'y'},
	{IPC_ANSWER_STATE, "s", "b", 'n', 'y'},
	{IPC_ASK_METRICS, "b", "s", 'n', 'y'},
	{IPC_ANSWER_METRICS, "s", "b", 'n', '*'},
	{IPC_ASK_RESOLVER, "s", "b", 'n', 'y'},
	{IPC_ANSWER_RESOLVER, "b", "s", 'n', 'y'},
	{IPC_ASK_RESOLVE, "s", "b", 'n', 'y'},
	{IPC_ANSWER_RESOLVE, "b", "s", 'n', 'y'},
};
/* clang-format on */
static const char initials[] = {0, 'w', 'b', 's', 'c'};

/* A channel whose phase is `phase` at the receiver. */
static struct guard at_phase(enum ipc_role self, enum ipc_role peer, enum guard_phase phase)
{
	struct guard guard;
	guard_init(&guard, self, peer, phase == GUARD_SETUP);
	guard.phase = phase;
	return guard;
}

static int check(
        enum ipc_role self, enum ipc_role peer, enum guard_phase phase, struct ipc_peek peek, bool has_fd)
{
	struct guard guard = at_phase(self, peer, phase);
	return guard_check(&guard, &peek, has_fd, &err);
}

static struct ipc_peek good(const struct row *row)
{
	return (struct ipc_peek){.id = row->id == 'n' ? 0 : 7, .type = row->type, .len = 8};
}

static enum guard_phase phase_of(const struct row *row)
{
	return row->type == IPC_HERITAGE ? GUARD_SETUP : GUARD_OPEN;
}

static void test_origin(void **state)
{
	for (size_t i = 0; i < CNT(rows); i++) {
		for (enum ipc_role from = IPC_ROLE_WARDEN; from <= IPC_ROLE_CTL; from++) {
			for (enum ipc_role to = IPC_ROLE_WARDEN; to <= IPC_ROLE_CTL; to++) {
				bool ok = strchr(rows[i].from, initials[from]) &&
				          strchr(rows[i].to, initials[to]);
				int rc = check(
				        to, from, phase_of(&rows[i]), good(&rows[i]), rows[i].fd == 'y');
				assert_int_equal(rc, ok ? 0 : ERR_BAD_SENDER);
				struct guard guard = at_phase(from, to, GUARD_OPEN);
				struct ipc_peek peek = good(&rows[i]);
				rc = guard_check_send(&guard, &peek, rows[i].fd == 'y', &err);
				assert_int_equal(rc, ok ? 0 : ERR_BAD_SENDER);
			}
		}
	}
}

/* One legal pair of roles for a row. */
static int check_row(const struct row *row, enum guard_phase phase, struct ipc_peek peek, bool has_fd)
{
	enum ipc_role from = IPC_ROLE_WARDEN, to = IPC_ROLE_WARDEN;
	while (!strchr(row->from, initials[from]))
		from++;
	while (!strchr(row->to, initials[to]) || to == from)
		to++;
	return check(to, from, phase, peek, has_fd);
}

static void test_phase(void **state)
{
	for (size_t i = 0; i < CNT(rows); i++) {
		bool in_setup = rows[i].type == IPC_HERITAGE || rows[i].type == IPC_LOG_PIPE;
		bool in_open = rows[i].type != IPC_HERITAGE;
		bool is_ask = strncmp(ipc_type_str(rows[i].type), "Ask", 3) == 0;
		bool in_closing =
		        in_open && !is_ask && rows[i].type != IPC_LOG_PIPE && rows[i].type != IPC_SILO_ATTACH;
		bool fd = rows[i].fd == 'y';
		assert_int_equal(check_row(&rows[i], GUARD_GREETING, good(&rows[i]), fd), ERR_BAD_PHASE);
		assert_int_equal(
		        check_row(&rows[i], GUARD_SETUP, good(&rows[i]), fd), in_setup ? 0 : ERR_BAD_PHASE);
		assert_int_equal(
		        check_row(&rows[i], GUARD_OPEN, good(&rows[i]), fd), in_open ? 0 : ERR_BAD_PHASE);
		assert_int_equal(check_row(&rows[i], GUARD_CLOSING, good(&rows[i]), fd),
		        in_closing ? 0 : ERR_BAD_PHASE);
	}
}

static void test_descriptor_and_id(void **state)
{
	for (size_t i = 0; i < CNT(rows); i++) {
		struct ipc_peek peek = good(&rows[i]);
		assert_int_equal(check_row(&rows[i], phase_of(&rows[i]), peek, rows[i].fd != 'y'),
		        rows[i].fd == '?' ? 0 : ERR_BAD_FD);
		peek.id = peek.id ? 0 : 7;
		assert_int_equal(check_row(&rows[i], phase_of(&rows[i]), peek, rows[i].fd == 'y'),
		        rows[i].id == '*' ? 0 : ERR_PROTOCOL);
	}
}

static void test_size(void **state)
{
	for (size_t i = 0; i < CNT(rows); i++) {
		struct ipc_peek peek = good(&rows[i]);
		peek.len = guard_size_max(rows[i].type);
		assert_in_range(peek.len, 64, IPC_RECORD_MAX);
		assert_int_equal(check_row(&rows[i], phase_of(&rows[i]), peek, rows[i].fd == 'y'), 0);
		peek.len++;
		assert_int_equal(
		        check_row(&rows[i], phase_of(&rows[i]), peek, rows[i].fd == 'y'), ERR_TOO_LARGE);
	}
	assert_int_equal(guard_size_max((enum ipc_type)63), 0);
	assert_int_equal(guard_size_max((enum ipc_type)999), 0);
}

static void test_unknown(void **state)
{
	struct ipc_peek later = {.id = 1, .type = 63, .len = 4}, far = {.id = 1, .type = 5000, .len = 4},
	                none = {.id = 1, .len = 2};
	assert_int_equal(check(IPC_ROLE_BROKER, IPC_ROLE_SILO, GUARD_OPEN, later, false), ERR_UNSUPPORTED);
	assert_int_equal(check(IPC_ROLE_BROKER, IPC_ROLE_SILO, GUARD_CLOSING, far, true), ERR_UNSUPPORTED);
	assert_int_equal(check(IPC_ROLE_BROKER, IPC_ROLE_SILO, GUARD_GREETING, later, false), ERR_BAD_PHASE);
	assert_int_equal(check(IPC_ROLE_BROKER, IPC_ROLE_SILO, GUARD_OPEN, none, false), ERR_PROTOCOL);
}

static void test_once(void **state)
{
	static const enum ipc_type once[] = {IPC_READY, IPC_DRAINED, IPC_START_FAILED};
	for (size_t i = 0; i < CNT(once); i++) {
		struct guard guard = at_phase(IPC_ROLE_WARDEN, IPC_ROLE_SILO, GUARD_OPEN);
		struct ipc_peek peek = {.type = once[i], .len = 4};
		assert_ok(guard_check(&guard, &peek, false, &err));
		assert_err(guard_check(&guard, &peek, false, &err), ERR_BAD_PHASE, "came twice");
	}
}

/* The way of a birth channel: Hello, Heritage, then the rest; Drain ends new asks. */
static void test_life(void **state)
{
	struct guard guard;
	struct ipc_peek hello = {.type = IPC_HELLO, .len = 8}, heritage = {.type = IPC_HERITAGE, .len = 8};
	struct ipc_peek drain = {.type = IPC_DRAIN, .len = 8};
	guard_init(&guard, IPC_ROLE_SILO, IPC_ROLE_WARDEN, true);
	assert_err(guard_check(&guard, &drain, false, &err), ERR_BAD_PHASE,
	        "Drain: not permitted in this phase");
	assert_ok(guard_check(&guard, &hello, false, &err));
	assert_int_equal(guard.phase, GUARD_SETUP);
	assert_int_equal(guard_check(&guard, &drain, false, &err), ERR_BAD_PHASE);
	assert_ok(guard_check(&guard, &heritage, false, &err));
	assert_int_equal(guard.phase, GUARD_OPEN);
	assert_int_equal(guard_check(&guard, &hello, false, &err), ERR_BAD_PHASE);
	assert_ok(guard_check(&guard, &drain, false, &err));
	assert_int_equal(guard.phase, GUARD_CLOSING);
	assert_ok(guard_check(&guard, &drain, false, &err));
	guard_init(&guard, IPC_ROLE_WARDEN, IPC_ROLE_SILO, false);
	assert_ok(guard_check(&guard, &hello, true, &err));
	assert_int_equal(guard.phase, GUARD_OPEN);
}

/* A Hello brings a descriptor from silo to warden only. */
static void test_hello_descriptor(void **state)
{
	struct ipc_peek hello = {.type = IPC_HELLO, .len = 8};
	assert_int_equal(check(IPC_ROLE_WARDEN, IPC_ROLE_SILO, GUARD_GREETING, hello, true), 0);
	assert_int_equal(check(IPC_ROLE_SILO, IPC_ROLE_WARDEN, GUARD_GREETING, hello, true), ERR_BAD_FD);
	assert_int_equal(check(IPC_ROLE_BROKER, IPC_ROLE_SILO, GUARD_GREETING, hello, true), ERR_BAD_FD);
	assert_int_equal(check(IPC_ROLE_SILO, IPC_ROLE_NONE, GUARD_GREETING, hello, false), 0);
	assert_int_equal(check(IPC_ROLE_SILO, IPC_ROLE_NONE, GUARD_GREETING, hello, true), ERR_BAD_FD);
}

static void test_greeting(void **state)
{
	struct guard guard;
	uint32_t proto = 0;
	struct ipc_hello hello = {.release = "9.9", .proto_min = 1, .proto_max = 5, .role = IPC_ROLE_WARDEN};
	guard_init(&guard, IPC_ROLE_SILO, IPC_ROLE_NONE, false);
	assert_ok(guard_greeted(&guard, &hello, &proto, &err));
	assert_int_equal(proto, IPC_PROTO_MAX);
	assert_int_equal(guard.peer, IPC_ROLE_WARDEN);
	hello.role = IPC_ROLE_BROKER;
	assert_err(
	        guard_greeted(&guard, &hello, &proto, &err), ERR_BAD_SENDER, "a broker is not expected here");
	guard_init(&guard, IPC_ROLE_SILO, IPC_ROLE_NONE, false);
	hello.role = IPC_ROLE_SILO;
	assert_int_equal(guard_greeted(&guard, &hello, &proto, &err), ERR_BAD_SENDER);
	hello = (struct ipc_hello){.release = "9.9",
	        .proto_min = IPC_PROTO_MAX + 1,
	        .proto_max = IPC_PROTO_MAX + 2,
	        .role = IPC_ROLE_BROKER};
	assert_err(guard_greeted(&guard, &hello, &proto, &err), ERR_BAD_VERSION,
	        "release 9.9 speaks protocol 2 to 3, this one 1 to 1");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_origin),
	        cmocka_unit_test(test_phase),
	        cmocka_unit_test(test_descriptor_and_id),
	        cmocka_unit_test(test_size),
	        cmocka_unit_test(test_unknown),
	        cmocka_unit_test(test_once),
	        cmocka_unit_test(test_life),
	        cmocka_unit_test(test_hello_descriptor),
	        cmocka_unit_test(test_greeting),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

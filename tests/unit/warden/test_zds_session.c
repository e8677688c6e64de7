/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The state machine of the node agent's conversation, table-driven: a script
 * of what happens, and the effects that must follow, in order.
 *
 * Script words: connect, lost, add:<uid>:<netns>, bare:<uid> (Add without
 * info), keep:<uid>, del:<uid>, snapshot, ok:<uid> and fail:<uid> (a start
 * ends), tick. Effects: ack, nack(<text>), hangup, start <uid> <netns>,
 * stop <uid>, forget <uid>, forgetall, drop <uid> (by the reconcile), retry,
 * arm, disarm.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "warden/zds_session.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define PODS 8

/* A pod of the double: what pods.c would know. */
struct fake_pod {
	char uid[64];
	int netns;
	enum { NONE, STARTING, RUNNING, FAILED } state;
	bool has_failed;
};

struct fake {
	struct zds_session session;
	struct fake_pod pods[PODS];
	bool is_armed;
	char trace[4096];
};

static void note(struct fake *fake, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void note(struct fake *fake, const char *fmt, ...)
{
	size_t len = strlen(fake->trace);
	va_list ap;
	va_start(ap, fmt);
	len += (size_t)snprintf(fake->trace + len, sizeof(fake->trace) - len, len ? "; " : "");
	vsnprintf(fake->trace + len, sizeof(fake->trace) - len, fmt, ap);
	va_end(ap);
}

static struct fake_pod *pod_of(struct fake *fake, const char *uid, bool may_make)
{
	for (int i = 0; i < PODS; i++)
		if (fake->pods[i].state != NONE && strcmp(fake->pods[i].uid, uid) == 0)
			return &fake->pods[i];
	for (int i = 0; may_make && i < PODS; i++)
		if (fake->pods[i].state == NONE) {
			snprintf(fake->pods[i].uid, sizeof(fake->pods[i].uid), "%s", uid);
			return &fake->pods[i];
		}
	return NULL;
}

/* The double's descriptors carry the namespace in their number. */
static int netns_fd(int netns)
{
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	int fd = fcntl(null, F_DUPFD_CLOEXEC, 100 * netns);
	close(null);
	return fd;
}

static void op_reply(void *ctx, const char *error)
{
	if (error)
		note(ctx, "nack(%s)", error);
	else
		note(ctx, "ack");
}

static void op_hang_up(void *ctx)
{
	note(ctx, "hangup");
}

static enum zds_presence op_find(void *ctx, const char *uid, int fd)
{
	struct fake_pod *pod = pod_of(ctx, uid, false);
	return pod && pod->state == RUNNING && pod->netns == fd / 100 ? ZDS_RUNNING : ZDS_ABSENT;
}

static void op_start(void *ctx, const char *uid, const struct workload_info *info, int fd)
{
	struct fake_pod *pod = pod_of(ctx, uid, true);
	pod->netns = fd / 100;
	pod->state = STARTING;
	close(fd);
	note(ctx, "start %s %d", uid, pod->netns);
}

static void op_stop(void *ctx, const char *uid)
{
	struct fake_pod *pod = pod_of(ctx, uid, false);
	note(ctx, "stop %s", uid);
	if (pod)
		*pod = (struct fake_pod){0};
}

static void op_forget_pending(void *ctx, const char *uid)
{
	struct fake_pod *pod = pod_of(ctx, uid, false);
	note(ctx, "forget %s", uid);
	if (pod && pod->has_failed)
		*pod = (struct fake_pod){0};
}

static void op_forget_all(void *ctx)
{
	struct fake *fake = ctx;
	note(ctx, "forgetall");
	for (int i = 0; i < PODS; i++)
		if (fake->pods[i].has_failed)
			fake->pods[i] = (struct fake_pod){0};
}

static void op_reconcile(void *ctx, bool (*is_kept)(const struct zds_session *session, const char *uid),
        const struct zds_session *session)
{
	struct fake *fake = ctx;
	for (int i = 0; i < PODS; i++)
		if (fake->pods[i].state != NONE && !is_kept(session, fake->pods[i].uid)) {
			note(ctx, "drop %s", fake->pods[i].uid);
			fake->pods[i] = (struct fake_pod){0};
		}
}

static void op_retry(void *ctx)
{
	struct fake *fake = ctx;
	note(ctx, "retry");
	for (int i = 0; i < PODS; i++)
		if (fake->pods[i].state == FAILED)
			fake->pods[i].state = STARTING;
}

static size_t op_pending(void *ctx)
{
	struct fake *fake = ctx;
	size_t cnt = 0;
	for (int i = 0; i < PODS; i++)
		cnt += fake->pods[i].has_failed;
	return cnt;
}

static void op_arm(void *ctx)
{
	struct fake *fake = ctx;
	if (!fake->is_armed)
		note(ctx, "arm");
	fake->is_armed = true;
}

static void op_disarm(void *ctx)
{
	struct fake *fake = ctx;
	if (fake->is_armed)
		note(ctx, "disarm");
	fake->is_armed = false;
}

static const struct zds_ops fake_ops = {
        .reply = op_reply,
        .hang_up = op_hang_up,
        .find = op_find,
        .start = op_start,
        .stop = op_stop,
        .forget_pending = op_forget_pending,
        .forget_all_pending = op_forget_all,
        .reconcile = op_reconcile,
        .retry_pending = op_retry,
        .pending_cnt = op_pending,
        .arm_retry = op_arm,
        .disarm_retry = op_disarm,
};

static void finish_start(struct fake *fake, const char *uid, const char *error)
{
	struct fake_pod *pod = pod_of(fake, uid, false);
	assert_non_null(pod);
	pod->state = error ? FAILED : RUNNING;
	pod->has_failed = error != NULL;
	zds_session_started(&fake->session, uid, error);
}

static void play(struct fake *fake, const char *word)
{
	char verb[16] = "";
	char uid[64] = "";
	int netns = 0;
	sscanf(word, "%15[^:]:%63[^:]:%d", verb, uid, &netns);
	struct zds_request req = {.uid = uid, .info = {.name = "n", .ns = "s", .service_account = "a"}};
	if (strcmp(verb, "connect") == 0) {
		zds_session_connected(&fake->session);
	} else if (strcmp(verb, "lost") == 0) {
		zds_session_lost(&fake->session);
	} else if (strcmp(verb, "tick") == 0) {
		fake->is_armed = false;
		zds_session_tick(&fake->session);
	} else if (strcmp(verb, "ok") == 0) {
		finish_start(fake, uid, NULL);
	} else if (strcmp(verb, "fail") == 0) {
		finish_start(fake, uid, "why");
	} else {
		req.type = strcmp(verb, "keep") == 0       ? ZDS_KEEP
		           : strcmp(verb, "del") == 0      ? ZDS_DEL
		           : strcmp(verb, "snapshot") == 0 ? ZDS_SNAPSHOT_SENT
		                                           : ZDS_ADD;
		req.has_info = strcmp(verb, "add") == 0;
		zds_session_request(
		        &fake->session, &req, req.type == ZDS_ADD ? netns_fd(req.has_info ? netns : 1) : -1);
	}
}

static const struct {
	const char *name;
	const char *script;
	const char *trace;
} cases[] = {
        {"an empty snapshot", "connect snapshot", "forgetall; ack"},
        {"add before the snapshot", "connect add:u1:1 ok:u1 snapshot", "forgetall; start u1 1; ack; ack"},
        {"add after the snapshot", "connect snapshot add:u1:1 ok:u1", "forgetall; ack; start u1 1; ack"},
        {"the same again is nothing", "connect add:u1:1 ok:u1 add:u1:1 snapshot add:u1:1",
                "forgetall; start u1 1; ack; ack; ack; ack"},
        {"another namespace moves the pod", "connect snapshot add:u1:1 ok:u1 add:u1:2 ok:u1",
                "forgetall; ack; start u1 1; ack; start u1 2; ack"},
        {"no workload_info", "connect bare:u1",
                "forgetall; nack(failure to process message : ProtocolError(\"workload_info is required but not present\")); hangup"},
        {"a failed start is pending and tried again", "connect add:u1:1 fail:u1 snapshot tick ok:u1",
                "forgetall; start u1 1; nack(failure to start proxy : why); arm; ack; retry; arm; disarm"},
        {"retries go on while one remains",
                "connect add:u1:1 fail:u1 add:u2:2 fail:u2 tick fail:u1 ok:u2 tick ok:u1",
                "forgetall; start u1 1; nack(failure to start proxy : why); arm; start u2 2; nack(failure to start proxy : why); retry; arm; retry; arm; disarm"},
        {"add of a pending pod uses the new namespace", "connect snapshot add:u1:1 fail:u1 add:u1:2 ok:u1",
                "forgetall; ack; start u1 1; nack(failure to start proxy : why); arm; start u1 2; disarm; ack"},
        {"del of a pending pod", "connect snapshot add:u1:1 fail:u1 del:u1",
                "forgetall; ack; start u1 1; nack(failure to start proxy : why); arm; stop u1; ack"},
        {"del before the snapshot only un-names", "connect add:u1:1 ok:u1 del:u1 snapshot",
                "forgetall; start u1 1; ack; forget u1; ack; drop u1; ack"},
        {"del before the snapshot forgets a pending pod", "connect add:u1:1 fail:u1 del:u1 snapshot",
                "forgetall; start u1 1; nack(failure to start proxy : why); arm; forget u1; ack; ack"},
        {"del after the snapshot stops", "connect add:u1:1 ok:u1 snapshot del:u1",
                "forgetall; start u1 1; ack; ack; stop u1; ack"},
        {"del of an unknown uid", "connect snapshot del:u9 del:", "forgetall; ack; stop u9; ack; stop ; ack"},
        {"add again after del", "connect snapshot add:u1:1 ok:u1 del:u1 add:u1:1 ok:u1",
                "forgetall; ack; start u1 1; ack; stop u1; ack; start u1 1; ack"},
        {"reconnect with keep", "connect add:u1:1 ok:u1 snapshot lost connect keep:u1 snapshot",
                "forgetall; start u1 1; ack; ack; forgetall; ack; ack"},
        {"reconnect with an omission",
                "connect add:u1:1 ok:u1 add:u2:2 ok:u2 snapshot lost connect keep:u2 snapshot",
                "forgetall; start u1 1; ack; start u2 2; ack; ack; forgetall; ack; drop u1; ack"},
        {"keep of an unknown uid", "connect keep:u5 snapshot", "forgetall; ack; ack"},
        {"keep after the snapshot", "connect snapshot keep:u1",
                "forgetall; ack; nack(failure to process message : ProtocolError(\"pod keep received after snapshot\")); hangup"},
        {"a second snapshot", "connect snapshot snapshot",
                "forgetall; ack; nack(failure to process message : ProtocolError(\"pod snapshot received already\")); hangup"},
        {"a new connection forgets pending pods",
                "connect snapshot add:u1:1 fail:u1 lost connect snapshot tick",
                "forgetall; ack; start u1 1; nack(failure to start proxy : why); arm; disarm; forgetall; ack; retry"},
        {"no retries while disconnected", "connect snapshot add:u1:1 fail:u1 lost tick",
                "forgetall; ack; start u1 1; nack(failure to start proxy : why); arm; disarm"},
        {"a start that outlives its connection is not answered",
                "connect add:u1:1 lost ok:u1 connect keep:u1 snapshot",
                "forgetall; start u1 1; forgetall; ack; ack"},
        {"nor when the next connection is there already",
                "connect add:u1:1 lost connect ok:u1 add:u1:1 snapshot",
                "forgetall; start u1 1; forgetall; ack; ack"},
        {"a retry does not answer another's request",
                "connect add:u1:1 fail:u1 snapshot tick add:u2:2 ok:u1 ok:u2",
                "forgetall; start u1 1; nack(failure to start proxy : why); arm; ack; retry; arm; start u2 2; disarm; ack"},
};

static int open_descriptors(void)
{
	int cnt = 0;
	for (int fd = 0; fd < 1024; fd++)
		cnt += fcntl(fd, F_GETFD) >= 0;
	return cnt;
}

/* As op_reply precedes the watch over pending pods or follows it, the order of the two effects is not the
 * table's concern. */
static void canonical(char *trace)
{
	char *at;
	while ((at = strstr(trace, "disarm; ack")) != NULL)
		memcpy(at, "ack; disarm", strlen("ack; disarm"));
}

static void test_cases(void **state)
{
	for (size_t i = 0; i < COUNT(cases); i++) {
		int before = open_descriptors();
		struct fake fake = {0};
		char script[512];
		char expected[2048];
		snprintf(script, sizeof(script), "%s", cases[i].script);
		snprintf(expected, sizeof(expected), "%s", cases[i].trace);
		zds_session_init(&fake.session, &fake_ops, &fake);
		for (char *word = strtok(script, " "); word; word = strtok(NULL, " "))
			play(&fake, word);
		zds_session_done(&fake.session);
		canonical(fake.trace);
		canonical(expected);
		if (strcmp(fake.trace, expected) != 0)
			print_error("case: %s\n", cases[i].name);
		assert_string_equal(fake.trace, expected);
		assert_int_equal(open_descriptors(), before);
	}
}

static void test_flags(void **state)
{
	struct fake fake = {0};
	zds_session_init(&fake.session, &fake_ops, &fake);
	assert_false(fake.session.is_connected);
	play(&fake, "connect");
	assert_true(fake.session.is_connected);
	play(&fake, "add:u1:1");
	assert_true(zds_session_is_busy(&fake.session));
	play(&fake, "ok:u1");
	assert_false(zds_session_is_busy(&fake.session));
	assert_false(fake.session.has_snapshot);
	play(&fake, "snapshot");
	assert_true(fake.session.has_snapshot);
	play(&fake, "add:u2:1");
	play(&fake, "lost");
	assert_false(fake.session.is_connected);
	assert_false(fake.session.has_snapshot);
	assert_false(zds_session_is_busy(&fake.session));
	zds_session_done(&fake.session);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_cases), cmocka_unit_test(test_flags)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

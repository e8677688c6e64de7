/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A node agent that says anything in any order: input is a sequence of steps,
 * each a byte for the kind, and for a packet a length byte and its bytes. Every
 * request must get exactly one answer, at once or when its start has ended.
 */
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/check.h"
#include "warden/zds_session.h"

enum step { STEP_PACKET, STEP_STARTED, STEP_FAILED, STEP_TICK, STEP_LOST, STEP_CONNECT, STEP_CNT };

struct agent {
	struct zds_session session;
	unsigned reply_cnt;
	bool must_close;
	bool is_armed;
	size_t pending;
	char starting[ZDS_PACKET_MAX + 1]; /* uid of the start asked for last; "" = none */
};

static void reply(void *ctx, const char *error)
{
	struct agent *agent = ctx;
	ASSERT(!error || error[0] != '\0');
	ASSERT(!error || strlen(error) <= ZDS_ERROR_MAX);
	agent->reply_cnt++;
}

static void hang_up(void *ctx)
{
	((struct agent *)ctx)->must_close = true;
}

static enum zds_presence find(void *ctx, const char *uid, int netns_fd)
{
	ASSERT(netns_fd >= 0);
	return uid[0] == 'r' ? ZDS_RUNNING : ZDS_ABSENT;
}

static void start(void *ctx, const char *uid, const struct workload_info *info, int netns_fd)
{
	struct agent *agent = ctx;
	ASSERT(info->name && info->ns && info->service_account);
	close(netns_fd);
	memcpy(agent->starting, uid, strlen(uid) + 1);
}

static void with_uid(void *ctx, const char *uid)
{
	ASSERT(uid != NULL);
}

static void without(void *ctx)
{
}

static void forget_all(void *ctx)
{
	((struct agent *)ctx)->pending = 0;
}

static void reconcile(void *ctx, bool (*is_kept)(const struct zds_session *session, const char *uid),
        const struct zds_session *session)
{
	(void)is_kept(session, "r");
}

static size_t pending_cnt(void *ctx)
{
	return ((struct agent *)ctx)->pending;
}

static void arm(void *ctx)
{
	struct agent *agent = ctx;
	ASSERT(agent->session.is_connected);
	agent->is_armed = true;
}

static void disarm(void *ctx)
{
	((struct agent *)ctx)->is_armed = false;
}

static const struct zds_ops ops = {
        .reply = reply,
        .hang_up = hang_up,
        .find = find,
        .start = start,
        .stop = with_uid,
        .forget_pending = with_uid,
        .forget_all_pending = forget_all,
        .reconcile = reconcile,
        .retry_pending = without,
        .pending_cnt = pending_cnt,
        .arm_retry = arm,
        .disarm_retry = disarm,
};

static void take_packet(struct agent *agent, const uint8_t *bytes, size_t len)
{
	struct zds_request req;
	struct arena *arena = arena_new(ZDS_ARENA_MAX);
	if (arena && zds_decode_request(bytes, len, arena, &req, NULL) == 0) {
		unsigned before = agent->reply_cnt;
		zds_session_request(&agent->session, &req,
		        req.type == ZDS_ADD ? open("/dev/null", O_RDONLY | O_CLOEXEC) : -1);
		ASSERT(agent->reply_cnt - before == (zds_session_is_busy(&agent->session) ? 0 : 1));
	}
	arena_unref(arena);
}

static void end_start(struct agent *agent, const char *error)
{
	bool was_busy = zds_session_is_busy(&agent->session);
	unsigned before = agent->reply_cnt;
	if (agent->starting[0] == '\0')
		return;
	agent->pending += error ? 1 : 0;
	zds_session_started(&agent->session, agent->starting, error);
	agent->starting[0] = '\0';
	ASSERT(agent->reply_cnt - before == (was_busy ? 1 : 0));
	ASSERT(!zds_session_is_busy(&agent->session));
	ASSERT(agent->is_armed == (agent->pending > 0 && agent->session.is_connected));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct agent agent = {0};
	zds_session_init(&agent.session, &ops, &agent);
	for (size_t at = 0; at < size; at++) {
		size_t len = at + 1 < size ? data[at + 1] : 0;
		switch (data[at] % STEP_CNT) {
		case STEP_PACKET:
			at = at + 1 < size ? at + 1 : at;
			len = len > size - at - 1 ? size - at - 1 : len;
			if (agent.session.is_connected && !agent.must_close &&
			        !zds_session_is_busy(&agent.session))
				take_packet(&agent, data + at + 1, len);
			at += len;
			break;
		case STEP_STARTED:
			end_start(&agent, NULL);
			break;
		case STEP_FAILED:
			end_start(&agent, "why");
			break;
		case STEP_TICK:
			zds_session_tick(&agent.session);
			break;
		case STEP_LOST:
			zds_session_lost(&agent.session);
			ASSERT(!agent.is_armed && !zds_session_is_busy(&agent.session));
			break;
		case STEP_CONNECT:
			agent.must_close = false;
			zds_session_connected(&agent.session);
			break;
		default:
			break;
		}
	}
	zds_session_done(&agent.session);
	return 0;
}

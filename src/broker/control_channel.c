/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The channel: what its settings are, which connection takes new calls; see control_channel.h. */
#include "broker/control_channel.h"

#include <errno.h>

#include "base/mem.h"
#include "broker/broker.h"
#include "broker/control_priv.h"

static const char TARGET[] = "ztunnel::tls::control";

/* Quiet time after the last event in the roots' folder, ms (reference control.md 6.6). */
#define ROOTS_QUIET_MS 2000

/* The next call makes a connection with the new roots; calls under way are not disturbed. */
static void roots_changed(void *ctx)
{
	struct control_channel *channel = ctx;
	log_msg(&channel->broker->log, LOG_DEBUG, TARGET, "%s: root certificates may have changed",
	        channel->auth.authority);
	control_channel_renew(channel);
}

static void watch_roots(struct control_channel *channel)
{
	int r = file_watch_new(channel->broker->io, channel->auth.roots, ROOTS_QUIET_MS, roots_changed,
	        channel, &channel->watch);
	if (r < 0)
		log_msg(&channel->broker->log, LOG_WARN, TARGET,
		        "root certificates %s are not watched, changes are seen at the next connection: %s",
		        channel->auth.roots, err_str(r));
}

int control_channel_new(struct broker *broker, enum control_purpose purpose,
        struct control_channel **ret_channel, struct err *err)
{
	struct control_channel *channel = mem_zalloc(1, sizeof(*channel));
	if (!channel)
		return err_set(err, -ENOMEM, "out of memory");
	channel->broker = broker;
	channel->purpose = purpose;
	list_init(&channel->conns);
	list_init(&channel->ending);
	int r = control_auth_init(&channel->auth, &broker->settings, purpose, &broker->log, err);
	if (r == 0 && !broker->h2_env && h2_env_new(0, &broker->h2_env) < 0)
		r = err_set(err, -ENOMEM, "out of memory");
	if (r < 0) {
		mem_free(channel);
		return r;
	}
	if (purpose == CONTROL_CA && channel->auth.roots_kind == CONTROL_ROOTS_FILE)
		watch_roots(channel);
	*ret_channel = channel;
	return 0;
}

void control_channel_free(struct control_channel *channel)
{
	if (!channel)
		return;
	list_for_each_safe(it, &channel->conns)
	{
		struct control_conn *conn = list_entry(it, struct control_conn, node);
		list_for_each_safe(at, &conn->calls)
		        control_call_free(list_entry(at, struct control_call, node));
		control_conn_free(conn);
	}
	list_for_each_safe(it, &channel->ending) control_call_free(list_entry(it, struct control_call, node));
	file_watch_free(channel->watch);
	tls_trust_unref(channel->trust);
	mem_free(channel);
}

void control_channel_renew(struct control_channel *channel)
{
	if (channel->current)
		control_conn_retire(channel->current);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Life of an HTTP/2 connection: set-up, input, PINGs, the ways to end.
 * nghttp2's own message checks are off (message.h does them). Knows no
 * transport and no clock.
 */
#include "h2/internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/mem.h"

/* Headers of HBONE requests and answers that someone reads (dataplane section 8.6). */
static const char *const hbone_headers[] = {
        "baggage", "forwarded", "traceparent", "x-forwarded-network", NULL};

/* Receive credit of a process unless told otherwise. */
#define BUDGET_DEFAULT (64u << 20)

static void *env_malloc(size_t size, void *user)
{
	return mem_alloc(size);
}

static void env_free(void *p, void *user)
{
	mem_free(p);
}

static void *env_calloc(size_t cnt, size_t size, void *user)
{
	return mem_zalloc(cnt, size);
}

static void *env_realloc(void *p, size_t size, void *user)
{
	return mem_realloc(p, size);
}

int h2_env_new(size_t budget_max, struct h2_env **ret_env)
{
	struct h2_env *env = mem_alloc(sizeof(*env));

	if (!env)
		return -ENOMEM;
	/* Not the piece: its pages cost nothing until something is sent. */
	memset(env, 0, offsetof(struct h2_env, piece));
	if (nghttp2_session_callbacks_new(&env->callbacks) != 0) {
		mem_free(env);
		return -ENOMEM;
	}
	h2_events_register(env->callbacks);
	h2_pull_register(env->callbacks);
	env->budget.max = budget_max ? budget_max : BUDGET_DEFAULT;
	env->mem = (nghttp2_mem){NULL, env_malloc, env_free, env_calloc, env_realloc};
	*ret_env = env;
	return 0;
}

void h2_env_free(struct h2_env *env)
{
	if (!env)
		return;
	ASSERT(env->budget.used == 0);
	chunk_free(env->held);
	nghttp2_session_callbacks_del(env->callbacks);
	mem_free(env);
}

void h2_env_rest(struct h2_env *env)
{
	env->piece_len = 0;
	mem_forget(env->piece, sizeof(env->piece));
}

const struct h2_budget *h2_env_budget(const struct h2_env *env)
{
	return &env->budget;
}

void h2_config_init(struct h2_config *config, bool is_server)
{
	*config = (struct h2_config){
	        .is_server = is_server,
	        .stream_window_start = 256u << 10,
	        .stream_window_max = 4u << 20,
	        .conn_window_start = 1u << 20,
	        .conn_window_max = 16u << 20,
	        .frame_max = 1u << 20,
	        .header_list_max = is_server ? 64u << 10 : 16u << 10,
	        .max_streams = is_server ? 200 : 0,
	        .initial_peer_streams = 100,
	        .queue_high = 256u << 10,
	        .queue_low = 64u << 10,
	        .ping_interval_ms = 10000,
	        .ping_timeout_ms = 20000,
	        .reset_burst = 1000,
	        .reset_rate = 200,
	        .idle_frame_burst = 2000,
	        .idle_frame_rate = 1000,
	};
}

/* Starting values follow smaller configured maxima; the rest must be what RFC 9113 section 6.5.2 permits. */
static int config_settle(struct h2_config *config)
{
	if (config->stream_window_start > config->stream_window_max)
		config->stream_window_start = config->stream_window_max;
	if (config->conn_window_start > config->conn_window_max)
		config->conn_window_start = config->conn_window_max;
	if (!config->keep_headers)
		config->keep_headers = hbone_headers;
	if (config->stream_window_start == 0 || config->stream_window_max > NGHTTP2_MAX_WINDOW_SIZE ||
	        config->conn_window_max > NGHTTP2_MAX_WINDOW_SIZE)
		return -EINVAL;
	if (config->frame_max < 16384 || config->frame_max > 16777215 || config->header_list_max == 0)
		return -EINVAL;
	if (config->is_server && config->max_streams == 0)
		return -EINVAL;
	return config->queue_low <= config->queue_high ? 0 : -EINVAL;
}

static int session_open_ng(struct h2_session *session)
{
	struct h2_env *env = session->env;
	nghttp2_option *option;
	int err = nghttp2_option_new(&option);

	if (err)
		return err;
	nghttp2_option_set_no_auto_window_update(option, 1);
	nghttp2_option_set_no_http_messaging(option, 1);
	nghttp2_option_set_no_closed_streams(option, 1);
	nghttp2_option_set_peer_max_concurrent_streams(option, session->config.initial_peer_streams);
	nghttp2_option_set_max_outbound_ack(option, ACKS_MAX);
	nghttp2_option_set_max_settings(option, SETTINGS_MAX);
	nghttp2_option_set_max_continuations(option, CONTINUATIONS_MAX);
	/* Our own bucket counts resets, by another rule. */
	nghttp2_option_set_stream_reset_rate_limit(option, UINT32_MAX, UINT32_MAX);
	if (session->config.is_server)
		err = nghttp2_session_server_new3(&session->ng, env->callbacks, session, option, &env->mem);
	else
		err = nghttp2_session_client_new3(&session->ng, env->callbacks, session, option, &env->mem);
	nghttp2_option_del(option);
	return err;
}

/* In upstream's order, which is by number (dataplane section 6). */
static int session_announce(struct h2_session *session)
{
	const struct h2_config *config = &session->config;
	nghttp2_settings_entry first = {NGHTTP2_SETTINGS_ENABLE_PUSH, 0};

	if (config->is_server)
		first = (nghttp2_settings_entry){
		        NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, config->max_streams};
	nghttp2_settings_entry entries[] = {
	        first,
	        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, config->stream_window_start},
	        {NGHTTP2_SETTINGS_MAX_FRAME_SIZE, config->frame_max},
	        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, config->header_list_max},
	};
	return nghttp2_submit_settings(
	        session->ng, NGHTTP2_FLAG_NONE, entries, sizeof(entries) / sizeof(entries[0]));
}

int h2_session_new(struct h2_env *env, const struct h2_config *config, const struct h2_session_ops *ops,
        void *ctx, uint64_t now_ms, struct h2_session **ret_session)
{
	struct h2_session *session = mem_zalloc(1, sizeof(*session));
	int err;

	if (!session)
		return -ENOMEM;
	session->env = env;
	session->config = *config;
	session->ops = ops;
	session->ctx = ctx;
	session->now_ms = now_ms;
	session->rtt_ms = -1;
	session->ping_at_ms = now_ms + config->ping_interval_ms;
	list_init(&session->streams);
	list_init(&session->events);
	err = config_settle(&session->config);
	if (err)
		goto out;
	h2_bucket_init(&session->resets, config->reset_burst, config->reset_rate, now_ms);
	h2_bucket_init(&session->idle_frames, config->idle_frame_burst, config->idle_frame_rate, now_ms);
	if (session_open_ng(session) != 0 || session_announce(session) != 0 || h2_credit_open(session) != 0) {
		err = -ENOMEM;
		goto out;
	}
	*ret_session = session;
	return 0;
out:
	h2_session_free(session);
	return err;
}

void h2_session_free(struct h2_session *session)
{
	if (!session)
		return;
	ASSERT(!session->is_busy && !session->is_pulling);
	session->is_dead = true;
	while (!list_empty(&session->streams))
		h2_stream_destroy(list_entry(session->streams.next, struct h2_stream, node));
	chunk_free(session->env->held);
	session->env->held = NULL;
	h2_message_done(&session->message);
	h2_credit_close(session);
	nghttp2_session_del(session->ng);
	mem_free(session);
}

void h2_set_fault(struct h2_session *session, const char *text)
{
	if (session->fault[0] == '\0')
		snprintf(session->fault, sizeof(session->fault), "%s", text);
}

int h2_set_error(struct h2_session *session, int ng_code)
{
	if (!session->error) {
		session->error = ng_code == NGHTTP2_ERR_NOMEM ? -ENOMEM : -EPROTO;
		h2_set_fault(session, nghttp2_strerror(ng_code));
	}
	return session->error;
}

void h2_calm_down(struct h2_session *session, const char *text)
{
	h2_set_fault(session, text);
	h2_goaway(session, H2_ENHANCE_YOUR_CALM);
}

int h2_feed(struct h2_session *session, const uint8_t *bytes, size_t len, uint64_t now_ms)
{
	ssize_t taken;

	ASSERT(!session->is_busy && !session->is_pulling);
	session->now_ms = now_ms;
	if (session->error || session->is_dead || len == 0)
		return session->error;
	session->is_busy = true;
	taken = nghttp2_session_mem_recv(session->ng, bytes, len);
	if (taken < 0)
		h2_set_error(session, (int)taken);
	h2_events_dispatch(session);
	session->is_busy = false;
	return session->error;
}

int h2_ping(struct h2_session *session, uint64_t payload)
{
	uint8_t opaque[8];

	for (int i = 7; i >= 0; i--, payload >>= 8)
		opaque[i] = (uint8_t)payload;
	return nghttp2_submit_ping(session->ng, NGHTTP2_FLAG_NONE, opaque);
}

static bool has_keepalive(const struct h2_session *session)
{
	return session->config.ping_interval_ms && !session->error && !session->is_dead &&
	       !session->is_draining && !session->is_ping_asleep;
}

void h2_ping_wake(struct h2_session *session)
{
	if (!session->is_ping_asleep)
		return;
	session->is_ping_asleep = false;
	session->ping_at_ms = session->now_ms + session->config.ping_interval_ms;
}

int h2_tick(struct h2_session *session, uint64_t now_ms)
{
	int err;

	session->now_ms = now_ms;
	if (now_ms < h2_deadline(session))
		return session->error;
	if (session->is_ping_pending) {
		h2_set_fault(session, "no answer to PING");
		return -ETIMEDOUT;
	}
	if (session->config.ping_busy_only && session->open_cnt == 0) {
		session->is_ping_asleep = true;
		return session->error;
	}
	err = h2_ping(session, ++session->ping_seq);
	if (err)
		return h2_set_error(session, err);
	session->is_ping_pending = true;
	session->ping_at_ms = now_ms;
	return 0;
}

uint64_t h2_deadline(const struct h2_session *session)
{
	if (!has_keepalive(session))
		return H2_NEVER;
	return session->ping_at_ms + (session->is_ping_pending ? session->config.ping_timeout_ms : 0);
}

int h2_drain(struct h2_session *session)
{
	int err;

	if (!session->config.is_server)
		return -EINVAL;
	if (session->error || session->is_dead || session->is_draining)
		return session->error;
	session->is_draining = true;
	/* The PING follows when this has left: nghttp2 would send it first. */
	err = nghttp2_submit_shutdown_notice(session->ng);
	return err ? h2_set_error(session, err) : 0;
}

int h2_goaway(struct h2_session *session, uint32_t code)
{
	int err;

	if (session->error || session->is_dead)
		return session->error;
	session->is_closing = true;
	err = nghttp2_session_terminate_session(session->ng, code);
	return err ? h2_set_error(session, err) : 0;
}

int h2_close_when_idle(struct h2_session *session)
{
	int err;

	if (session->error || session->is_dead || session->is_closing)
		return session->error;
	session->is_closing = true;
	err = nghttp2_submit_goaway(session->ng, NGHTTP2_FLAG_NONE,
	        nghttp2_session_get_last_proc_stream_id(session->ng), NGHTTP2_NO_ERROR, NULL, 0);
	return err ? h2_set_error(session, err) : 0;
}

void h2_abort(struct h2_session *session, int err)
{
	bool is_clean = err == 0 && session->is_goaway_seen && session->goaway_code == H2_NO_ERROR;
	struct h2_reset reset = {.code = H2_NO_ERROR, .is_remote = true};
	struct list all;

	ASSERT(!session->is_busy && !session->is_pulling);
	if (session->is_dead)
		return;
	if (!is_clean)
		reset.transport_err = err ? err : -EPIPE;
	session->is_busy = true;
	h2_events_dispatch(session);
	session->is_dead = true;
	list_init(&all);
	list_move_all(&all, &session->streams);
	while (!list_empty(&all)) {
		struct h2_stream *stream = list_entry(all.next, struct h2_stream, node);
		bool is_due = !stream->is_closed;

		list_del(&stream->node);
		list_add_tail(&session->streams, &stream->node);
		h2_stream_close(stream);
		if (is_due && stream->ops && stream->ops->on_reset)
			stream->ops->on_reset(stream->user, stream, &reset);
	}
	session->is_busy = false;
}

bool h2_is_over(const struct h2_session *session)
{
	if (session->error || session->is_dead)
		return true;
	return session->carry_len == 0 && !nghttp2_session_want_read(session->ng) &&
	       !nghttp2_session_want_write(session->ng);
}

const char *h2_fault(const struct h2_session *session)
{
	return session->fault;
}

bool h2_can_open(const struct h2_session *session)
{
	if (session->config.is_server || session->error || session->is_dead || session->is_closing ||
	        session->is_goaway_seen)
		return false;
	return nghttp2_session_check_request_allowed(session->ng) &&
	       session->open_cnt < h2_peer_max_streams(session);
}

uint32_t h2_streams_in_use(const struct h2_session *session)
{
	return session->open_cnt;
}

uint32_t h2_peer_max_streams(const struct h2_session *session)
{
	return nghttp2_session_get_remote_settings(session->ng, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
}

bool h2_settings_seen(const struct h2_session *session)
{
	return session->is_settings_seen;
}

bool h2_goaway_seen(const struct h2_session *session)
{
	return session->is_goaway_seen;
}

int64_t h2_rtt_ms(const struct h2_session *session)
{
	return session->rtt_ms;
}

size_t h2_window(const struct h2_session *session)
{
	return (size_t)session->window.size + session->window.excess;
}

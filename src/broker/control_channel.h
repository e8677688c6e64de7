/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A gRPC channel to the control plane: one for xDS, one for the CA. Connects
 * over TLS when a call wants it, adds token and headers, and hands message
 * bytes to its caller as they arrive. Knows neither xDS nor certificates
 * (reference control.md 4.1, 4.2, 6.2).
 */
#ifndef CULVERT_BROKER_CONTROL_CHANNEL_H
#define CULVERT_BROKER_CONTROL_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "grpc/status.h"

struct broker;
struct control_channel;
struct control_call;
struct settings;

/* What distinguishes the two channels. */
enum control_purpose { CONTROL_XDS, CONTROL_CA };

/* How far a call got before it ended; the back-off differs (reference control.md 4.9). */
enum control_stage {
	CONTROL_CONFIG,  /* the TLS configuration could not be made: root file, names */
	CONTROL_CONNECT, /* TCP, TLS, token, HTTP error, or an error without response headers (Trailers-Only)
	                  */
	CONTROL_STREAM,  /* response headers had arrived */
};

/* What a call tells its owner; nothing comes from inside control_call_start(). */
struct control_call_events {
	/* Response headers arrived: HTTP 200, application/grpc. May be NULL. */
	void (*on_open)(void *ctx);
	/* A message of `len` bytes begins. Negative: refuse; the call is cancelled and on_end comes with that
	 * code's words. May be NULL. */
	int (*on_message)(void *ctx, size_t len, struct err *err);
	/* Next bytes of the message, borrowed; is_last with its final ones (len may be 0 then). Negative: as
	 * above. */
	int (*on_bytes)(void *ctx, const uint8_t *bytes, size_t len, bool is_last, struct err *err);
	/* The end, exactly once unless cancelled by the owner: status and text (borrowed). The call is gone.
	 */
	void (*on_end)(void *ctx, enum control_stage stage, const struct grpc_status *status);
};

/*
 * The URI that the settings give for a purpose, defaults applied; NULL = set
 * but empty: none is wanted (reference control.md 3.2). Borrowed.
 */
const char *control_address(const struct settings *settings, enum control_purpose purpose);

/* A channel as the settings say for that purpose. No connection is made yet. 0, -ENOMEM or a code with the
 * variable's name in the text. */
int control_channel_new(struct broker *broker, enum control_purpose purpose,
        struct control_channel **ret_channel, struct err *err);

/* Closes the connection; calls still open end without event. NULL is fine. */
void control_channel_free(struct control_channel *channel);

/*
 * Drops the present connection once its calls are over; the next call makes a
 * new one with roots read again. xDS does so for every attempt.
 */
void control_channel_renew(struct control_channel *channel);

/* How one call is made. */
struct control_call_opts {
	const char *path;     /* "/package.Service/Method", borrowed for the call's life */
	uint64_t deadline_ms; /* from now to the end; 0 = none. Passed: DEADLINE_EXCEEDED */
	size_t message_max;   /* longest message accepted, bytes; beyond: RESOURCE_EXHAUSTED */
};

/* Starts a call. Whatever goes wrong later arrives by on_end. 0 or -ENOMEM. */
int control_call_start(struct control_channel *channel, const struct control_call_opts *opts,
        const struct control_call_events *events, void *ctx, struct control_call **ret_call);

/* Queues one message (copied); sent once the connection stands. 0, -ENOMEM, -ENOSPC (queue ceiling), -EPIPE.
 */
int control_call_send(struct control_call *call, const void *bytes, size_t len);

/* No more messages from us. */
void control_call_half_close(struct control_call *call);

/* Ends the call without on_end. NULL is fine. */
void control_call_cancel(struct control_call *call);

#endif

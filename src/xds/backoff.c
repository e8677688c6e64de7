/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Delays between attempts; see backoff.h. */
#include "xds/backoff.h"

#include <stdbool.h>
#include <string.h>

const char *xds_reason_label(enum xds_reason reason)
{
	static const char *const LABELS[XDS_REASON_CNT] = {
	        [XDS_CONNECTION_ERROR] = "ConnectionError",
	        [XDS_ERROR] = "Error",
	        [XDS_RECONNECT] = "Reconnect",
	        [XDS_COMPLETE] = "Complete",
	};
	return LABELS[reason];
}

void xds_backoff_init(struct xds_backoff *backoff)
{
	backoff->error_ms = XDS_BACKOFF_MIN_MS;
	backoff->spin_ms = XDS_BACKOFF_MIN_MS;
}

/* What a server does that is restarted or rebalances. */
static bool is_usual(const struct grpc_status *status)
{
	switch (status->code) {
	case GRPC_UNKNOWN:
	case GRPC_CANCELLED:
	case GRPC_DEADLINE_EXCEEDED:
		return true;
	case GRPC_UNAVAILABLE:
		return strstr(status->message, "transport is closing") ||
		       strstr(status->message, "received prior goaway");
	default:
		return false;
	}
}

static enum xds_reason reason_of(enum xds_stage stage, const struct grpc_status *status)
{
	if (stage == XDS_AT_CONNECT)
		return XDS_CONNECTION_ERROR;
	if (stage == XDS_AT_CONFIG)
		return XDS_ERROR;
	if (status->code == GRPC_OK)
		return XDS_COMPLETE;
	return is_usual(status) ? XDS_RECONNECT : XDS_ERROR;
}

static uint64_t doubled(uint64_t ms)
{
	return ms * 2 < XDS_BACKOFF_MAX_MS ? ms * 2 : XDS_BACKOFF_MAX_MS;
}

enum xds_reason xds_backoff_next(struct xds_backoff *backoff, enum xds_stage stage,
        const struct grpc_status *status, uint64_t lived_ms, uint64_t *ret_delay_ms)
{
	enum xds_reason reason = reason_of(stage, status);
	if (lived_ms >= XDS_BACKOFF_GOOD_MS)
		backoff->spin_ms = XDS_BACKOFF_MIN_MS;
	if (reason == XDS_CONNECTION_ERROR || (reason == XDS_ERROR && stage == XDS_AT_STREAM)) {
		backoff->error_ms = doubled(backoff->error_ms);
		*ret_delay_ms = backoff->error_ms;
		return reason;
	}
	*ret_delay_ms = backoff->spin_ms;
	backoff->spin_ms = doubled(backoff->spin_ms);
	backoff->error_ms = XDS_BACKOFF_MIN_MS;
	return reason;
}

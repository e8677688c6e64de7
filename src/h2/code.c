/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names of HTTP/2 error codes and what a reset means to readers and writers
 * (dataplane section 6). Knows no session.
 */
#include <errno.h>

#include "h2/session.h"

static const char *const code_names[] = {
        [H2_NO_ERROR] = "NO_ERROR",
        [H2_PROTOCOL_ERROR] = "PROTOCOL_ERROR",
        [H2_INTERNAL_ERROR] = "INTERNAL_ERROR",
        [H2_FLOW_CONTROL_ERROR] = "FLOW_CONTROL_ERROR",
        [H2_SETTINGS_TIMEOUT] = "SETTINGS_TIMEOUT",
        [H2_STREAM_CLOSED] = "STREAM_CLOSED",
        [H2_FRAME_SIZE_ERROR] = "FRAME_SIZE_ERROR",
        [H2_REFUSED_STREAM] = "REFUSED_STREAM",
        [H2_CANCEL] = "CANCEL",
        [H2_COMPRESSION_ERROR] = "COMPRESSION_ERROR",
        [H2_CONNECT_ERROR] = "CONNECT_ERROR",
        [H2_ENHANCE_YOUR_CALM] = "ENHANCE_YOUR_CALM",
        [H2_INADEQUATE_SECURITY] = "INADEQUATE_SECURITY",
        [H2_HTTP_1_1_REQUIRED] = "HTTP_1_1_REQUIRED",
};

const char *h2_code_name(uint32_t code)
{
	return code < sizeof(code_names) / sizeof(code_names[0]) ? code_names[code] : "UNKNOWN";
}

int h2_reset_read_error(const struct h2_reset *reset)
{
	if (reset->transport_err)
		return reset->transport_err;
	if (reset->code == H2_NO_ERROR || reset->code == H2_CANCEL)
		return 0;
	return reset->code == H2_STREAM_CLOSED ? -EPIPE : -EPROTO;
}

int h2_reset_write_error(const struct h2_reset *reset)
{
	if (reset->transport_err)
		return reset->transport_err;
	if (reset->code == H2_NO_ERROR || reset->code == H2_CANCEL || reset->code == H2_STREAM_CLOSED)
		return -EPIPE;
	return -EPROTO;
}

int h2_reset_shutdown_error(const struct h2_reset *reset)
{
	if (reset->transport_err)
		return reset->transport_err;
	if (reset->code == H2_NO_ERROR)
		return 0;
	return reset->code == H2_CANCEL || reset->code == H2_STREAM_CLOSED ? -EPIPE : -EPROTO;
}

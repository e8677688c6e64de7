/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Codes, their words, and where they come from when the server named none.
 * Tables only; knows no stream.
 */
#include "grpc/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "base/utf8.h"
#include "grpc/text.h"

/* Number of codes. */
#define CODE_CNT (GRPC_UNAUTHENTICATED + 1)

struct code_words {
	const char *name;
	const char *text;
};

static const struct code_words words[CODE_CNT] = {
        [GRPC_OK] = {"Ok", "The operation completed successfully"},
        [GRPC_CANCELLED] = {"Cancelled", "The operation was cancelled"},
        [GRPC_UNKNOWN] = {"Unknown", "Unknown error"},
        [GRPC_INVALID_ARGUMENT] = {"InvalidArgument", "Client specified an invalid argument"},
        [GRPC_DEADLINE_EXCEEDED] = {"DeadlineExceeded", "Deadline expired before operation could complete"},
        [GRPC_NOT_FOUND] = {"NotFound", "Some requested entity was not found"},
        [GRPC_ALREADY_EXISTS] = {"AlreadyExists", "Some entity that we attempted to create already exists"},
        [GRPC_PERMISSION_DENIED] = {"PermissionDenied",
                "The caller does not have permission to execute the specified operation"},
        [GRPC_RESOURCE_EXHAUSTED] = {"ResourceExhausted", "Some resource has been exhausted"},
        [GRPC_FAILED_PRECONDITION] = {"FailedPrecondition",
                "The system is not in a state required for the operation's execution"},
        [GRPC_ABORTED] = {"Aborted", "The operation was aborted"},
        [GRPC_OUT_OF_RANGE] = {"OutOfRange", "Operation was attempted past the valid range"},
        [GRPC_UNIMPLEMENTED] = {"Unimplemented", "Operation is not implemented or not supported"},
        [GRPC_INTERNAL] = {"Internal", "Internal error"},
        [GRPC_UNAVAILABLE] = {"Unavailable", "The service is currently unavailable"},
        [GRPC_DATA_LOSS] = {"DataLoss", "Unrecoverable data loss or corruption"},
        [GRPC_UNAUTHENTICATED] = {"Unauthenticated",
                "The request does not have valid authentication credentials"},
};

static const struct code_words *words_of(enum grpc_code code)
{
	return &words[(unsigned)code < CODE_CNT ? code : GRPC_UNKNOWN];
}

const char *grpc_code_name(enum grpc_code code)
{
	return words_of(code)->name;
}

const char *grpc_code_text(enum grpc_code code)
{
	return words_of(code)->text;
}

enum grpc_code grpc_code_from_http(int status)
{
	switch (status) {
	case 400:
		return GRPC_INTERNAL;
	case 401:
		return GRPC_UNAUTHENTICATED;
	case 403:
		return GRPC_PERMISSION_DENIED;
	case 404:
		return GRPC_UNIMPLEMENTED;
	case 429:
	case 502:
	case 503:
	case 504:
		return GRPC_UNAVAILABLE;
	default:
		return GRPC_UNKNOWN;
	}
}

enum grpc_code grpc_code_from_reset(uint32_t code)
{
	switch (code) {
	case 0x0: /* NO_ERROR */
	case 0x1: /* PROTOCOL_ERROR */
	case 0x2: /* INTERNAL_ERROR */
	case 0x3: /* FLOW_CONTROL_ERROR */
	case 0x4: /* SETTINGS_TIMEOUT */
	case 0x6: /* FRAME_SIZE_ERROR */
	case 0x9: /* COMPRESSION_ERROR */
	case 0xa: /* CONNECT_ERROR */
		return GRPC_INTERNAL;
	case 0x7: /* REFUSED_STREAM: nothing was done, it may be tried again */
		return GRPC_UNAVAILABLE;
	case 0x8: /* CANCEL */
		return GRPC_CANCELLED;
	case 0xb: /* ENHANCE_YOUR_CALM */
		return GRPC_RESOURCE_EXHAUSTED;
	case 0xc: /* INADEQUATE_SECURITY */
		return GRPC_PERMISSION_DENIED;
	default:
		return GRPC_UNKNOWN;
	}
}

/* Every byte that begins no character becomes a question mark; the end is cut at a character. */
static void make_valid(char *text)
{
	size_t len = strlen(text);
	for (size_t i = 0; i < len;) {
		size_t n = utf8_char_len(text + i, len - i);
		if (n == 0)
			text[i] = '?';
		i += n ? n : 1;
	}
}

void grpc_status_set(struct grpc_status *status, enum grpc_code code, const char *fmt, ...)
{
	char text[GRPC_MESSAGE_MAX + 4];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	size_t len = strlen(text);
	if (len >= GRPC_MESSAGE_MAX)
		len = utf8_cut(text, len, GRPC_MESSAGE_MAX - 1);
	memcpy(status->message, text, len);
	status->message[len] = '\0';
	make_valid(status->message);
	status->code = code;
}

void grpc_status_parse(const char *code, const char *message, struct grpc_status *ret_status)
{
	uint64_t number = GRPC_UNKNOWN;

	if (!code || num_parse(code, strlen(code), GRPC_UNAUTHENTICATED, &number) < 0)
		number = GRPC_UNKNOWN;
	ret_status->code = (enum grpc_code)number;
	grpc_message_decode(message ? message : "", ret_status->message, sizeof(ret_status->message));
	make_valid(ret_status->message);
}

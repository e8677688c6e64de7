/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Texts, flags and wrapping of error codes. The table is the only list of our own codes. */
#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct err_info {
	const char *text;
	enum response_flag flag;
};

static const struct err_info own[] = {
#define E(name, text, flag) {text, RESPONSE_FLAG_##flag},
#include "culvert/errors.tbl.h"
#undef E
};

static const struct err_info *find(int code)
{
	return code <= -1001 && code > -1001 - ERR_ROW_CNT ? &own[-1001 - code] : NULL;
}

/* Our own range begins at -1001; the kernel's numbers end at 133. */
static bool is_errno(int code)
{
	return code < 0 && code >= -1000;
}

int err_set(struct err *err, int code, const char *fmt, ...)
{
	if (err) {
		va_list ap;
		va_start(ap, fmt);
		err->code = code;
		vsnprintf(err->text, sizeof(err->text), fmt, ap);
		va_end(ap);
	}
	return code;
}

int err_sys(struct err *err, int code, const char *fmt, ...)
{
	char head[ERR_TEXT_MAX];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(head, sizeof(head), fmt, ap);
	va_end(ap);
	return err_set(err, code, "%s: %s", head, err_str(code));
}

int err_wrap(struct err *err, const char *fmt, ...)
{
	if (!err)
		return 0;
	char head[ERR_TEXT_MAX];
	char tail[ERR_TEXT_MAX];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(head, sizeof(head), fmt, ap);
	va_end(ap);
	memcpy(tail, err->text, sizeof(tail));
	return err_set(err, err->code, "%s: %s", head, tail);
}

const char *err_str(int code)
{
	const struct err_info *info = find(code);
	if (info)
		return info->text;
	if (code == 0)
		return "success";
	/* Unlike strerror: not translated, no shared buffer. */
	const char *text = is_errno(code) ? strerrordesc_np(-code) : NULL;
	return text ? text : "unknown error";
}

const char *err_io_text(int code, char *dst, size_t cap)
{
	if (is_errno(code))
		snprintf(dst, cap, "%s (os error %d)", err_str(code), -code);
	else
		snprintf(dst, cap, "%s", err_str(code));
	return dst;
}

enum response_flag err_flag(int code)
{
	const struct err_info *info = find(code);
	if (info)
		return info->flag;
	return code == 0 ? RESPONSE_FLAG_NONE : RESPONSE_FLAG_CONNECT;
}

enum response_flag err_text_flag(const char *text)
{
	enum response_flag flag = text ? RESPONSE_FLAG_CONNECT : RESPONSE_FLAG_NONE;
	size_t longest = 0;
	for (size_t i = 0; text && i < sizeof(own) / sizeof(own[0]); i++) {
		size_t len = strlen(own[i].text);
		if (len <= longest || strncmp(text, own[i].text, len) != 0)
			continue;
		longest = len;
		flag = own[i].flag;
	}
	return flag;
}

const char *response_flag_str(enum response_flag flag)
{
	static const char *const names[] = {
	        [RESPONSE_FLAG_NONE] = "-",
	        [RESPONSE_FLAG_DENY] = "DENY",
	        [RESPONSE_FLAG_CONNECT] = "CONNECT",
	        [RESPONSE_FLAG_TLS_FAILURE] = "TLS_FAILURE",
	        [RESPONSE_FLAG_H2_HANDSHAKE_FAILURE] = "H2_HANDSHAKE_FAILURE",
	        [RESPONSE_FLAG_NETWORK_POLICY] = "NETWORK_POLICY",
	        [RESPONSE_FLAG_IDENTITY_ERROR] = "IDENTITY_ERROR",
	        [RESPONSE_FLAG_CERT_REVOKED] = "CERT_REVOKED",
	};
	return (size_t)flag < sizeof(names) / sizeof(names[0]) ? names[flag] : "-";
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Growth and appending of the byte buffer; capacity doubles up to the maximum. */
#include "base/buf.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/mem.h"

/* Smallest allocation; most buffers hold a line or a small message. */
#define BUF_MIN 128

void buf_init(struct buf *buf, size_t max)
{
	*buf = (struct buf){.max = max};
}

void buf_done(struct buf *buf)
{
	mem_free(buf->data);
	buf_init(buf, buf->max);
}

void buf_clear(struct buf *buf)
{
	buf->len = 0;
	buf->err = 0;
}

static int grow(struct buf *buf, size_t need)
{
	size_t cap = buf->cap ? buf->cap : BUF_MIN;
	while (cap < need)
		cap = cap > SIZE_MAX / 2 ? need : cap * 2;
	uint8_t *data = mem_realloc(buf->data, cap);
	if (!data) {
		buf->err = -ENOMEM;
		return buf->err;
	}
	buf->data = data;
	buf->cap = cap;
	return 0;
}

int buf_reserve(struct buf *buf, size_t len)
{
	if (buf->err)
		return buf->err;
	if (len > buf->max - buf->len) {
		buf->err = -EMSGSIZE;
		return buf->err;
	}
	return len > buf->cap - buf->len ? grow(buf, buf->len + len) : 0;
}

void buf_commit(struct buf *buf, size_t len)
{
	ASSERT(len <= buf->cap - buf->len);
	buf->len += len;
}

int buf_add(struct buf *buf, const void *p, size_t len)
{
	int rc = buf_reserve(buf, len);
	if (rc < 0 || len == 0)
		return rc;
	memcpy(buf->data + buf->len, p, len);
	buf->len += len;
	return 0;
}

int buf_add_str(struct buf *buf, const char *s)
{
	return buf_add(buf, s, strlen(s));
}

int buf_add_u8(struct buf *buf, uint8_t v)
{
	return buf_add(buf, &v, 1);
}

int buf_add_be16(struct buf *buf, uint16_t v)
{
	uint8_t b[2] = {(uint8_t)(v >> 8), (uint8_t)v};
	return buf_add(buf, b, sizeof(b));
}

int buf_add_be32(struct buf *buf, uint32_t v)
{
	uint8_t b[4] = {(uint8_t)(v >> 24), (uint8_t)(v >> 16), (uint8_t)(v >> 8), (uint8_t)v};
	return buf_add(buf, b, sizeof(b));
}

int buf_vprintf(struct buf *buf, const char *fmt, va_list ap)
{
	va_list again;
	va_copy(again, ap);
	int n = vsnprintf(NULL, 0, fmt, again);
	va_end(again);
	if (n < 0)
		return -EINVAL;
	int rc = buf_reserve(buf, (size_t)n);
	if (rc < 0)
		return rc;
	/* vsnprintf also writes a terminator, which does not count against the maximum. */
	if (buf->cap - buf->len < (size_t)n + 1) {
		rc = grow(buf, buf->len + (size_t)n + 1);
		if (rc < 0)
			return rc;
	}
	vsnprintf((char *)buf->data + buf->len, (size_t)n + 1, fmt, ap);
	buf->len += (size_t)n;
	return 0;
}

int buf_printf(struct buf *buf, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	int rc = buf_vprintf(buf, fmt, ap);
	va_end(ap);
	return rc;
}

void buf_consume(struct buf *buf, size_t len)
{
	ASSERT(len <= buf->len);
	buf->len -= len;
	if (buf->len)
		memmove(buf->data, buf->data + len, buf->len);
}

const char *buf_cstr(struct buf *buf)
{
	if (buf->err || (buf->len == buf->cap && grow(buf, buf->len + 1) < 0))
		return NULL;
	buf->data[buf->len] = '\0';
	return (const char *)buf->data;
}

uint8_t *buf_take(struct buf *buf, size_t *ret_len)
{
	uint8_t *data = buf->data;
	*ret_len = buf->len;
	buf_init(buf, buf->max);
	return data;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Growable byte buffer with its maximum in the type. For set-up, control
 * messages and text; payload on the data path uses chain.h. The first error
 * sticks, so that a writer may check once at the end.
 */
#ifndef CULVERT_BASE_BUF_H
#define CULVERT_BASE_BUF_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/* The buffer. data[0..len) is valid; data is NULL until the first byte. Read fields freely, change them
 * through functions. */
struct buf {
	uint8_t *data;
	size_t len;
	size_t cap;
	size_t max; /* len never exceeds it */
	int err;    /* 0, or the first failure: -ENOMEM, -EMSGSIZE; adds do nothing then */
};

/* An empty buffer that may hold up to max bytes; allocates nothing. */
void buf_init(struct buf *buf, size_t max);

/* Frees the memory; the buffer is empty with the same maximum and without error. */
void buf_done(struct buf *buf);

/* Length 0, error gone, memory kept. */
void buf_clear(struct buf *buf);

/* Makes room for at least len more bytes at data + len. 0, -ENOMEM, -EMSGSIZE. */
int buf_reserve(struct buf *buf, size_t len);

/* Counts len bytes that the caller wrote into reserved room. */
void buf_commit(struct buf *buf, size_t len);

int buf_add(struct buf *buf, const void *p, size_t len); /* appends bytes; 0, -ENOMEM, -EMSGSIZE */
int buf_add_str(struct buf *buf, const char *s);         /* appends a string without terminator */
int buf_add_u8(struct buf *buf, uint8_t v);              /* appends one byte */
int buf_add_be16(struct buf *buf, uint16_t v);           /* appends in network order */
int buf_add_be32(struct buf *buf, uint32_t v);           /* appends in network order */

/* Appends formatted text without terminator. */
int buf_printf(struct buf *buf, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* va_list form of buf_printf. */
int buf_vprintf(struct buf *buf, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));

/* Drops len (<= buf->len) bytes from the front. */
void buf_consume(struct buf *buf, size_t len);

/* Puts a zero after the content (not counted in len) and returns it as a string; NULL when that fails. */
const char *buf_cstr(struct buf *buf);

/* Hands the memory over (caller frees with mem_free; NULL when empty) with its length; the buffer is empty
 * afterwards. */
uint8_t *buf_take(struct buf *buf, size_t *ret_len);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * PEM armour: see pem.h. The base64 of private keys passes here too, hence
 * the library's constant-time decoder.
 */
#include "tls/pem.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "tls/lib.h"

#define PEM_BEGIN "-----BEGIN "
#define PEM_END "-----END "
#define PEM_DASHES "-----"

static const char *find(const char *at, const char *end, const char *word)
{
	return memmem(at, (size_t)(end - at), word, strlen(word));
}

int pem_next(const char **at, const char *end, struct pem_block *ret_block)
{
	const char *begin = find(*at, end, PEM_BEGIN);
	if (!begin)
		return 0;
	const char *label = begin + strlen(PEM_BEGIN);
	const char *body = find(label, end, PEM_DASHES);
	if (!body || (size_t)(body - label) >= PEM_LABEL_MAX || memchr(label, 0, (size_t)(body - label)))
		return -EBADMSG;
	struct pem_block block;
	memcpy(block.label, label, (size_t)(body - label));
	block.label[body - label] = 0;
	block.body = body + strlen(PEM_DASHES);
	char last[sizeof(PEM_END) + PEM_LABEL_MAX + sizeof(PEM_DASHES)];
	snprintf(last, sizeof(last), PEM_END "%s" PEM_DASHES, block.label);
	const char *stop = find(block.body, end, last);
	if (!stop)
		return -EBADMSG;
	block.body_len = (size_t)(stop - block.body);
	*at = stop + strlen(last);
	*ret_block = block;
	return 1;
}

int pem_decode(const struct pem_block *block, struct buf *out)
{
	size_t room = block->body_len / 4 * 3 + 3;
	/* Line ends make the estimate larger than the content: only the content counts against the ceiling.
	 */
	if (room > 2 * (out->max - out->len) + 64)
		return -EMSGSIZE;
	uint8_t *tmp = mem_alloc(room);
	if (!tmp)
		return -ENOMEM;
	word32 len = (word32)room;
	int ret = Base64_Decode((const byte *)block->body, (word32)block->body_len, tmp, &len);
	if (ret != 0 || len == 0)
		ret = -EBADMSG;
	else
		ret = buf_add(out, tmp, len);
	mem_wipe(tmp, room);
	mem_free(tmp);
	return ret;
}

static char base64_char(unsigned v)
{
	return "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"[v & 63];
}

/* Up to three bytes as four characters. */
static void quad(const uint8_t *p, size_t len, char text[4])
{
	unsigned v = (unsigned)p[0] << 16 | (len > 1 ? (unsigned)p[1] << 8 : 0) | (len > 2 ? p[2] : 0);
	text[0] = base64_char(v >> 18);
	text[1] = base64_char(v >> 12);
	text[2] = len > 1 ? base64_char(v >> 6) : '=';
	text[3] = len > 2 ? base64_char(v) : '=';
}

int pem_encode(const char *label, const uint8_t *der, size_t len, unsigned columns, struct buf *out)
{
	buf_printf(out, PEM_BEGIN "%s" PEM_DASHES "\n", label);
	unsigned column = 0;
	for (size_t i = 0; i < len; i += 3) {
		char text[4];
		quad(der + i, len - i, text);
		for (unsigned c = 0; c < 4; c++) {
			buf_add_u8(out, (uint8_t)text[c]);
			if (++column == columns) {
				buf_add_u8(out, '\n');
				column = 0;
			}
		}
	}
	if (column)
		buf_add_u8(out, '\n');
	return buf_printf(out, PEM_END "%s" PEM_DASHES "\n", label);
}

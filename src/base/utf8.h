/* SPDX-License-Identifier: GPL-2.0-or-later */
/* UTF-8 checks (RFC 3629): no overlong forms, no surrogates, nothing above U+10FFFF. */
#ifndef CULVERT_BASE_UTF8_H
#define CULVERT_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* Whether all len bytes are well-formed. */
bool utf8_valid(const void *text, size_t len);

/* Length (1..4) of the well-formed character at text, 0 when there is none within len bytes. */
size_t utf8_char_len(const void *text, size_t len);

/* Largest n <= max such that the first n bytes of well-formed text do not cut a character. */
size_t utf8_cut(const void *text, size_t len, size_t max);

#endif

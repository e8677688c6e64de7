/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Strict decimal numbers in text: digits only, no sign, no blanks, no prefix. */
#ifndef CULVERT_BASE_NUM_H
#define CULVERT_BASE_NUM_H

#include <stddef.h>
#include <stdint.h>

/* Room for a printed uint64_t with terminator. */
#define NUM_STR_MAX 21

/* Parses exactly len bytes. -EINVAL when not a number, -ERANGE when above max. */
int num_parse(const char *text, size_t len, uint64_t max, uint64_t *ret_value);

/* Prints value into dst, which has NUM_STR_MAX bytes. Returns the length. */
size_t num_format(uint64_t value, char *dst);

#endif

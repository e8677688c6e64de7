/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whole small files: read with a ceiling, write atomically. Blocking; for set-up and rare events. */
#ifndef CULVERT_BASE_FILE_H
#define CULVERT_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/buf.h"

/* Appends the whole content to out, whose maximum is the ceiling. -errno, -EMSGSIZE, -ENOMEM. Works on /proc
 * files. */
int file_read(const char *path, struct buf *out);

/* Like file_read from an open descriptor, from its present position. */
int file_read_fd(int fd, struct buf *out);

/* A descriptor of an unnamed file in memory that holds the bytes, for handing over; `name` is for /proc.
 * -errno. */
int file_anon(const char *name, const void *p, size_t len, int *ret_fd);

/* Appends the whole content of a regular file to out, whatever the descriptor's position, which stays.
 * -errno, -EMSGSIZE, -ENOMEM. */
int file_read_at(int fd, struct buf *out);

/* First line of a small file as a string without newline, cut at cap - 1. -errno. */
int file_read_line(const char *path, char *dst, size_t cap);

/* Replaces path by len bytes with that mode: temporary beside it, fsync, rename. -errno; path is then as
 * before. */
int file_write(const char *path, const void *p, size_t len, mode_t mode);

/* Whether path exists (following links). */
bool file_exists(const char *path);

#endif

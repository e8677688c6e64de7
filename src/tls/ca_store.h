/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two small secret files in one directory: read with checks, appear whole or
 * not at all. Knows nothing of what is in them. Internal to src/tls.
 */
#ifndef TLS_CA_STORE_H
#define TLS_CA_STORE_H

struct buf;
struct err;

/* Largest file that is read. */
#define CA_STORE_MAX 16384u

/*
 * Appends the file `name` of the directory to `out`. It must be a plain file
 * of our user that nobody else can access. 0, -ENOENT, -EPERM, -EMSGSIZE or
 * another error of the file system; `err` is set except for -ENOENT.
 */
int ca_store_read(int dir_fd, const char *name, struct buf *out, struct err *err);

/*
 * Makes the file `name` with the content, mode 0600, on disk before it gets
 * its name. -EEXIST if there is one already (which stays), else an error of
 * the file system; `err` is set except for -EEXIST.
 */
int ca_store_create(int dir_fd, const char *name, const struct buf *content, struct err *err);

#endif

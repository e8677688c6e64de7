/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Texts of `culvertd version` and `culvertd help` (reference control.md 2).
 * Everything is known at build time but the release of the mesh.
 */
#ifndef CULVERT_WARDEN_VERSION_H
#define CULVERT_WARDEN_VERSION_H

/* Room for the version line with terminator. */
#define VERSION_LINE_MAX 512

/* Prints upstream's version line into dst of VERSION_LINE_MAX bytes, without newline; the names are
 * upstream's, CryptoProvider says which wolfSSL the silos use. Returns dst. */
char *version_line(char *dst);

/* Prints the text of `help` on stdout. */
void version_print_help(void);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Assertion of our own invariants, on in every build. Never for input of a
 * peer, a file, the kernel or another process: those give error codes.
 */
#ifndef CULVERT_BASE_CHECK_H
#define CULVERT_BASE_CHECK_H

/* Ends the process with SIGABRT after one line on stderr. Called by ASSERT. */
_Noreturn void check_failed(const char *file, int line, const char *what);

/* Ends the process when cond is false. cond must have no side effects. */
#define ASSERT(cond) ((cond) ? (void)0 : check_failed(__FILE__, __LINE__, #cond))

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cmocka with the headers that it needs first. */
#ifndef CULVERT_TESTS_UNIT_HTTP_UNIT_H
#define CULVERT_TESTS_UNIT_HTTP_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define CNT(a) (sizeof(a) / sizeof((a)[0]))

#endif

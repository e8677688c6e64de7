/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * JSON values as text: JSON indented by four blanks as istioctl's (Go's
 * MarshalIndent, which also escapes <, > and &), or YAML with sorted keys as
 * istioctl's. Knows nothing of what the values mean.
 */
#ifndef CULVERT_CTL_EMIT_H
#define CULVERT_CTL_EMIT_H

#include <stdio.h>

#include <cjson/cJSON.h>

#include "base/err.h"
#include "ctl/ctl.h"

/* Prints a value in the given form (not CTL_OUTPUT_SHORT). 0, or a negative code with text. */
int emit(FILE *out, const cJSON *value, enum ctl_output output, struct err *err);

/* Prints one value on one line, without a newline. */
void emit_line(FILE *out, const cJSON *value);

#endif

/* SPDX-License-Identifier: GPL-2.0-only */
/* cmocka with the headers that it needs first, checks of errors with their texts, and pods to test with. */
#ifndef CULVERT_TESTS_UNIT_CNI_AGENT_UNIT_H
#define CULVERT_TESTS_UNIT_CNI_AGENT_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "pod.h"

#define CNT(a) (sizeof(a) / sizeof((a)[0]))

/* That expr fails and `err` (a struct err it fills) has `part` in its text. */
#define assert_err(expr, part)                                                                               \
	do {                                                                                                 \
		memset(&err, 0, sizeof(err));                                                                \
		assert_true((expr) < 0);                                                                     \
		if (!strstr(err.text, part))                                                                 \
			fail_msg("\"%s\" is not in \"%s\"", part, err.text);                                 \
	} while (0)

/* That expr gives 0; shows the error's text otherwise. */
#define assert_ok(expr)                                                                                      \
	do {                                                                                                 \
		memset(&err, 0, sizeof(err));                                                                \
		if ((expr) != 0)                                                                             \
			fail_msg("%s: %s", #expr, err.text);                                                 \
	} while (0)

/* The only pod of a document; the caller drops the reference. */
static inline const struct pod_spec *spec_of(const char *text)
{
	struct err err;
	struct list pods = LIST_INIT(pods);
	assert_ok(pod_list_parse("t", text, strlen(text), &pods, &err));
	assert_false(list_empty(&pods));
	const struct pod_spec *spec = pod_spec_ref(list_entry(pods.next, struct pod_entry, node)->spec);
	pod_list_done(&pods);
	return spec;
}

/* A small pod with that uid; the caller drops the reference. */
static inline const struct pod_spec *small_spec(const char *uid)
{
	char text[2048];
	snprintf(text, sizeof(text),
	        "pods: [{name: n-%.20s, namespace: ns, serviceAccount: sa, uid: %s, pid: 1, ips: [10.0.0.1]}]",
	        uid, uid);
	return spec_of(text);
}

#endif

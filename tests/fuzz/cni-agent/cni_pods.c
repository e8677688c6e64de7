/* SPDX-License-Identifier: GPL-2.0-only */
/* Any text as a pods file: what is accepted must survive being written and read again, and its rules must
 * fit. */
#include <stdint.h>
#include <string.h>

#include "base/check.h"
#include "pod.h"
#include "rules.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void write_and_read(const struct pod_spec *spec)
{
	struct buf text;
	struct json json;
	struct list again = LIST_INIT(again);
	buf_init(&text, 1u << 20);
	json_init(&json, &text, false);
	json_obj(&json);
	json_key(&json, "pods");
	json_arr(&json);
	json_obj(&json);
	pod_spec_members(spec, &json);
	json_obj_end(&json);
	json_arr_end(&json);
	json_obj_end(&json);
	ASSERT(text.err == 0);
	ASSERT(pod_list_parse("again", (const char *)text.data, text.len, &again, NULL) == 0);
	ASSERT(pod_spec_eq(spec, list_entry(again.next, struct pod_entry, node)->spec));
	pod_list_done(&again);
	buf_done(&text);
}

static void make_rules(const struct pod_spec *spec)
{
	struct rules rules = {.dns = true,
	        .ipv6 = true,
	        .probe4 = rules_probe4(),
	        .probe6 = rules_probe6(),
	        .ifs = spec->ifs,
	        .if_cnt = spec->if_cnt};
	struct buf text;
	buf_init(&text, RULES_TEXT_MAX);
	rules_apply_text(&rules, &text);
	ASSERT(text.err == 0);
	buf_done(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct list pods = LIST_INIT(pods);
	struct err err = {0};
	int rc = pod_list_parse("fuzz", (const char *)data, len, &pods, &err);
	ASSERT(rc == 0 ? err.code == 0 : list_empty(&pods) && err.text[0] != 0);
	list_for_each(it, &pods)
	{
		write_and_read(list_entry(it, struct pod_entry, node)->spec);
		make_rules(list_entry(it, struct pod_entry, node)->spec);
	}
	pod_list_done(&pods);
	return 0;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Filters: what is accepted prints to a text that gives the same filter, what is refused changes nothing. */
#include <string.h>

#include "base/check.h"
#include "base/log_filter.h"
#include "base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void print(const struct log_filter *filter, struct buf *out)
{
	struct log log = {.filter = *filter};
	buf_init(out, 1u << 20);
	log_filter_text(&log, out);
	ASSERT(buf_cstr(out));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	/* The first byte chooses the rules. */
	bool strict = len && data[0] == 's';
	char *text = mem_strndup(len ? (const char *)data + 1 : "", len ? len - 1 : 0);
	struct log_filter filter = {0}, again = {0};
	struct buf one, two;
	if (text && log_filter_add(&filter, text, strict, NULL) == 0) {
		print(&filter, &one);
		/* A target may be a word that names a level once printed alone; printed ones always carry
		 * "=". */
		ASSERT(log_filter_add(&again, buf_cstr(&one), false, NULL) == 0);
		print(&again, &two);
		ASSERT(strcmp(buf_cstr(&one), buf_cstr(&two)) == 0);
		(void)log_filter_passes(&filter, LOG_DEBUG, text);
		buf_done(&one);
		buf_done(&two);
	} else {
		ASSERT(filter.cnt == 0);
	}
	log_filter_done(&filter);
	log_filter_done(&again);
	mem_free(text);
	return 0;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A config dump of unknown making through every list in every form, and its text as metrics. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "ctl/listing.h"
#include "ctl/samples.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void print_all(const struct dump *dump)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);
	for (int listing = 0; out && listing < LISTING_CNT; listing++) {
		for (int output = 0; output <= CTL_OUTPUT_YAML; output++) {
			struct err err = {0};
			const struct ctl ctl = {.output = (enum ctl_output)output, .out = out};
			(void)listing_print(dump, &ctl, (enum listing)listing, 0, &err);
		}
	}
	if (out)
		fclose(out);
	free(text);
}

static void read_samples(const char *at)
{
	struct sample sample;
	char text[16];
	while (samples_next(&at, &sample))
		(void)samples_label(&sample, "pod_name", text, sizeof(text));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct dump dump;
	struct err err = {0};
	char *copy = mem_strndup((const char *)data, size);
	if (copy)
		read_samples(copy);
	mem_free(copy);
	if (dump_parse((const char *)data, size, &dump, &err) == 0) {
		print_all(&dump);
		dump_done(&dump);
	}
	return 0;
}

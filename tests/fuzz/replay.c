/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Runs one fuzz target over every file of its stored corpus, so that what a
 * fuzzer once found stays found in the ordinary tests. Knows nothing of the
 * target but LLVMFuzzerTestOneInput.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Corpus files larger than this are a mistake, not an input. */
#define REPLAY_FILE_MAX (4u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static int replay_file(const char *path)
{
	FILE *f = fopen(path, "rb");
	if (!f) {
		perror(path);
		return -1;
	}
	/* Exactly sized copy: a sanitizer then sees any read past the end. */
	uint8_t *all = malloc(REPLAY_FILE_MAX);
	size_t len = all ? fread(all, 1, REPLAY_FILE_MAX, f) : 0;
	fclose(f);
	uint8_t *data = malloc(len ? len : 1);
	if (!all || !data) {
		free(all);
		free(data);
		return -1;
	}
	memcpy(data, all, len);
	free(all);
	LLVMFuzzerTestOneInput(data, len);
	free(data);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: %s CORPUS-DIRECTORY\n", argv[0]);
		return 2;
	}
	DIR *dir = opendir(argv[1]);
	if (!dir) {
		perror(argv[1]);
		return 1;
	}
	int cnt = 0;
	int failed = 0;
	for (struct dirent *e = readdir(dir); e; e = readdir(dir)) {
		char path[4096];
		if (e->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", argv[1], e->d_name);
		failed |= replay_file(path);
		cnt++;
	}
	closedir(dir);
	if (cnt == 0) {
		fprintf(stderr, "%s: empty corpus\n", argv[1]);
		return 1;
	}
	printf("%d inputs replayed\n", cnt);
	return failed ? 1 : 0;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Runs culvert-broker --print-config without a capability and reads NAME=value, each ended by a zero byte. */
#include "warden/config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/param.h"
#include "warden/child.h"
#include "warden/drop.h"
#include "warden/first.h"

/* As the broker's config.h has them; programs don't include each other. */
#define CONFIG_ARGUMENT "--print-config"
#define CONFIG_MESH_PATH "./etc/istio/config/mesh"

/* Room for all variables: twice what the reader gathers. */
#define TEXT_MAX (2u << 20)

static bool is_needed(void)
{
	const char *text = getenv("PROXY_CONFIG");
	return (text && text[0]) || access(CONFIG_MESH_PATH, F_OK) == 0;
}

static _Noreturn void become_reader(const char *program, int out_fd)
{
	struct err err = {0};
	char *const argv[] = {(char *)(uintptr_t)program, (char *)(uintptr_t)CONFIG_ARGUMENT, NULL};
	if (dup2(out_fd, STDOUT_FILENO) < 0)
		err_sys(&err, -errno, "arranging descriptors");
	else if (drop_no_new_privs(&err) == 0 && drop_caps(0, 0, &err) == 0) {
		execv(program, argv);
		err_sys(&err, -errno, "executing %s", program);
	}
	dprintf(STDERR_FILENO, "Error: %s\n", err.text);
	_exit(FIRST_EXIT_FATAL);
}

static int read_all(int fd, struct buf *text)
{
	for (;;) {
		int rc = buf_reserve(text, 4096);
		if (rc < 0)
			return rc;
		ssize_t n = read(fd, text->data + text->len, 4096);
		if (n == 0)
			return 0;
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0)
			buf_commit(text, (size_t)n);
	}
}

static int run(const char *program, struct buf *text, struct err *err)
{
	int ends[2], status = 0;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(err, -errno, "pipe");
	pid_t pid = fork();
	if (pid == 0)
		become_reader(program, ends[1]);
	int rc = pid < 0 ? -errno : 0;
	fd_close(&ends[1]);
	if (rc == 0)
		rc = read_all(ends[0], text);
	fd_close(&ends[0]);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (rc < 0)
		return err_sys(err, rc, "reading the configuration");
	return status ? -ECANCELED : 0;
}

/* What the environment says itself wins. */
static int put(char *variable)
{
	char *eq = strchr(variable, '=');
	if (!eq)
		return -EINVAL;
	*eq = '\0';
	return setenv(variable, eq + 1, 0) < 0 ? -errno : 0;
}

int config_apply(struct err *err)
{
	const struct settings where = {.libexec_dir = getenv("CULVERT_LIBEXEC_DIR")};
	char program[PATH_MAX];
	struct buf text;
	if (!is_needed())
		return 0;
	int rc = child_program_path(&where, "culvert-broker", program);
	if (rc < 0)
		return err_sys(err, rc, "program culvert-broker");
	buf_init(&text, TEXT_MAX);
	rc = run(program, &text, err);
	char *all = rc == 0 ? (char *)(uintptr_t)buf_cstr(&text) : NULL;
	for (size_t at = 0; all && rc == 0 && at < text.len;) {
		size_t len = strlen(all + at);
		rc = put(all + at);
		if (rc < 0)
			err_sys(err, rc, "environment");
		at += len + 1;
	}
	buf_done(&text);
	return rc;
}

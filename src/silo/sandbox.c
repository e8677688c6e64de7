/* SPDX-License-Identifier: GPL-2.0-or-later */
/* prctl(2), landlock(7), seccomp(2); see sandbox.h. */
#include "silo/sandbox.h"

#include <errno.h>
#include <linux/landlock.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "seccomp/filter.h"

/* Rights of each Landlock version over files: bits 0..12 in the first, one more in the second, third and fifth. */
static uint64_t landlock_rights(int abi)
{
	if (abi >= 5)
		return (1ull << 16) - 1;
	if (abi >= 3)
		return (1ull << 15) - 1;
	return abi >= 2 ? (1ull << 14) - 1 : (1ull << 13) - 1;
}

/* A rule set without rules: nothing may be opened. */
static int deny_files(int *ret_abi)
{
	int abi = (int)syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	*ret_abi = abi > 0 ? abi : 0;
	if (abi <= 0)
		return 0;
	struct landlock_ruleset_attr attr = {.handled_access_fs = landlock_rights(abi)};
	int fd = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr.handled_access_fs), 0);
	if (fd < 0)
		return -errno;
	int r = syscall(SYS_landlock_restrict_self, fd, 0) < 0 ? -errno : 0;
	fd_close(&fd);
	return r;
}

int sandbox_enter(struct sandbox_state *ret_state, struct err *err)
{
	const struct rlimit none = {0, 0};
	*ret_state = (struct sandbox_state){0};
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || setrlimit(RLIMIT_CORE, &none) < 0)
		return err_sys(err, -errno, "cannot switch core dumps off");
	/* The warden's child did this before it executed us; without it Landlock and seccomp want CAP_SYS_ADMIN. */
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_sys(err, -errno, "cannot give up new privileges");
	int r = deny_files(&ret_state->landlock_abi);
	if (r < 0)
		return err_sys(err, r, "landlock");
	enum filter_mode mode = filter_mode_parse(getenv("CULVERT_SECCOMP"));
	r = filter_install(FILTER_SILO, mode);
	if (r < 0)
		return err_sys(err, r, "seccomp");
	ret_state->has_seccomp = mode != FILTER_OFF;
	return 0;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A rule set without rules denies what it handles; see landlock.h. */
#include "seccomp/landlock.h"

#include <errno.h>
#include <linux/landlock.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Rights of each version over files: 13 in the first, one more in the second, third and fifth. */
static uint64_t rights_of(int abi)
{
	if (abi >= 5)
		return (1ull << 16) - 1;
	if (abi >= 3)
		return (1ull << 15) - 1;
	return abi >= 2 ? (1ull << 14) - 1 : (1ull << 13) - 1;
}

int landlock_enter(bool may_read, int *ret_abi)
{
	int abi = (int)syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	*ret_abi = abi > 0 ? abi : 0;
	if (abi <= 0)
		return 0;
	struct landlock_ruleset_attr attr = {.handled_access_fs = rights_of(abi)};
	if (may_read)
		attr.handled_access_fs &=
		        ~(uint64_t)(LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR);
	int fd = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr.handled_access_fs), 0);
	if (fd < 0)
		return -errno;
	int r = syscall(SYS_landlock_restrict_self, fd, 0) < 0 ? -errno : 0;
	close(fd);
	return r;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* prctl(2), landlock(7), seccomp(2); see sandbox.h. */
#include "silo/sandbox.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "seccomp/filter.h"
#include "seccomp/landlock.h"

int sandbox_enter(struct sandbox_state *ret_state, struct err *err)
{
	const struct rlimit none = {0, 0};
	*ret_state = (struct sandbox_state){0};
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || setrlimit(RLIMIT_CORE, &none) < 0)
		return err_sys(err, -errno, "cannot switch core dumps off");
	/* The warden's child did this before it executed us; without it Landlock and seccomp want
	 * CAP_SYS_ADMIN. */
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_sys(err, -errno, "cannot give up new privileges");
	int r = landlock_enter(false, &ret_state->landlock_abi);
	if (r < 0)
		return err_sys(err, r, "landlock");
	enum filter_mode mode = filter_mode_parse(getenv("CULVERT_SECCOMP"));
	r = filter_install(FILTER_SILO, mode);
	if (r < 0)
		return err_sys(err, r, "seccomp");
	ret_state->has_seccomp = mode != FILTER_OFF;
	return 0;
}

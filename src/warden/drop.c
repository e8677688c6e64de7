/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Raw capset and prctl: the sets are small, a library would hide what happens
 * when the bounding set may not be touched. Must not decide who keeps what.
 */
#include "warden/drop.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Names in the order of their numbers. */
static const char *const cap_names[] = {
        "chown",
        "dac_override",
        "dac_read_search",
        "fowner",
        "fsetid",
        "kill",
        "setgid",
        "setuid",
        "setpcap",
        "linux_immutable",
        "net_bind_service",
        "net_broadcast",
        "net_admin",
        "net_raw",
        "ipc_lock",
        "ipc_owner",
        "sys_module",
        "sys_rawio",
        "sys_chroot",
        "sys_ptrace",
        "sys_pacct",
        "sys_admin",
        "sys_boot",
        "sys_nice",
        "sys_resource",
        "sys_time",
        "sys_tty_config",
        "mknod",
        "lease",
        "audit_write",
        "audit_control",
        "setfcap",
        "mac_override",
        "mac_admin",
        "syslog",
        "wake_alarm",
        "block_suspend",
        "audit_read",
        "perfmon",
        "bpf",
        "checkpoint_restore",
};

#define CAP_CNT (sizeof(cap_names) / sizeof(cap_names[0]))

struct cap_sets {
	struct __user_cap_header_struct header;
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
};

static int caps_get(struct cap_sets *sets)
{
	*sets = (struct cap_sets){.header = {.version = _LINUX_CAPABILITY_VERSION_3}};
	return syscall(SYS_capget, &sets->header, sets->data) < 0 ? -errno : 0;
}

static uint64_t joined(uint32_t low, uint32_t high)
{
	return low | (uint64_t)high << 32;
}

int drop_caps_held(uint64_t *ret_caps)
{
	struct cap_sets sets;
	int rc = caps_get(&sets);
	if (rc < 0)
		return rc;
	*ret_caps = joined(sets.data[0].effective, sets.data[1].effective);
	return 0;
}

/* Numbers beyond the kernel's last capability give EINVAL, which ends the walk. */
static int reduce_bounding(uint64_t keep)
{
	for (unsigned number = 0; number < 64; number++) {
		if (keep & DROP_CAP(number))
			continue;
		if (prctl(PR_CAPBSET_DROP, number, 0, 0, 0) < 0)
			return errno == EINVAL ? 0 : -errno;
	}
	return 0;
}

static int set_ambient(uint64_t caps)
{
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
		return -errno;
	for (unsigned number = 0; number < CAP_CNT; number++)
		if ((caps & DROP_CAP(number)) &&
		        prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, number, 0, 0) < 0)
			return -errno;
	return 0;
}

int drop_caps(uint64_t keep, uint64_t heirs, struct err *err)
{
	struct cap_sets sets;
	int rc = caps_get(&sets);
	if (rc < 0)
		return err_sys(err, rc, "capget");
	uint64_t held = joined(sets.data[0].permitted, sets.data[1].permitted);
	if (joined(sets.data[0].effective, sets.data[1].effective) & DROP_CAP(CAP_SETPCAP)) {
		rc = reduce_bounding(heirs);
		if (rc < 0)
			return err_sys(err, rc, "reducing the bounding set");
	}
	uint64_t left = held & keep;
	for (unsigned i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
		uint32_t half = (uint32_t)(left >> (32 * i));
		uint32_t passed_on = half & (uint32_t)(heirs >> (32 * i));
		sets.data[i] = (struct __user_cap_data_struct){
		        .effective = half, .permitted = half, .inheritable = passed_on};
	}
	if (syscall(SYS_capset, &sets.header, sets.data) < 0)
		return err_sys(err, -errno, "capset");
	rc = set_ambient(left & heirs);
	return rc < 0 ? err_sys(err, rc, "ambient capabilities") : 0;
}

int drop_no_new_privs(struct err *err)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_sys(err, -errno, "no_new_privs");
	return 0;
}

int drop_uid(uid_t uid, struct err *err)
{
	/* Needs CAP_SETGID, which may be missing: the groups of a container are its image's choice. */
	(void)setgroups(0, NULL);
	if (setresuid(uid, uid, uid) < 0)
		return err_sys(err, -errno, "setresuid %u", (unsigned)uid);
	return 0;
}

static int raise_limit(int resource, bool may_exceed)
{
	struct rlimit limit;
	if (getrlimit(resource, &limit) < 0)
		return -errno;
	if (may_exceed) {
		struct rlimit all = {.rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY};
		if (setrlimit(resource, &all) == 0)
			return 0;
	}
	limit.rlim_cur = limit.rlim_max;
	return setrlimit(resource, &limit) < 0 ? -errno : 0;
}

int drop_raise_limits(void)
{
	uint64_t held = 0;
	(void)drop_caps_held(&held);
	int files = raise_limit(RLIMIT_NOFILE, false);
	int locked = raise_limit(RLIMIT_MEMLOCK, held & DROP_CAP(CAP_SYS_RESOURCE));
	return files < 0 ? files : locked;
}

int drop_landlock_abi(void)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	return abi < 0 ? 0 : (int)abi;
}

void drop_caps_text(uint64_t caps, struct buf *out)
{
	const char *gap = "";
	for (unsigned number = 0; number < CAP_CNT; number++) {
		if (!(caps & DROP_CAP(number)))
			continue;
		buf_printf(out, "%s%s", gap, cap_names[number]);
		gap = " ";
	}
	if (!(caps & (DROP_CAP(CAP_CNT) - 1)))
		buf_add_str(out, "none");
}

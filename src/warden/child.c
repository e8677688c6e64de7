/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fork, drop, exec for the two node-wide processes. The broker gives up
 * everything before its program runs; the warden keeps what entering pods
 * needs. Must not touch pods.
 */
#include "warden/child.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "warden/drop.h"
#include "warden/first.h"

/* setns, SO_MARK, IP_TRANSPARENT; CAP_SETPCAP is given up by the warden itself once it has emptied the
 * bounding set for its heirs. */
#define WARDEN_CAPS                                                                                          \
	(DROP_CAP(CAP_SYS_ADMIN) | DROP_CAP(CAP_NET_ADMIN) | DROP_CAP(CAP_NET_RAW) | DROP_CAP(CAP_SETPCAP))

/* What an own uid of the broker needs: becoming it, ending it later, and reaching its sockets in spite of
 * their mode. */
#define OWN_UID_CAPS (DROP_CAP(CAP_SETUID) | DROP_CAP(CAP_KILL) | DROP_CAP(CAP_DAC_OVERRIDE))

int child_program_path(const struct settings *settings, const char *program, char *dst)
{
	char self[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (len < 0)
		return -errno;
	self[len] = '\0';
	char *slash = strrchr(self, '/');
	if (!slash)
		return -ENOENT;
	*slash = '\0';
	int n = snprintf(
	        dst, PATH_MAX, "%s/%s", settings->libexec_dir ? settings->libexec_dir : self, program);
	return n < 0 || n >= PATH_MAX ? -ENAMETOOLONG : 0;
}

int child_plan_init(
        struct child_plan *plan, const struct settings *settings, char *const *args, struct err *err)
{
	plan->args = args;
	ssize_t len = readlink("/proc/self/exe", plan->warden_path, sizeof(plan->warden_path) - 1);
	if (len < 0)
		return err_sys(err, -errno, "own path");
	plan->warden_path[len] = '\0';
	int rc = child_program_path(settings, "culvert-broker", plan->broker_path);
	if (rc == 0 && access(plan->broker_path, X_OK) < 0)
		rc = -errno;
	if (rc < 0)
		return err_sys(err, rc, "program %s", plan->broker_path);
	rc = drop_caps_held(&plan->caps);
	if (rc < 0)
		return err_sys(err, rc, "capabilities");
	plan->broker_uid = (plan->caps & OWN_UID_CAPS) == OWN_UID_CAPS ? settings->broker_uid : 0;
	return 0;
}

void child_plan_check_dir(struct child_plan *plan, const struct rundir *run)
{
	char path[PATH_MAX + RUNDIR_INSTANCE_MAX + 1];
	if (plan->broker_uid == 0)
		return;
	snprintf(path, sizeof(path), "%s/%s", run->base, run->instance);
	uid_t own = geteuid();
	if (seteuid(plan->broker_uid) < 0) {
		plan->broker_uid = 0;
		return;
	}
	bool is_reachable = faccessat(AT_FDCWD, path, R_OK | W_OK | X_OK, AT_EACCESS) == 0 &&
	                    faccessat(AT_FDCWD, plan->broker_path, X_OK, AT_EACCESS) == 0;
	/* Cannot fail: the real uid is still our own. */
	if (seteuid(own) < 0)
		_exit(FIRST_EXIT_FATAL);
	if (!is_reachable)
		plan->broker_uid = 0;
}

/* An own session keeps the terminal's Ctrl-C away: only the first process hears it and decides. */
static int shed(const struct child_plan *plan, enum child_role role, struct err *err)
{
	(void)setsid();
	if (role == CHILD_WARDEN) {
		/* Sockets and files of a broker with another uid are behind its permissions. */
		uint64_t keep = WARDEN_CAPS | (plan->broker_uid ? DROP_CAP(CAP_DAC_OVERRIDE) : 0);
		return drop_caps(keep, keep, err);
	}
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	/* The bounding set needs CAP_SETPCAP, which a change of uid takes away. */
	int rc = drop_caps(plan->caps, 0, err);
	if (rc == 0 && plan->broker_uid)
		rc = drop_uid(plan->broker_uid, err);
	return rc < 0 ? rc : drop_caps(0, 0, err);
}

/* The warden learns from argv[1] whose death it must watch; culvertd's own arguments follow for display. */
static void exec_role(const struct child_plan *plan, enum child_role role, pid_t first_pid, struct err *err)
{
	enum { ARGS_MAX = 16 };
	char number[16];
	char *argv[ARGS_MAX + 3];
	size_t cnt = 0;
	snprintf(number, sizeof(number), "%d", (int)first_pid);
	argv[cnt++] = (char *)(uintptr_t)(role == CHILD_WARDEN ? CHILD_WARDEN_NAME : "culvert-broker");
	if (role == CHILD_WARDEN)
		argv[cnt++] = number;
	for (size_t i = 0; plan->args[i] && i < ARGS_MAX; i++)
		argv[cnt++] = plan->args[i];
	argv[cnt] = NULL;
	const char *path = role == CHILD_WARDEN ? plan->warden_path : plan->broker_path;
	execv(path, argv);
	err_sys(err, -errno, "executing %s", path);
}

pid_t child_start(const struct child_plan *plan, enum child_role role)
{
	pid_t self = getpid();
	pid_t pid = fork();
	if (pid != 0)
		return pid < 0 ? -errno : pid;
	struct err err = {0};
	/* Belt and braces: ours are close-on-exec already, what our parent left open is not. */
	(void)fd_cloexec_from(3);
	if (shed(plan, role, &err) == 0)
		exec_role(plan, role, self, &err);
	dprintf(STDERR_FILENO, "Error: %s\n", err.text);
	_exit(FIRST_EXIT_FATAL);
}

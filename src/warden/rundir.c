/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Folders, locks and names. The making of an instance and the clearing of
 * dead ones happen under a lock of the base, so that two daemons that start
 * together never take each other's half-made folder for a dead one.
 */
#include "warden/rundir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/hash.h"
#include "base/rand.h"

#define DEFAULT_BASE "/var/run/ztunnel/culvert"
#define FALLBACK_BASE "/tmp/culvert"
#define SOCKET_PREFIX "silo-"
#define ADMIN_PREFIX "admin-"
#define SOCKET_SUFFIX ".sock"

/* Control sockets of one pod that two dead instances both left; more is not a crash but a mess. */
#define TWIN_MAX 16

/* Connections that wait on a control socket: one warden, and its successor. */
#define CONTROL_BACKLOG 4

/* Room for "/proc/self/fd/<fd>/<file>". */
#define PROC_PATH_MAX (RUNDIR_SOCKET_MAX + 32)

/* Only root may write there: whoever else owns it could put his sockets in place of ours. */
static int check_owner(int fd)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return -errno;
	return st.st_uid == geteuid() && !(st.st_mode & S_IWOTH) ? 0 : -EPERM;
}

/* Opens the folder of all instances, making it where it is missing. */
static int open_base(const char *path, bool shared, int *ret_fd)
{
	mode_t mode = shared ? 0711 : 0700;
	if (mkdir(path, mode) < 0 && errno != EEXIST)
		return -errno;
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	int rc = check_owner(fd);
	if (rc == 0 && fchmod(fd, mode) < 0)
		rc = -errno;
	if (rc == 0 && faccessat(fd, ".", W_OK | X_OK, AT_EACCESS) < 0)
		rc = -errno;
	if (rc < 0) {
		fd_close(&fd);
		return rc;
	}
	*ret_fd = fd;
	return 0;
}

static int choose_base(
        struct rundir *run, const struct settings *settings, bool shared, int *ret_fd, struct err *err)
{
	const char *const given[] = {settings->run_dir, NULL};
	const char *const usual[] = {DEFAULT_BASE, FALLBACK_BASE, NULL};
	int rc = -ENOENT;
	for (const char *const *path = settings->run_dir ? given : usual; *path; path++) {
		if (strlen(*path) >= sizeof(run->base))
			return err_set(err, -ENAMETOOLONG, "run directory %s", *path);
		memcpy(run->base, *path, strlen(*path) + 1);
		rc = open_base(run->base, shared, ret_fd);
		if (rc == 0)
			return 0;
	}
	return err_sys(err, rc, "run directory %s", run->base);
}

static int take_lock(int dir_fd, int *ret_fd)
{
	int fd = openat(dir_fd, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		int rc = -errno;
		fd_close(&fd);
		return rc;
	}
	*ret_fd = fd;
	return 0;
}

static int make_instance(struct rundir *run, int base_fd, bool shared, struct err *err)
{
	snprintf(run->instance, sizeof(run->instance), "%016" PRIx64, rand_u64());
	mode_t mode = shared ? 0770 : 0700;
	if (mkdirat(base_fd, run->instance, 0700) < 0)
		return err_sys(err, -errno, "making %s/%s", run->base, run->instance);
	run->fd = openat(base_fd, run->instance, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	/* fchmod, because the group's bit would not get past a usual umask. */
	if (run->fd < 0 || fchmod(run->fd, mode) < 0)
		return err_sys(err, -errno, "opening %s/%s", run->base, run->instance);
	int rc = take_lock(run->fd, &run->lock_fd);
	return rc < 0 ? err_sys(err, rc, "locking %s/%s", run->base, run->instance) : 0;
}

/* Whether a file name is prefix, a name, and the end of all sockets. */
static bool has_form(const char *file, const char *prefix)
{
	size_t len = strlen(file);
	size_t ends = strlen(prefix) + strlen(SOCKET_SUFFIX);
	return len > ends && len < RUNDIR_SOCKET_MAX && strncmp(file, prefix, strlen(prefix)) == 0 &&
	       strcmp(file + len - strlen(SOCKET_SUFFIX), SOCKET_SUFFIX) == 0;
}

/* Moves a silo's socket into our folder; a socket keeps working under its new name. */
static void move_socket(int from, int to, const char *file)
{
	if (renameat2(from, file, to, file, RENAME_NOREPLACE) == 0 || errno != EEXIST)
		return;
	char twin[RUNDIR_SOCKET_MAX + NAME_MAX];
	int stem = (int)(strlen(file) - strlen(SOCKET_SUFFIX));
	for (unsigned i = 2; i < TWIN_MAX; i++) {
		snprintf(twin, sizeof(twin), "%.*s~%u%s", stem, file, i, SOCKET_SUFFIX);
		if (renameat2(from, file, to, twin, RENAME_NOREPLACE) == 0)
			return;
	}
}

/* Calls each for every entry of the folder. */
static int walk(int dir_fd, void (*each)(void *ctx, int dir_fd, const char *file), void *ctx)
{
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	DIR *dir = fdopendir(fd);
	if (!dir) {
		fd_close(&fd);
		return -ENOMEM;
	}
	for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			each(ctx, dir_fd, entry->d_name);
	closedir(dir);
	return 0;
}

static bool is_ca_file(const char *file)
{
	return strncmp(file, "ca-root.", strlen("ca-root.")) == 0;
}

/* Two daemons beside each other, as in a rolling upgrade, trust each other: they have one embedded CA. */
static void share_file(void *ctx, int from, const char *file)
{
	const struct rundir *run = ctx;
	/* A link that cannot be made leaves this instance with a CA of its own. */
	if (is_ca_file(file) && linkat(from, file, run->fd, file, 0) < 0)
		return;
}

static void inherit_file(void *ctx, int from, const char *file)
{
	struct rundir *run = ctx;
	if (rundir_is_socket_name(file) || has_form(file, ADMIN_PREFIX))
		move_socket(from, run->fd, file);
	else if (is_ca_file(file))
		(void)renameat2(from, file, run->fd, file, RENAME_NOREPLACE);
}

static void remove_file(void *ctx, int dir_fd, const char *file)
{
	(void)ctx;
	(void)unlinkat(dir_fd, file, 0);
}

/* Takes over a folder of the base whose first process is dead; of a living one only the CA is shared. */
static void inherit_instance(void *ctx, int base_fd, const char *name)
{
	struct rundir *run = ctx;
	if (strcmp(name, run->instance) == 0)
		return;
	int fd = openat(base_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return;
	int lock_fd = -1;
	bool is_ours = check_owner(fd) == 0;
	if (is_ours && take_lock(fd, &lock_fd) == 0) {
		(void)walk(fd, inherit_file, run);
		(void)walk(fd, remove_file, NULL);
		(void)unlinkat(base_fd, name, AT_REMOVEDIR);
	} else if (is_ours) {
		(void)walk(fd, share_file, run);
	}
	fd_close(&lock_fd);
	fd_close(&fd);
}

int rundir_create(struct rundir *run, const struct settings *settings, bool shared, struct err *err)
{
	*run = (struct rundir){.fd = -1, .lock_fd = -1};
	int base_fd = -1;
	int rc = choose_base(run, settings, shared, &base_fd, err);
	if (rc < 0)
		return rc;
	if (flock(base_fd, LOCK_EX) < 0)
		rc = err_sys(err, -errno, "locking %s", run->base);
	if (rc == 0)
		rc = make_instance(run, base_fd, shared, err);
	if (rc == 0)
		(void)walk(base_fd, inherit_instance, run);
	fd_close(&base_fd);
	if (rc < 0)
		rundir_done(run);
	return rc;
}

int rundir_open(struct rundir *run, const struct settings *settings, struct err *err)
{
	*run = (struct rundir){.fd = -1, .lock_fd = -1};
	const char *base = settings->run_dir ? settings->run_dir : "";
	const char *instance = settings->instance ? settings->instance : "";
	if (strlen(base) >= sizeof(run->base) || strlen(instance) >= sizeof(run->instance) || !*instance)
		return err_set(err, -EINVAL, "run directory is not set: this program is started by culvertd");
	memcpy(run->base, base, strlen(base) + 1);
	memcpy(run->instance, instance, strlen(instance) + 1);
	char path[PATH_MAX + RUNDIR_INSTANCE_MAX + 1];
	snprintf(path, sizeof(path), "%s/%s", base, instance);
	run->fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return run->fd < 0 ? err_sys(err, -errno, "run directory %s", path) : 0;
}

void rundir_done(struct rundir *run)
{
	fd_close(&run->fd);
	fd_close(&run->lock_fd);
}

static void note_socket(void *ctx, int dir_fd, const char *file)
{
	bool *has_socket = ctx;
	*has_socket |= rundir_is_socket_name(file);
}

void rundir_remove(struct rundir *run)
{
	char path[PATH_MAX + RUNDIR_INSTANCE_MAX + 1];
	bool has_socket = false;
	/* Silos that were left on purpose, or after a failure, are for the next instance. */
	if (walk(run->fd, note_socket, &has_socket) < 0 || has_socket)
		return;
	snprintf(path, sizeof(path), "%s/%s", run->base, run->instance);
	(void)walk(run->fd, remove_file, NULL);
	(void)rmdir(path);
}

static bool is_plain(const char *uid)
{
	size_t len = strspn(uid, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-");
	return len > 0 && len <= RUNDIR_UID_MAX && uid[len] == '\0';
}

void rundir_pod_name(const char *uid, char *dst)
{
	if (is_plain(uid)) {
		memcpy(dst, uid, strlen(uid) + 1);
		return;
	}
	/* Two fixed keys make 128 bits: names must be the same after a restart, and the agent who chooses
	 * uids is trusted. */
	const struct hash_seed first = {.k0 = 0, .k1 = 1};
	const struct hash_seed second = {.k0 = 2, .k1 = 3};
	snprintf(dst, RUNDIR_NAME_MAX, "_%016" PRIx64 "%016" PRIx64, hash_bytes(&first, uid, strlen(uid)),
	        hash_bytes(&second, uid, strlen(uid)));
}

void rundir_socket_name(const char *pod_name, char *dst)
{
	snprintf(dst, RUNDIR_SOCKET_MAX, SOCKET_PREFIX "%.*s" SOCKET_SUFFIX, RUNDIR_NAME_MAX - 1, pod_name);
}

bool rundir_is_socket_name(const char *file)
{
	return has_form(file, SOCKET_PREFIX);
}

void rundir_admin_name(const char *file, char *dst)
{
	snprintf(dst, RUNDIR_SOCKET_MAX, ADMIN_PREFIX "%.*s", RUNDIR_SOCKET_MAX - (int)sizeof(ADMIN_PREFIX),
	        file + strlen(SOCKET_PREFIX));
}

void rundir_forget(int dir_fd, const char *file)
{
	char admin[RUNDIR_SOCKET_MAX];
	rundir_admin_name(file, admin);
	(void)unlinkat(dir_fd, file, 0);
	(void)unlinkat(dir_fd, admin, 0);
}

static int proc_path(int dir_fd, const char *file, char *dst)
{
	int len = snprintf(dst, PROC_PATH_MAX, "/proc/self/fd/%d/%s", dir_fd, file);
	return len < 0 || len >= PROC_PATH_MAX ? -ENAMETOOLONG : 0;
}

int rundir_listen(int dir_fd, const char *file, int *ret_fd)
{
	char path[PROC_PATH_MAX];
	int rc = proc_path(dir_fd, file, path);
	return rc < 0 ? rc : fd_unix_listen(path, SOCK_SEQPACKET, CONTROL_BACKLOG, ret_fd);
}

int rundir_listen_admin(int dir_fd, const char *file, int *ret_fd)
{
	char path[PROC_PATH_MAX];
	char admin[RUNDIR_SOCKET_MAX];
	rundir_admin_name(file, admin);
	int rc = proc_path(dir_fd, admin, path);
	return rc < 0 ? rc : fd_unix_listen(path, SOCK_STREAM, CONTROL_BACKLOG, ret_fd);
}

int rundir_connect(int dir_fd, const char *file, int *ret_fd)
{
	char path[PROC_PATH_MAX];
	int rc = proc_path(dir_fd, file, path);
	return rc < 0 ? rc : fd_unix_connect(path, SOCK_SEQPACKET, ret_fd);
}

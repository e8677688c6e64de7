/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Walks run directories and tries locks; see instance.h. */
#include "ctl/instance.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"

/* Where culvertd puts its instances when nothing else was set (warden/rundir.c). */
static const char *const USUAL[] = {"/var/run/ztunnel/culvert", "/tmp/culvert", NULL};

/* A daemon that starts holds the base's lock for a moment: how often and how long we wait for it. */
#define BASE_LOCK_TRIES 50
#define BASE_LOCK_PAUSE_NS 20000000

/* What is looked for, and the best so far. */
struct search {
	const char *name;      /* NULL = any live one */
	struct instance best;  /* fd -1 = none yet */
	struct timespec since; /* when the best one's lock was made */
	int denied_at;         /* index of the first folder that we may not look into; -1 = none */
	bool is_dead_found;    /* an instance of the name exists, but is not live */
};

static bool is_younger(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec != b->tv_sec ? a->tv_sec > b->tv_sec : a->tv_nsec > b->tv_nsec;
}

/*
 * Whether somebody holds the instance's lock, and since when the file exists.
 * Our trial lock must not make a starting daemon fail that has just made the
 * file: the caller holds the base's lock, under which daemons do that.
 */
static bool is_live(int dir_fd, struct timespec *ret_since)
{
	struct stat st;
	int fd = openat(dir_fd, "lock", O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return false;
	bool is_held = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && flock(fd, LOCK_SH | LOCK_NB) < 0 &&
	               errno == EWOULDBLOCK;
	if (is_held)
		*ret_since = st.st_mtim;
	fd_close(&fd);
	return is_held;
}

static void consider(struct search *search, const char *base, int base_fd, const char *name)
{
	struct timespec since;
	if (name[0] == '.' || strlen(name) > INSTANCE_NAME_MAX ||
	        (search->name && strcmp(search->name, name) != 0))
		return;
	int fd = openat(base_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return;
	if (!is_live(fd, &since)) {
		search->is_dead_found = true;
		fd_close(&fd);
		return;
	}
	search->best.live_cnt++;
	if (search->best.fd >= 0 && !is_younger(&since, &search->since)) {
		fd_close(&fd);
		return;
	}
	fd_close(&search->best.fd);
	search->best.fd = fd;
	search->since = since;
	memcpy(search->best.base, base, strlen(base) + 1);
	memcpy(search->best.name, name, strlen(name) + 1);
}

static int lock_base(int fd)
{
	const struct timespec pause = {.tv_nsec = BASE_LOCK_PAUSE_NS};
	for (int i = 0; flock(fd, LOCK_SH | LOCK_NB) < 0; i++) {
		if (errno != EWOULDBLOCK || i == BASE_LOCK_TRIES)
			return -errno;
		nanosleep(&pause, NULL);
	}
	return 0;
}

/* Looks at every instance of a base. -errno when that cannot be done. */
static int look_into(struct search *search, const char *base)
{
	if (strlen(base) >= PATH_MAX)
		return -ENAMETOOLONG;
	DIR *dir = opendir(base);
	if (!dir)
		return -errno;
	int r = lock_base(dirfd(dir));
	for (struct dirent *entry = r == 0 ? readdir(dir) : NULL; entry; entry = readdir(dir))
		consider(search, base, dirfd(dir), entry->d_name);
	closedir(dir);
	return r;
}

static int not_found(const struct search *search, const char *const *bases, struct err *err)
{
	const char *comma = bases[0] && bases[1] ? ", " : "";
	const char *second = bases[0] && bases[1] ? bases[1] : "";
	if (search->denied_at >= 0)
		return err_set(err, -EACCES,
		        "%s: permission denied; culvertctl needs the rights of culvertd's user (try sudo)",
		        bases[search->denied_at]);
	if (search->name)
		return err_set(err, -ENOENT, "%s instance %s in %s%s%s",
		        search->is_dead_found ? "culvertd is not running: nobody holds" : "there is no",
		        search->name, bases[0], comma, second);
	return err_set(err, -ENOENT,
	        "no running culvertd found in %s%s%s; is it started, and with this CULVERT_RUN_DIR?",
	        bases[0], comma, second);
}

int instance_find(const char *run_dir, const char *name, struct instance *ret, struct err *err)
{
	const char *const given[] = {run_dir, NULL};
	const char *const *bases = run_dir ? given : USUAL;
	struct search search = {.name = name, .best = {.fd = -1}, .denied_at = -1};
	for (int i = 0; bases[i]; i++) {
		int r = look_into(&search, bases[i]);
		if (r == -EACCES && search.denied_at < 0) {
			search.denied_at = i;
		} else if (r < 0 && r != -EACCES && r != -ENOENT) {
			fd_close(&search.best.fd);
			return err_sys(err, r, "run directory %s", bases[i]);
		}
	}
	if (search.best.fd < 0)
		return not_found(&search, bases, err);
	*ret = search.best;
	return 0;
}

void instance_done(struct instance *instance)
{
	fd_close(&instance->fd);
}

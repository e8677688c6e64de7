/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Files of the embedded CA: see ca_store.h.
 */
#include "tls/ca_store.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/rand.h"

static int check_file(int fd, const char *name, struct err *err)
{
	struct stat st;
	if (fstat(fd, &st) != 0)
		return err_sys(err, -errno, "%s", name);
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 077) != 0)
		return err_set(err, -EPERM, "%s: must be a plain file of our user with mode 0600", name);
	return 0;
}

int ca_store_read(int dir_fd, const char *name, struct buf *out, struct err *err)
{
	/* Non-blocking: opening a pipe put there must not hang. */
	int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return errno == ENOENT ? -ENOENT : err_sys(err, -errno, "%s", name);
	int ret = check_file(fd, name, err);
	if (ret == 0) {
		ret = file_read_fd(fd, out);
		if (ret != 0)
			err_sys(err, ret, "%s", name);
	}
	fd_close(&fd);
	return ret;
}

static int write_all(int fd, const struct buf *content)
{
	size_t at = 0;
	while (at < content->len) {
		ssize_t n = write(fd, content->data + at, content->len - at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		at += (size_t)n;
	}
	return fsync(fd) == 0 ? 0 : -errno;
}

/* link() and not rename(): it fails where a file stands already, so the first writer wins. */
static int place(int dir_fd, const char *tmp, const char *name)
{
	int ret = linkat(dir_fd, tmp, dir_fd, name, 0) == 0 ? 0 : -errno;
	unlinkat(dir_fd, tmp, 0);
	if (ret == 0)
		fsync(dir_fd);
	return ret;
}

int ca_store_create(int dir_fd, const char *name, const struct buf *content, struct err *err)
{
	char tmp[64];
	snprintf(tmp, sizeof(tmp), ".%s.%016" PRIx64, name, rand_u64());
	int fd = openat(dir_fd, tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return err_sys(err, -errno, "%s", name);
	int ret = write_all(fd, content);
	fd_close(&fd);
	if (ret == 0)
		ret = place(dir_fd, tmp, name);
	else
		unlinkat(dir_fd, tmp, 0);
	return ret == 0 || ret == -EEXIST ? ret : err_sys(err, ret, "%s", name);
}

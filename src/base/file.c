/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reading and replacing whole files, always with a ceiling. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

#define READ_STEP 4096

int file_read_fd(int fd, struct buf *out)
{
	for (;;) {
		/* One byte more than allowed tells "exactly the maximum" from "too large". */
		uint8_t probe;
		size_t left = out->max - out->len;
		size_t step = left < READ_STEP ? left : READ_STEP;
		int rc = buf_reserve(out, step);
		if (rc < 0)
			return rc;
		ssize_t n = step ? read(fd, out->data + out->len, step) : read(fd, &probe, 1);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return 0;
		if (step == 0)
			return -EMSGSIZE;
		buf_commit(out, (size_t)n);
	}
}

int file_read(const char *path, struct buf *out)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return -errno;
	int rc = file_read_fd(fd, out);
	fd_close(&fd);
	return rc;
}

int file_anon(const char *name, const void *p, size_t len, int *ret_fd)
{
	const uint8_t *bytes = p;
	int fd = memfd_create(name, MFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	while (len) {
		ssize_t n = write(fd, bytes, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			int rc = -errno;
			fd_close(&fd);
			return rc;
		}
		bytes += n;
		len -= (size_t)n;
	}
	*ret_fd = fd;
	return 0;
}

int file_read_at(int fd, struct buf *out)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	if ((uint64_t)st.st_size > SIZE_MAX / 2)
		return -EMSGSIZE;
	int rc = buf_reserve(out, (size_t)st.st_size);
	size_t done = 0;
	while (rc == 0 && done < (size_t)st.st_size) {
		ssize_t n = pread(fd, out->data + out->len, (size_t)st.st_size - done, (off_t)done);
		if (n == 0)
			rc = -EIO;
		else if (n < 0 && errno != EINTR)
			rc = -errno;
		if (n > 0) {
			buf_commit(out, (size_t)n);
			done += (size_t)n;
		}
	}
	return rc;
}

int file_read_line(const char *path, char *dst, size_t cap)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return -errno;
	ssize_t n;
	do {
		n = read(fd, dst, cap - 1);
	} while (n < 0 && errno == EINTR);
	int rc = n < 0 ? -errno : 0;
	fd_close(&fd);
	if (rc < 0)
		return rc;
	dst[n] = '\0';
	dst[strcspn(dst, "\n")] = '\0';
	return 0;
}

static int write_all(int fd, const uint8_t *p, size_t len)
{
	while (len) {
		ssize_t n = write(fd, p, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		p += n;
		len -= (size_t)n;
	}
	return fsync(fd) < 0 ? -errno : 0;
}

int file_write(const char *path, const void *p, size_t len, mode_t mode)
{
	char tmp[PATH_MAX];
	int n = snprintf(tmp, sizeof(tmp), "%s.%d.tmp", path, (int)getpid());
	if (n < 0 || (size_t)n >= sizeof(tmp))
		return -ENAMETOOLONG;
	unlink(tmp);
	int fd = open(tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
	if (fd < 0)
		return -errno;
	int rc = fchmod(fd, mode) < 0 ? -errno : write_all(fd, p, len);
	fd_close(&fd);
	if (rc == 0 && rename(tmp, path) < 0)
		rc = -errno;
	if (rc < 0)
		unlink(tmp);
	return rc;
}

bool file_exists(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0;
}

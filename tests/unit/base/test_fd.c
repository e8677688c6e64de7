/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Descriptors beside packets: one, none, too many, too large; nothing leaks. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "unit.h"

static int open_cnt(void)
{
	int n = 0;
	DIR *d = opendir("/proc/self/fd");
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static void passes_one(void **state)
{
	int pair[2], pipe_fd[2], got = -1;
	char text[16];
	size_t len;
	int before = open_cnt();
	assert_int_equal(fd_pair(pair), 0);
	assert_int_equal(pipe(pipe_fd), 0);
	assert_int_equal(fd_send(pair[0], "hello", 5, pipe_fd[1]), 0);
	assert_int_equal(fd_send(pair[0], "bye", 3, -1), 0);
	assert_int_equal(fd_recv(pair[1], text, sizeof(text), &len, &got), 0);
	assert_int_equal(len, 5);
	assert_memory_equal(text, "hello", 5);
	assert_true(got >= 0 && fcntl(got, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(write(got, "x", 1), 1);
	assert_int_equal(read(pipe_fd[0], text, 1), 1);
	fd_close(&got);
	assert_int_equal(got, -1);
	assert_int_equal(fd_recv(pair[1], text, sizeof(text), &len, &got), 0);
	assert_int_equal(got, -1);
	assert_int_equal(len, 3);
	assert_int_equal(fd_recv(pair[1], text, sizeof(text), &len, &got), -EAGAIN);
	fd_close(&pair[0]);
	assert_int_equal(fd_recv(pair[1], text, sizeof(text), &len, &got), 0);
	assert_int_equal(len, 0);
	assert_int_equal(fd_send(pair[1], "x", 1, -1), -EPIPE);
	fd_close(&pair[1]);
	fd_close(&pipe_fd[0]);
	fd_close(&pipe_fd[1]);
	assert_int_equal(open_cnt(), before);
}

static void send_many(int fd, int pass_fd, size_t cnt)
{
	char control[CMSG_SPACE(16 * sizeof(int))] __attribute__((aligned(8))) = {0};
	char byte = 'x';
	struct iovec iov = {.iov_base = &byte, .iov_len = 1};
	struct msghdr msg = {.msg_iov = &iov,
	        .msg_iovlen = 1,
	        .msg_control = control,
	        .msg_controllen = CMSG_SPACE(cnt * sizeof(int))};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(cnt * sizeof(int));
	for (size_t i = 0; i < cnt; i++)
		memcpy(CMSG_DATA(c) + i * sizeof(int), &pass_fd, sizeof(int));
	assert_int_equal(sendmsg(fd, &msg, 0), 1);
}

static void refuses_many(void **state)
{
	int pair[2], got = 99;
	char text[4];
	size_t len = 99;
	assert_int_equal(fd_pair(pair), 0);
	for (size_t cnt = 2; cnt <= 16; cnt += 7) {
		int before = open_cnt();
		send_many(pair[0], pair[0], cnt);
		assert_int_equal(fd_recv(pair[1], text, sizeof(text), &len, &got), -EPROTO);
		assert_int_equal(open_cnt(), before);
	}
	assert_int_equal(got, 99);
	assert_int_equal(len, 99);
	fd_close(&pair[0]);
	fd_close(&pair[1]);
}

static void refuses_credentials(void **state)
{
	int pair[2], got;
	char text[4];
	size_t len;
	int on = 1;
	assert_int_equal(fd_pair(pair), 0);
	assert_int_equal(setsockopt(pair[1], SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)), 0);
	assert_int_equal(fd_send(pair[0], "x", 1, pair[0]), 0);
	int before = open_cnt();
	assert_int_equal(fd_recv(pair[1], text, sizeof(text), &len, &got), -EPROTO);
	assert_int_equal(open_cnt(), before);
	fd_close(&pair[0]);
	fd_close(&pair[1]);
}

static void refuses_large(void **state)
{
	int pair[2], got;
	char text[4];
	size_t len;
	assert_int_equal(fd_pair(pair), 0);
	int before = open_cnt();
	assert_int_equal(fd_send(pair[0], "12345", 5, pair[0]), 0);
	assert_int_equal(fd_recv(pair[1], text, sizeof(text), &len, &got), -EMSGSIZE);
	assert_int_equal(open_cnt(), before);
	assert_int_equal(fd_send(pair[0], "1234", 4, -1), 0);
	assert_int_equal(fd_recv(pair[1], text, sizeof(text), &len, &got), 0);
	fd_close(&pair[0]);
	fd_close(&pair[1]);
}

static void unix_sockets(void **state)
{
	char dir[] = "/tmp/culvert-fd-XXXXXX", path[64], far[200];
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/s", dir);
	int server = -1, client = -1;
	assert_int_equal(fd_unix_connect(path, SOCK_SEQPACKET, &client), -ENOENT);
	assert_int_equal(fd_unix_listen(path, SOCK_SEQPACKET, 4, &server), 0);
	fd_close(&server);
	assert_int_equal(fd_unix_connect(path, SOCK_SEQPACKET, &client), -ECONNREFUSED);
	assert_int_equal(fd_unix_listen(path, SOCK_SEQPACKET, 4, &server), 0);
	struct stat st;
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(fd_unix_connect(path, SOCK_SEQPACKET, &client), 0);
	pid_t pid;
	uid_t uid;
	assert_int_equal(fd_peer(client, &pid, &uid), 0);
	assert_int_equal(pid, getpid());
	assert_int_equal(uid, getuid());
	assert_int_equal(fd_peer(client, NULL, NULL), 0);
	assert_true(fcntl(client, F_GETFL) & O_NONBLOCK);
	fd_close(&client);
	fd_close(&server);
	memset(far, 'x', sizeof(far) - 1);
	far[sizeof(far) - 1] = '\0';
	assert_int_equal(fd_unix_listen(far, SOCK_SEQPACKET, 4, &server), -ENAMETOOLONG);
	assert_int_equal(fd_unix_connect("", SOCK_SEQPACKET, &server), -ENAMETOOLONG);
	unlink(path);
	rmdir(dir);
}

static void flags(void **state)
{
	int fd = open("/dev/null", O_RDONLY);
	assert_int_equal(fd_set_cloexec(fd, true), 0);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	assert_int_equal(fd_set_cloexec(fd, false), 0);
	assert_int_equal(fcntl(fd, F_GETFD), 0);
	assert_int_equal(fd_set_nonblock(fd, true), 0);
	assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
	assert_int_equal(fd_cloexec_from(fd), 0);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	fd_close(&fd);
	fd_close(&fd);
	assert_int_equal(fd_set_cloexec(fd, true), -EBADF);
	assert_int_equal(fd_send(fd, "", 0, -1), -EBADF);
	int none;
	size_t len;
	assert_int_equal(fd_recv(fd, NULL, 0, &len, &none), -EBADF);
	assert_int_equal(fd_peer(fd, NULL, NULL), -EBADF);
}

static void pidfd(void **state)
{
	int fd = -1;
	assert_int_equal(fd_pidfd(getpid(), &fd), 0);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	fd_close(&fd);
	pid_t child = fork();
	if (child == 0)
		_exit(0);
	waitpid(child, NULL, 0);
	assert_int_equal(fd_pidfd(child, &fd), -ESRCH);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(passes_one),
	        cmocka_unit_test(refuses_many),
	        cmocka_unit_test(refuses_credentials),
	        cmocka_unit_test(refuses_large),
	        cmocka_unit_test(unix_sockets),
	        cmocka_unit_test(flags),
	        cmocka_unit_test(pidfd),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

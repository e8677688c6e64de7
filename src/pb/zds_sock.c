/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ZDS packets on a socket with the descriptor rules of node-agent.md 1.3, in
 * its order: take everything over, count, look for truncation, parse, pair.
 * Whatever fails leaves no descriptor open.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "pb/zds.h"

/* Room for descriptors of one packet: SCM_MAX_FD of the kernel, so that none can be cut off and lost. */
#define SCM_ROOM 253

int zds_send(int fd, const uint8_t *bytes, size_t len, int pass_fd)
{
	return fd_send(fd, bytes, len, pass_fd);
}

/* Moves all descriptors out of the control messages; other kinds are ignored. */
static size_t take_all(struct msghdr *msg, int fds[SCM_ROOM])
{
	size_t cnt = 0;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < n && cnt < SCM_ROOM; i++)
			memcpy(&fds[cnt++], CMSG_DATA(c) + i * sizeof(int), sizeof(int));
	}
	return cnt;
}

int zds_recv(int fd, uint8_t *dst, size_t *ret_len, int *ret_fd, struct err *err)
{
	union {
		char bytes[CMSG_SPACE(SCM_ROOM * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = {.iov_base = dst, .iov_len = ZDS_PACKET_MAX};
	struct msghdr msg = {.msg_iov = &iov,
	        .msg_iovlen = 1,
	        .msg_control = control.bytes,
	        .msg_controllen = sizeof(control.bytes)};
	ssize_t n;
	do {
		n = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == EAGAIN ? -EAGAIN
		                       : err_sys(err, -errno, "receiving from the node agent's socket");
	int fds[SCM_ROOM];
	size_t cnt = take_all(&msg, fds);
	int rc = 0;
	if (cnt > 1)
		rc = err_set(err, ERR_BAD_FD, "Expected 1 FD, got %zu", cnt);
	else if (msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC))
		rc = err_set(err, ERR_TRUNCATED, "received truncated message");
	if (rc < 0) {
		for (size_t i = 0; i < cnt; i++)
			fd_close(&fds[i]);
		return rc;
	}
	*ret_len = (size_t)n;
	*ret_fd = cnt ? fds[0] : -1;
	return 0;
}

int zds_recv_request(int fd, struct arena *arena, struct zds_request *ret_req, int *ret_fd, struct err *err)
{
	uint8_t packet[ZDS_PACKET_MAX];
	struct zds_request req;
	size_t len;
	int pass_fd;
	int rc = zds_recv(fd, packet, &len, &pass_fd, err);
	if (rc < 0)
		return rc;
	if (len == 0)
		rc = err_set(err, -EPIPE, "the node agent has closed the connection");
	else
		rc = zds_decode_request(packet, len, arena, &req, err);
	if (rc == 0 && req.type == ZDS_ADD && pass_fd < 0)
		rc = err_set(err, ERR_BAD_FD, "No control message");
	else if (rc == 0 && req.type != ZDS_ADD && pass_fd >= 0)
		rc = err_set(err, ERR_BAD_FD, "Unexpected control message");
	if (rc < 0) {
		fd_close(&pass_fd);
		return rc;
	}
	*ret_req = req;
	*ret_fd = pass_fd;
	return 0;
}

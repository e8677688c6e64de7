/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Options and addresses of sockets: tcp(7), ip(7), netfilter's original destination. Plain system calls, no
 * ring. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#include "conn/sock.h"

/* linux/netfilter_ipv4.h and linux/netfilter_ipv6/ip6_tables.h, whose other content clashes with the C
 * library's. */
#define NF_ORIGINAL_DST 80
/* TCP_CA_NAME_MAX (include/net/tcp.h; no header for user space has it), and one for the terminator. */
#define CONGESTION_MAX 17

static int set_int(int fd, int level, int option, int value)
{
	return setsockopt(fd, level, option, &value, sizeof(value)) < 0 ? -errno : 0;
}

static bool is_unix(int fd)
{
	int domain = 0;
	socklen_t len = sizeof(domain);
	return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) == 0 && domain == AF_UNIX;
}

int sock_set_nodelay(int fd)
{
	int r = set_int(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	return r == -EOPNOTSUPP && is_unix(fd) ? 0 : r;
}

int sock_set_oob_inline(int fd)
{
	return set_int(fd, SOL_SOCKET, SO_OOBINLINE, 1);
}

void sock_set_unpaced(int fd)
{
	static const char loss_based[] = "reno";
	char name[CONGESTION_MAX] = "";
	socklen_t len = sizeof(name) - 1;
	if (getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &len) == 0 && strncmp(name, "bbr", 3) == 0)
		(void)setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, loss_based, sizeof(loss_based) - 1);
}

int sock_set_keepalive(int fd, const struct sock_keepalive *keepalive)
{
	int r = 0;
	if (keepalive->user_timeout_ms)
		r = set_int(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, (int)keepalive->user_timeout_ms);
	if (r < 0 || !keepalive->is_on)
		return r;
	r = set_int(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
	if (r == 0)
		r = set_int(fd, IPPROTO_TCP, TCP_KEEPIDLE, (int)keepalive->idle_s);
	if (r == 0)
		r = set_int(fd, IPPROTO_TCP, TCP_KEEPINTVL, (int)keepalive->interval_s);
	if (r == 0)
		r = set_int(fd, IPPROTO_TCP, TCP_KEEPCNT, (int)keepalive->probe_cnt);
	return r;
}

int sock_local_addr(int fd, struct addr *ret_addr)
{
	struct sockaddr_storage sa = {0};
	socklen_t len = sizeof(sa);
	if (getsockname(fd, (struct sockaddr *)&sa, &len) < 0)
		return -errno;
	return addr_from_sockaddr((struct sockaddr *)&sa, len, ret_addr);
}

int sock_peer_addr(int fd, struct addr *ret_addr)
{
	struct sockaddr_storage sa = {0};
	socklen_t len = sizeof(sa);
	if (getpeername(fd, (struct sockaddr *)&sa, &len) < 0)
		return -errno;
	return addr_from_sockaddr((struct sockaddr *)&sa, len, ret_addr);
}

int sock_original_dst(int fd, struct addr *ret_addr)
{
	struct sockaddr_storage sa = {0};
	socklen_t len = sizeof(struct sockaddr_in);
	if (getsockopt(fd, IPPROTO_IP, NF_ORIGINAL_DST, &sa, &len) == 0)
		return addr_from_sockaddr((struct sockaddr *)&sa, len, ret_addr);
	len = sizeof(struct sockaddr_in6);
	if (getsockopt(fd, IPPROTO_IPV6, NF_ORIGINAL_DST, &sa, &len) == 0)
		return addr_from_sockaddr((struct sockaddr *)&sa, len, ret_addr);
	return -errno;
}

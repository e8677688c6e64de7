/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads the interfaces' addresses over netlink (getifaddrs(3)). A bind() would
 * be cheaper but succeeds for any address where net.ipv4.ip_nonlocal_bind is
 * set, and a pod may set that.
 */
#include "silo/netif.h"

#include <ifaddrs.h>
#include <sys/socket.h>

/* Room of a socket address by family; getifaddrs gives no lengths. */
static socklen_t sockaddr_len(const struct sockaddr *sa)
{
	return sa->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

static bool is_one_of(const struct sockaddr *sa, const struct ip *ips, size_t cnt)
{
	struct addr mine;
	if (addr_from_sockaddr(sa, sockaddr_len(sa), &mine) < 0 || ip_is_loopback(&mine.ip))
		return false;
	for (size_t i = 0; i < cnt; i++)
		if (ip_eq(&mine.ip, &ips[i]))
			return true;
	return false;
}

bool netif_has_any(const struct ip *ips, size_t cnt)
{
	struct ifaddrs *all;
	if (getifaddrs(&all) < 0)
		return false;
	bool found = false;
	for (const struct ifaddrs *it = all; it && !found; it = it->ifa_next)
		found = it->ifa_addr && is_one_of(it->ifa_addr, ips, cnt);
	freeifaddrs(all);
	return found;
}

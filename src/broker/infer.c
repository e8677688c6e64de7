/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads the interfaces' addresses over netlink (getifaddrs(3)) each time: on a VM they come late and change.
 */
#include "broker/infer.h"

#include <errno.h>
#include <ifaddrs.h>
#include <string.h>
#include <sys/socket.h>

#include "base/addr.h"

static int look_up(const struct store *store, const char *network, const struct sockaddr *sa,
        struct arena *arena, const struct workload **ret_workload)
{
	struct addr mine;
	socklen_t len = sa->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
	/* Link-local ones are the same on every link, so they name nobody. */
	if (addr_from_sockaddr(sa, len, &mine) < 0 || ip_is_loopback(&mine.ip) || ip_is_link_local(&mine.ip))
		return -ENOENT;
	return store_local_workload_at(store, network, &mine.ip, arena, ret_workload);
}

int infer_workload(const struct store *store, const char *network, struct arena *arena,
        const struct workload **ret_workload)
{
	struct ifaddrs *all;
	int rc = -ENOENT;
	if (getifaddrs(&all) < 0)
		return -errno;
	for (const struct ifaddrs *it = all; it && rc == -ENOENT; it = it->ifa_next)
		if (it->ifa_addr)
			rc = look_up(store, network, it->ifa_addr, arena, ret_workload);
	freeifaddrs(all);
	return rc;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Socket options in the order that the kernel wants them: all of them before bind. */
#include "warden/listen.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"

/* Connections that wait for accept (dataplane.md 2.2). */
#define BACKLOG 128

static struct addr wildcard(const struct settings *settings, uint16_t port)
{
	return (struct addr){.ip = {.family = settings->ipv6_enabled ? 6 : 4}, .port = port};
}

/* Both transports on an address. */
static size_t dns_pair(struct listen_spec *specs, const struct addr *addr)
{
	specs[0] = (struct listen_spec){IPC_FD_DNS_UDP, *addr, SOCK_DGRAM};
	specs[1] = (struct listen_spec){IPC_FD_DNS_TCP, *addr, SOCK_STREAM};
	return 2;
}

/* The DNS proxy (control.md 10.1). */
static size_t dns_table(const struct settings *settings, struct listen_spec *specs)
{
	struct addr loopback4 = {.ip = ip_v4(127, 0, 0, 1), .port = settings->dns_addr.port};
	struct addr loopback6 = {.ip = {.family = 6, .b = {[15] = 1}}, .port = settings->dns_addr.port};
	if (!settings->dns_enabled)
		return 0;
	if (!settings->dns_localhost)
		return dns_pair(specs, &settings->dns_addr);
	size_t cnt = dns_pair(specs, &loopback4);
	if (settings->ipv6_enabled)
		cnt += dns_pair(specs + cnt, &loopback6);
	for (size_t i = 2; i < cnt; i++)
		specs[i].is_optional = true;
	return cnt;
}

size_t listen_table(const struct settings *settings, struct listen_spec specs[LISTEN_MAX])
{
	size_t cnt = 0;
	if (!settings->enable_proxy)
		return dns_table(settings, specs);
	specs[cnt++] = (struct listen_spec){IPC_FD_INBOUND_HBONE, wildcard(settings, 15008), SOCK_STREAM};
	specs[cnt++] = (struct listen_spec){IPC_FD_INBOUND_PLAINTEXT, wildcard(settings, 15006), SOCK_STREAM};
	specs[cnt++] = (struct listen_spec){IPC_FD_OUTBOUND, wildcard(settings, 15001), SOCK_STREAM};
	if (settings->socks5)
		specs[cnt++] = (struct listen_spec){IPC_FD_SOCKS5, {ip_v4(127, 0, 0, 1), 15080}, SOCK_STREAM};
	return cnt + dns_table(settings, specs + cnt);
}

size_t listen_table_self(const struct settings *settings, struct listen_spec specs[LISTEN_MAX])
{
	specs[0] = (struct listen_spec){.kind = IPC_FD_INBOUND_HBONE,
	        .addr = wildcard(settings, 15008),
	        .type = SOCK_STREAM,
	        .is_plain = true};
	return 1;
}

/* Names of the kinds that bind and setsockopt really give; the text is for people, the agent only tests that
 * it is there. */
static const char *kind_name(int code)
{
	switch (-code) {
	case EADDRINUSE:
		return "AddrInUse";
	case EADDRNOTAVAIL:
		return "AddrNotAvailable";
	case EACCES:
	case EPERM:
		return "PermissionDenied";
	case EINVAL:
		return "InvalidInput";
	default:
		return "Uncategorized";
	}
}

static int fail(const struct listen_spec *spec, int code, struct err *err)
{
	char text[ADDR_STR_MAX];
	return err_set(err, code, "Bind(%s, Os { code: %d, kind: %s, message: \"%s\" })",
	        addr_format(&spec->addr, text), -code, kind_name(code), err_str(code));
}

static int set_int(int fd, int level, int name, int value)
{
	return setsockopt(fd, level, name, &value, sizeof(value)) < 0 ? -errno : 0;
}

/* IP_TRANSPARENT (the IPv4-level option also on dual-stack sockets, as upstream) lets the inbound side speak
 * with the client's address. */
static int set_transparent(const struct settings *settings, int fd)
{
	if (settings->enable_orig_src_set && !settings->enable_orig_src)
		return 0;
	int rc = set_int(fd, SOL_IP, IP_TRANSPARENT, 1);
	return settings->enable_orig_src_set ? rc : 0;
}

static int set_options(const struct settings *settings, const struct listen_spec *spec, int fd)
{
	int rc = 0;
	bool is_captured = !settings->dedicated && !spec->is_plain;
	bool is_marked = is_captured && settings->packet_mark != 0;
	bool is_shared_port = is_captured && settings->inpod_port_reuse;
	if (spec->addr.ip.family == 6)
		rc = set_int(fd, SOL_IPV6, IPV6_V6ONLY, 0);
	if (rc == 0 && is_marked)
		rc = set_int(fd, SOL_SOCKET, SO_MARK, (int)settings->packet_mark);
	if (rc == 0)
		rc = set_int(fd, SOL_SOCKET, is_shared_port ? SO_REUSEPORT : SO_REUSEADDR, 1);
	/* DNS answers clients of this namespace only; transparent, it could be bound to an address that is
	 * not there. */
	if (rc == 0 && spec->type == SOCK_STREAM && spec->kind != IPC_FD_DNS_TCP && !spec->is_plain)
		rc = set_transparent(settings, fd);
	return rc;
}

int listen_open(const struct settings *settings, const struct listen_spec *spec, int *ret_fd, struct err *err)
{
	struct sockaddr_storage sa;
	socklen_t len = addr_to_sockaddr(&spec->addr, &sa);
	int fd = socket(sa.ss_family, spec->type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 && spec->is_optional && errno == EAFNOSUPPORT) {
		*ret_fd = -1;
		return 0;
	}
	if (fd < 0)
		return fail(spec, -errno, err);
	int rc = set_options(settings, spec, fd);
	if (rc == 0 && bind(fd, (struct sockaddr *)&sa, len) < 0)
		rc = -errno;
	if (rc == 0 && spec->type == SOCK_STREAM && listen(fd, BACKLOG) < 0)
		rc = -errno;
	if (rc < 0) {
		fd_close(&fd);
		/* The namespace has no such address: IPv6 may be off in one and on in the next. */
		if (spec->is_optional && rc == -EADDRNOTAVAIL) {
			*ret_fd = -1;
			return 0;
		}
		return fail(spec, rc, err);
	}
	*ret_fd = fd;
	return 0;
}

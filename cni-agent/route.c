/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Three kinds of rtnetlink message, each with its answer awaited. Knows the
 * current namespace only. netlink(7), rtnetlink(7), ip-rule(8).
 */
#include "route.h"

#include <errno.h>
#include <linux/fib_rules.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/file.h"
#include "rules.h"

/* The kernel answers at once; longer means that it never will. */
#define ANSWER_SECONDS 5
/* Bytes of one datagram of a dump; the kernel fills 32 KiB at most. */
#define DATAGRAM_MAX 32768
/* Rules of ours that one namespace may have collected; more are somebody's joke. */
#define RULES_MAX 64

/* A message being built: header, the fixed part, attributes. */
struct message {
	struct nlmsghdr head;
	union {
		struct rtmsg route;
		struct fib_rule_hdr rule;
		struct ifaddrmsg addr;
	} fixed;
	uint8_t attrs[128];
};

static int netlink_open(int *ret_fd)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	if (fd < 0)
		return -errno;
	struct timeval limit = {.tv_sec = ANSWER_SECONDS};
	struct sockaddr_nl self = {.nl_family = AF_NETLINK};
	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) < 0 ||
	        bind(fd, (struct sockaddr *)&self, sizeof(self)) < 0) {
		int rc = -errno;
		fd_close(&fd);
		return rc;
	}
	*ret_fd = fd;
	return 0;
}

static void start(struct message *msg, uint16_t type, uint16_t flags, size_t fixed_len)
{
	memset(msg, 0, sizeof(*msg));
	msg->head = (struct nlmsghdr){.nlmsg_len = NLMSG_LENGTH(fixed_len),
	        .nlmsg_type = type,
	        .nlmsg_flags = NLM_F_REQUEST | flags,
	        .nlmsg_seq = 1};
}

/* Attributes follow the fixed part, whose kinds differ in length. All callers together stay far below the
 * room. */
static void add_u32(struct message *msg, uint16_t type, uint32_t value)
{
	struct rtattr attr = {.rta_len = RTA_LENGTH(sizeof(value)), .rta_type = type};
	uint8_t *at = (uint8_t *)msg + NLMSG_ALIGN(msg->head.nlmsg_len);
	memcpy(at, &attr, sizeof(attr));
	memcpy(at + RTA_LENGTH(0), &value, sizeof(value));
	msg->head.nlmsg_len = NLMSG_ALIGN(msg->head.nlmsg_len) + RTA_SPACE(sizeof(value));
}

static int send_message(int fd, const struct message *msg)
{
	struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
	ssize_t n = sendto(fd, msg, msg->head.nlmsg_len, 0, (struct sockaddr *)&kernel, sizeof(kernel));
	return n < 0 ? -errno : 0;
}

static int receive(int fd, uint8_t *dst, size_t *ret_len)
{
	ssize_t n;
	do {
		n = recv(fd, dst, DATAGRAM_MAX, 0);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == EAGAIN ? -ETIMEDOUT : -errno;
	*ret_len = (size_t)n;
	return 0;
}

/* Code in an NLMSG_ERROR message. */
static int error_of(const struct nlmsghdr *head)
{
	if (head->nlmsg_len < NLMSG_LENGTH(sizeof(struct nlmsgerr)))
		return -EPROTO;
	const struct nlmsgerr *answer = NLMSG_DATA(head);
	return answer->error;
}

/* Sends a change and waits for the kernel's verdict. */
static int change(struct message *msg)
{
	_Alignas(struct nlmsghdr) uint8_t answer[DATAGRAM_MAX];
	size_t len = 0;
	int fd = -1;
	int rc = netlink_open(&fd);
	if (rc < 0)
		return rc;
	msg->head.nlmsg_flags |= NLM_F_ACK;
	rc = send_message(fd, msg);
	if (rc == 0)
		rc = receive(fd, answer, &len);
	fd_close(&fd);
	if (rc < 0)
		return rc;
	const struct nlmsghdr *head = (const struct nlmsghdr *)(const void *)answer;
	return NLMSG_OK(head, len) && head->nlmsg_type == NLMSG_ERROR ? error_of(head) : -EPROTO;
}

/* --- addresses ------------------------------------------------------------ */

/* What is searched in a dump of addresses. */
struct search {
	const struct ip *ips;
	size_t ip_cnt;
	bool is_found;
};

static void look_at(struct search *search, const struct nlmsghdr *head)
{
	const struct ifaddrmsg *fixed = NLMSG_DATA(head);
	if (head->nlmsg_len < NLMSG_LENGTH(sizeof(*fixed)))
		return;
	size_t len = head->nlmsg_len - NLMSG_LENGTH(sizeof(*fixed));
	/* On a point-to-point link IFA_ADDRESS is the peer's; IFA_LOCAL is ours where it is given. */
	const struct rtattr *address = NULL;
	for (const struct rtattr *attr = IFA_RTA(fixed); RTA_OK(attr, len); attr = RTA_NEXT(attr, len)) {
		if (attr->rta_type == IFA_LOCAL || (attr->rta_type == IFA_ADDRESS && !address))
			address = attr;
	}
	struct ip ip;
	if (!address || ip_from_bytes(RTA_DATA(address), RTA_PAYLOAD(address), &ip) < 0)
		return;
	for (size_t i = 0; i < search->ip_cnt; i++)
		search->is_found |= ip_eq(&ip, &search->ips[i]);
}

/* Reads one datagram. 1 = more follow, 0 = the dump has ended. */
static int search_datagram(struct search *search, const uint8_t *bytes, size_t len)
{
	const struct nlmsghdr *head = (const struct nlmsghdr *)(const void *)bytes;
	for (; NLMSG_OK(head, len); head = NLMSG_NEXT(head, len)) {
		if (head->nlmsg_type == NLMSG_DONE)
			return 0;
		if (head->nlmsg_type == NLMSG_ERROR)
			return error_of(head);
		if (head->nlmsg_type == RTM_NEWADDR)
			look_at(search, head);
	}
	return 1;
}

int route_owns_any(const struct ip *ips, size_t ip_cnt, bool *ret_owns, struct err *err)
{
	_Alignas(struct nlmsghdr) uint8_t datagram[DATAGRAM_MAX];
	struct search search = {.ips = ips, .ip_cnt = ip_cnt};
	struct message msg;
	int fd = -1;
	int rc = netlink_open(&fd);
	if (rc < 0)
		return err_sys(err, rc, "netlink");
	start(&msg, RTM_GETADDR, NLM_F_DUMP, sizeof(msg.fixed.addr));
	rc = send_message(fd, &msg);
	if (rc == 0)
		rc = 1;
	while (rc > 0) {
		size_t len = 0;
		rc = receive(fd, datagram, &len);
		if (rc == 0)
			rc = search_datagram(&search, datagram, len);
	}
	fd_close(&fd);
	if (rc < 0)
		return err_sys(err, rc, "cannot list the addresses of the namespace");
	*ret_owns = search.is_found;
	return 0;
}

/* --- rule and route ------------------------------------------------------- */

/* Without the file the kernel has no IPv6 at all. Addresses of lo decide, as the route leads there. */
static bool has_ipv6(void)
{
	char line[8];
	/* This file belongs to the namespace of whoever reads it. */
	return file_read_line("/proc/sys/net/ipv6/conf/lo/disable_ipv6", line, sizeof(line)) == 0 &&
	       strcmp(line, "0") == 0;
}

static int change_route(int family, uint16_t type, uint16_t flags)
{
	struct message msg;
	start(&msg, type, flags, sizeof(msg.fixed.route));
	msg.fixed.route = (struct rtmsg){.rtm_family = (uint8_t)family,
	        .rtm_table = RULES_ROUTE_TABLE,
	        .rtm_protocol = RTPROT_BOOT,
	        .rtm_scope = RT_SCOPE_HOST,
	        .rtm_type = RTN_LOCAL};
	add_u32(&msg, RTA_OIF, if_nametoindex("lo"));
	return change(&msg);
}

static int change_rule(int family, uint16_t type, uint16_t flags)
{
	struct message msg;
	start(&msg, type, flags, sizeof(msg.fixed.rule));
	msg.fixed.rule = (struct fib_rule_hdr){
	        .family = (uint8_t)family, .table = RULES_ROUTE_TABLE, .action = FR_ACT_TO_TBL};
	add_u32(&msg, FRA_PRIORITY, RULES_ROUTE_PRIORITY);
	add_u32(&msg, FRA_FWMARK, RULES_MARK_REPLY);
	add_u32(&msg, FRA_FWMASK, RULES_MARK_MASK);
	return change(&msg);
}

static const char *family_name(int family)
{
	return family == AF_INET ? "IPv4" : "IPv6";
}

static int apply_family(int family, struct err *err)
{
	int rc = change_route(family, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE);
	if (rc == -ENETDOWN)
		return err_set(err, rc, "route to lo, %s: lo is down", family_name(family));
	if (rc < 0)
		return err_sys(err, rc, "route to lo, %s", family_name(family));
	rc = change_rule(family, RTM_NEWRULE, NLM_F_CREATE | NLM_F_EXCL);
	return rc < 0 && rc != -EEXIST ? err_sys(err, rc, "ip rule, %s", family_name(family)) : 0;
}

int route_apply(bool ipv6, struct err *err)
{
	int rc = apply_family(AF_INET, err);
	if (rc == 0 && ipv6 && has_ipv6())
		rc = apply_family(AF_INET6, err);
	return rc;
}

/* What the kernel says when there is nothing to remove, or no such family. */
static bool is_absence(int rc)
{
	return rc == -ENOENT || rc == -ESRCH || rc == -EAFNOSUPPORT || rc == -EOPNOTSUPP;
}

static int undo_family(int family, struct err *err)
{
	int rc = 0;
	for (int i = 0; i < RULES_MAX && rc == 0; i++)
		rc = change_rule(family, RTM_DELRULE, 0);
	if (rc < 0 && !is_absence(rc))
		return err_sys(err, rc, "ip rule, %s", family_name(family));
	rc = change_route(family, RTM_DELROUTE, 0);
	return rc < 0 && !is_absence(rc) ? err_sys(err, rc, "route to lo, %s", family_name(family)) : 0;
}

int route_undo(struct err *err)
{
	int rc = undo_family(AF_INET, err);
	int rc6 = undo_family(AF_INET6, rc == 0 ? err : NULL);
	return rc < 0 ? rc : rc6;
}

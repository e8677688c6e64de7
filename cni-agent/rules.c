/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * M1 to R2 of node-agent.md 2.2, in its order, in the nftables form of 2.3:
 * rules that name an address exist once per family. Must not touch the kernel.
 */
#include "rules.h"

#include <string.h>

#define NAT "inet istio-ambient-nat"
#define MANGLE "inet istio-ambient-mangle"
#define RAW "inet istio-ambient-raw"

/* Conditions that several rules share. */
#define NOT_PROXY "meta mark & 0xfff != 0x539"
#define FROM_PROXY "meta mark & 0xfff == 0x539"
#define TCP "meta l4proto tcp"

struct ip rules_probe4(void)
{
	return ip_v4(169, 254, 7, 127);
}

struct ip rules_probe6(void)
{
	static const uint8_t bytes[16] = {0xfd, 0x16, 0x92, 0x54, 0x71, 0x27, 0x13, 0x37, 0xff, 0xff, 0xff,
	        0xff, 0xff, 0xff, 0xff, 0xff};
	struct ip ip = {.family = 6};
	memcpy(ip.b, bytes, sizeof(bytes));
	return ip;
}

/* A table of ours, empty, with its two base chains that jump into two of our own. */
static void put_table(struct buf *out, const char *table, const char *in_hook, const char *out_hook)
{
	buf_printf(out, "add table %s\nflush table %s\n", table, table);
	buf_printf(out, "add chain %s prerouting { %s; policy accept; }\n", table, in_hook);
	buf_printf(out, "add chain %s output { %s; policy accept; }\n", table, out_hook);
	buf_printf(out, "add chain %s istio-prerouting\nadd chain %s istio-output\n", table, table);
	buf_printf(out,
	        "add rule %s prerouting jump istio-prerouting\nadd rule %s output jump istio-output\n", table,
	        table);
}

static void put_rule(struct buf *out, const char *table, const char *chain, const char *text)
{
	buf_printf(out, "add rule %s %s %s\n", table, chain, text);
}

/* A nat rule about the one loopback address that is exempt, once per family. */
static void put_not_loopback(const struct rules *rules, struct buf *out, const char *chain, const char *text)
{
	buf_printf(out, "add rule " NAT " %s ip daddr != 127.0.0.1 %s\n", chain, text);
	if (rules->ipv6)
		buf_printf(out, "add rule " NAT " %s ip6 daddr != ::1 %s\n", chain, text);
}

/* A nat rule about the probe address as source or destination, once per family. */
static void put_probe(const struct rules *rules, struct buf *out, const char *chain, const char *side)
{
	char text[IP_STR_MAX];
	buf_printf(out, "add rule " NAT " %s ip %s %s " TCP " counter accept\n", chain, side,
	        ip_format(&rules->probe4, text));
	if (rules->ipv6)
		buf_printf(out, "add rule " NAT " %s ip6 %s %s " TCP " counter accept\n", chain, side,
		        ip_format(&rules->probe6, text));
}

static void put_mangle(struct buf *out)
{
	put_table(out, MANGLE, "type filter hook prerouting priority -150",
	        "type route hook output priority -150");
	put_rule(out, MANGLE, "istio-prerouting",
	        FROM_PROXY " counter ct mark set ct mark & 0xfffff000 | 0x111");
	put_rule(out, MANGLE, "istio-output", "ct mark & 0xfff == 0x111 counter meta mark set ct mark");
}

static void put_nat_in(const struct rules *rules, struct buf *out, const char *family)
{
	for (size_t i = 0; i < rules->if_cnt; i++) {
		buf_printf(out,
		        "add rule " NAT " istio-prerouting %siifname \"%s\" " TCP
		        " counter redirect to :15001\n",
		        family, rules->ifs[i]);
		buf_printf(out, "add rule " NAT " istio-prerouting %siifname \"%s\" " TCP " counter return\n",
		        family, rules->ifs[i]);
	}
	if (rules->is_ingress)
		return;
	put_probe(rules, out, "istio-prerouting", "saddr");
	put_not_loopback(rules, out, "istio-prerouting",
	        "tcp dport != 15008 " NOT_PROXY " counter redirect to :15006");
}

static void put_nat_out(const struct rules *rules, struct buf *out, const char *family)
{
	put_probe(rules, out, "istio-output", "daddr");
	if (rules->dns) {
		buf_printf(out,
		        "add rule " NAT " istio-output %soifname != \"lo\" udp dport 53 " NOT_PROXY
		        " counter redirect to :15053\n",
		        family);
		put_not_loopback(
		        rules, out, "istio-output", "tcp dport 53 " NOT_PROXY " counter redirect to :15053");
	}
	put_rule(out, NAT, "istio-output", TCP " meta mark & 0xfff == 0x111 counter accept");
	put_not_loopback(rules, out, "istio-output", "oifname \"lo\" counter accept");
	put_not_loopback(rules, out, "istio-output", TCP " " NOT_PROXY " counter redirect to :15001");
}

static void put_raw(struct buf *out)
{
	put_table(out, RAW, "type filter hook prerouting priority -300",
	        "type filter hook output priority -300");
	put_rule(out, RAW, "istio-output", "udp dport 53 " FROM_PROXY " counter ct zone set 1");
	put_rule(out, RAW, "istio-prerouting", "udp sport 53 " NOT_PROXY " counter ct zone set 1");
}

/* A table that is not there cannot be deleted, one that is there may be added. */
static void put_no_table(struct buf *out, const char *table)
{
	buf_printf(out, "add table %s\ndelete table %s\n", table, table);
}

void rules_apply_text(const struct rules *rules, struct buf *out)
{
	/* Rules without an address in them would catch both families. */
	const char *family = rules->ipv6 ? "" : "meta nfproto ipv4 ";
	put_mangle(out);
	put_table(out, NAT, "type nat hook prerouting priority -100", "type nat hook output priority -100");
	put_nat_in(rules, out, family);
	put_nat_out(rules, out, family);
	if (rules->dns)
		put_raw(out);
	else
		put_no_table(out, RAW);
}

void rules_undo_text(struct buf *out)
{
	put_no_table(out, NAT);
	put_no_table(out, MANGLE);
	put_no_table(out, RAW);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What resolv.conf(5) and hosts(5) say, read from text. Knows no socket and no
 * file.
 */
#ifndef CULVERT_BROKER_RESOLV_CONF_H
#define CULVERT_BROKER_RESOLV_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "dns/message.h"

/* Servers that are used; resolv.conf(5) has the same ceiling. */
#define RESOLV_SERVER_MAX 3
/* Domains of the search list; Kubernetes writes three to six, glibc has no ceiling any more. */
#define RESOLV_SEARCH_MAX 16

/* The configuration. */
struct resolv_conf {
	struct addr servers[RESOLV_SERVER_MAX]; /* port 53 */
	size_t server_cnt;
	char search[RESOLV_SEARCH_MAX][DNS_TEXT_MAX];
	size_t search_cnt;
	uint32_t timeout_ms; /* of one attempt; 5 s unless set, at most 30 s */
	uint32_t attempts;   /* with each server; 2 unless set, 1 to 5 */
	bool edns;           /* option edns0 */
	unsigned ndots; /* names with fewer dots go through the search list first; 1 unless set, at most 15 */
};

/* Reads the text of a resolv.conf; what it does not understand is skipped. */
void resolv_conf_parse(const char *text, size_t len, struct resolv_conf *ret_conf);

/* Appends the addresses that a hosts file has for `name` (without regard to case), from *cnt on, at most cap.
 * `v4`, `v6`: families wanted. */
void hosts_find(const char *text, size_t len, const char *name, bool v4, bool v6, struct ip *ips, size_t cap,
        size_t *cnt);

/*
 * Name `i` to be asked for, in order: `name` as it is and with each search
 * domain, which first by its dots; a dot at the end means as it is only.
 * Returns false behind the last one; a name that grows too long is "".
 */
bool resolv_candidate(
        const struct resolv_conf *conf, const char *name, size_t i, char ret_name[DNS_TEXT_MAX]);

#endif

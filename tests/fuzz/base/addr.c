/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whatever parses as an address prints to a text that parses to the same address. */
#include <string.h>

#include "base/addr.h"
#include "base/check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	const char *text = (const char *)data;
	char out[ADDR_STR_MAX];
	struct ip ip, ip2;
	struct addr addr, addr2;
	struct cidr cidr, cidr2;
	if (ip_parse(text, len, &ip) == 0) {
		ip_format(&ip, out);
		ASSERT(strlen(out) < IP_STR_MAX);
		ASSERT(ip_parse(out, strlen(out), &ip2) == 0 && ip_eq(&ip, &ip2));
	}
	if (addr_parse(text, len, &addr) == 0) {
		addr_format(&addr, out);
		ASSERT(strlen(out) < ADDR_STR_MAX);
		ASSERT(addr_parse(out, strlen(out), &addr2) == 0 && addr_eq(&addr, &addr2));
	}
	if (cidr_parse(text, len, &cidr) == 0) {
		cidr_format(&cidr, out);
		ASSERT(strlen(out) < CIDR_STR_MAX);
		ASSERT(cidr_parse(out, strlen(out), &cidr2) == 0 && cidr_eq(&cidr, &cidr2));
		ASSERT(cidr_contains(&cidr, &cidr.ip));
	}
	return 0;
}

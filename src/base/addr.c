/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Addresses as values. Parsing is inet_pton's strict form on an exact length; printing is ours (RFC 5952). */
#include "base/addr.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"

static const uint8_t mapped_prefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

struct ip ip_v4(uint8_t a, uint8_t b, uint8_t c, uint8_t d)
{
	return (struct ip){.family = 4, .b = {a, b, c, d}};
}

int ip_from_bytes(const uint8_t *bytes, size_t len, struct ip *ret_ip)
{
	if (len != 4 && len != 16)
		return -EINVAL;
	struct ip ip = {.family = len == 4 ? 4 : 6};
	memcpy(ip.b, bytes, len);
	*ret_ip = ip;
	return 0;
}

struct ip ip_canonical(struct ip ip)
{
	if (ip.family == 6 && memcmp(ip.b, mapped_prefix, 12) == 0)
		return ip_v4(ip.b[12], ip.b[13], ip.b[14], ip.b[15]);
	return ip;
}

int ip_parse(const char *text, size_t len, struct ip *ret_ip)
{
	char tmp[IP_STR_MAX];
	if (len == 0 || len >= sizeof(tmp) || memchr(text, '\0', len))
		return -EINVAL;
	memcpy(tmp, text, len);
	tmp[len] = '\0';
	struct ip ip = {0};
	if (inet_pton(AF_INET, tmp, ip.b) == 1)
		ip.family = 4;
	else if (inet_pton(AF_INET6, tmp, ip.b) == 1)
		ip.family = 6;
	else
		return -EINVAL;
	*ret_ip = ip;
	return 0;
}

static char *put_quad(const uint8_t *b, char *p)
{
	for (int i = 0; i < 4; i++) {
		if (i)
			*p++ = '.';
		p += num_format(b[i], p);
	}
	return p;
}

/* The longest run of at least two zero groups, the first of equals; *ret_len 0 when there is none. */
static int zero_run(const uint16_t *groups, int *ret_len)
{
	int best = 0;
	int best_len = 0;
	for (int i = 0; i < 8; i++) {
		int n = 0;
		while (i + n < 8 && groups[i + n] == 0)
			n++;
		if (n >= 2 && n > best_len) {
			best = i;
			best_len = n;
		}
		i += n; /* stands on a group that is not zero; the loop steps over it */
	}
	*ret_len = best_len;
	return best;
}

static char *put_v6(const uint8_t *b, char *p)
{
	if (memcmp(b, mapped_prefix, 12) == 0) {
		memcpy(p, "::ffff:", 7);
		return put_quad(b + 12, p + 7);
	}
	uint16_t groups[8];
	for (int i = 0; i < 8; i++)
		groups[i] = (uint16_t)(b[2 * i] << 8 | b[2 * i + 1]);
	int run_len;
	int run = zero_run(groups, &run_len);
	for (int i = 0; i < 8;) {
		if (run_len && i == run) {
			*p++ = ':';
			*p++ = ':';
			i += run_len;
			continue;
		}
		/* After a compressed run its second colon has separated already. */
		if (i && (!run_len || i != run + run_len))
			*p++ = ':';
		p += sprintf(p, "%x", groups[i]);
		i++;
	}
	return p;
}

char *ip_format(const struct ip *ip, char *dst)
{
	char *p = dst;
	if (ip->family == 4)
		p = put_quad(ip->b, p);
	else if (ip->family == 6)
		p = put_v6(ip->b, p);
	*p = '\0';
	return dst;
}

bool ip_eq(const struct ip *a, const struct ip *b)
{
	return a->family == b->family && memcmp(a->b, b->b, sizeof(a->b)) == 0;
}

int ip_cmp(const struct ip *a, const struct ip *b)
{
	return a->family != b->family ? a->family - b->family : memcmp(a->b, b->b, sizeof(a->b));
}

uint64_t ip_hash(const struct ip *ip, const struct hash_seed *seed)
{
	return hash_bytes(seed, ip->b, ip_len(ip));
}

bool ip_is_loopback(const struct ip *ip)
{
	static const uint8_t one[16] = {[15] = 1};
	struct ip c = ip_canonical(*ip);
	return c.family == 4 ? c.b[0] == 127 : c.family == 6 && memcmp(c.b, one, 16) == 0;
}

bool ip_is_unspecified(const struct ip *ip)
{
	static const uint8_t zero[16] = {0};
	return memcmp(ip->b, zero, 16) == 0;
}

bool ip_is_link_local(const struct ip *ip)
{
	if (ip->family == 4)
		return ip->b[0] == 169 && ip->b[1] == 254;
	return ip->family == 6 && ip->b[0] == 0xfe && (ip->b[1] & 0xc0) == 0x80;
}

bool ip_is_multicast(const struct ip *ip)
{
	return ip->family == 4 ? (ip->b[0] & 0xf0) == 0xe0 : ip->family == 6 && ip->b[0] == 0xff;
}

int addr_parse(const char *text, size_t len, struct addr *ret_addr)
{
	const char *colon = len ? memrchr(text, ':', len) : NULL;
	if (!colon)
		return -EINVAL;
	size_t host_len = (size_t)(colon - text);
	bool brackets = host_len >= 2 && text[0] == '[' && colon[-1] == ']';
	struct addr addr = {0};
	uint64_t port;
	if (num_parse(colon + 1, len - host_len - 1, UINT16_MAX, &port) < 0)
		return -EINVAL;
	int rc = brackets ? ip_parse(text + 1, host_len - 2, &addr.ip) : ip_parse(text, host_len, &addr.ip);
	if (rc < 0 || (addr.ip.family == 6) != brackets)
		return -EINVAL;
	addr.port = (uint16_t)port;
	*ret_addr = addr;
	return 0;
}

char *addr_format(const struct addr *addr, char *dst)
{
	char *p = dst;
	if (addr->ip.family == 6)
		*p++ = '[';
	ip_format(&addr->ip, p);
	p += strlen(p);
	if (addr->ip.family == 6)
		*p++ = ']';
	*p++ = ':';
	num_format(addr->port, p);
	return dst;
}

bool addr_eq(const struct addr *a, const struct addr *b)
{
	return a->port == b->port && ip_eq(&a->ip, &b->ip);
}

int addr_cmp(const struct addr *a, const struct addr *b)
{
	int c = ip_cmp(&a->ip, &b->ip);
	return c ? c : (int)a->port - (int)b->port;
}

uint64_t addr_hash(const struct addr *addr, const struct hash_seed *seed)
{
	uint8_t key[18];
	memcpy(key, addr->ip.b, 16);
	memcpy(key + 16, &addr->port, 2);
	return hash_bytes(seed, key, sizeof(key));
}

int addr_from_sockaddr(const struct sockaddr *sa, socklen_t len, struct addr *ret_addr)
{
	if (len >= sizeof(struct sockaddr_in) && sa->sa_family == AF_INET) {
		struct sockaddr_in in;
		memcpy(&in, sa, sizeof(in));
		struct addr addr = {.ip = {.family = 4}, .port = ntohs(in.sin_port)};
		memcpy(addr.ip.b, &in.sin_addr, 4);
		*ret_addr = addr;
		return 0;
	}
	if (len >= sizeof(struct sockaddr_in6) && sa->sa_family == AF_INET6) {
		struct sockaddr_in6 in6;
		memcpy(&in6, sa, sizeof(in6));
		struct addr addr = {.ip = {.family = 6}, .port = ntohs(in6.sin6_port)};
		memcpy(addr.ip.b, &in6.sin6_addr, 16);
		addr.ip = ip_canonical(addr.ip);
		*ret_addr = addr;
		return 0;
	}
	return -EAFNOSUPPORT;
}

static socklen_t put_in6(const uint8_t *bytes, uint16_t port, struct sockaddr_storage *ret_sa)
{
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
	memcpy(&in6.sin6_addr, bytes, 16);
	memset(ret_sa, 0, sizeof(*ret_sa));
	memcpy(ret_sa, &in6, sizeof(in6));
	return sizeof(in6);
}

socklen_t addr_to_sockaddr(const struct addr *addr, struct sockaddr_storage *ret_sa)
{
	if (addr->ip.family == 6)
		return put_in6(addr->ip.b, addr->port, ret_sa);
	if (addr->ip.family != 4)
		return 0;
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(addr->port)};
	memcpy(&in.sin_addr, addr->ip.b, 4);
	memset(ret_sa, 0, sizeof(*ret_sa));
	memcpy(ret_sa, &in, sizeof(in));
	return sizeof(in);
}

socklen_t addr_to_sockaddr6(const struct addr *addr, struct sockaddr_storage *ret_sa)
{
	uint8_t bytes[16];
	if (addr->ip.family == 6)
		return put_in6(addr->ip.b, addr->port, ret_sa);
	if (addr->ip.family != 4)
		return 0;
	memcpy(bytes, mapped_prefix, 12);
	memcpy(bytes + 12, addr->ip.b, 4);
	return put_in6(bytes, addr->port, ret_sa);
}

int cidr_parse(const char *text, size_t len, struct cidr *ret_cidr)
{
	const char *slash = len ? memchr(text, '/', len) : NULL;
	size_t ip_text_len = slash ? (size_t)(slash - text) : len;
	struct cidr cidr;
	if (ip_parse(text, ip_text_len, &cidr.ip) < 0)
		return -EINVAL;
	uint64_t bits = ip_len(&cidr.ip) * 8;
	if (slash && num_parse(slash + 1, len - ip_text_len - 1, bits, &bits) < 0)
		return -EINVAL;
	cidr.len = (uint8_t)bits;
	*ret_cidr = cidr;
	return 0;
}

char *cidr_format(const struct cidr *cidr, char *dst)
{
	ip_format(&cidr->ip, dst);
	char *p = dst + strlen(dst);
	*p++ = '/';
	num_format(cidr->len, p);
	return dst;
}

bool cidr_contains(const struct cidr *cidr, const struct ip *ip)
{
	if (cidr->ip.family != ip->family || cidr->len > ip_len(ip) * 8)
		return false;
	size_t whole = cidr->len / 8;
	if (memcmp(cidr->ip.b, ip->b, whole) != 0)
		return false;
	unsigned rest = cidr->len % 8;
	return rest == 0 || (cidr->ip.b[whole] ^ ip->b[whole]) >> (8 - rest) == 0;
}

bool cidr_eq(const struct cidr *a, const struct cidr *b)
{
	return a->len == b->len && ip_eq(&a->ip, &b->ip);
}

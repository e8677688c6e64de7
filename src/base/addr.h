/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * IP addresses, address and port, prefixes: parse, print, compare, convert.
 * Pure values, no sockets, no name resolution. Printing follows RFC 5952.
 * An address is canonical: IPv4-mapped IPv6 from a socket becomes IPv4.
 */
#ifndef CULVERT_BASE_ADDR_H
#define CULVERT_BASE_ADDR_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/hash.h"

/* Room for a printed ip, "ip:port" or "[ip]:port", "ip/len", with terminator. */
#define IP_STR_MAX 46
#define ADDR_STR_MAX 56
#define CIDR_STR_MAX 50

/* An IP address. All 16 bytes are compared, so unused ones are zero. */
struct ip {
	uint8_t family; /* 4, 6, or 0 = none */
	uint8_t b[16];  /* network order; IPv4 in the first four */
};

/* An IP address and a port. */
struct addr {
	struct ip ip;
	uint16_t port; /* host order */
};

/* A prefix. Host bits of ip may be set: they are kept for printing and ignored by matching. */
struct cidr {
	struct ip ip;
	uint8_t len; /* bits, <= 32 or <= 128 */
};

/* The IPv4 address a.b.c.d. */
struct ip ip_v4(uint8_t a, uint8_t b, uint8_t c, uint8_t d);

/* From 4 or 16 bytes in network order, kept as they are (no un-mapping). Other lengths: -EINVAL. */
int ip_from_bytes(const uint8_t *bytes, size_t len, struct ip *ret_ip);

/* Bytes of the address: 4, 16, or 0 when family is 0. */
static inline size_t ip_len(const struct ip *ip)
{
	return ip->family == 4 ? 4 : ip->family == 6 ? 16 : 0;
}

/* ::ffff:a.b.c.d becomes a.b.c.d, everything else stays. */
struct ip ip_canonical(struct ip ip);

/* Parses exactly len bytes of text, strict dotted quad or RFC 4291 text, no zone, no brackets. -EINVAL
 * otherwise. */
int ip_parse(const char *text, size_t len, struct ip *ret_ip);

/* Prints into dst, which has IP_STR_MAX bytes; family 0 prints "". Returns dst. */
char *ip_format(const struct ip *ip, char *dst);

/* Equality of family and bytes. */
bool ip_eq(const struct ip *a, const struct ip *b);

/* Total order: IPv4 before IPv6, then by bytes. <0, 0, >0. */
int ip_cmp(const struct ip *a, const struct ip *b);

/* Seeded hash. */
uint64_t ip_hash(const struct ip *ip, const struct hash_seed *seed);

/* 127.0.0.0/8, ::1, and their mapped forms. */
bool ip_is_loopback(const struct ip *ip);

/* 0.0.0.0, ::, or family 0. */
bool ip_is_unspecified(const struct ip *ip);

/* 169.254.0.0/16 or fe80::/10. */
bool ip_is_link_local(const struct ip *ip);

/* 224.0.0.0/4 or ff00::/8. */
bool ip_is_multicast(const struct ip *ip);

/* Parses "1.2.3.4:80" or "[::1]:80"; the port is decimal 0..65535. -EINVAL otherwise. */
int addr_parse(const char *text, size_t len, struct addr *ret_addr);

/* Prints "ip:port" or "[ip]:port" into dst, which has ADDR_STR_MAX bytes. Returns dst. */
char *addr_format(const struct addr *addr, char *dst);

bool addr_eq(const struct addr *a, const struct addr *b);                  /* equality of ip and port */
int addr_cmp(const struct addr *a, const struct addr *b);                  /* by ip, then port */
uint64_t addr_hash(const struct addr *addr, const struct hash_seed *seed); /* seeded hash */

/* From a socket address of AF_INET or AF_INET6, canonicalised. Other families or short len: -EAFNOSUPPORT. */
int addr_from_sockaddr(const struct sockaddr *sa, socklen_t len, struct addr *ret_addr);

/* Into a zeroed socket address of the same family; returns its length, 0 when family is 0. */
socklen_t addr_to_sockaddr(const struct addr *addr, struct sockaddr_storage *ret_sa);

/* Like addr_to_sockaddr, but always AF_INET6, IPv4 as mapped (for dual-stack sockets). */
socklen_t addr_to_sockaddr6(const struct addr *addr, struct sockaddr_storage *ret_sa);

/* Parses "ip/len", or "ip" alone = full length; the length is decimal and in range. -EINVAL otherwise. */
int cidr_parse(const char *text, size_t len, struct cidr *ret_cidr);

/* Prints "ip/len" into dst, which has CIDR_STR_MAX bytes. Returns dst. */
char *cidr_format(const struct cidr *cidr, char *dst);

/* Whether the prefix covers ip; families must agree, len above the family's maximum never matches. */
bool cidr_contains(const struct cidr *cidr, const struct ip *ip);

/* Equality of address bytes as kept and length. */
bool cidr_eq(const struct cidr *a, const struct cidr *b);

#endif

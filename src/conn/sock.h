/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A connected TCP or unix stream socket as a struct stream. Small traffic is
 * read by multishot receive into provided buffers, a busy stream by single
 * large receives; writes gather the queue into one send per turn. Knows no
 * TLS, no HTTP, no mesh.
 */
#ifndef CULVERT_CONN_SOCK_H
#define CULVERT_CONN_SOCK_H

#include "base/addr.h"
#include "conn/stream.h"
#include "io/ring.h"

/* Keepalive of connections (dataplane 2.3, 2.4): 180 s, 180 s, 9 times unless configured. */
struct sock_keepalive {
	bool is_on;               /* SO_KEEPALIVE */
	uint32_t idle_s;          /* TCP_KEEPIDLE, seconds */
	uint32_t interval_s;      /* TCP_KEEPINTVL, seconds */
	uint32_t probe_cnt;       /* TCP_KEEPCNT */
	uint32_t user_timeout_ms; /* TCP_USER_TIMEOUT, milliseconds; 0 = leave alone */
};

/* Wraps connected descriptor `fd`, which becomes the stream's on success only. Returns 0 or -ENOMEM. */
int sock_new(struct io *io, int fd, struct stream **ret_stream);

/* The descriptor of a stream made by sock_new(), still the stream's; for socket options. */
int sock_fd(const struct stream *stream);

/* Sets TCP_NODELAY. Returns 0 or a negative errno; fine on a unix socket. */
int sock_set_nodelay(int fd);

/*
 * Keeps an urgent byte among the others, where it was (SO_OOBINLINE, tcp(7)), instead of beside them, where
 * nobody would read it. On a listener: for what it accepts. Returns 0 or a negative errno.
 */
int sock_set_oob_inline(int fd);

/*
 * For a connection that stays on this machine, where there is no congestion to control: a congestion control
 * that paces (bbr) is replaced by reno, which every kernel has and everybody may choose (tcp(7),
 * TCP_CONGESTION). Pacing there only costs a timer for every 64 KB, dear on a virtual machine. On a listener:
 * for what it accepts. A failure changes nothing.
 */
void sock_set_unpaced(int fd);

/* Sets keepalive and user timeout. Returns 0 or the first failure; callers ignore it (dataplane 2.3). */
int sock_set_keepalive(int fd, const struct sock_keepalive *keepalive);

/* The socket's own address, canonical (v4-mapped becomes v4). Returns 0 or a negative errno. */
int sock_local_addr(int fd, struct addr *ret_addr);

/* The peer's address, canonical. Returns 0 or a negative errno. */
int sock_peer_addr(int fd, struct addr *ret_addr);

/*
 * Where the connection went before redirection (dataplane 2.6): SO_ORIGINAL_DST at the IPv4 level, then at
 * the IPv6 level. Returns 0, or a negative errno when both fail (the caller then uses sock_local_addr()).
 */
int sock_original_dst(int fd, struct addr *ret_addr);

#endif

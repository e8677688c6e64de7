/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The sockets of the DNS proxy, its making and its end; see dns.h. */
#include "silo/dns.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/mem.h"
#include "silo/dns_int.h"

static const char TARGET[] = "ztunnel::dns::server";

/* Datagrams that one socket hands up before others get their turn. */
#define DATAGRAMS_MAX 32

static void udp_gone(struct dns_watch *watch)
{
	mem_free(list_entry(watch, struct dns_udp, watch));
}

/* No answer could reach port 0 or such an address. */
static bool is_answerable(const struct addr *client)
{
	static const struct ip broadcast = {.family = 4, .b = {255, 255, 255, 255}};
	return client->port != 0 && !ip_is_unspecified(&client->ip) && !ip_eq(&client->ip, &broadcast);
}

static void udp_ready(struct dns_watch *watch)
{
	struct dns_udp *udp = list_entry(watch, struct dns_udp, watch);
	uint8_t data[DNS_UDP_MAX];
	for (int i = 0; i < DATAGRAMS_MAX; i++) {
		struct sockaddr_storage sa;
		socklen_t sa_len = sizeof(sa);
		struct addr client;
		ssize_t len = recvfrom(watch->fd, data, sizeof(data), MSG_DONTWAIT | MSG_TRUNC,
		        (struct sockaddr *)&sa, &sa_len);
		if (len < 0)
			break;
		/* Of a query that is cut nothing is known; none is that long. */
		if ((size_t)len <= sizeof(data) &&
		        addr_from_sockaddr((struct sockaddr *)&sa, sa_len, &client) == 0 &&
		        is_answerable(&client))
			dns_request_take(udp->dns, data, (size_t)len, udp, &client, NULL);
	}
	dns_watch_wait(watch, POLLIN);
}

static int serve_udp(struct dns *dns, int fd)
{
	struct dns_udp *udp = mem_zalloc(1, sizeof(*udp));
	if (!udp)
		return -ENOMEM;
	udp->dns = dns;
	dns_watch_init(&udp->watch, dns->silo->io, fd, udp_ready, udp_gone);
	dns_watch_wait(&udp->watch, POLLIN);
	dns->udp[dns->udp_cnt++] = udp;
	return 0;
}

static void on_accept(void *ctx, int fd)
{
	dns_conn_accept(ctx, fd);
}

static void on_accept_error(void *ctx, int code)
{
	struct dns *dns = ctx;
	log_msg(&dns->silo->log, LOG_WARN, TARGET, "accept failed, pausing: %s", err_str(code));
}

static const struct listen_events EVENTS = {.on_accept = on_accept, .on_error = on_accept_error};

static int serve_tcp(struct dns *dns, int fd)
{
	const struct listen_opts opts = {.nodelay = true};
	int r = listen_start(dns->silo->io, fd, &opts, &EVENTS, dns, &dns->tcp[dns->tcp_cnt]);
	if (r == 0)
		dns->tcp_cnt++;
	return r;
}

static struct dns *dns_new(struct silo *silo)
{
	struct dns *dns = mem_zalloc(1, sizeof(*dns));
	if (!dns)
		return NULL;
	dns->silo = silo;
	list_init(&dns->requests);
	list_init(&dns->conns);
	dns->forwarder.io = silo->io;
	dns->forwarder.mark = silo_dial_opts(silo, &(struct addr){0}).mark;
	dns_cache_init(&dns->forwarder.cache);
	return dns;
}

int dns_serve(struct silo *silo, int fd, bool is_tcp)
{
	struct log_line line;
	struct addr local;
	char text[ADDR_STR_MAX];
	if (!silo->dns && !(silo->dns = dns_new(silo)))
		return -ENOMEM;
	struct dns *dns = silo->dns;
	if ((is_tcp ? dns->tcp_cnt : dns->udp_cnt) == DNS_SOCKETS_MAX)
		return -ENOSPC;
	bool has_addr = sock_local_addr(fd, &local) == 0;
	int r = is_tcp ? serve_tcp(dns, fd) : serve_udp(dns, fd);
	if (r == 0 && has_addr &&
	        log_begin(&line, &silo->log, LOG_INFO, TARGET, "starting local DNS server")) {
		log_bare(&line, "address", addr_format(&local, text));
		log_str(&line, "component", "dns");
		log_end(&line);
	}
	return r;
}

void dns_stop(struct dns *dns)
{
	if (!dns)
		return;
	dns->silo->dns = NULL;
	while (!list_empty(&dns->conns))
		dns_conn_close(dns_conn_of(dns->conns.next));
	while (!list_empty(&dns->requests))
		dns_request_free(list_entry(dns->requests.next, struct dns_request, node));
	for (size_t i = 0; i < dns->tcp_cnt; i++)
		listen_stop(dns->tcp[i]);
	for (size_t i = 0; i < dns->udp_cnt; i++)
		dns_watch_close(&dns->udp[i]->watch);
	dns_cache_done(&dns->forwarder.cache);
	mem_free(dns->hosts);
	mem_free(dns);
}

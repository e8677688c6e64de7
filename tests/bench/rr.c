/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Request/response load for scripts/bench: N connections, one request of fixed
 * size under way on each, as many as fit a fixed time. One thread, epoll, so
 * that it costs the measured side as little as possible. Must not know that
 * there is a proxy; uses no code of culvert.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* Largest request and answer, bytes. */
#define SIZE_MAX_BYTES 65536
/* Connections of a client, and what a server takes at a time. */
#define CONNS_MAX 4096
/* Latencies are counted in classes of 1 us; the last one takes everything slower (100 ms). */
#define CLASSES 100001
/* After the time is up, answers under way may take this long, ms. */
#define GRACE_MS 2000
#define EVENTS_MAX 64

struct conn {
	int fd;
	size_t to_write;  /* bytes of the message under way that the kernel has not taken */
	size_t to_read;   /* bytes of the awaited message that have not come */
	bool wants_write; /* EPOLLOUT is asked for */
	uint64_t since;   /* start of the operation, us */
};

struct load {
	int epoll;
	size_t size; /* of a message, bytes */
	bool is_server;
	bool reconnects; /* client: a new connection for each operation */
	uint64_t end;    /* client: no new operation from then on, us */
	size_t open;     /* connections */
	uint64_t ops;    /* completed */
	uint64_t errors; /* connections that failed */
	struct sockaddr_storage peer;
	socklen_t peer_len;
	uint32_t *classes; /* CLASSES counters */
};

static char zeros[SIZE_MAX_BYTES];

static uint64_t now_us(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

static int fail(const char *what)
{
	fprintf(stderr, "rr: %s: %s\n", what, strerror(errno));
	return 1;
}

static int watch(struct load *load, struct conn *conn, int op, bool wants_write)
{
	struct epoll_event event = {.events = EPOLLIN | (wants_write ? EPOLLOUT : 0), .data.ptr = conn};
	conn->wants_write = wants_write;
	return epoll_ctl(load->epoll, op, conn->fd, &event);
}

static void conn_end(struct load *load, struct conn *conn)
{
	close(conn->fd);
	free(conn);
	load->open--;
}

/* Writes what is left of the message; false: the connection is gone. */
static bool push(struct load *load, struct conn *conn)
{
	while (conn->to_write > 0) {
		ssize_t n = send(conn->fd, zeros, conn->to_write, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno != EAGAIN)
			return false;
		if (n < 0)
			break;
		conn->to_write -= (size_t)n;
	}
	bool wants_write = conn->to_write > 0;
	return wants_write == conn->wants_write || watch(load, conn, EPOLL_CTL_MOD, wants_write) == 0;
}

static struct conn *conn_add(struct load *load, int fd, bool wants_write)
{
	const int on = 1;
	struct conn *conn = calloc(1, sizeof(*conn));
	if (!conn || load->open >= CONNS_MAX) {
		close(fd);
		free(conn);
		return NULL;
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	conn->fd = fd;
	conn->to_read = load->size;
	load->open++;
	if (watch(load, conn, EPOLL_CTL_ADD, wants_write) < 0) {
		conn_end(load, conn);
		return NULL;
	}
	return conn;
}

/* Starts one connection of the client with its first request; time runs from the first packet on. */
static bool dial(struct load *load)
{
	uint64_t since = now_us();
	int fd = socket(load->peer.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return false;
	if (connect(fd, (struct sockaddr *)&load->peer, load->peer_len) < 0 && errno != EINPROGRESS) {
		close(fd);
		return false;
	}
	struct conn *conn = conn_add(load, fd, true);
	if (!conn)
		return false;
	conn->since = since;
	conn->to_write = load->size;
	return true;
}

/* Books an answer and begins the next operation; false: this connection has done its work. */
static bool next(struct load *load, struct conn *conn)
{
	uint64_t now = now_us();
	uint64_t took = now - conn->since;
	load->classes[took < CLASSES ? took : CLASSES - 1]++;
	load->ops++;
	if (now >= load->end)
		return false;
	if (load->reconnects) {
		if (!dial(load))
			load->errors++;
		return false;
	}
	conn->since = now;
	conn->to_write = load->size;
	return push(load, conn);
}

/* Reads until nothing is left; false: the connection is to be ended. */
static bool pull(struct load *load, struct conn *conn)
{
	char buf[SIZE_MAX_BYTES];
	ssize_t n = recv(conn->fd, buf, conn->to_read, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return true;
	if (n <= 0) {
		load->errors += !load->is_server;
		return false;
	}
	conn->to_read -= (size_t)n;
	if (conn->to_read > 0)
		return true;
	conn->to_read = load->size;
	if (!load->is_server)
		return next(load, conn);
	conn->to_write += load->size;
	return push(load, conn);
}

static void handle(struct load *load, struct conn *conn, uint32_t events)
{
	bool is_alive = true;
	if (events & EPOLLOUT) {
		is_alive = push(load, conn);
		load->errors += !is_alive && !load->is_server;
	}
	if (is_alive && (events & ~(uint32_t)EPOLLOUT))
		is_alive = pull(load, conn);
	if (!is_alive)
		conn_end(load, conn);
}

static void accept_all(struct load *load, int listener)
{
	int fd;
	while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0)
		conn_add(load, fd, false);
}

static int serve(struct load *load, uint16_t port)
{
	const int on = 1;
	struct sockaddr_in6 any = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
	int listener = socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (listener < 0)
		return fail("socket");
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(listener, (struct sockaddr *)&any, sizeof(any)) < 0 || listen(listener, CONNS_MAX) < 0)
		return fail("bind");
	struct epoll_event event = {.events = EPOLLIN};
	if (epoll_ctl(load->epoll, EPOLL_CTL_ADD, listener, &event) < 0)
		return fail("epoll_ctl");
	for (;;) {
		struct epoll_event events[EVENTS_MAX];
		int cnt = epoll_wait(load->epoll, events, EVENTS_MAX, -1);
		if (cnt < 0 && errno != EINTR)
			return fail("epoll_wait");
		for (int i = 0; i < cnt; i++) {
			if (events[i].data.ptr)
				handle(load, events[i].data.ptr, events[i].events);
			else
				accept_all(load, listener);
		}
	}
}

static unsigned percentile(const struct load *load, unsigned percent)
{
	uint64_t want = load->ops * percent / 100;
	uint64_t seen = 0;
	for (unsigned i = 0; i < CLASSES; i++) {
		seen += load->classes[i];
		if (seen > want)
			return i;
	}
	return CLASSES - 1;
}

static int run(struct load *load, size_t conns, unsigned seconds)
{
	uint64_t start = now_us();
	load->end = start + (uint64_t)seconds * 1000000;
	for (size_t i = 0; i < conns; i++)
		if (!dial(load))
			return fail("connect");
	uint64_t limit = load->end + GRACE_MS * 1000;
	uint64_t now;
	while (load->open > 0 && (now = now_us()) < limit) {
		struct epoll_event events[EVENTS_MAX];
		int cnt = epoll_wait(load->epoll, events, EVENTS_MAX, (int)((limit - now) / 1000) + 1);
		if (cnt < 0 && errno != EINTR)
			return fail("epoll_wait");
		for (int i = 0; i < cnt; i++)
			handle(load, events[i].data.ptr, events[i].events);
	}
	printf("{\"ops\": %llu, \"errors\": %llu, \"stuck\": %zu, \"seconds\": %.6f, \"p50_us\": %u, \"p99_us\": %u}\n",
	        (unsigned long long)load->ops, (unsigned long long)load->errors, load->open,
	        (double)(now_us() - start) / 1e6, percentile(load, 50), percentile(load, 99));
	return load->ops > 0 && load->errors == 0 && load->open == 0 ? 0 : 1;
}

static int usage(void)
{
	fprintf(stderr,
	        "usage: rr --serve PORT [--size N]\n"
	        "       rr --host ADDRESS --port PORT [--connections N] [--seconds N] [--size N] [--reconnect]\n");
	return 2;
}

static unsigned long number(const char *text, unsigned long max)
{
	char *end;
	errno = 0;
	unsigned long value = strtoul(text, &end, 10);
	if (errno || *end || end == text || value == 0 || value > max) {
		fprintf(stderr, "rr: '%s' is not a number from 1 to %lu\n", text, max);
		exit(2);
	}
	return value;
}

static int resolve(struct load *load, const char *host, uint16_t port)
{
	char service[8];
	struct addrinfo *found;
	const struct addrinfo hints = {
	        .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
	snprintf(service, sizeof(service), "%u", port);
	int rc = getaddrinfo(host, service, &hints, &found);
	if (rc != 0) {
		fprintf(stderr, "rr: %s: %s\n", host, gai_strerror(rc));
		return -1;
	}
	memcpy(&load->peer, found->ai_addr, found->ai_addrlen);
	load->peer_len = found->ai_addrlen;
	freeaddrinfo(found);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"serve", required_argument, NULL, 'l'},
	        {"host", required_argument, NULL, 'h'}, {"port", required_argument, NULL, 'p'},
	        {"connections", required_argument, NULL, 'c'}, {"seconds", required_argument, NULL, 't'},
	        {"size", required_argument, NULL, 's'}, {"reconnect", no_argument, NULL, 'r'}, {0}};
	struct load load = {.size = 1024};
	const char *host = NULL;
	uint16_t port = 0;
	unsigned long conns = 64;
	unsigned long seconds = 5;
	for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
		switch (c) {
		case 'l':
			load.is_server = true;
			port = (uint16_t)number(optarg, UINT16_MAX);
			break;
		case 'h':
			host = optarg;
			break;
		case 'p':
			port = (uint16_t)number(optarg, UINT16_MAX);
			break;
		case 'c':
			conns = number(optarg, CONNS_MAX);
			break;
		case 't':
			seconds = number(optarg, 3600);
			break;
		case 's':
			load.size = number(optarg, SIZE_MAX_BYTES);
			break;
		case 'r':
			load.reconnects = true;
			break;
		default:
			return usage();
		}
	}
	if (optind != argc || port == 0 || load.is_server == (host != NULL))
		return usage();
	load.epoll = epoll_create1(EPOLL_CLOEXEC);
	load.classes = calloc(CLASSES, sizeof(*load.classes));
	if (load.epoll < 0 || !load.classes)
		return fail("starting");
	if (load.is_server)
		return serve(&load, port);
	int rc = resolve(&load, host, port) == 0 ? run(&load, conns, (unsigned)seconds) : 1;
	free(load.classes);
	close(load.epoll);
	return rc;
}

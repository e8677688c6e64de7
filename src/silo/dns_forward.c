/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A forward goes through steps: each server over UDP, as often as attempts
 * say, then each over TCP. A step is one socket; what comes late finds it
 * closed. A socket outlives its forward until the ring has let go of it.
 */
#include "silo/dns_forward.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/rand.h"
#include "silo/dns_watch.h"

/* Header of a message, all that is kept of an error that another server may know better. */
#define HEADER_LEN 12

/* One socket to one server. */
struct attempt {
	struct dns_watch watch;
	struct dns_forward *forward; /* NULL = abandoned */
	bool is_tcp;
	bool is_connected; /* TCP: the question has been sent */
	struct buf in;     /* TCP: length and reply */
};

struct dns_forward {
	struct dns_forwarder *forwarder;
	struct dns_question question;
	uint16_t id; /* of the present attempt */
	unsigned step;
	bool again_tcp; /* the present step is repeated over TCP: its reply was truncated */
	struct attempt *attempt;
	struct timer timer;
	uint64_t deadline_ms; /* of everything */
	bool has_error;       /* error holds a server's answer */
	uint8_t error[HEADER_LEN];
	dns_forward_done *done;
	void *ctx;
};

static void attempt_gone(struct dns_watch *watch)
{
	struct attempt *attempt = list_entry(watch, struct attempt, watch);
	buf_done(&attempt->in);
	mem_free(attempt);
}

static void attempt_drop(struct dns_forward *forward)
{
	struct attempt *attempt = forward->attempt;
	forward->attempt = NULL;
	if (!attempt)
		return;
	attempt->forward = NULL;
	dns_watch_close(&attempt->watch);
}

void dns_forward_cancel(struct dns_forward *forward)
{
	if (!forward)
		return;
	attempt_drop(forward);
	io_timer_stop(forward->forwarder->io, &forward->timer);
	mem_free(forward);
}

static void finish(struct dns_forward *forward, int code, const uint8_t *data, size_t len)
{
	dns_forward_done *done = forward->done;
	struct attempt *attempt = forward->attempt;
	void *ctx = forward->ctx;
	uint8_t error[HEADER_LEN];
	if (code < 0 && forward->has_error) {
		memcpy(error, forward->error, sizeof(error));
		code = 0;
		data = error;
		len = sizeof(error);
	}
	/* The reply may lie in the attempt's buffer, which therefore goes last. */
	forward->attempt = NULL;
	dns_forward_cancel(forward);
	done(ctx, code, data, len);
	if (attempt) {
		attempt->forward = NULL;
		dns_watch_close(&attempt->watch);
	}
}

static size_t udp_steps(const struct dns_forwarder *forwarder)
{
	return forwarder->attempts * forwarder->server_cnt;
}

static size_t server_of(const struct dns_forward *forward)
{
	const struct dns_forwarder *forwarder = forward->forwarder;
	return (forwarder->first + forward->step) % forwarder->server_cnt;
}

/* Whether no other server is left to ask in this round. The servers may have gone since the question left. */
static bool is_last(const struct dns_forward *forward)
{
	size_t cnt = forward->forwarder->server_cnt;
	return cnt == 0 || (forward->step + 1) % cnt == 0;
}

static void next_step(struct dns_forward *forward, int why);

/* Judges a reply. False: it is not ours, wait on. */
static bool take_reply(struct dns_forward *forward, const uint8_t *data, size_t len)
{
	struct dns_forwarder *forwarder = forward->forwarder;
	struct dns_reply reply;
	bool is_tcp = forward->attempt->is_tcp;
	int r = dns_reply_read(data, len, forward->id, &forward->question, &reply);
	if (r == -EBADMSG && !is_tcp)
		return false;
	if (r < 0) {
		next_step(forward, r);
		return true;
	}
	if (reply.is_truncated && !is_tcp) {
		forward->again_tcp = true;
		next_step(forward, -EMSGSIZE);
		return true;
	}
	bool is_refusal = reply.rcode != DNS_NOERROR && reply.rcode != DNS_NXDOMAIN;
	if (is_refusal && !is_last(forward)) {
		memcpy(forward->error, data, HEADER_LEN);
		forward->has_error = true;
		next_step(forward, -ECONNREFUSED);
		return true;
	}
	if (forwarder->server_cnt > 0)
		forwarder->first = server_of(forward);
	if (!is_refusal && !reply.is_truncated)
		dns_cache_put(&forwarder->cache, &forward->question, data, len, reply.ttl,
		        io_now_ms(forwarder->io));
	finish(forward, 0, data, len);
	return true;
}

static void udp_ready(struct attempt *attempt)
{
	uint8_t data[DNS_UDP_MAX];
	struct dns_forward *forward = attempt->forward;
	ssize_t len;
	while ((len = recv(attempt->watch.fd, data, sizeof(data), MSG_DONTWAIT)) >= 0) {
		if (take_reply(forward, data, (size_t)len))
			return;
	}
	if (errno == EAGAIN)
		dns_watch_wait(&attempt->watch, POLLIN);
	else
		next_step(forward, -errno);
}

/* Sends the question; a new connection's buffer takes it whole. */
static int send_question(struct dns_forward *forward, int fd, bool is_tcp)
{
	struct buf out, framed;
	buf_init(&out, 512 + 2);
	buf_init(&framed, 512 + 2);
	int r = dns_question_write(forward->id, &forward->question, forward->forwarder->has_edns, &out);
	if (r == 0 && is_tcp) {
		buf_add_be16(&framed, (uint16_t)out.len);
		r = buf_add(&framed, out.data, out.len);
	}
	const struct buf *sent = is_tcp ? &framed : &out;
	if (r == 0) {
		ssize_t n = send(fd, sent->data, sent->len, MSG_NOSIGNAL | MSG_DONTWAIT);
		r = n < 0 ? -errno : (size_t)n == sent->len ? 0 : -EIO;
	}
	buf_done(&out);
	buf_done(&framed);
	return r;
}

static void tcp_connected(struct attempt *attempt)
{
	int code = 0;
	socklen_t len = sizeof(code);
	if (getsockopt(attempt->watch.fd, SOL_SOCKET, SO_ERROR, &code, &len) < 0)
		code = errno;
	int r = code ? -code : send_question(attempt->forward, attempt->watch.fd, true);
	if (r < 0) {
		next_step(attempt->forward, r);
		return;
	}
	attempt->is_connected = true;
	dns_watch_wait(&attempt->watch, POLLIN);
}

/* Bytes of the reply that are still to come, 0 = complete. */
static size_t tcp_missing(const struct buf *in)
{
	if (in->len < 2)
		return 2 - in->len;
	return 2u + (size_t)(in->data[0] << 8 | in->data[1]) - in->len;
}

static void tcp_readable(struct attempt *attempt)
{
	struct dns_forward *forward = attempt->forward;
	size_t missing;
	while ((missing = tcp_missing(&attempt->in)) > 0) {
		ssize_t n = buf_reserve(&attempt->in, missing) < 0
		                    ? (errno = ENOMEM, -1)
		                    : recv(attempt->watch.fd, attempt->in.data + attempt->in.len, missing,
		                              MSG_DONTWAIT);
		if (n < 0 && errno == EAGAIN) {
			dns_watch_wait(&attempt->watch, POLLIN);
			return;
		}
		if (n <= 0) {
			next_step(forward, n < 0 ? -errno : -ECONNRESET);
			return;
		}
		buf_commit(&attempt->in, (size_t)n);
	}
	take_reply(forward, attempt->in.data + 2, attempt->in.len - 2);
}

static void attempt_ready(struct dns_watch *watch)
{
	struct attempt *attempt = list_entry(watch, struct attempt, watch);
	if (!attempt->is_tcp)
		udp_ready(attempt);
	else if (!attempt->is_connected)
		tcp_connected(attempt);
	else
		tcp_readable(attempt);
}

/* A marked, connected socket: the kernel drops what others send to it and chooses the port by chance. */
static int open_socket(
        const struct dns_forwarder *forwarder, const struct addr *server, bool is_tcp, int *ret_fd)
{
	struct sockaddr_storage sa;
	socklen_t sa_len = addr_to_sockaddr(server, &sa);
	int mark = (int)forwarder->mark;
	int fd = socket(sa.ss_family, (is_tcp ? SOCK_STREAM : SOCK_DGRAM) | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	int r = mark && setsockopt(fd, SOL_SOCKET, SO_MARK, &mark, sizeof(mark)) < 0 ? -errno : 0;
	if (r == 0 && connect(fd, (struct sockaddr *)&sa, sa_len) < 0 && errno != EINPROGRESS)
		r = -errno;
	if (r < 0)
		fd_close(&fd);
	else
		*ret_fd = fd;
	return r;
}

static int start_attempt(struct dns_forward *forward, bool is_tcp)
{
	struct dns_forwarder *forwarder = forward->forwarder;
	struct attempt *attempt = mem_zalloc(1, sizeof(*attempt));
	int fd;
	if (!attempt)
		return -ENOMEM;
	forward->id = (uint16_t)rand_below(0x10000);
	int r = open_socket(forwarder, &forwarder->servers[server_of(forward)], is_tcp, &fd);
	if (r == 0 && !is_tcp && (r = send_question(forward, fd, false)) < 0)
		fd_close(&fd);
	if (r < 0) {
		mem_free(attempt);
		return r;
	}
	attempt->forward = forward;
	attempt->is_tcp = is_tcp;
	buf_init(&attempt->in, 2 + DNS_MESSAGE_MAX);
	dns_watch_init(&attempt->watch, forwarder->io, fd, attempt_ready, attempt_gone);
	dns_watch_wait(&attempt->watch, is_tcp ? POLLOUT : POLLIN);
	forward->attempt = attempt;
	return 0;
}

/* Starts the present step, or the first one behind it that can be started. */
static void run_steps(struct dns_forward *forward, int why)
{
	struct dns_forwarder *forwarder = forward->forwarder;
	uint64_t now = io_now_ms(forwarder->io);
	size_t udp = udp_steps(forwarder);
	for (; forward->step < udp + forwarder->server_cnt && now < forward->deadline_ms; forward->step++) {
		bool is_tcp = forward->step >= udp || forward->again_tcp;
		why = start_attempt(forward, is_tcp);
		if (why < 0) {
			forward->again_tcp = false;
			continue;
		}
		bool is_hasty = !is_tcp && forwarder->server_cnt > 1 && forward->step < forwarder->server_cnt;
		uint64_t patience = forwarder->timeout_ms;
		if (is_hasty && patience > DNS_FIRST_TRY_MS)
			patience = DNS_FIRST_TRY_MS;
		if (patience > forward->deadline_ms - now)
			patience = forward->deadline_ms - now;
		io_timer_start(forwarder->io, &forward->timer, patience);
		return;
	}
	finish(forward, why, NULL, 0);
}

static void next_step(struct dns_forward *forward, int why)
{
	bool is_again = forward->again_tcp && !forward->attempt->is_tcp;
	attempt_drop(forward);
	io_timer_stop(forward->forwarder->io, &forward->timer);
	if (!is_again) {
		forward->again_tcp = false;
		forward->step++;
	}
	run_steps(forward, why);
}

/* The first step, or one whose time is over. */
static void on_timer(struct timer *timer, uint64_t now)
{
	struct dns_forward *forward = list_entry(timer, struct dns_forward, timer);
	(void)now;
	if (forward->attempt)
		next_step(forward, -ETIMEDOUT);
	else
		run_steps(forward, -ETIMEDOUT);
}

int dns_forward_start(struct dns_forwarder *forwarder, const struct dns_question *question,
        dns_forward_done *done, void *ctx, struct dns_forward **ret_forward)
{
	if (forwarder->server_cnt == 0)
		return -EHOSTUNREACH;
	struct dns_forward *forward = mem_zalloc(1, sizeof(*forward));
	if (!forward)
		return -ENOMEM;
	forward->forwarder = forwarder;
	forward->question = *question;
	forward->done = done;
	forward->ctx = ctx;
	forward->deadline_ms = io_now_ms(forwarder->io) + forwarder->timeout_ms * (forwarder->attempts + 1);
	timer_init(&forward->timer, on_timer);
	int r = start_attempt(forward, false);
	if (r == 0)
		io_timer_start(forwarder->io, &forward->timer,
		        forwarder->server_cnt > 1 && forwarder->timeout_ms > DNS_FIRST_TRY_MS
		                ? DNS_FIRST_TRY_MS
		                : forwarder->timeout_ms);
	else
		io_timer_start(forwarder->io, &forward->timer, 0);
	*ret_forward = forward;
	return 0;
}

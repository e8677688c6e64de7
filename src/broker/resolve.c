/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Host names to addresses; see resolve.h. Every try has a socket of its own, so that a late or forged reply
 * to an earlier one finds nobody. */
#include "broker/resolve.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/rand.h"
#include "broker/resolv_conf.h"

/* Time that one server gets, ms. */
#define TRY_MS 2000
/* Rounds over all servers for one name. */
#define ROUNDS 2
/* Bytes of /etc/hosts and /etc/resolv.conf that are read: far more than anybody writes. */
#define HOSTS_MAX (1u << 20)
#define RESOLV_MAX (64u << 10)
/* Bytes of a question: a name and some. */
#define QUESTION_MAX 512

/* One try's socket. It outlives its try until the ring has let go of it. */
struct wire {
	struct resolve *owner; /* NULL = abandoned */
	struct io *io;
	struct io_op in;
	int fd;
	bool is_busy; /* its callback is running */
};

/* One of the two questions. */
struct ask {
	struct dns_question question;
	uint16_t id;
	bool is_open; /* no usable reply yet */
};

struct resolve {
	struct io *io;
	resolve_done *done;
	void *ctx;
	char name[DNS_TEXT_MAX];
	bool v4;
	bool v6;
	struct resolv_conf conf;
	size_t candidate; /* name being asked for, see resolv_candidate() */
	struct ask asks[2];
	unsigned tries; /* servers asked for this candidate so far */
	bool is_shaky;  /* some candidate got no answer: the name may exist after all */
	struct wire *wire;
	struct timer try_timer;
	struct timer deadline;
	struct io_task end;
	int code;
	char text[320];
	struct ip ips[RESOLVE_ADDR_MAX];
	size_t ip_cnt;
};

static void wire_drop(struct resolve *resolve)
{
	struct wire *wire = resolve->wire;
	resolve->wire = NULL;
	if (!wire)
		return;
	wire->owner = NULL;
	if (wire->in.in_flight)
		io_cancel(wire->io, &wire->in);
	if (wire->in.in_flight || wire->is_busy)
		return;
	fd_close(&wire->fd);
	mem_free(wire);
}

static void destroy(struct resolve *resolve)
{
	wire_drop(resolve);
	io_timer_stop(resolve->io, &resolve->try_timer);
	io_timer_stop(resolve->io, &resolve->deadline);
	io_undefer(&resolve->end);
	mem_free(resolve);
}

static void on_end(struct io_task *task)
{
	struct resolve *resolve = list_entry(task, struct resolve, end);
	resolve_done *done = resolve->done;
	void *ctx = resolve->ctx;
	struct ip ips[RESOLVE_ADDR_MAX];
	char text[sizeof(resolve->text)];
	int code = resolve->code;
	size_t cnt = resolve->ip_cnt;
	memcpy(ips, resolve->ips, sizeof(ips));
	memcpy(text, resolve->text, sizeof(text));
	destroy(resolve);
	done(ctx, code, ips, code == 0 ? cnt : 0, text);
}

/* The families' replies race; who connects should not try them in an order of chance. */
static void sort_by_family(struct resolve *resolve)
{
	struct ip sorted[RESOLVE_ADDR_MAX];
	size_t cnt = 0;
	for (size_t i = 0; i < resolve->ip_cnt; i++)
		if (resolve->ips[i].family == 4)
			sorted[cnt++] = resolve->ips[i];
	for (size_t i = 0; i < resolve->ip_cnt; i++)
		if (resolve->ips[i].family == 6)
			sorted[cnt++] = resolve->ips[i];
	memcpy(resolve->ips, sorted, cnt * sizeof(*sorted));
}

static void finish(struct resolve *resolve, int code, const char *why)
{
	sort_by_family(resolve);
	resolve->code = code;
	if (code != 0)
		(void)snprintf(resolve->text, sizeof(resolve->text), "%s: %s", resolve->name, why);
	wire_drop(resolve);
	io_timer_stop(resolve->io, &resolve->try_timer);
	io_timer_stop(resolve->io, &resolve->deadline);
	io_defer(resolve->io, &resolve->end, IO_PHASE_WORK);
}

static void next_try(struct resolve *resolve);
static void next_candidate(struct resolve *resolve);

/* --- replies -------------------------------------------------------------- */

static bool is_answered(const struct resolve *resolve)
{
	return !resolve->asks[0].is_open && !resolve->asks[1].is_open;
}

/* 0: the reply answers the ask; -EBADMSG: it is none of ours; another code: this server is no help. */
static int take_reply(struct resolve *resolve, struct ask *ask, const uint8_t *data, size_t len)
{
	struct dns_reply reply;
	uint32_t ttl;
	size_t cnt = 0;
	int r = dns_reply_read(data, len, ask->id, &ask->question, &reply);
	if (r < 0)
		return r;
	if (reply.rcode != DNS_NOERROR && (reply.is_truncated || reply.rcode != DNS_NXDOMAIN))
		return -EAGAIN;
	if (reply.rcode == DNS_NOERROR)
		r = dns_reply_addrs(data, len, ask->question.type, resolve->ips + resolve->ip_cnt,
		        RESOLVE_ADDR_MAX - resolve->ip_cnt, &cnt, &ttl);
	if (r < 0)
		return r;
	/* Who looks for somewhere to connect to needs some addresses, not all: what came before the cut will
	 * do. */
	if (reply.is_truncated && cnt == 0)
		return -EAGAIN;
	resolve->ip_cnt += cnt;
	ask->is_open = false;
	return 0;
}

/* Whether more replies of this try are awaited. */
static bool on_datagram(struct resolve *resolve, const uint8_t *data, size_t len)
{
	int worst = 0;
	for (size_t i = 0; i < 2; i++) {
		int r = resolve->asks[i].is_open ? take_reply(resolve, &resolve->asks[i], data, len)
		                                 : -EBADMSG;
		if (r != 0 && r != -EBADMSG)
			worst = r;
	}
	if (worst) {
		next_try(resolve);
		return false;
	}
	if (!is_answered(resolve))
		return true;
	if (resolve->ip_cnt > 0)
		finish(resolve, 0, NULL);
	else
		next_candidate(resolve);
	return false;
}

static void on_in(struct io_op *op, const struct io_result *result)
{
	struct wire *wire = list_entry(op, struct wire, in);
	uint8_t data[DNS_UDP_MAX];
	ssize_t len = 0;
	wire->is_busy = true;
	while (wire->owner && (len = recv(wire->fd, data, sizeof(data), 0)) >= 0)
		if (!on_datagram(wire->owner, data, (size_t)len))
			break;
	/* Refused: nobody listens there. */
	if (wire->owner && len < 0 && errno != EAGAIN && errno != EINTR)
		next_try(wire->owner);
	wire->is_busy = false;
	if (result->more || op->in_flight)
		return;
	if (wire->owner && result->res >= 0) {
		io_poll(wire->io, op, wire->fd, POLLIN, true);
		return;
	}
	if (wire->owner)
		wire->owner->wire = NULL;
	fd_close(&wire->fd);
	mem_free(wire);
}

/* --- questions ------------------------------------------------------------ */

static int wire_open(struct resolve *resolve, const struct addr *server)
{
	struct sockaddr_storage sa;
	socklen_t sa_len = addr_to_sockaddr(server, &sa);
	struct wire *wire = mem_zalloc(1, sizeof(*wire));
	if (!wire)
		return -ENOMEM;
	wire->fd = socket(sa.ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (wire->fd < 0 || connect(wire->fd, (const struct sockaddr *)&sa, sa_len) < 0) {
		int r = -errno;
		fd_close(&wire->fd);
		mem_free(wire);
		return r;
	}
	wire->owner = resolve;
	wire->io = resolve->io;
	io_op_init(&wire->in, on_in);
	io_poll(resolve->io, &wire->in, wire->fd, POLLIN, true);
	resolve->wire = wire;
	return 0;
}

static int send_ask(struct resolve *resolve, struct ask *ask)
{
	struct buf buf;
	if (!ask->is_open)
		return 0;
	ask->id = (uint16_t)rand_u64();
	buf_init(&buf, QUESTION_MAX);
	int r = dns_question_write(ask->id, &ask->question, true, &buf);
	if (r == 0 && send(resolve->wire->fd, buf.data, buf.len, MSG_NOSIGNAL) < 0)
		r = -errno;
	buf_done(&buf);
	return r;
}

/* Asks the next server; a server that cannot even be sent to loses its turn at once. */
static void next_try(struct resolve *resolve)
{
	wire_drop(resolve);
	while (resolve->tries < ROUNDS * resolve->conf.server_cnt) {
		const struct addr *server = &resolve->conf.servers[resolve->tries % resolve->conf.server_cnt];
		resolve->tries++;
		int r = wire_open(resolve, server);
		for (size_t i = 0; r == 0 && i < 2; i++)
			r = send_ask(resolve, &resolve->asks[i]);
		if (r == 0) {
			io_timer_start(resolve->io, &resolve->try_timer, TRY_MS);
			return;
		}
		wire_drop(resolve);
	}
	resolve->is_shaky = true;
	/* One family is better than none. */
	if (resolve->ip_cnt > 0)
		finish(resolve, 0, NULL);
	else
		next_candidate(resolve);
}

static void try_over(struct timer *timer, uint64_t now)
{
	(void)now;
	next_try(list_entry(timer, struct resolve, try_timer));
}

static void deadline_over(struct timer *timer, uint64_t now)
{
	struct resolve *resolve = list_entry(timer, struct resolve, deadline);
	(void)now;
	if (resolve->ip_cnt > 0)
		finish(resolve, 0, NULL);
	else
		finish(resolve, -ETIMEDOUT, "Temporary failure in name resolution (timed out)");
}

static void next_candidate(struct resolve *resolve)
{
	char name[DNS_TEXT_MAX];
	wire_drop(resolve);
	while (resolv_candidate(&resolve->conf, resolve->name, resolve->candidate++, name)) {
		struct ask *asks = resolve->asks;
		if (dns_question_set(&asks[0].question, name, DNS_A) < 0 ||
		        dns_question_set(&asks[1].question, name, DNS_AAAA) < 0)
			continue;
		asks[0].is_open = resolve->v4;
		asks[1].is_open = resolve->v6;
		resolve->tries = 0;
		next_try(resolve);
		return;
	}
	if (resolve->is_shaky)
		finish(resolve, -EAGAIN, "Temporary failure in name resolution");
	else
		finish(resolve, -ENOENT, "Name or service not known");
}

/* --- beginning ------------------------------------------------------------ */

static bool find_locally(struct resolve *resolve)
{
	struct buf hosts;
	struct ip ip;
	if (ip_parse(resolve->name, strlen(resolve->name), &ip) == 0) {
		resolve->ips[resolve->ip_cnt++] = ip;
		return true;
	}
	buf_init(&hosts, HOSTS_MAX);
	if (file_read("/etc/hosts", &hosts) == 0 && hosts.len > 0)
		hosts_find((const char *)hosts.data, hosts.len, resolve->name, resolve->v4, resolve->v6,
		        resolve->ips, RESOLVE_ADDR_MAX, &resolve->ip_cnt);
	buf_done(&hosts);
	/* RFC 6761 6.3: never asked of a server. */
	if (resolve->ip_cnt == 0 && strcasecmp(resolve->name, "localhost") == 0)
		resolve->ips[resolve->ip_cnt++] = ip_v4(127, 0, 0, 1);
	return resolve->ip_cnt > 0;
}

static void begin(struct resolve *resolve)
{
	struct buf text;
	if (find_locally(resolve)) {
		finish(resolve, 0, NULL);
		return;
	}
	buf_init(&text, RESOLV_MAX);
	int r = file_read("/etc/resolv.conf", &text);
	resolv_conf_parse((const char *)text.data, r == 0 ? text.len : 0, &resolve->conf);
	buf_done(&text);
	if (resolve->conf.server_cnt == 0)
		finish(resolve, -EAGAIN, "no usable nameserver in /etc/resolv.conf");
	else
		next_candidate(resolve);
}

int resolve_start(struct io *io, const struct resolve_opts *opts, resolve_done *done, void *ctx,
        struct resolve **ret_resolve)
{
	size_t len = strlen(opts->name);
	if (len == 0 || len >= DNS_TEXT_MAX)
		return -EINVAL;
	struct resolve *resolve = mem_zalloc(1, sizeof(*resolve));
	if (!resolve)
		return -ENOMEM;
	resolve->io = io;
	resolve->done = done;
	resolve->ctx = ctx;
	memcpy(resolve->name, opts->name, len + 1);
	resolve->v4 = opts->v4;
	resolve->v6 = opts->v6;
	timer_init(&resolve->try_timer, try_over);
	timer_init(&resolve->deadline, deadline_over);
	io_task_init(&resolve->end, on_end);
	io_timer_start(io, &resolve->deadline, opts->deadline_ms);
	begin(resolve);
	*ret_resolve = resolve;
	return 0;
}

void resolve_cancel(struct resolve *resolve)
{
	if (resolve)
		destroy(resolve);
}

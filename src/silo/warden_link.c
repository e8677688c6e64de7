/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The channel to the warden; see warden_link.h. */
#include "silo/admin.h"
#include "silo/warden_link.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "ipc/ring_chan.h"
#include "silo/broker_link.h"
#include "silo/dns.h"
#include "silo/silo.h"

static const char TARGET[] = "culvert::silo::warden";

struct warden_link {
	struct silo *silo;
	struct ring_chan *chan;   /* to the present warden, NULL = none */
	struct listener *control; /* where later wardens come */
};

static void send_simple(struct warden_link *link, const struct ipc_record *rec)
{
	if (link->chan)
		ring_chan_send(link->chan, rec, -1, NULL);
}

/* The start failed: says so and ends; the warden undoes the rest. */
static void fail_start(struct warden_link *link, const char *text)
{
	struct ipc_record rec = {.type = IPC_START_FAILED, .start_failed = {.text = text}};
	send_simple(link, &rec);
	link->silo->phase = SILO_ENDED;
	io_stop(link->silo->io);
}

/* --- control socket ------------------------------------------------------ */

static int on_record(void *ctx, struct chan_msg *msg, struct err *err);
static void on_closed(void *ctx, int code, const char *text);

static const struct ring_chan_events EVENTS = {.on_record = on_record, .on_closed = on_closed};

static void greet_later_warden(struct warden_link *link)
{
	struct silo *silo = link->silo;
	struct ipc_hello hello = {.uid = silo->uid,
	        .info = silo->info,
	        .netns_dev = silo->netns_dev,
	        .netns_ino = silo->netns_ino,
	        .pid = getpid(),
	        .start_time = silo->start_time,
	        .broker_attached = broker_link_is_up(silo->broker),
	        .is_ready = silo->phase == SILO_SERVING};
	/* The namespace's descriptor goes along: a warden cannot reopen it from a process that is not
	 * dumpable. */
	int fd = silo->netns_fd >= 0 ? fcntl(silo->netns_fd, F_DUPFD_CLOEXEC, 3) : -1;
	ring_chan_send_hello(link->chan, &hello, fd, NULL);
}

static void on_control(void *ctx, int fd)
{
	struct warden_link *link = ctx;
	struct silo *silo = link->silo;
	struct ring_chan *chan;
	uid_t uid;
	if (fd_peer(fd, NULL, &uid) < 0 || uid != geteuid() || fd_set_nonblock(fd, true) < 0 ||
	        ring_chan_new(silo->io, fd, IPC_ROLE_SILO, IPC_ROLE_WARDEN, false, &silo->scratch, &EVENTS,
	                link, &chan) < 0) {
		log_msg(&silo->log, LOG_WARN, TARGET, "connection to the control socket refused");
		fd_close(&fd);
		return;
	}
	ring_chan_free(link->chan);
	link->chan = chan;
	greet_later_warden(link);
}

static const struct listen_events CONTROL_EVENTS = {.on_accept = on_control};

/* --- records ------------------------------------------------------------- */

static int remember_netns(struct silo *silo, int fd)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return -errno;
	silo->netns_fd = fd;
	silo->netns_dev = st.st_dev;
	silo->netns_ino = st.st_ino;
	return 0;
}

/* Puts one inherited descriptor to its use. */
static int inherit(struct warden_link *link, const struct ipc_inherited *it)
{
	struct silo *silo = link->silo;
	const struct listen_opts none = {0};
	switch (it->kind) {
	case IPC_FD_OUTBOUND:
		return silo_listen(silo, SILO_PORT_OUTBOUND, it->fd);
	case IPC_FD_INBOUND_PLAINTEXT:
		return silo_listen(silo, SILO_PORT_PLAINTEXT, it->fd);
	case IPC_FD_INBOUND_HBONE:
		return silo_listen(silo, SILO_PORT_HBONE, it->fd);
	case IPC_FD_SOCKS5:
		return silo_listen(silo, SILO_PORT_SOCKS, it->fd);
	case IPC_FD_DNS_UDP:
	case IPC_FD_DNS_TCP:
		/* One for an address that this namespace does not have was left out. */
		return fcntl(it->fd, F_GETFD) < 0 ? 0 : dns_serve(silo, it->fd, it->kind == IPC_FD_DNS_TCP);
	case IPC_FD_CONTROL:
		return listen_start(silo->io, it->fd, &none, &CONTROL_EVENTS, link, &link->control);
	case IPC_FD_NETNS:
		return remember_netns(silo, it->fd);
	case IPC_FD_ADMIN:
		return admin_serve(silo, it->fd);
	case IPC_FD_BROKER:
		return broker_link_attach(silo->broker, it->fd);
	default:
		/* A newer warden gives more than this release uses. */
		close(it->fd);
		return 0;
	}
}

static int copy_names(struct silo *silo, const struct ipc_heritage *heritage)
{
	silo->uid = arena_strdup(silo->arena, heritage->uid);
	silo->info.name = arena_strdup(silo->arena, heritage->info.name);
	silo->info.ns = arena_strdup(silo->arena, heritage->info.ns);
	silo->info.service_account = arena_strdup(silo->arena, heritage->info.service_account);
	return silo->uid && silo->info.name && silo->info.ns && silo->info.service_account ? 0 : -ENOMEM;
}

static int on_heritage(struct warden_link *link, struct chan_msg *msg, struct err *err)
{
	struct silo *silo = link->silo;
	const struct ipc_heritage *heritage = &msg->rec.heritage;
	const struct ipc_record ready = {.type = IPC_READY};
	(void)err;
	int r = copy_names(silo, heritage);
	silo->is_self = heritage->mode == IPC_SILO_SELF;
	for (size_t i = 0; i < heritage->fd_cnt && r == 0; i++)
		r = inherit(link, &heritage->fds[i]);
	if (r < 0) {
		fail_start(link, err_str(r));
		return 0;
	}
	silo->phase = SILO_SERVING;
	send_simple(link, &ready);
	return 0;
}

static int on_record(void *ctx, struct chan_msg *msg, struct err *err)
{
	struct warden_link *link = ctx;
	struct silo *silo = link->silo;
	int fd = msg->fd;
	switch (msg->rec.type) {
	case IPC_HERITAGE:
		return on_heritage(link, msg, err);
	case IPC_ATTACH_BROKER:
		msg->fd = -1;
		if (broker_link_attach(silo->broker, fd) < 0)
			log_msg(&silo->log, LOG_ERROR, TARGET, "no memory for a channel to the broker");
		return 0;
	case IPC_DRAIN:
		silo_drain(silo, msg->rec.drain.graceful, msg->rec.drain.deadline_ms);
		return 0;
	default:
		return 0;
	}
}

static void on_closed(void *ctx, int code, const char *text)
{
	struct warden_link *link = ctx;
	struct silo *silo = link->silo;
	ring_chan_free(link->chan);
	link->chan = NULL;
	if (silo->phase == SILO_STARTING) {
		/* Nobody knows of us yet, nobody would ever find us. */
		silo->phase = SILO_ENDED;
		io_stop(silo->io);
		return;
	}
	log_msg(&silo->log, code == -EPIPE ? LOG_INFO : LOG_WARN, TARGET,
	        "channel to the warden ended, serving on: %s", text);
}

/* --- life ---------------------------------------------------------------- */

int warden_link_new(struct silo *silo, int fd, struct warden_link **ret_link)
{
	struct warden_link *link = mem_zalloc(1, sizeof(*link));
	if (!link)
		return -ENOMEM;
	link->silo = silo;
	int r = ring_chan_new(silo->io, fd, IPC_ROLE_SILO, IPC_ROLE_WARDEN, true, &silo->scratch, &EVENTS,
	        link, &link->chan);
	if (r < 0) {
		mem_free(link);
		return r;
	}
	struct ipc_hello hello = {.uid = "", .pid = getpid()};
	ring_chan_send_hello(link->chan, &hello, -1, NULL);
	*ret_link = link;
	return 0;
}

void warden_link_free(struct warden_link *link)
{
	if (!link)
		return;
	ring_chan_free(link->chan);
	listen_stop(link->control);
	mem_free(link);
}

void warden_link_drained(struct warden_link *link, bool is_forced)
{
	const struct ipc_record rec = {.type = IPC_DRAINED, .drained = {.forced = is_forced}};
	send_simple(link, &rec);
}

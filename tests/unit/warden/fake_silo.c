/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Test double of culvert-silo for the warden: speaks the conversation, serves
 * nothing. Listeners are left as they are inherited, so a connect succeeds.
 * The pod's name says how it behaves:
 *   slow      Ready after 400 ms          never     no Ready at all
 *   refuse    StartFailed "no luck"       exit      exits with status 3
 *   moan      a line on stderr, exit 1    garbage   a packet that is no record
 *   crash     dies 50 ms after Ready      stubborn  ignores Drain
 *   linger    needs 300 ms to drain       anything else: a good silo
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/loop.h"
#include "base/proc.h"
#include "ipc/chan.h"
#include "warden/spawn.h"

struct fake {
	struct loop loop;
	struct chan_scratch scratch;
	struct chan chan;
	struct watch watch;
	struct watch control;
	struct timer timer;
	char uid[2048];
	char name[512];
	char ns[512];
	char sa[512];
	int control_fd;
	int netns_fd;
	bool is_ready;
	bool is_draining;
	bool has_broker;
};

static bool is(const struct fake *fake, const char *name)
{
	return strncmp(fake->name, name, strlen(name)) == 0;
}

static void send_type(struct fake *fake, struct ipc_record rec)
{
	struct err err = {0};
	if (fake->chan.fd >= 0 && chan_send(&fake->chan, &rec, -1, &err) < 0)
		fprintf(stderr, "fake: sending %s: %s\n", ipc_type_str(rec.type), err.text);
}

static void send_hello(struct fake *fake, int fd)
{
	struct err err = {0};
	struct stat st = {0};
	struct ipc_hello hello = {.uid = fake->uid,
	        .info = {.name = fake->name, .ns = fake->ns, .service_account = fake->sa},
	        .pid = getpid(),
	        .broker_attached = fake->has_broker,
	        .is_ready = fake->is_ready};
	if (fstat(fake->netns_fd, &st) == 0) {
		hello.netns_dev = st.st_dev;
		hello.netns_ino = st.st_ino;
	}
	/* A liar's descriptor is not the namespace that it names. */
	if (is(fake, "liar") && fd >= 0)
		hello.netns_ino++;
	proc_start_time(getpid(), &hello.start_time);
	if (chan_send_hello(&fake->chan, &hello, fd, &err) < 0)
		fprintf(stderr, "fake: hello: %s\n", err.text);
}

static void ready(struct fake *fake)
{
	fake->is_ready = true;
	send_type(fake, (struct ipc_record){.type = IPC_READY});
	if (is(fake, "crash"))
		loop_after(&fake->loop, &fake->timer, 50);
}

static void on_timer(struct timer *timer, uint64_t now)
{
	struct fake *fake = list_entry(timer, struct fake, timer);
	if (fake->is_draining) {
		send_type(fake, (struct ipc_record){.type = IPC_DRAINED});
		exit(0);
	}
	if (is(fake, "crash"))
		raise(SIGKILL);
	ready(fake);
}

static void behave(struct fake *fake)
{
	if (is(fake, "slow"))
		loop_after(&fake->loop, &fake->timer, 400);
	else if (is(fake, "refuse"))
		send_type(fake,
		        (struct ipc_record){.type = IPC_START_FAILED, .start_failed = {.text = "no luck"}});
	else if (is(fake, "exit"))
		exit(3);
	else if (is(fake, "moan")) {
		fprintf(stderr, "things are bad\n");
		exit(1);
	} else if (is(fake, "garbage"))
		(void)!write(fake->chan.fd, "\xff\xff\xff", 3);
	else if (!is(fake, "never"))
		ready(fake);
}

static void take_heritage(struct fake *fake, const struct ipc_heritage *heritage)
{
	snprintf(fake->uid, sizeof(fake->uid), "%s", heritage->uid);
	snprintf(fake->name, sizeof(fake->name), "%s", heritage->info.name);
	snprintf(fake->ns, sizeof(fake->ns), "%s", heritage->info.ns);
	snprintf(fake->sa, sizeof(fake->sa), "%s", heritage->info.service_account);
	for (size_t i = 0; i < heritage->fd_cnt; i++) {
		int fd = heritage->fds[i].fd;
		/* DNS on ::1 is left out where the namespace has no such address. */
		bool is_dns =
		        heritage->fds[i].kind == IPC_FD_DNS_UDP || heritage->fds[i].kind == IPC_FD_DNS_TCP;
		if (fcntl(fd, F_GETFD) < 0 && !is_dns)
			fprintf(stderr, "fake: descriptor %d is not open\n", fd);
		if (heritage->fds[i].kind == IPC_FD_CONTROL)
			fake->control_fd = fd;
		else if (heritage->fds[i].kind == IPC_FD_NETNS)
			fake->netns_fd = fd;
		else if (heritage->fds[i].kind == IPC_FD_BROKER)
			fake->has_broker = true;
	}
	loop_add(&fake->loop, &fake->control, fake->control_fd, EPOLLIN);
	send_hello(fake, -1);
	behave(fake);
}

static void drain(struct fake *fake, const struct ipc_drain *drain_rec)
{
	fprintf(stderr, "fake: drain graceful=%d deadline=%llu\n", drain_rec->graceful,
	        (unsigned long long)drain_rec->deadline_ms);
	if (is(fake, "stubborn"))
		return;
	fake->is_draining = true;
	loop_after(&fake->loop, &fake->timer, is(fake, "linger") ? 300 : 0);
}

static void on_channel(struct watch *watch, uint32_t events)
{
	struct fake *fake = list_entry(watch, struct fake, watch);
	struct err err = {0};
	struct chan_msg msg = {.fd = -1};
	int rc = chan_recv(&fake->chan, &msg, &err);
	if (rc == -EAGAIN)
		return;
	if (rc < 0) {
		/* The warden is gone; the next one comes over the control socket. */
		loop_del(&fake->loop, &fake->watch);
		chan_done(&fake->chan);
		return;
	}
	if (msg.rec.type == IPC_HERITAGE)
		take_heritage(fake, &msg.rec.heritage);
	else if (msg.rec.type == IPC_DRAIN)
		drain(fake, &msg.rec.drain);
	else if (msg.rec.type == IPC_ATTACH_BROKER) {
		fake->has_broker = true;
		fprintf(stderr, "fake: broker attached\n");
	}
	chan_msg_done(&msg);
}

static void on_control(struct watch *watch, uint32_t events)
{
	struct fake *fake = list_entry(watch, struct fake, control);
	int fd = accept4(fake->control_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0)
		return;
	loop_del(&fake->loop, &fake->watch);
	if (fake->chan.fd >= 0)
		chan_done(&fake->chan);
	chan_init(&fake->chan, fd, IPC_ROLE_SILO, IPC_ROLE_WARDEN, false, &fake->scratch);
	send_hello(fake, fcntl(fake->netns_fd, F_DUPFD_CLOEXEC, 3));
	loop_add(&fake->loop, &fake->watch, fd, EPOLLIN);
}

int main(void)
{
	static struct fake fake = {.control_fd = -1, .netns_fd = -1};
	fake.watch = (struct watch){.fd = -1, .ready = on_channel};
	fake.control = (struct watch){.fd = -1, .ready = on_control};
	timer_init(&fake.timer, on_timer);
	fcntl(SPAWN_FD_WARDEN, F_SETFD, FD_CLOEXEC);
	if (loop_init(&fake.loop) < 0)
		return 1;
	chan_init(&fake.chan, SPAWN_FD_WARDEN, IPC_ROLE_SILO, IPC_ROLE_WARDEN, true, &fake.scratch);
	loop_add(&fake.loop, &fake.watch, SPAWN_FD_WARDEN, EPOLLIN);
	return loop_run(&fake.loop) < 0;
}

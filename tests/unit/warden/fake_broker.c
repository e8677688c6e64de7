/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Test double of culvert-broker for the warden: listens on broker.sock, says
 * that the mesh state is in, writes what it is told to stdout, one line a
 * record. SIGUSR1 makes it send StopRequest, SIGUSR2 a record that breaks the
 * conversation. With FAKE_BROKER_MESH=no the mesh state never comes in; with
 * FAKE_BROKER_EXIT=n it exits at once.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/loop.h"
#include "base/proc.h"
#include "ipc/chan.h"

struct fake {
	struct loop loop;
	struct chan_scratch scratch;
	struct chan chan;
	struct watch watch;
	struct watch listener;
	struct watch signals;
	struct watch parent;
	int listen_fd;
	int signal_fd;
};

static void say(const struct ipc_record *rec, int fd)
{
	switch (rec->type) {
	case IPC_SILO_STATE:
		printf("broker: SiloState uid=%.60s name=%s state=%d reason=%s restarts=%u pid=%d\n",
		        rec->silo_state.uid, rec->silo_state.info.name, (int)rec->silo_state.state,
		        rec->silo_state.reason, rec->silo_state.restarts, rec->silo_state.pid);
		break;
	case IPC_SILO_ATTACH:
		printf("broker: SiloAttach uid=%.60s pid=%d fd=%d\n", rec->silo_attach.uid,
		        rec->silo_attach.pid, fd >= 0);
		break;
	case IPC_NODE_STATE:
		printf("broker: NodeState connected=%d snapshot=%d pending=%u\n", rec->node_state.connected,
		        rec->node_state.snapshot, rec->node_state.pending_cnt);
		break;
	case IPC_DRAIN:
		printf("broker: Drain graceful=%d deadline=%llu\n", rec->drain.graceful,
		        (unsigned long long)rec->drain.deadline_ms);
		break;
	default:
		printf("broker: %s\n", ipc_type_str(rec->type));
		break;
	}
	fflush(stdout);
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
		loop_del(&fake->loop, &fake->watch);
		chan_done(&fake->chan);
		return;
	}
	say(&msg.rec, msg.fd);
	if (msg.rec.type == IPC_HELLO && !getenv("FAKE_BROKER_MESH"))
		chan_send(&fake->chan,
		        &(struct ipc_record){.type = IPC_MESH_STATE, .mesh_state = {.complete = true}}, -1,
		        &err);
	chan_msg_done(&msg);
}

static void on_connection(struct watch *watch, uint32_t events)
{
	struct fake *fake = list_entry(watch, struct fake, listener);
	struct err err = {0};
	struct ipc_hello hello = {.pid = getpid()};
	int fd = accept4(fake->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0)
		return;
	loop_del(&fake->loop, &fake->watch);
	if (fake->chan.fd >= 0)
		chan_done(&fake->chan);
	chan_init(&fake->chan, fd, IPC_ROLE_BROKER, IPC_ROLE_WARDEN, false, &fake->scratch);
	proc_start_time(getpid(), &hello.start_time);
	if (chan_send_hello(&fake->chan, &hello, -1, &err) < 0)
		fprintf(stderr, "broker: hello: %s\n", err.text);
	loop_add(&fake->loop, &fake->watch, fd, EPOLLIN);
}

static void on_signal(struct watch *watch, uint32_t events)
{
	struct fake *fake = list_entry(watch, struct fake, signals);
	struct err err = {0};
	int number = loop_signal_next(fake->signal_fd, NULL);
	if (number == SIGTERM)
		exit(0);
	if (number == SIGUSR1)
		chan_send(&fake->chan, &(struct ipc_record){.type = IPC_STOP_REQUEST}, -1, &err);
	if (number == SIGUSR2)
		(void)!write(fake->chan.fd, "\xff\xff", 2);
}

static void on_parent_gone(struct watch *watch, uint32_t events)
{
	exit(0);
}

int main(void)
{
	static struct fake fake = {.chan = {.fd = -1}};
	char path[PATH_MAX];
	sigset_t signals;
	int parent_fd = -1;
	if (getenv("FAKE_BROKER_EXIT"))
		return atoi(getenv("FAKE_BROKER_EXIT"));
	printf("broker: started uid=%d\n", (int)getuid());
	fflush(stdout);
	fake.watch = (struct watch){.fd = -1, .ready = on_channel};
	fake.listener = (struct watch){.fd = -1, .ready = on_connection};
	fake.signals = (struct watch){.fd = -1, .ready = on_signal};
	fake.parent = (struct watch){.fd = -1, .ready = on_parent_gone};
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGUSR1);
	sigaddset(&signals, SIGUSR2);
	snprintf(path, sizeof(path), "%s/%s/broker.sock", getenv("CULVERT_RUN_DIR"),
	        getenv("CULVERT_INSTANCE"));
	if (loop_init(&fake.loop) < 0 || loop_signal_fd(&signals, &fake.signal_fd) < 0 ||
	        fd_pidfd(getppid(), &parent_fd) < 0 ||
	        fd_unix_listen(path, SOCK_SEQPACKET, 4, &fake.listen_fd) < 0) {
		perror("broker");
		return 1;
	}
	loop_add(&fake.loop, &fake.listener, fake.listen_fd, EPOLLIN);
	loop_add(&fake.loop, &fake.signals, fake.signal_fd, EPOLLIN);
	loop_add(&fake.loop, &fake.parent, parent_fd, EPOLLIN);
	return loop_run(&fake.loop) < 0;
}

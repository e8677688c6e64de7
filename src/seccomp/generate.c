/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Build-time program: turns the allow-lists of silo and broker into BPF by
 * libseccomp and prints them as C arrays, so that the processes themselves
 * need no library, only seccomp(2). Never shipped, never run on a node.
 * Usage: generate silo|broker > header
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* Programs of more instructions are refused by the kernel (BPF_MAXINSNS). */
#define PROGRAM_MAX 4096

/* What both need: memory, time, the ring, descriptors, sockets that exist, an orderly or disorderly end. */
static const char *const common_calls[] = {
        /* memory; mmap and mprotect have rules of their own */
        "brk",
        "munmap",
        "mremap",
        "madvise",
        "mlock",
        "mlock2",
        "munlock",
        /* the ring; io_uring_setup is left out on purpose */
        "io_uring_enter",
        "io_uring_register",
        /* waiting for room to send, where the ring cannot (io/writable.c) */
        "epoll_create1",
        "epoll_ctl",
        "epoll_wait",
        "epoll_pwait",
        /* descriptors; fcntl has rules of its own */
        "read",
        "write",
        "readv",
        "writev",
        "pread64",
        "close",
        "close_range",
        "dup",
        "dup3",
        "pipe2",
        "eventfd2",
        "lseek",
        "fstat",
        "newfstatat",
        "statx",
        "poll",
        "ppoll",
        /* sockets; socket and socketpair have rules of their own */
        "bind",
        "connect",
        "listen",
        "accept4",
        "shutdown",
        "getsockname",
        "getpeername",
        "getsockopt",
        "setsockopt",
        "sendto",
        "sendmsg",
        "sendmmsg",
        "recvfrom",
        "recvmsg",
        "recvmmsg",
        /* time and chance; the first two are fall-backs of the vDSO */
        "clock_gettime",
        "gettimeofday",
        "clock_nanosleep",
        "nanosleep",
        "getrandom",
        /* the process itself */
        "futex",
        "getpid",
        "gettid",
        "getuid",
        "geteuid",
        "getrusage",
        "sched_yield",
        "sched_getaffinity",
        "uname",
        "sysinfo",
        "rt_sigaction",
        "rt_sigprocmask",
        "rt_sigreturn",
        "restart_syscall",
        "exit",
        "exit_group",
};

/* What the broker does beyond: its admin socket and CA files, watched token and root files, liveness of the
 * first process. */
static const char *const broker_calls[] = {
        "openat",
        "unlink",
        "unlinkat",
        "rename",
        "renameat",
        "renameat2",
        "fsync",
        "fchmod",
        "pwrite64",
        "ftruncate",
        "access",
        "faccessat",
        "faccessat2",
        "readlink",
        "readlinkat",
        "getdents64",
        "memfd_create",
        "inotify_init1",
        "inotify_add_watch",
        "inotify_rm_watch",
        "pidfd_open",
        "signalfd4",
        "timerfd_create",
        "timerfd_settime",
};

static void check(int r, const char *what)
{
	if (r == 0)
		return;
	fprintf(stderr, "%s: %s\n", what, strerror(-r));
	exit(1);
}

/* A call that this architecture lacks (access on arm64) has no number and is left out. */
static void allow_all(scmp_filter_ctx ctx, const char *const *names, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++) {
		int number = seccomp_syscall_resolve_name(names[i]);
		if (number == __NR_SCMP_ERROR) {
			fprintf(stderr, "unknown system call %s\n", names[i]);
			exit(1);
		}
		if (number >= 0)
			check(seccomp_rule_add(ctx, SCMP_ACT_ALLOW, number, 0), names[i]);
	}
}

/* Memory may never become executable. */
static void allow_memory(scmp_filter_ctx ctx)
{
	const struct scmp_arg_cmp no_exec = SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0);
	check(seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 1, no_exec), "mmap");
	check(seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(mprotect), 1, no_exec), "mprotect");
}

/* Not F_SETOWN and F_SETSIG: they send any signal to any process of the same uid, as tgkill does, which is
 * left out too (an abort then ends as a forbidden call, which is an end as well). */
static void allow_fcntl(scmp_filter_ctx ctx)
{
	static const int commands[] = {F_DUPFD, F_DUPFD_CLOEXEC, F_GETFD, F_SETFD, F_GETFL, F_SETFL};
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		check(seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(fcntl), 1,
		              SCMP_A1(SCMP_CMP_MASKED_EQ, UINT32_MAX, (scmp_datum_t)commands[i])),
		        "fcntl");
}

static void allow_socket(scmp_filter_ctx ctx, int family)
{
	check(seccomp_rule_add(
	              ctx, SCMP_ACT_ALLOW, SCMP_SYS(socket), 1, SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)family)),
	        "socket");
}

/* Interfaces and addresses are read by rtnetlink; other netlink families stay shut. */
static void allow_rtnetlink(scmp_filter_ctx ctx)
{
	check(seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(socket), 2, SCMP_A0(SCMP_CMP_EQ, AF_NETLINK),
	              SCMP_A2(SCMP_CMP_EQ, NETLINK_ROUTE)),
	        "socket");
}

/* Read-only, nothing created: the silo reads its own /proc, Landlock says where. */
static void allow_open_read(scmp_filter_ctx ctx)
{
	const struct scmp_arg_cmp read_only =
	        SCMP_A2(SCMP_CMP_MASKED_EQ, O_ACCMODE | O_CREAT | O_TRUNC, O_RDONLY);
	check(seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(openat), 1, read_only), "openat");
}

static void fill(scmp_filter_ctx ctx, bool broker)
{
	allow_all(ctx, common_calls, sizeof(common_calls) / sizeof(common_calls[0]));
	allow_memory(ctx);
	allow_fcntl(ctx);
	allow_socket(ctx, AF_INET);
	allow_socket(ctx, AF_INET6);
	allow_rtnetlink(ctx);
	check(seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(socketpair), 1, SCMP_A0(SCMP_CMP_EQ, AF_UNIX)),
	        "socketpair");
	if (broker) {
		allow_socket(ctx, AF_UNIX);
		allow_all(ctx, broker_calls, sizeof(broker_calls) / sizeof(broker_calls[0]));
	} else {
		allow_open_read(ctx);
	}
}

/* libseccomp writes the program to a descriptor only. */
static size_t export_program(scmp_filter_ctx ctx, struct sock_filter *out)
{
	int fd = memfd_create("bpf", MFD_CLOEXEC);
	if (fd < 0)
		check(-errno, "memfd_create");
	check(seccomp_export_bpf(ctx, fd), "seccomp_export_bpf");
	ssize_t len = pread(fd, out, PROGRAM_MAX * sizeof(*out), 0);
	close(fd);
	if (len <= 0 || (size_t)len % sizeof(*out) != 0 || (size_t)len >= PROGRAM_MAX * sizeof(*out))
		check(-EINVAL, "exported program");
	return (size_t)len / sizeof(*out);
}

static void print_program(const char *name, const char *suffix, bool broker, uint32_t action)
{
	static struct sock_filter program[PROGRAM_MAX];
	scmp_filter_ctx ctx = seccomp_init(action);
	if (!ctx)
		check(-ENOMEM, "seccomp_init");
	check(seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS), "bad architecture");
	/* A balanced tree instead of a chain: a few comparisons for each call. */
	check(seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2), "optimize");
	fill(ctx, broker);
	size_t cnt = export_program(ctx, program);
	printf("\n/* %zu instructions. */\nstatic const struct sock_filter %s_filter%s[] = {\n", cnt, name,
	        suffix);
	for (size_t i = 0; i < cnt; i++)
		printf("\t{0x%04x, %u, %u, 0x%08x},\n", program[i].code, program[i].jt, program[i].jf,
		        program[i].k);
	printf("};\n");
	seccomp_release(ctx);
}

int main(int argc, char **argv)
{
	if (argc != 2 || (strcmp(argv[1], "silo") != 0 && strcmp(argv[1], "broker") != 0)) {
		fprintf(stderr, "usage: generate silo|broker\n");
		return 1;
	}
	bool broker = strcmp(argv[1], "broker") == 0;
	printf("/* Generated by src/seccomp/generate.c; the lists are there. */\n#include <linux/filter.h>\n");
	print_program(argv[1], "", broker, SCMP_ACT_KILL_PROCESS);
	print_program(argv[1], "_log", broker, SCMP_ACT_LOG);
	return fflush(stdout) == 0 ? 0 : 1;
}

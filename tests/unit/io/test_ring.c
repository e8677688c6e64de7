/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The ring itself: start-up and its errors, restrictions, timers, phases, polls, overflow, locked memory. */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "io/internal.h"

/* A user nobody else runs as, so that its account of locked memory is ours alone. */
#define LONELY_UID 54321

static struct io *ring_new(bool baseline61)
{
	struct err err = {0};
	struct io *io = NULL;
	int r = io_new(&(struct io_opts){.baseline61 = baseline61}, &io, &err);
	if (r < 0)
		fail_msg("io_new: %s", err.text);
	return io;
}

/* Runs `body` in a child of another uid; its result becomes the exit status. */
static int as_user(uid_t uid, int (*body)(void))
{
	int status = -1;
	pid_t pid = fork();
	if (pid == 0) {
		if (uid && (setgid(uid) < 0 || setuid(uid) < 0))
			_exit(99);
		_exit(body());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void needs_root(void)
{
	if (geteuid() != 0)
		skip();
}

static void starts_both_ways(void **state)
{
	struct io *io = ring_new(true);
	assert_false(io_features(io)->no_sqarray);
	assert_true(io_features(io)->restricted);
	assert_true(io_features(io)->registered_fd);
	io_free(io);
	io = ring_new(false);
	assert_true(io_features(io)->restricted);
	assert_int_equal(io_in_flight(io), 0);
	io_free(io);
	io_free(NULL);
}

/* Completion of an entry made behind the back of the interface. */
static int raw_result(struct io *io)
{
	struct io_uring_cqe *cqe = NULL;
	assert_true(io_uring_submit_and_wait(&io->ring, 1) >= 0);
	assert_int_equal(io_uring_peek_cqe(&io->ring, &cqe), 0);
	int res = cqe->res;
	io_uring_cqe_seen(&io->ring, cqe);
	return res;
}

static void restricts(void **state)
{
	struct io *io = ring_new(false);
	io_uring_prep_openat(io_sqe(io), AT_FDCWD, "/", O_RDONLY, 0);
	assert_int_equal(raw_result(io), -EACCES);
	io_uring_prep_socket(io_sqe(io), AF_UNIX, SOCK_STREAM, 0, 0);
	assert_int_equal(raw_result(io), -EACCES);
	struct io_uring_sqe *sqe = io_sqe(io);
	io_uring_prep_poll_add(sqe, 0, POLLIN);
	sqe->flags |= IOSQE_ASYNC;
	assert_int_equal(raw_result(io), -EACCES);
	assert_int_equal(io_uring_register_files_sparse(&io->ring, 4), -EACCES);
	io_free(io);
}

static void names_the_obstacle(void **state)
{
	struct err err = {0};
	assert_int_equal(io_start_error(-EPERM, 2, 0, &err), -EPERM);
	assert_non_null(strstr(err.text, "kernel.io_uring_disabled"));
	io_start_error(-EPERM, 0, 0, &err);
	assert_non_null(strstr(err.text, "seccomp"));
	io_start_error(-ENOSYS, 0, 0, &err);
	assert_non_null(strstr(err.text, "seccomp"));
	io_start_error(-ENOMEM, 0, 8u << 20, &err);
	assert_non_null(strstr(err.text, "RLIMIT_MEMLOCK, 8192 KB"));
	io_start_error(-EINVAL, 0, 0, &err);
	assert_non_null(strstr(err.text, "6.1"));
	assert_int_equal(io_start_error(-EMFILE, 0, 0, &err), -EMFILE);
	assert_non_null(strstr(err.text, "io_uring: "));
}

static int start_without_memlock(void)
{
	struct io *io;
	struct err err = {0};
	struct rlimit none = {0, 0};
	setrlimit(RLIMIT_MEMLOCK, &none);
	return io_new(&(struct io_opts){0}, &io, &err) == -ENOMEM && strstr(err.text, "RLIMIT_MEMLOCK, 0 KB")
	               ? 0
	               : 1;
}

static int start_under_seccomp(void)
{
	struct io *io;
	struct err err = {0};
	struct sock_filter code[] = {
	        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_io_uring_setup, 0, 1),
	        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
	        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = {.len = 4, .filter = code};
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) < 0)
		return 2;
	return io_new(&(struct io_opts){0}, &io, &err) == -EPERM && strstr(err.text, "seccomp") ? 0 : 1;
}

static void fails_with_words(void **state)
{
	needs_root();
	assert_int_equal(as_user(LONELY_UID, start_without_memlock), 0);
	assert_int_equal(as_user(0, start_under_seccomp), 0);
}

/* Rings that fit into 8 MB of locked memory, divided by 10 to fit an exit status. */
static int rings_in_budget(void)
{
	struct rlimit locked = {8u << 20, 8u << 20}, files = {4096, 4096};
	setrlimit(RLIMIT_MEMLOCK, &locked);
	setrlimit(RLIMIT_NOFILE, &files);
	struct io *io;
	int cnt = 0;
	while (cnt < 1000 && io_new(&(struct io_opts){0}, &io, NULL) == 0)
		cnt++;
	return cnt / 10;
}

static void fits_locked_memory(void **state)
{
	needs_root();
	/* 250 silos of each of two daemons (design 4). */
	assert_true(as_user(LONELY_UID, rings_in_budget) >= 50);
}

struct counter {
	struct io_op op;
	struct io *io;
	int calls;
	int last;
	bool more;
};

static void count_op(struct io_op *op, const struct io_result *result)
{
	struct counter *c = list_entry(op, struct counter, op);
	c->calls++;
	c->last = result->res;
	c->more = result->more;
}

static void polls(void **state)
{
	struct io *io = ring_new(false);
	int fds[2];
	assert_int_equal(pipe2(fds, O_NONBLOCK | O_CLOEXEC), 0);
	struct counter c = {0};
	io_op_init(&c.op, count_op);
	io_poll(io, &c.op, fds[0], POLLIN, true);
	io_turn(io, false);
	assert_int_equal(c.calls, 0);
	for (int i = 1; i <= 3; i++) {
		assert_int_equal(write(fds[1], "x", 1), 1);
		io_turn(io, true);
		assert_int_equal(c.calls, i);
		assert_int_equal(c.last, POLLIN);
		assert_true(c.more);
	}
	io_cancel(io, &c.op);
	io_cancel(io, &c.op);
	io_turn(io, true);
	assert_int_equal(c.last, -ECANCELED);
	assert_false(c.more);
	assert_false(c.op.in_flight);
	io_cancel(io, &c.op);
	assert_int_equal(io_in_flight(io), 0);
	/* One shot ends by itself. */
	io_poll(io, &c.op, fds[0], POLLIN, false);
	io_turn(io, true);
	assert_false(c.more);
	io_poll(io, &c.op, -1, POLLIN, false);
	io_turn(io, true);
	assert_int_equal(c.last, -EBADF);
	close(fds[0]);
	close(fds[1]);
	io_free(io);
}

/* Far more than both queues hold, in one turn. */
static void overflows(void **state)
{
	enum { CNT = 2000 };
	struct io *io = ring_new(*state != NULL);
	struct counter *c = calloc(CNT, sizeof(*c));
	int fds[2];
	assert_int_equal(pipe2(fds, O_NONBLOCK | O_CLOEXEC), 0);
	assert_int_equal(write(fds[1], "x", 1), 1);
	for (int i = 0; i < CNT; i++) {
		io_op_init(&c[i].op, count_op);
		io_poll(io, &c[i].op, fds[0], POLLIN, false);
	}
	while (io_in_flight(io))
		assert_int_equal(io_turn(io, true), 0);
	for (int i = 0; i < CNT; i++) {
		assert_int_equal(c[i].calls, 1);
		assert_int_equal(c[i].last, POLLIN);
	}
	/* The same with all of them waiting, and one wake-up for all. */
	assert_int_equal(read(fds[0], (char[1]){0}, 1), 1);
	for (int i = 0; i < CNT; i++)
		io_poll(io, &c[i].op, fds[0], POLLIN, false);
	io_turn(io, false);
	assert_int_equal(io_in_flight(io), CNT);
	assert_int_equal(write(fds[1], "x", 1), 1);
	while (io_in_flight(io))
		assert_int_equal(io_turn(io, true), 0);
	for (int i = 0; i < CNT; i++)
		assert_int_equal(c[i].calls, 2);
	free(c);
	close(fds[0]);
	close(fds[1]);
	io_free(io);
}

struct clocked {
	struct timer timer;
	struct io *io;
	uint64_t at;
	int order;
	int *next;
};

static void on_time(struct timer *timer, uint64_t now)
{
	struct clocked *c = list_entry(timer, struct clocked, timer);
	c->at = now;
	c->order = (*c->next)++;
}

static void keeps_time(void **state)
{
	struct io *io = ring_new(false);
	int next = 1;
	struct clocked a = {.next = &next}, b = {.next = &next}, c = {.next = &next};
	timer_init(&a.timer, on_time);
	timer_init(&b.timer, on_time);
	timer_init(&c.timer, on_time);
	io_turn(io, false);
	uint64_t start = io_now_ms(io);
	io_timer_start(io, &a.timer, 60);
	io_timer_start(io, &b.timer, 20);
	io_timer_start(io, &c.timer, 30);
	io_timer_stop(io, &c.timer);
	io_timer_stop(io, &c.timer);
	while (next < 3)
		assert_int_equal(io_turn(io, true), 0);
	assert_int_equal(b.order, 1);
	assert_int_equal(a.order, 2);
	assert_int_equal(c.order, 0);
	assert_true(b.at >= start + 20 && a.at >= start + 60);
	assert_true(a.at < start + 1000);
	io_free(io);
}

/* What ends the waits is armed for a later time, moved to an earlier one, and left from a stopped timer. */
static void moves_its_alarm(void **state)
{
	struct io *io = ring_new(*state != NULL);
	int next = 1;
	int fds[2];
	struct clocked far = {.next = &next}, near = {.next = &next};
	struct counter c = {0};
	assert_int_equal(pipe2(fds, O_NONBLOCK | O_CLOEXEC), 0);
	io_op_init(&c.op, count_op);
	io_poll(io, &c.op, fds[0], POLLIN, true);
	timer_init(&far.timer, on_time);
	timer_init(&near.timer, on_time);
	io_turn(io, false);
	io_timer_start(io, &far.timer, 3600 * 1000);
	for (int round = 1; round <= 3; round++) {
		/* A wait that something else ends, then one that only the near timer can end. */
		assert_int_equal(write(fds[1], "x", 1), 1);
		assert_int_equal(io_turn(io, true), 0);
		io_timer_start(io, &near.timer, 30);
		uint64_t due = io_now_ms(io) + 30;
		while (next == round)
			assert_int_equal(io_turn(io, true), 0);
		assert_true(near.at >= due && near.at < due + 5000);
	}
	io_timer_start(io, &near.timer, 40);
	assert_int_equal(write(fds[1], "x", 1), 1);
	io_turn(io, true);
	io_timer_stop(io, &near.timer);
	io_timer_stop(io, &far.timer);
	io_timer_stop(io, &io->trim);
	/* The alarm of the stopped one is still there; after it only the pipe ends a wait. */
	assert_int_equal(io_turn(io, true), 0);
	assert_int_equal(io->alarm_ms, WHEEL_NONE);
	assert_int_equal(next, 4);
	io_free(io);
	close(fds[0]);
	close(fds[1]);
}

/* Asleep with a timer far away and a poll: no tick, so hardly any switch of context. */
static void sleeps_when_idle(void **state)
{
	struct io *io = ring_new(false);
	int next = 1;
	int fds[2];
	struct clocked far = {.next = &next}, end = {.next = &next};
	struct counter c = {0};
	assert_int_equal(pipe2(fds, O_NONBLOCK | O_CLOEXEC), 0);
	io_op_init(&c.op, count_op);
	io_poll(io, &c.op, fds[0], POLLIN, true);
	timer_init(&far.timer, on_time);
	timer_init(&end.timer, on_time);
	io_turn(io, false);
	io_timer_start(io, &far.timer, 3600 * 1000);
	io_timer_start(io, &end.timer, 400);
	struct rusage before, after;
	int turns = 0;
	getrusage(RUSAGE_SELF, &before);
	while (!end.order) {
		io_turn(io, true);
		turns++;
	}
	getrusage(RUSAGE_SELF, &after);
	/* The wheel may wake once per level on the way. */
	assert_true(turns <= 5);
	assert_true(after.ru_nvcsw - before.ru_nvcsw <= 10);
	close(fds[0]);
	close(fds[1]);
	io_free(io);
}

struct step {
	struct io_task task;
	struct io *io;
	char name;
	char **log;
	struct step *also;
	enum io_phase also_phase;
};

static void run_step(struct io_task *task)
{
	struct step *s = list_entry(task, struct step, task);
	*(*s->log)++ = s->name;
	if (s->also)
		io_defer(s->io, &s->also->task, s->also_phase);
	s->also = NULL;
}

static void defers_by_phase(void **state)
{
	struct io *io = ring_new(false);
	char text[16] = "";
	char *log = text;
	struct step s[5];
	for (int i = 0; i < 5; i++) {
		s[i] = (struct step){.io = io, .name = (char)('a' + i), .log = &log};
		io_task_init(&s[i].task, run_step);
	}
	/* Work that a later phase makes comes before that phase goes on. */
	s[0].also = &s[3];
	s[0].also_phase = IO_PHASE_WORK;
	io_defer(io, &s[1].task, IO_PHASE_SOCK);
	io_defer(io, &s[0].task, IO_PHASE_LINK);
	io_defer(io, &s[2].task, IO_PHASE_LINK);
	io_defer(io, &s[2].task, IO_PHASE_LINK);
	io_defer(io, &s[4].task, IO_PHASE_WORK);
	io_undefer(&s[4].task);
	io_undefer(&s[4].task);
	io_turn(io, false);
	assert_string_equal(text, "adcb");
	io_turn(io, false);
	assert_string_equal(text, "adcb");
	io_free(io);
}

static void stop_now(struct io_task *task)
{
	struct step *s = list_entry(task, struct step, task);
	io_stop(s->io);
}

static void stops(void **state)
{
	struct io *io = ring_new(false);
	int fds[2];
	assert_int_equal(pipe2(fds, O_NONBLOCK | O_CLOEXEC), 0);
	int next = 1;
	struct clocked tick = {.next = &next};
	struct step s = {.io = io};
	timer_init(&tick.timer, on_time);
	io_task_init(&s.task, stop_now);
	io_timer_start(io, &tick.timer, 1);
	io_defer(io, &s.task, IO_PHASE_WORK);
	/* A descriptor closed in the last turn is closed when the loop has ended. */
	io_close(io, fds[0]);
	assert_int_equal(io_run(io), 0);
	assert_int_equal(write(fds[1], "x", 1), -1);
	assert_int_equal(errno, EPIPE);
	close(fds[1]);
	io_free(io);
}

/* A quiet send and what became of it. */
struct speaker {
	struct io_op op;
	int res;
	int cnt;
};

static void on_spoken(struct io_op *op, const struct io_result *result)
{
	struct speaker *s = list_entry(op, struct speaker, op);
	s->res = result->res;
	s->cnt++;
}

static void on_alarm(struct timer *timer, uint64_t now)
{
	(void)timer;
	(void)now;
}

/* Sends `len` bytes in pieces of up to 64 KB quietly over `fd`. */
static void speak(struct io *io, struct speaker *s, int fd, struct chain *words, size_t len)
{
	static const char bytes[65536];
	for (size_t done = 0; done < len; done += sizeof(bytes)) {
		size_t part = len - done < sizeof(bytes) ? len - done : sizeof(bytes);
		assert_int_equal(chain_write(words, io_pool(io), bytes, part), 0);
	}
	io_op_init(&s->op, on_spoken);
	assert_int_equal(io_send_quiet(io, &s->op, fd, words), len);
}

static volatile sig_atomic_t rings;

static void on_ring(int number)
{
	(void)number;
	rings++;
}

/* Success is told with the next turn that something else ends; one that somebody waits for ends the turn. */
static void sends_quietly(void **state)
{
	struct io *io = ring_new(*state != NULL);
	struct speaker s = {0};
	struct chain words = {0};
	struct timer alarm;
	int pair[2];
	/* Again and again: the first one may come before the wait. */
	const struct itimerval soon = {.it_interval.tv_usec = 50000, .it_value.tv_usec = 50000};
	const struct itimerval never = {0};
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	timer_init(&alarm, on_alarm);
	speak(io, &s, pair[0], &words, 5);
	io_timer_stop(io, &io->trim);
	rings = 0;
	signal(SIGALRM, on_ring);
	setitimer(ITIMER_REAL, &soon, NULL);
	assert_int_equal(io_turn(io, true), 0);
	setitimer(ITIMER_REAL, &never, NULL);
	/* The signal ended the wait, not the send. */
	assert_true(rings > 0);
	assert_int_equal(s.cnt, 1);
	assert_int_equal(s.res, 5);
	assert_int_equal(io_in_flight(io), 0);

	chain_clear(&words);
	speak(io, &s, pair[0], &words, 5);
	io_timer_start(io, &alarm, 60000);
	io_expect(io, &s.op);
	assert_int_equal(io_turn(io, true), 0);
	assert_true(timer_is_set(&alarm));
	assert_int_equal(s.cnt, 2);
	chain_clear(&words);
	close(pair[0]);
	close(pair[1]);
	io_free(io);
}

/* Everything but full success is told at once, a part with its length. */
static void tells_of_quiet_failures(void **state)
{
	struct io *io = ring_new(*state != NULL);
	struct speaker s = {0};
	struct chain words = {0};
	struct timer alarm;
	int pair[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	timer_init(&alarm, on_alarm);
	io_timer_start(io, &alarm, 60000);
	speak(io, &s, pair[0], &words, 2u << 20);
	assert_int_equal(io_turn(io, true), 0);
	assert_int_equal(s.cnt, 1);
	assert_in_range(s.res, 1, (2u << 20) - 1);
	/* No byte more and none less has left. */
	chain_consume(&words, (size_t)s.res);
	size_t got = 0;
	char bytes[65536];
	ssize_t n;
	while ((n = recv(pair[1], bytes, sizeof(bytes), MSG_DONTWAIT)) > 0)
		got += (size_t)n;
	assert_int_equal(got, s.res);
	close(pair[1]);
	assert_int_equal(io_send_quiet(io, &s.op, pair[0], &words), words.len);
	assert_int_equal(io_turn(io, true), 0);
	assert_int_equal(s.cnt, 2);
	assert_int_equal(s.res, -EPIPE);
	assert_true(timer_is_set(&alarm));
	chain_clear(&words);
	close(pair[0]);
	io_free(io);
}

int main(void)
{
	char state61[] = "6.1";
	signal(SIGPIPE, SIG_IGN);
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(starts_both_ways),
	        cmocka_unit_test(restricts),
	        cmocka_unit_test(names_the_obstacle),
	        cmocka_unit_test(fails_with_words),
	        cmocka_unit_test(fits_locked_memory),
	        cmocka_unit_test(polls),
	        {.name = "overflows", .test_func = overflows},
	        {.name = "overflows as on Linux 6.1", .test_func = overflows, .initial_state = (void *)1},
	        cmocka_unit_test(sends_quietly),
	        cmocka_unit_test_prestate(sends_quietly, state61),
	        cmocka_unit_test(tells_of_quiet_failures),
	        cmocka_unit_test_prestate(tells_of_quiet_failures, state61),
	        cmocka_unit_test(keeps_time),
	        cmocka_unit_test(moves_its_alarm),
	        cmocka_unit_test_prestate(moves_its_alarm, state61),
	        cmocka_unit_test(sleeps_when_idle),
	        cmocka_unit_test(defers_by_phase),
	        cmocka_unit_test(stops),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

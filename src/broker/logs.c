/* SPDX-License-Identifier: GPL-2.0-or-later */
/* stdout and the silos' pipes; see logs.h. A silo's bytes are a stranger's: only printable whole lines pass.
 */
#include "broker/logs.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/list.h"
#include "base/mem.h"
#include "culvert/limits.h"

/* Bytes taken from one pipe in one turn: a flood of one silo must not starve the others. */
#define PIPE_TURN_MAX (64u * 1024)
/* Bytes written to stdout in one turn, likewise. */
#define FLUSH_TURN_MAX (256u * 1024)
/* Bytes of one read. */
#define READ_LEN (16u * 1024)
/* Lines gather for so long after the first one, ms: a wake-up for each would cost more than the line itself.
 * A pipe holds what the busiest silo writes meanwhile several times over. */
#define GATHER_MS 5

/* At the end a slow reader gets one second (reference control.md 13): tries, and the wait of each, ms. */
#define EXIT_TRIES 10
#define EXIT_WAIT_MS 100

static const char TARGET[] = "culvert::log";

struct log_pipe {
	struct logs *logs; /* NULL: the owner has let go */
	int fd;
	struct io_op in;   /* poll for the first line; not while lines gather */
	struct timer read; /* lines have gathered, or one turn left some */
	struct buf part;   /* a line whose end has not come yet */
	bool is_over;      /* nothing more comes */
};

/* --- stdout -------------------------------------------------------------- */

/*
 * An open description of our own, so that not to wait is not imposed on the
 * other processes that have stdout: of a pipe only, a file would be written
 * from its start. Fails where the pipe belongs to somebody else.
 */
static int open_again(void)
{
	struct stat st;
	if (fstat(STDOUT_FILENO, &st) < 0 || !S_ISFIFO(st.st_mode))
		return -1;
	return open("/proc/self/fd/1", O_WRONLY | O_NONBLOCK | O_CLOEXEC);
}

/* Whether stdout takes a line of up to PIPE_BUF bytes without waiting (pipe(7)). */
static bool has_room(const struct logs *logs)
{
	if (logs->out_fd >= 0)
		return true; /* the write says so */
	struct pollfd p = {.fd = STDOUT_FILENO, .events = POLLOUT};
	return poll(&p, 1, 0) == 1 && (p.revents & (POLLOUT | POLLERR | POLLHUP));
}

/* Writes up to a line's ceiling. The bytes taken, or a negative errno. */
static ssize_t put(struct logs *logs, const void *bytes, size_t len)
{
	if (!has_room(logs))
		return -EAGAIN;
	ssize_t n = write(logs->out_fd >= 0 ? logs->out_fd : STDOUT_FILENO, bytes, len);
	return n < 0 ? -errno : n;
}

/* Bytes of the queue for one write: whole lines, so that those of other processes do not get between. */
static size_t piece_len(const struct logs *logs)
{
	if (logs->queue.len <= LIMIT_LOG_LINE)
		return logs->queue.len;
	const uint8_t *end = memrchr(logs->queue.data, '\n', LIMIT_LOG_LINE);
	return end ? (size_t)(end - logs->queue.data) + 1 : LIMIT_LOG_LINE;
}

static void watch_room(struct logs *logs)
{
	if (!logs->room.in_flight)
		io_poll(logs->io, &logs->room, STDOUT_FILENO, POLLOUT, false);
}

static void flush(struct logs *logs)
{
	size_t done = 0;
	while (logs->queue.len > 0 && done < FLUSH_TURN_MAX) {
		ssize_t n = put(logs, logs->queue.data, piece_len(logs));
		if (n <= 0) {
			/* Nobody reads any more: what waits will never be wanted. */
			if (n != -EAGAIN && n != -EINTR)
				buf_clear(&logs->queue);
			return;
		}
		buf_consume(&logs->queue, (size_t)n);
		done += (size_t)n;
	}
}

static void on_room(struct io_op *op, const struct io_result *result)
{
	struct logs *logs = list_entry(op, struct logs, room);
	(void)result;
	flush(logs);
	if (logs->queue.len > 0)
		watch_room(logs);
}

void logs_init(struct logs *logs, struct io *io, struct log *log)
{
	*logs = (struct logs){.io = io, .log = log, .out_fd = open_again()};
	buf_init(&logs->queue, LOGS_QUEUE_MAX);
	io_op_init(&logs->room, on_room);
}

void logs_done(struct logs *logs)
{
	struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};
	flush(logs);
	for (int i = 0; i < EXIT_TRIES && logs->queue.len > 0; i++) {
		poll(&out, 1, EXIT_WAIT_MS);
		flush(logs);
	}
	buf_done(&logs->queue);
	fd_close(&logs->out_fd);
}

static void add_report(void *ctx, const char *line, size_t len)
{
	struct logs *logs = ctx;
	if (buf_add(&logs->queue, line, len) == 0)
		logs->dropped = 0;
	logs->queue.err = 0;
}

/* Says how much is missing, where it is missing. */
static void report_dropped(struct logs *logs)
{
	struct log form = *logs->log;
	struct log_line line;
	form.write = add_report;
	form.ctx = logs;
	if (!log_begin(&line, &form, LOG_WARN, TARGET,
	            "log lines were dropped: stdout is too slow, or they were too long")) {
		logs->dropped = 0;
		return;
	}
	log_u64(&line, "lines", logs->dropped);
	log_end(&line);
}

/* A line, or the rest of one, waits for stdout. */
static void queue_line(struct logs *logs, const char *line, size_t len)
{
	if (logs->dropped > 0)
		report_dropped(logs);
	if (buf_add(&logs->queue, line, len) < 0) {
		logs->queue.err = 0;
		logs->dropped++;
	}
}

void logs_write(void *ctx, const char *line, size_t len)
{
	struct logs *logs = ctx;
	if (logs->queue.len == 0) {
		ssize_t n = put(logs, line, len);
		if (n == (ssize_t)len || (n < 0 && n != -EAGAIN))
			return;
		line += n > 0 ? n : 0;
		len -= n > 0 ? (size_t)n : 0;
	}
	queue_line(logs, line, len);
	watch_room(logs);
}

/* --- silos' pipes -------------------------------------------------------- */

static void forward_line(struct log_pipe *pipe, char *line, size_t len)
{
	/* Terminal escapes and forged line ends do not come through. */
	for (size_t i = 0; i + 1 < len; i++)
		if ((unsigned char)line[i] < 0x20 && line[i] != '\t')
			line[i] = '?';
	queue_line(pipe->logs, line, len);
}

/* Splits what has come into lines; the rest waits for its end, up to a line's ceiling. */
static void take(struct log_pipe *pipe, const char *bytes, size_t len)
{
	buf_add(&pipe->part, bytes, len);
	char *at = (char *)pipe->part.data;
	size_t left = pipe->part.len;
	char *end;
	while (left > 0 && (end = memchr(at, '\n', left))) {
		size_t line_len = (size_t)(end - at) + 1;
		if (line_len <= LIMIT_LOG_LINE)
			forward_line(pipe, at, line_len);
		else
			pipe->logs->dropped++;
		at += line_len;
		left -= line_len;
	}
	if (left > LIMIT_LOG_LINE || pipe->part.err) {
		pipe->logs->dropped++;
		left = 0;
	}
	buf_consume(&pipe->part, pipe->part.len - left);
	pipe->part.err = 0;
	if (left == 0)
		buf_done(&pipe->part);
}

/* Takes what is there, up to a turn's ceiling; true if nothing is left. */
static bool read_pipe(struct log_pipe *pipe)
{
	char bytes[READ_LEN];
	size_t got = 0;
	ssize_t n = 1;
	while (n > 0 && got < PIPE_TURN_MAX) {
		n = read(pipe->fd, bytes, sizeof(bytes));
		if (n <= 0)
			break;
		take(pipe, bytes, (size_t)n);
		got += (size_t)n;
	}
	/* Many lines at a time, unless others wait already. */
	if (!pipe->logs->room.in_flight)
		flush(pipe->logs);
	if (pipe->logs->queue.len > 0)
		watch_room(pipe->logs);
	return n <= 0;
}

static void on_gathered(struct timer *timer, uint64_t now)
{
	(void)now;
	struct log_pipe *pipe = list_entry(timer, struct log_pipe, read);
	if (!read_pipe(pipe))
		io_timer_start(pipe->logs->io, &pipe->read, 0);
	else if (!pipe->is_over)
		io_poll(pipe->logs->io, &pipe->in, pipe->fd, POLLIN, false);
}

static void on_in(struct io_op *op, const struct io_result *result)
{
	struct log_pipe *pipe = list_entry(op, struct log_pipe, in);
	if (!pipe->logs) {
		mem_free(pipe);
		return;
	}
	pipe->is_over = result->res < 0 || (result->res & POLLHUP);
	io_timer_start(pipe->logs->io, &pipe->read, GATHER_MS);
}

int log_pipe_new(struct logs *logs, int fd, struct log_pipe **ret_pipe)
{
	struct log_pipe *pipe = mem_zalloc(1, sizeof(*pipe));
	if (!pipe || fd_set_nonblock(fd, true) < 0) {
		mem_free(pipe);
		fd_close(&fd);
		return -ENOMEM;
	}
	pipe->logs = logs;
	pipe->fd = fd;
	timer_init(&pipe->read, on_gathered);
	buf_init(&pipe->part, PIPE_TURN_MAX + LIMIT_LOG_LINE);
	io_op_init(&pipe->in, on_in);
	io_poll(logs->io, &pipe->in, fd, POLLIN, false);
	*ret_pipe = pipe;
	return 0;
}

void log_pipe_free(struct log_pipe *pipe)
{
	if (!pipe)
		return;
	(void)read_pipe(pipe);
	io_timer_stop(pipe->logs->io, &pipe->read);
	struct io *io = pipe->logs->io;
	buf_done(&pipe->part);
	fd_close(&pipe->fd);
	pipe->logs = NULL;
	if (pipe->in.in_flight)
		io_cancel(io, &pipe->in);
	else
		mem_free(pipe);
}

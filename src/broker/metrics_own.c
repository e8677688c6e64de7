/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The broker's own rows; see metrics_own.h. */
#include "broker/metrics_own.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "broker/broker.h"

/* Room for a line of /proc: a process' name is at most 16 bytes, numbers 20. */
#define PROC_TEXT_MAX 1024

static void set(struct metric_row *row, unsigned col, uint64_t value)
{
	if (!row)
		return;
	metric_row_add(row, col, 0);
	row->values[col] = value;
}

static struct metric_row *row_of(
        struct metric_table *table, enum metric_set which, const char *first, const char *second)
{
	struct metric_labels labels;
	metric_labels_init(&labels);
	if (first)
		metric_labels_add(&labels, first);
	if (second)
		metric_labels_add(&labels, second);
	return metric_table_row(table, which, labels.bytes, labels.len);
}

/* --- /proc --------------------------------------------------------------- */

/* Whole text of /proc/<pid>/<name>; pid 0 = our own. false when it cannot be read. */
static bool read_proc(int32_t pid, const char *name, char dst[PROC_TEXT_MAX])
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%" PRId32 "/%s", pid, name);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	ssize_t len = read(fd, dst, PROC_TEXT_MAX - 1);
	close(fd);
	if (len <= 0)
		return false;
	dst[len] = '\0';
	return true;
}

/* User and system time, microseconds (proc(5), stat fields 14 and 15, clock ticks). */
static bool cpu_of(int32_t pid, uint64_t *ret_us)
{
	char text[PROC_TEXT_MAX];
	uint64_t user, system;
	long hz = sysconf(_SC_CLK_TCK);
	if (!read_proc(pid, "stat", text) || hz <= 0)
		return false;
	/* The name in brackets may hold anything. */
	const char *p = strrchr(text, ')');
	if (!p || sscanf(p + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %" SCNu64 " %" SCNu64, &user,
	                  &system) != 2)
		return false;
	*ret_us = (user + system) * (1000000u / (uint64_t)hz);
	return true;
}

/* Resident memory, bytes (proc(5), statm field 2, pages). */
static bool rss_of(int32_t pid, uint64_t *ret_bytes)
{
	char text[PROC_TEXT_MAX];
	uint64_t pages;
	if (!read_proc(pid, "statm", text) || sscanf(text, "%*u %" SCNu64, &pages) != 1)
		return false;
	*ret_bytes = pages * (uint64_t)sysconf(_SC_PAGESIZE);
	return true;
}

/* Open descriptors: since Linux 6.2 the size of the folder, which anybody may ask for. */
static bool fds_of(const char *path, uint64_t *ret_cnt)
{
	struct stat st;
	if (stat(path, &st) < 0 || st.st_size <= 0)
		return false;
	*ret_cnt = (uint64_t)st.st_size;
	return true;
}

/* Our own: counted where the size does not tell. */
static bool own_fds(uint64_t *ret_cnt)
{
	uint64_t cnt = 0;
	if (fds_of("/proc/self/fd", ret_cnt))
		return true;
	DIR *dir = opendir("/proc/self/fd");
	if (!dir)
		return false;
	for (const struct dirent *e = readdir(dir); e; e = readdir(dir))
		cnt += e->d_name[0] != '.';
	closedir(dir);
	/* The one that the folder was read by. */
	*ret_cnt = cnt - 1;
	return true;
}

/* --- rows ---------------------------------------------------------------- */

static void fill_pod(const struct pod *pod, struct metric_table *table)
{
	struct metric_row *row = row_of(table, METRIC_SET_POD, pod->ns, pod->name);
	char path[64];
	uint64_t value;
	set(row, METRIC_COL_SILO_RESTARTS, pod->restarts);
	if (pod->pid <= 0)
		return;
	if (cpu_of(pod->pid, &value))
		set(row, METRIC_COL_SILO_CPU, value);
	if (rss_of(pod->pid, &value))
		set(row, METRIC_COL_SILO_RSS, value);
	snprintf(path, sizeof(path), "/proc/%" PRId32 "/fd", pod->pid);
	if (fds_of(path, &value))
		set(row, METRIC_COL_SILO_FDS, value);
}

/* Upstream shows the workload manager in shared mode only. */
static void fill_proxies(const struct broker *broker, const struct metrics_own *own, struct metric_row *node)
{
	uint64_t up_cnt = 0, pending_cnt = 0;
	list_for_each(it, &broker->pods)
	{
		const struct pod *pod = list_entry(it, struct pod, node);
		up_cnt += !pod->is_self && pod->is_up;
		pending_cnt += !pod->is_self && !pod->is_up;
	}
	set(node, METRIC_COL_ACTIVE, up_cnt);
	set(node, METRIC_COL_PENDING, pending_cnt);
	set(node, METRIC_COL_STARTED, own->started_cnt);
	set(node, METRIC_COL_STOPPED, own->stopped_cnt);
}

void metrics_own_fill(struct broker *broker, const struct metrics_own *own, uint64_t missing_cnt,
        struct metric_table *table)
{
	struct metric_row *node = row_of(table, METRIC_SET_NODE, NULL, NULL);
	uint64_t fd_cnt;
	if (own_fds(&fd_cnt))
		set(node, METRIC_COL_OPEN_FDS, fd_cnt);
	set(node, METRIC_COL_MAX_FDS, own->fd_max);
	set(node, METRIC_COL_PENDING_PODS, broker->ready.node_pending);
	set(node, METRIC_COL_SCRAPE_MISSING, missing_cnt);
	set(node, METRIC_COL_SCRAPE_DROPPED, own->dropped_cnt);
	if (!broker->settings.dedicated)
		fill_proxies(broker, own, node);
	set(row_of(table, METRIC_SET_BUILD, "ztunnel", broker->settings.istio_version), METRIC_COL_BUILD, 1);
	list_for_each(it, &broker->pods) fill_pod(list_entry(it, struct pod, node), table);
}

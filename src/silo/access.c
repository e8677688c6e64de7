/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Access-log lines; see access.h. */
#include "silo/access.h"

#include <stdio.h>
#include <string.h>

#include "base/log_filter.h"

/* Target of all lines here; people filter by it. */
static const char TARGET[] = "access";

/* An empty string is an unknown value, and unknown fields are left out. */
static void put_known(struct log_line *line, const char *key, const char *value)
{
	if (value && value[0])
		log_str(line, key, value);
}

static void put_addr(struct log_line *line, const char *key, const struct addr *addr)
{
	char text[ADDR_STR_MAX];
	log_bare(line, key, addr_format(addr, text));
}

static const char *display_name(const struct workload *workload)
{
	return workload->name[0] ? workload->name : workload->canonical_name;
}

static void put_source(struct log_line *line, const struct access *access)
{
	const struct workload *workload = access->src_workload;
	put_addr(line, "src.addr", &access->src);
	if (workload) {
		put_known(line, "src.workload", display_name(workload));
		put_known(line, "src.namespace", workload->ns);
	}
	put_known(line, "src.identity", access->src_identity);
	if (workload)
		put_known(line, "src.cluster", workload->cluster_id);
}

static void put_destination(struct log_line *line, const struct access *access)
{
	const struct workload *workload = access->dst_workload;
	put_addr(line, "dst.addr", &access->dst);
	if (access->hbone_addr && access->hbone_addr[0])
		log_bare(line, "dst.hbone_addr", access->hbone_addr);
	put_known(line, "dst.service", access->dst_service);
	if (workload) {
		put_known(line, "dst.workload", display_name(workload));
		put_known(line, "dst.namespace", workload->ns);
	}
	put_known(line, "dst.identity", access->dst_identity);
	if (workload)
		put_known(line, "dst.cluster", workload->cluster_id);
}

static void put_direction(struct log_line *line, bool is_inbound)
{
	log_str(line, "direction", is_inbound ? "inbound" : "outbound");
}

int access_limit(struct log *log, const char *mode, struct err *err)
{
	if (strcmp(mode, "off") == 0)
		return log_filter_add(&log->filter, "access=off", false, err);
	/* What the filter holds back anyway stays back. */
	if (strcmp(mode, "errors") == 0 && log_filter_passes(&log->filter, LOG_INFO, TARGET))
		return log_filter_add(&log->filter, "access=warn", false, err);
	return 0;
}

void access_opened(struct log *log, const struct access *access)
{
	struct log_line line;
	if (!log_begin(&line, log, LOG_DEBUG, TARGET, "connection opened"))
		return;
	put_source(&line, access);
	put_destination(&line, access);
	put_direction(&line, access->is_inbound);
	log_end(&line);
}

void access_complete(struct log *log, const struct access *access, uint64_t bytes_sent, uint64_t bytes_recv,
        uint64_t duration_ms, const char *error)
{
	struct log_line line;
	char duration[32];
	if (!log_begin(&line, log, error ? LOG_ERROR : LOG_INFO, TARGET, "connection complete"))
		return;
	put_source(&line, access);
	put_destination(&line, access);
	put_direction(&line, access->is_inbound);
	log_u64(&line, "bytes_sent", bytes_sent);
	log_u64(&line, "bytes_recv", bytes_recv);
	snprintf(duration, sizeof(duration), "%llums", (unsigned long long)duration_ms);
	log_str(&line, "duration", duration);
	if (error)
		log_str(&line, "error", error);
	log_end(&line);
}

void access_denied(
        struct log *log, const struct addr *src, const struct addr *dst, bool is_inbound, const char *error)
{
	struct log_line line;
	if (!log_begin(&line, log, LOG_WARN, TARGET, "connection failed"))
		return;
	put_addr(&line, "src.addr", src);
	put_addr(&line, "dst.addr", dst);
	put_direction(&line, is_inbound);
	log_str(&line, "error", error);
	log_end(&line);
}

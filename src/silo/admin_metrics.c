/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A copy of the counters, written as the client reads; see admin_metrics.h. */
#include "silo/admin_metrics.h"

#include <errno.h>

#include "base/err.h"
#include "base/mem.h"
#include "conn/web.h"
#include "silo/metrics.h"
#include "silo/silo.h"

struct reading {
	struct web_source source;
	struct metric_table table;
	struct metric_row **rows; /* of the table, sorted */
	struct metric_printer printer;
};

static int next_piece(struct web_source *source, struct buf *out)
{
	struct reading *reading = list_entry(source, struct reading, source);
	bool has_more = true;
	while (has_more && out->len < WEB_PIECE_LEN)
		has_more = metric_printer_next(&reading->printer, out);
	return has_more;
}

static void reading_free(struct reading *reading)
{
	metric_table_done(&reading->table);
	mem_free(reading->rows);
	mem_free(reading);
}

static void on_done(struct web_source *source)
{
	reading_free(list_entry(source, struct reading, source));
}

static int reading_new(struct silo *silo, struct reading **ret_reading)
{
	struct reading *reading = mem_zalloc(1, sizeof(*reading));
	size_t cnt;
	if (!reading)
		return -ENOMEM;
	/* Pod labels come on top of what the silo keeps. */
	metric_table_init(&reading->table, METRICS_ROWS_MAX, 2 * METRICS_BYTES_MAX);
	int r = metrics_snapshot(silo, &reading->table);
	if (r == 0)
		r = metric_table_sorted(&reading->table, &reading->rows, &cnt);
	if (r < 0) {
		reading_free(reading);
		return r;
	}
	metric_printer_init(&reading->printer, reading->rows, cnt);
	reading->source = (struct web_source){.next = next_piece, .done = on_done};
	*ret_reading = reading;
	return 0;
}

void admin_metrics_serve(struct silo *silo, struct web_conn *conn)
{
	const struct http_header type = {
	        .name = "content-type", .value = "application/openmetrics-text;charset=utf-8;version=1.0.0"};
	struct reading *reading;
	int r = reading_new(silo, &reading);
	if (r < 0)
		web_reply_text(conn, 500, "text/plain", err_str(r));
	else
		web_stream(conn, 200, &type, 1, &reading->source);
}

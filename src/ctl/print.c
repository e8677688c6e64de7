/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tables and JSON; see print.h. */
#include "ctl/print.h"

#include <errno.h>
#include <string.h>

#include "ctl/table.h"

/* Bytes of one cell; longer ones are cut. */
#define CELL_MAX 256

/* Columns are this far apart. */
#define GAP 2

static const char *cell(const cJSON *row, const struct column *column, char *dst)
{
	const cJSON *value = cJSON_GetObjectItemCaseSensitive(row, column->key);
	dst[0] = '\0';
	if (cJSON_IsString(value))
		snprintf(dst, CELL_MAX, "%s", value->valuestring);
	else if (cJSON_IsNumber(value) && (value->valuedouble != 0 || !column->hides_zero))
		snprintf(dst, CELL_MAX, "%.0f", value->valuedouble);
	else if (cJSON_IsBool(value))
		snprintf(dst, CELL_MAX, "%s", cJSON_IsTrue(value) ? "true" : "false");
	table_make_printable(dst);
	return dst[0] ? dst : "-";
}

static int check_rows(const cJSON *rows, struct err *err)
{
	const cJSON *row;
	if (!cJSON_IsArray(rows))
		return err_set(err, -EPROTO, "culvertd's answer is no list");
	cJSON_ArrayForEach(row, rows) if (!cJSON_IsObject(row)) return err_set(
	        err, -EPROTO, "culvertd's answer is no list of objects");
	return 0;
}

static int finish(FILE *out, struct err *err)
{
	return fflush(out) != 0 || ferror(out) ? err_sys(err, -(errno ? errno : EIO), "writing the output")
	                                       : 0;
}

/* The last column is not filled up: no blanks at line ends. */
static void put(FILE *out, const char *text, size_t width, bool is_last)
{
	fprintf(out, "%-*s%s", is_last ? 0 : (int)width + GAP, text, is_last ? "\n" : "");
}

int print_table(
        FILE *out, const cJSON *rows, const struct column *columns, size_t column_cnt, struct err *err)
{
	size_t widths[PRINT_COLUMNS_MAX] = {0};
	char text[CELL_MAX];
	const cJSON *row;
	int r = check_rows(rows, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < column_cnt; i++) {
		widths[i] = strlen(columns[i].heading);
		cJSON_ArrayForEach(row, rows)
		{
			size_t len = strlen(cell(row, &columns[i], text));
			widths[i] = len > widths[i] ? len : widths[i];
		}
	}
	for (size_t i = 0; i < column_cnt; i++)
		put(out, columns[i].heading, widths[i], i + 1 == column_cnt);
	cJSON_ArrayForEach(row, rows) for (size_t i = 0; i < column_cnt; i++)
	        put(out, cell(row, &columns[i], text), widths[i], i + 1 == column_cnt);
	return finish(out, err);
}

int print_json(FILE *out, const struct buf *body, struct err *err)
{
	fwrite(body->data, 1, body->len, out);
	if (body->len == 0 || body->data[body->len - 1] != '\n')
		fputc('\n', out);
	return finish(out, err);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Cells and their widths; see table.h. */
#include "ctl/table.h"

#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"

void table_make_printable(char *text)
{
	size_t left = strlen(text);
	for (char *at = text; left > 0;) {
		unsigned char first = (unsigned char)at[0];
		size_t len = utf8_char_len(at, left);
		if (len == 0 || first < 0x20 || first == 0x7f ||
		        (first == 0xc2 && (unsigned char)at[1] < 0xa0))
			memset(at, '?', len > 0 ? len : 1);
		at += len > 0 ? len : 1;
		left -= len > 0 ? len : 1;
	}
}

/* Characters of well-formed text. */
static size_t width_of(const char *text)
{
	size_t cnt = 0;
	for (; *text; text++)
		cnt += ((unsigned char)*text & 0xc0) != 0x80;
	return cnt;
}

static int grow(struct table *table)
{
	size_t cap = table->cell_cap ? table->cell_cap * 2 : 16 * table->column_cnt;
	if (cap / table->column_cnt > 2 * (size_t)TABLE_ROWS_MAX)
		return -E2BIG;
	char **cells = mem_realloc(table->cells, cap * sizeof(*cells));
	if (!cells)
		return -ENOMEM;
	table->cells = cells;
	table->cell_cap = cap;
	return 0;
}

void table_row(struct table *table, const char *const *cells)
{
	if (table->code == 0 && table->cell_cnt + table->column_cnt > table->cell_cap)
		table->code = grow(table);
	for (size_t i = 0; i < table->column_cnt && table->code == 0; i++) {
		char *text = mem_strdup(cells[i] ? cells[i] : "");
		if (!text) {
			table->code = -ENOMEM;
			return;
		}
		table_make_printable(text);
		size_t width = width_of(text);
		if (width > table->widths[i])
			table->widths[i] = width;
		table->cells[table->cell_cnt++] = text;
	}
}

void table_init(struct table *table, size_t column_cnt, const char *const *headings, size_t gap)
{
	*table = (struct table){.column_cnt = column_cnt, .gap = gap};
	table_row(table, headings);
}

int table_print(const struct table *table, FILE *out, struct err *err)
{
	if (table->code < 0)
		return err_sys(err, table->code, "the table");
	for (size_t i = 0; i < table->cell_cnt; i++) {
		size_t column = i % table->column_cnt;
		const char *text = table->cells[i];
		fputs(text, out);
		if (column + 1 == table->column_cnt)
			fputc('\n', out);
		else
			fprintf(out, "%*s", (int)(table->widths[column] - width_of(text) + table->gap), "");
	}
	return fflush(out) != 0 || ferror(out) ? err_sys(err, -(errno ? errno : EIO), "writing the output")
	                                       : 0;
}

void table_done(struct table *table)
{
	for (size_t i = 0; i < table->cell_cnt; i++)
		mem_free(table->cells[i]);
	mem_free(table->cells);
	*table = (struct table){0};
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writers of JSON and YAML; see emit.h. Depth is bounded by cJSON's nesting limit. */
#include "ctl/emit.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"

/* Largest integer that a double holds without gaps. */
#define WHOLE_MAX 9007199254740992.0

static void put_number(FILE *out, double value)
{
	if (value == floor(value) && fabs(value) <= WHOLE_MAX)
		fprintf(out, "%.0f", value);
	else
		fprintf(out, "%.17g", value);
}

static void put_escaped(FILE *out, unsigned char c)
{
	static const char from[] = "\"\\\b\f\n\r\t";
	static const char to[] = "\"\\bfnrt";
	const char *at = strchr(from, c);
	if (at && c)
		fprintf(out, "\\%c", to[at - from]);
	else
		fprintf(out, "\\u%04x", c);
}

/* A string of JSON, which is also one of YAML; DEL and the C1 controls are escaped for the terminal's sake.
 */
static void put_string(FILE *out, const char *text)
{
	fputc('"', out);
	for (size_t left = strlen(text); left > 0;) {
		unsigned char c = (unsigned char)*text;
		size_t len = utf8_char_len(text, left);
		if (len == 0)
			fputs("\\ufffd", out);
		else if (len == 2 && c == 0xc2 && (unsigned char)text[1] < 0xa0)
			fprintf(out, "\\u%04x", (unsigned char)text[1]);
		else if (c < 0x20 || c == 0x7f || (len == 1 && strchr("\"\\<>&", c)))
			put_escaped(out, c);
		else
			fwrite(text, 1, len, out);
		text += len ? len : 1;
		left -= len ? len : 1;
	}
	fputc('"', out);
}

/* Whether it was a value without parts, then written. */
static bool put_scalar(FILE *out, const cJSON *value)
{
	if (cJSON_IsString(value))
		put_string(out, value->valuestring);
	else if (cJSON_IsNumber(value))
		put_number(out, value->valuedouble);
	else if (cJSON_IsBool(value))
		fputs(cJSON_IsTrue(value) ? "true" : "false", out);
	else if (cJSON_IsArray(value) && !value->child)
		fputs("[]", out);
	else if (cJSON_IsObject(value) && !value->child)
		fputs("{}", out);
	else if (!cJSON_IsArray(value) && !cJSON_IsObject(value))
		fputs("null", out);
	else
		return false;
	return true;
}

/* A line break and blanks, or nothing at all on one line. */
static void put_break(FILE *out, int depth)
{
	if (depth >= 0)
		fprintf(out, "\n%*s", 4 * depth, "");
}

/* depth -1: all on one line. */
static void put_json(FILE *out, const cJSON *value, int depth)
{
	if (put_scalar(out, value))
		return;
	int inner = depth < 0 ? -1 : depth + 1;
	bool is_object = cJSON_IsObject(value);
	fputc(is_object ? '{' : '[', out);
	for (const cJSON *child = value->child; child; child = child->next) {
		put_break(out, inner);
		if (is_object) {
			put_string(out, child->string);
			fputs(depth < 0 ? ":" : ": ", out);
		}
		put_json(out, child, inner);
		if (child->next)
			fputc(',', out);
	}
	put_break(out, depth);
	fputc(is_object ? '}' : ']', out);
}

/* Whether text that begins with a digit could be a number or a date to a YAML reader; addresses are neither.
 */
static bool is_like_number(const char *text)
{
	char *end;
	(void)strtod(text, &end);
	if (!*end || strspn(text, "0123456789_.eExXoO") == strlen(text))
		return strchr(text, '.') == strrchr(text, '.');
	bool is_date = strspn(text, "0123456789-+:.TZ ") == strlen(text) && strchr(text, '-');
	return is_date || (strspn(text, "0123456789:_") == strlen(text));
}

/* Whether a YAML reader could take the plain text for something else than this string (YAML 1.1 and 1.2). */
static bool must_quote(const char *text)
{
	static const char *const words[] = {
	        "null", "~", "true", "false", "yes", "no", "on", "off", "y", "n", ".inf", ".nan", "="};
	size_t len = strlen(text);
	if (len == 0 || strchr("-?:,[]{}#&*!|>'\"%@`. +=<", text[0]) ||
	        (isdigit((unsigned char)text[0]) && is_like_number(text)) || text[len - 1] == ' ' ||
	        text[len - 1] == ':' || strstr(text, ": ") || strstr(text, " #"))
		return true;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcasecmp(text, words[i]) == 0)
			return true;
	for (const char *at = text; *at; at++)
		if ((unsigned char)*at < 0x20 || (unsigned char)*at >= 0x7f)
			return true;
	return false;
}

static void put_yaml_string(FILE *out, const char *text)
{
	if (must_quote(text))
		put_string(out, text);
	else
		fputs(text, out);
}

static int by_key(const void *a, const void *b)
{
	return strcmp((*(const cJSON *const *)a)->string, (*(const cJSON *const *)b)->string);
}

/* Members in order of their keys; mem_free it. NULL without memory or members. */
static const cJSON **sorted(const cJSON *object, size_t *ret_cnt)
{
	size_t cnt = 0;
	for (const cJSON *child = object->child; child; child = child->next)
		cnt++;
	const cJSON **all = cnt ? mem_alloc(cnt * sizeof(*all)) : NULL;
	*ret_cnt = all ? cnt : 0;
	cnt = 0;
	for (const cJSON *child = object->child; all && child; child = child->next)
		all[cnt++] = child;
	if (all)
		qsort(all, cnt, sizeof(*all), by_key);
	return all;
}

static void put_yaml(FILE *out, const cJSON *value, int depth, bool is_begun);

/* A member or item behind its key or dash. */
static void put_yaml_value(FILE *out, const cJSON *value)
{
	fputs(" ", out);
	if (cJSON_IsString(value))
		put_yaml_string(out, value->valuestring);
	else
		put_scalar(out, value);
	fputc('\n', out);
}

static bool has_parts(const cJSON *value)
{
	return (cJSON_IsArray(value) || cJSON_IsObject(value)) && value->child;
}

static void put_yaml_object(FILE *out, const cJSON *value, int depth, bool is_begun)
{
	size_t cnt;
	const cJSON **all = sorted(value, &cnt);
	for (size_t i = 0; i < cnt; i++) {
		fprintf(out, "%*s", is_begun && i == 0 ? 0 : 2 * depth, "");
		put_yaml_string(out, all[i]->string);
		fputc(':', out);
		if (!has_parts(all[i])) {
			put_yaml_value(out, all[i]);
			continue;
		}
		fputc('\n', out);
		/* Lists stand at their key's depth, as istioctl has them. */
		put_yaml(out, all[i], cJSON_IsArray(all[i]) ? depth : depth + 1, false);
	}
	mem_free(all);
}

/* is_begun: the first line's blanks and dash are there already. */
static void put_yaml(FILE *out, const cJSON *value, int depth, bool is_begun)
{
	if (cJSON_IsObject(value)) {
		put_yaml_object(out, value, depth, is_begun);
		return;
	}
	for (const cJSON *child = value->child; child; child = child->next) {
		fprintf(out, "%*s-", is_begun && child == value->child ? 0 : 2 * depth, "");
		if (!has_parts(child)) {
			put_yaml_value(out, child);
			continue;
		}
		fputc(' ', out);
		put_yaml(out, child, depth + 1, true);
	}
}

static void put_document(FILE *out, const cJSON *value)
{
	if (has_parts(value))
		put_yaml(out, value, 0, false);
	else if (cJSON_IsString(value)) {
		put_yaml_string(out, value->valuestring);
		fputc('\n', out);
	} else {
		put_scalar(out, value);
		fputc('\n', out);
	}
}

int emit(FILE *out, const cJSON *value, enum ctl_output output, struct err *err)
{
	if (output == CTL_OUTPUT_YAML)
		put_document(out, value);
	else
		put_json(out, value, 0);
	/* istioctl's YAML ends with an empty line. */
	fputc('\n', out);
	return fflush(out) != 0 || ferror(out) ? err_sys(err, -(errno ? errno : EIO), "writing the output")
	                                       : 0;
}

void emit_line(FILE *out, const cJSON *value)
{
	put_json(out, value, -1);
}

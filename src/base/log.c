/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Building of log lines on the caller's stack. A field goes in whole or cut at
 * a character, never half escaped, so a line is well-formed whatever a peer
 * put into it; control characters never reach the sink raw.
 */
#include "base/log.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/log_filter.h"
#include "base/num.h"

/* Kept free while fields are added: the truncation mark, closing quote and brace, newline. */
#define LINE_RESERVE 32

/* What upstream puts before RUST_LOG; visible in the filter's text. */
#define FILTER_PREFIX "hickory_server::server=off"

int log_init(struct log *log, const char *filter, bool json,
        void (*write)(void *ctx, const char *line, size_t len), void *ctx, struct err *err)
{
	struct log_filter start = {0};
	struct log_filter now = {0};
	int rc = log_filter_add(&start, FILTER_PREFIX, false, err);
	if (rc == 0)
		rc = log_filter_add(&start, filter ? filter : "info", false, err);
	if (rc == 0)
		rc = log_filter_copy(&now, &start);
	if (rc < 0) {
		log_filter_done(&start);
		return rc;
	}
	*log = (struct log){.filter = now, .start = start, .json = json, .write = write, .ctx = ctx};
	return 0;
}

void log_done(struct log *log)
{
	log_filter_done(&log->filter);
	log_filter_done(&log->start);
}

void log_write_fd(void *ctx, const char *line, size_t len)
{
	struct pollfd out = {.fd = (int)(intptr_t)ctx, .events = POLLOUT};
	/* A full pipe or a closed reader loses the line: logging never stops the work. A pipe that is ready
	 * takes a line of PIPE_BUF bytes whole (pipe(7)). */
	if (poll(&out, 1, 0) != 1 || write(out.fd, line, len) < 0)
		return;
}

bool log_enabled(const struct log *log, enum log_level level, const char *target)
{
	return log && log_filter_passes(&log->filter, level, target);
}

int log_set(struct log *log, const char *filter, struct err *err)
{
	struct log_filter next = {0};
	int rc = log_filter_add(&next, filter, false, err);
	if (rc < 0)
		return rc;
	log_filter_done(&log->filter);
	log->filter = next;
	return 0;
}

int log_change(struct log *log, bool reset, const char *clauses, struct err *err)
{
	struct log_filter next;
	int rc = log_filter_copy(&next, reset ? &log->start : &log->filter);
	if (rc < 0)
		return err_sys(err, rc, "log filter");
	if (clauses && *clauses)
		rc = log_filter_add(&next, clauses, true, err);
	if (rc < 0) {
		log_filter_done(&next);
		return rc;
	}
	log_filter_done(&log->filter);
	log->filter = next;
	return 0;
}

void log_filter_text(const struct log *log, struct buf *out)
{
	for (size_t i = 0; i < log->filter.cnt; i++) {
		const struct log_directive *d = &log->filter.directives[i];
		if (i)
			buf_add_u8(out, ',');
		if (d->target)
			buf_printf(out, "%s=", d->target);
		buf_add_str(out, log_level_str(d->level));
	}
}

static bool put(struct log_line *line, const char *p, size_t len)
{
	/* A sum, not a difference: len may lie in the reserve already. */
	if (line->len + len > LIMIT_LOG_LINE - LINE_RESERVE)
		return false;
	memcpy(line->text + line->len, p, len);
	line->len += len;
	return true;
}

static bool put_str(struct log_line *line, const char *s)
{
	return put(line, s, strlen(s));
}

/* Into the reserve: for the fixed ends of a line only. */
static void put_end(struct log_line *line, const char *s)
{
	size_t len = strlen(s);
	memcpy(line->text + line->len, s, len);
	line->len += len;
}

/* One character in the manner of Rust's string debug form (text) or of JSON. */
static size_t escape_char(bool json, bool quoted, const char *s, size_t len, char dst[8], size_t *ret_used)
{
	unsigned char c = (unsigned char)*s;
	if (json)
		return json_escape_char(s, len, dst, ret_used);
	*ret_used = 1;
	if (quoted && (c == '"' || c == '\\')) {
		dst[0] = '\\';
		dst[1] = (char)c;
		return 2;
	}
	if (c == '\n' || c == '\r' || c == '\t' || c == '\0') {
		dst[0] = '\\';
		dst[1] = c == '\n' ? 'n' : c == '\r' ? 'r' : c == '\t' ? 't' : '0';
		return 2;
	}
	if (c < 0x20 || c == 0x7f)
		return (size_t)snprintf(dst, 8, "\\u{%x}", c);
	return json_escape_char(s, len, dst, ret_used);
}

/* Bytes at the start that stand for themselves in every form. */
static size_t plain_len(const char *s, size_t len)
{
	size_t n = 0;
	while (n < len && s[n] >= 0x20 && s[n] < 0x7f && s[n] != '"' && s[n] != '\\')
		n++;
	return n;
}

/* Escaped text; what does not fit is cut and marked. */
static void put_escaped(struct log_line *line, bool quoted, const char *s, size_t len)
{
	while (len) {
		char text[8];
		size_t room = LIMIT_LOG_LINE - LINE_RESERVE - line->len;
		/* Nearly all of a line goes in whole; where that is too long a character says so below. */
		size_t used =
		        line->len < LIMIT_LOG_LINE - LINE_RESERVE ? plain_len(s, len < room ? len : room) : 0;
		if (used) {
			(void)put(line, s, used);
			s += used;
			len -= used;
			continue;
		}
		size_t n = escape_char(line->log->json, quoted, s, len, text, &used);
		if (!put(line, text, n)) {
			line->truncated = true;
			return;
		}
		s += used;
		len -= used;
	}
}

/* Separator and key of a field; false (and nothing written) when there is no room. */
static bool put_key(struct log_line *line, const char *key)
{
	size_t mark = line->len;
	bool json = line->log->json;
	bool ok = true;
	if (json)
		ok = put_str(line, ",\"");
	else if (line->has_fields)
		ok = put_str(line, " ");
	if (ok && put_str(line, key) && put_str(line, json ? "\":" : "=")) {
		line->has_fields = true;
		return true;
	}
	line->len = mark;
	line->truncated = true;
	return false;
}

static bool wants_field(const struct log_line *line)
{
	return line->log && !line->truncated;
}

/* The closing quote uses the reserve: it must follow even a cut value. */
static void put_quoted(struct log_line *line, const char *s, size_t len)
{
	if (!put_str(line, "\"")) {
		line->truncated = true;
		put_end(line, "\"");
	} else {
		put_escaped(line, true, s, len);
	}
	put_end(line, "\"");
}

static void put_time(struct log_line *line)
{
	char text[CLOCK_STR_MAX];
	put(line, text, clock_format(clock_wall_us(), 6, text));
}

static void put_span_field(struct log_line *line, const struct log_field *f)
{
	if (f->str) {
		put_quoted(line, f->str, strlen(f->str));
		return;
	}
	char text[NUM_STR_MAX];
	if (!put(line, text, num_format(f->num, text))) {
		line->truncated = true;
		put_end(line, "0");
	}
}

/* Text form: ":name{k=v k=v}" behind the target. */
static void put_span_text(struct log_line *line, const struct log_span *span)
{
	put_str(line, ":");
	put_str(line, span->name);
	if (span->field_cnt == 0)
		return;
	put_str(line, "{");
	for (size_t i = 0; i < span->field_cnt && !line->truncated; i++) {
		if (i)
			put_str(line, " ");
		put_str(line, span->fields[i].key);
		put_str(line, "=");
		put_span_field(line, &span->fields[i]);
	}
	put_str(line, "}");
}

/* JSON form: a member of the span's name with an object, whole or not at all. */
static void put_span_json(struct log_line *line, const struct log_span *span)
{
	size_t mark = line->len;
	bool ok = put_str(line, ",\"") && put_str(line, span->name) && put_str(line, "\":{");
	for (size_t i = 0; ok && i < span->field_cnt; i++) {
		ok = put_str(line, i ? ",\"" : "\"") && put_str(line, span->fields[i].key) &&
		     put_str(line, "\":");
		if (ok)
			put_span_field(line, &span->fields[i]);
		ok = ok && !line->truncated;
	}
	if (!ok || !put_str(line, "}")) {
		line->len = mark;
		line->truncated = true;
	}
}

static void begin_text(struct log_line *line, enum log_level level, const char *target, const char *message)
{
	static const char prefix[] = "ztunnel::";
	if (strncmp(target, prefix, sizeof(prefix) - 1) == 0)
		target += sizeof(prefix) - 1;
	put_time(line);
	put_str(line, "\t");
	put_str(line, log_level_str(level));
	put_str(line, "\t");
	put_escaped(line, false, target, strlen(target));
	if (line->span)
		put_span_text(line, line->span);
	put_str(line, "\t");
	if (message) {
		put_escaped(line, false, message, strlen(message));
		put_str(line, "\t");
	}
}

static void begin_json(struct log_line *line, enum log_level level, const char *target, const char *message)
{
	put_str(line, "{\"level\":\"");
	put_str(line, log_level_str(level));
	put_str(line, "\",\"time\":\"");
	put_time(line);
	put_str(line, "\",\"scope\":");
	put_quoted(line, target, strlen(target));
	if (message) {
		put_str(line, ",\"message\":");
		put_quoted(line, message, strlen(message));
	}
}

bool log_begin_in(struct log_line *line, struct log *log, enum log_level level, const char *target,
        const struct log_span *span, const char *message)
{
	line->log = NULL;
	if (!log_enabled(log, level, target))
		return false;
	line->log = log;
	line->span = span;
	line->len = 0;
	line->has_fields = false;
	line->truncated = false;
	if (log->json)
		begin_json(line, level, target, message);
	else
		begin_text(line, level, target, message);
	return true;
}

bool log_begin(
        struct log_line *line, struct log *log, enum log_level level, const char *target, const char *message)
{
	return log_begin_in(line, log, level, target, NULL, message);
}

void log_strn(struct log_line *line, const char *key, const char *value, size_t len)
{
	if (wants_field(line) && value && put_key(line, key))
		put_quoted(line, value, len);
}

void log_str(struct log_line *line, const char *key, const char *value)
{
	if (value)
		log_strn(line, key, value, strlen(value));
}

void log_bare(struct log_line *line, const char *key, const char *value)
{
	if (!wants_field(line) || !value || !put_key(line, key))
		return;
	if (line->log->json)
		put_quoted(line, value, strlen(value));
	else
		put_escaped(line, false, value, strlen(value));
}

/* A value that is the same bare word in both forms. */
static void field_word(struct log_line *line, const char *key, const char *word)
{
	size_t mark = line->len;
	bool had_fields = line->has_fields;
	if (!wants_field(line) || !put_key(line, key) || put_str(line, word))
		return;
	line->len = mark;
	line->has_fields = had_fields;
	line->truncated = true;
}

void log_u64(struct log_line *line, const char *key, uint64_t value)
{
	char text[NUM_STR_MAX];
	num_format(value, text);
	field_word(line, key, text);
}

void log_bool(struct log_line *line, const char *key, bool value)
{
	field_word(line, key, value ? "true" : "false");
}

void log_code(struct log_line *line, const char *key, int code)
{
	log_str(line, key, err_str(code));
}

void log_end(struct log_line *line)
{
	if (!line->log)
		return;
	bool json = line->log->json;
	if (json && line->span)
		put_span_json(line, line->span);
	if (line->truncated)
		put_end(line, json               ? ",\"truncated\":true"
		              : line->has_fields ? " truncated=true"
		                                 : "truncated=true");
	put_end(line, json ? "}\n" : "\n");
	line->log->write(line->log->ctx, line->text, line->len);
	line->log = NULL;
}

/* The slot of a text; the one that was quiet for longest is given to a new one. */
static struct log_repeat *repeat_slot(struct log *log, uint64_t hash, uint64_t now_ms)
{
	struct log_repeat *oldest = &log->repeats[0];
	for (size_t i = 0; i < LOG_REPEAT_SLOTS; i++) {
		struct log_repeat *slot = &log->repeats[i];
		if (slot->hash == hash)
			return slot;
		if (slot->since_ms < oldest->since_ms)
			oldest = slot;
	}
	*oldest = (struct log_repeat){.hash = hash, .since_ms = now_ms};
	return oldest;
}

/* Counts a text; returns whether it is written, and *ret_left_out = how many were not since it was last. */
static bool repeat_passes(struct log *log, const char *target, const char *message, uint32_t *ret_left_out)
{
	const struct hash_seed seed = {0};
	uint64_t now_ms = clock_ms();
	uint64_t hash =
	        hash_bytes(&seed, message, strlen(message)) ^ hash_bytes(&seed, target, strlen(target));
	struct log_repeat *slot = repeat_slot(log, hash ? hash : 1, now_ms);
	*ret_left_out = 0;
	if (now_ms - slot->since_ms >= LOG_REPEAT_MS) {
		*ret_left_out = slot->cnt > LOG_REPEAT_MAX ? slot->cnt - LOG_REPEAT_MAX : 0;
		slot->since_ms = now_ms;
		slot->cnt = 0;
	}
	return ++slot->cnt <= LOG_REPEAT_MAX;
}

void log_msg(struct log *log, enum log_level level, const char *target, const char *fmt, ...)
{
	if (!log_enabled(log, level, target))
		return;
	char message[LIMIT_LOG_LINE];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(message, sizeof(message), fmt, ap);
	va_end(ap);
	uint32_t left_out = 0;
	if (level <= LOG_WARN && !repeat_passes(log, target, message, &left_out))
		return;
	struct log_line line;
	log_begin(&line, log, level, target, message);
	if (left_out > 0)
		log_u64(&line, "repeated", left_out);
	log_end(&line);
}

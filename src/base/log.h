/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Log lines in upstream's two forms (reference control.md 13, dataplane.md
 * 16): tab-separated text or one JSON object a line. Knows no sink: a callback
 * gets each finished line. A line is at most LIMIT_LOG_LINE bytes; what does
 * not fit is left out and marked truncated=true.
 */
#ifndef CULVERT_BASE_LOG_H
#define CULVERT_BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "culvert/limits.h"

/* Severity; larger = more talkative. */
enum log_level { LOG_OFF = 0, LOG_ERROR = 1, LOG_WARN = 2, LOG_INFO = 3, LOG_DEBUG = 4, LOG_TRACE = 5 };

/* One clause of the filter. */
struct log_directive {
	char *target;         /* NULL = every target; owned */
	enum log_level level; /* lines up to this level pass */
};

/* A filter in RUST_LOG syntax, most specific directive first. */
struct log_filter {
	struct log_directive *directives; /* owned array of cnt */
	size_t cnt;                       /* <= LIMIT_LOG_DIRECTIVES */
	enum log_level max_level;         /* the most talkative of all, for a quick no */
};

/* Warnings and errors of the same words within LOG_REPEAT_MS: the first LOG_REPEAT_MAX are written, the
 * others counted; the next one after that time says how many there were ("repeated"). */
#define LOG_REPEAT_MS 1000
#define LOG_REPEAT_MAX 10
/* Texts that are watched at a time; a storm has one or two. */
#define LOG_REPEAT_SLOTS 4

/* One text that came lately. Private. */
struct log_repeat {
	uint64_t hash; /* of target and message; 0 = empty */
	uint64_t since_ms;
	uint32_t cnt; /* since then */
};

/* A logger. Give it by pointer to whoever logs; NULL is a logger that says nothing. */
struct log {
	struct log_filter filter;                               /* in force */
	struct log_filter start;                                /* as at start, for the reset */
	bool json;                                              /* form */
	void (*write)(void *ctx, const char *line, size_t len); /* gets each line with its newline */
	void *ctx;                                              /* for write */
	struct log_repeat repeats[LOG_REPEAT_SLOTS];
};

/* A named number or string of a span. */
struct log_field {
	const char *key;
	const char *str; /* NULL: num is the value */
	uint64_t num;
};

/* What a line happened within, e.g. xds{id=1}. */
struct log_span {
	const char *name;
	const struct log_field *fields; /* array of field_cnt, may be NULL */
	size_t field_cnt;
};

/* A line being built, on the caller's stack. Private. */
struct log_line {
	struct log *log;             /* NULL: disabled, everything is a no-op */
	const struct log_span *span; /* for the end of a JSON line */
	size_t len;
	bool has_fields;
	bool truncated;
	char text[LIMIT_LOG_LINE];
};

/*
 * A logger with the filter in `filter` (RUST_LOG; NULL = "info"), as JSON or
 * text, into write. -EINVAL with text for a bad filter, -ENOMEM.
 */
int log_init(struct log *log, const char *filter, bool json,
        void (*write)(void *ctx, const char *line, size_t len), void *ctx, struct err *err);

/* Frees the filters. */
void log_done(struct log *log);

/* A write callback that writes to the descriptor number given as ctx ((void *)(intptr_t)fd). A line that
 * would have to wait, or fails, is lost. */
void log_write_fd(void *ctx, const char *line, size_t len);

/* Whether a line of that level and target would be written. */
bool log_enabled(const struct log *log, enum log_level level, const char *target);

/* Replaces the filter in force by RUST_LOG text (as SetLog carries it). -EINVAL with text, -ENOMEM; unchanged
 * then. */
int log_set(struct log *log, const char *filter, struct err *err);

/*
 * The admin endpoint's change (reference control.md 11.6): with reset back to
 * the filter of log_init, then clauses (NULL or "" = none) are added, equal
 * targets replaced. All or nothing: -EINVAL with text, -ENOMEM.
 */
int log_change(struct log *log, bool reset, const char *clauses, struct err *err);

/* Prints the filter in force into out, most specific directive first. */
void log_filter_text(const struct log *log, struct buf *out);

/*
 * Starts a line. target is upstream's full name ("ztunnel::xds::client",
 * "access"); message may be NULL. Returns whether the line is wanted; when
 * not, the other calls on it do nothing.
 */
bool log_begin(struct log_line *line, struct log *log, enum log_level level, const char *target,
        const char *message);

/* Like log_begin within a span (borrowed until log_end). */
bool log_begin_in(struct log_line *line, struct log *log, enum log_level level, const char *target,
        const struct log_span *span, const char *message);

void log_str(struct log_line *line, const char *key,
        const char *value); /* quoted and escaped; NULL value: field left out */
void log_strn(
        struct log_line *line, const char *key, const char *value, size_t len); /* the same for len bytes */
void log_bare(struct log_line *line, const char *key,
        const char *value); /* bare in text, a string in JSON; for addresses */
void log_u64(struct log_line *line, const char *key, uint64_t value); /* bare in both */
void log_bool(struct log_line *line, const char *key, bool value);    /* bare in both */
void log_code(struct log_line *line, const char *key, int code);      /* err_str(code) as log_str */

/* Ends the line and writes it. */
void log_end(struct log_line *line);

/* One line with a formatted message and no fields. Warnings and errors that repeat in quick succession are
 * counted instead (LOG_REPEAT_MAX). */
void log_msg(struct log *log, enum log_level level, const char *target, const char *fmt, ...)
        __attribute__((format(printf, 4, 5)));

/* Name of a level, lower case. */
const char *log_level_str(enum log_level level);

#endif

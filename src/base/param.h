/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Settings from the environment: culvert/params.tbl.h expanded into a struct,
 * a loader with upstream's rules and texts (reference control.md 3), and the
 * environment that a silo gets. ProxyConfig and mesh config come as variables
 * that the broker's config.h makes of them.
 *
 * TYPE: BOOL exactly true/false; U16 U32 U64 decimal in [min, max]; DURATION
 * the grammar of control.md 3.5, kept in milliseconds rounded up; STRING and
 * PATH anything; URI empty = NULL, else with a scheme (https:// is added);
 * FLAG true only for the one word in the default column.
 */
#ifndef CULVERT_BASE_PARAM_H
#define CULVERT_BASE_PARAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/err.h"

/* Who reads a variable; for the readers column and settings_load. */
#define PARAM_W 1u /* first process and warden */
#define PARAM_B 2u /* broker */
#define PARAM_S 4u /* silo */
#define PARAM_ALL 7u

#define PARAM_CTYPE_BOOL bool
#define PARAM_CTYPE_FLAG bool
#define PARAM_CTYPE_U16 uint16_t
#define PARAM_CTYPE_U32 uint32_t
#define PARAM_CTYPE_U64 uint64_t
#define PARAM_CTYPE_DURATION uint64_t
#define PARAM_CTYPE_STRING const char *
#define PARAM_CTYPE_PATH const char *
#define PARAM_CTYPE_URI const char *

struct arena;

/* A name and a value, e.g. of a header. */
struct setting_pair {
	const char *key;
	const char *value;
};

/* Pairs of one prefix, in the order of the environment. */
struct setting_pairs {
	struct setting_pair *pairs; /* array of cnt, in the settings' arena */
	size_t cnt;
};

/*
 * All settings. For each row of the table: the value under its field name
 * (strings live in the arena; NULL when unset without default) and
 * <field>_set = the variable was present. Then what follows from several.
 */
struct settings {
#define P(field, env, type, def, min, max, readers, text)                                                    \
	PARAM_CTYPE_##type field;                                                                            \
	bool field##_set;
#include "culvert/params.tbl.h"
#undef P
	bool dedicated;          /* PROXY_MODE=dedicated */
	bool has_workload_info;  /* the next three are set (dedicated only) */
	const char *workload_ns; /* from PROXY_WORKLOAD_INFO; "" otherwise */
	const char *workload_name;
	const char *workload_service_account;
	bool dns_enabled;     /* the DNS proxy runs */
	bool dns_localhost;   /* on both loopback addresses, port of dns_addr */
	struct addr dns_addr; /* where the DNS proxy listens; ip none when dns_localhost */
	uint64_t drain_ms;    /* time that connections get to end, after both rules */
	bool leave_on_term;   /* CULVERT_ON_TERM=leave */
	uint32_t io_baseline; /* kernel release as major * 1000 + minor; 0 = what the kernel has */
	uint64_t worker_cnt;  /* reference control.md 3.6; shown only; broker */
	struct setting_pairs xds_headers; /* XDS_HEADER_*, keys lower case; broker */
	struct setting_pairs ca_headers;  /* CA_HEADER_*, keys lower case; broker */
	struct setting_pairs metadata;    /* proxyMetadata: ISTIO_META_*, prefix stripped, then those of
	                                     ProxyConfig that these don't replace; broker */
	struct setting_pairs
	        metadata_json; /* ISTIO_METAJSON_*, prefix stripped, JSON text as given; broker */
	struct arena *arena;   /* owns all strings; NULL before the load */
};

/* Exit status where upstream panics instead of ending with 1 (reference control.md 16). */
#define SETTINGS_EXIT_PANIC 101

/* The program's exit status for a failed settings_load or settings_check_env. */
int settings_exit_status(int rc);

/* -ENOTRECOVERABLE with text when a variable, ours or not, is not UTF-8 (control.md 3.1). */
int settings_check_env(char *const *env, struct err *err);

/*
 * Reads the variables of the readers in mask (PARAM_x) from env (as environ);
 * rows of others keep their defaults. -EINVAL with upstream's text in err,
 * -ENOTRECOVERABLE where upstream panics, or -ENOMEM; settings are then empty and settings_done is harmless.
 */
int settings_load(struct settings *settings, char *const *env, unsigned mask, struct err *err);

/* Whether the daemon's own pod gets HBONE: shared mode, and its name, namespace and service account are known
 * (reference dataplane.md 2.9). */
bool settings_has_self(const struct settings *settings);

/* Frees the strings. */
void settings_done(struct settings *settings);

/*
 * The part of env that a silo may see, and what its C library should do, as a NULL-terminated array of
 * strings borrowed from env; the caller frees the array with mem_free. -ENOMEM.
 */
int settings_silo_env(char *const *env, char ***ret_env);

/* Whether the variable name (of len bytes, without "=") may reach a silo. */
bool settings_is_silo_name(const char *name, size_t len);

/*
 * Parses a duration (grammar of control.md 3.5) of len bytes into
 * milliseconds, rounded up. -EINVAL for bad grammar, -ERANGE when it does not
 * fit; *ret_why (may be NULL) then says so in static words.
 */
int duration_parse(const char *text, size_t len, uint64_t *ret_ms, const char **ret_why);

/* One row of the table, for documentation and dumps. */
struct param_info {
	const char *env;      /* variable */
	const char *type;     /* "BOOL", "DURATION", ... */
	const char *fallback; /* default as written in the table */
	unsigned readers;     /* PARAM_x */
	const char *text;     /* the sentence */
};

/* Row i of the table, NULL behind the end; static. */
const struct param_info *param_info(size_t i);

#endif

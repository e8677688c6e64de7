/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Address, roots, token and headers of a channel; see control_auth.h. */
#include "broker/control_auth.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/num.h"
#include "culvert/limits.h"
#include "h2/session.h"
#include "tls/trust.h"

static const char TARGET[] = "ztunnel::tls::control";

/* The token unless AUTH_TOKEN is set. */
static const char TOKEN_PATH[] = "./var/run/secrets/tokens/istio-token";
/* Where systems keep their roots as one file. */
static const char *const SYSTEM_BUNDLES[] = {
        "/etc/ssl/certs/ca-certificates.crt",
        "/etc/pki/tls/certs/ca-bundle.crt",
        "/etc/ssl/ca-bundle.pem",
        "/etc/ssl/cert.pem",
};

_Static_assert(sizeof(((struct control_lines *)0)->lines) / sizeof(struct h2_header) == H2_SEND_LINES_MAX,
        "room for as many lines as may be sent");

const char *control_address(const struct settings *settings, enum control_purpose purpose)
{
	return purpose == CONTROL_XDS ? settings->xds_address : settings->ca_address;
}

/* --- address -------------------------------------------------------------- */

/* Host and port out of "host", "host:port", "[v6]:port"; the settings have checked the form. */
static int split_authority(struct control_auth *auth, const char *text, size_t len)
{
	const char *end = text + len;
	const char *host = text;
	const char *close = *text == '[' ? memchr(text, ']', len) : NULL;
	const char *colon = memchr(close ? close : text, ':', (size_t)(end - (close ? close : text)));
	size_t host_len = (size_t)((colon ? colon : end) - text);
	uint64_t port = auth->is_plain ? 80 : 443;
	if (close) {
		host++;
		host_len = (size_t)(close - host);
	}
	if (colon && num_parse(colon + 1, (size_t)(end - colon - 1), UINT16_MAX, &port) < 0)
		return -EINVAL;
	if (host_len == 0 || host_len >= sizeof(auth->host) || memchr(text, '@', len) || port == 0)
		return -EINVAL;
	memcpy(auth->host, host, host_len);
	auth->host[host_len] = '\0';
	auth->port = (uint16_t)port;
	int n = snprintf(auth->authority, sizeof(auth->authority), "%.*s", (int)len, text);
	return n < 0 || (size_t)n >= sizeof(auth->authority) ? -EINVAL : 0;
}

static int take_address(struct control_auth *auth, enum control_purpose purpose, struct err *err)
{
	const char *name = purpose == CONTROL_XDS ? "XDS_ADDRESS" : "CA_ADDRESS";
	const char *uri = control_address(auth->settings, purpose);
	const char *text = uri ? strstr(uri, "://") : NULL;
	if (!text)
		return err_set(err, -EINVAL, "%s is empty", name);
	text += 3;
	auth->is_plain = strncasecmp(uri, "http:", 5) == 0;
	/* What follows the authority is ignored, as upstream does. */
	if (split_authority(auth, text, strcspn(text, "/?#")) < 0)
		return err_set(err, -EINVAL, "invalid uri: %s=%.200s", name, uri);
	return 0;
}

static bool is_server_name(const char *name)
{
	struct ip ip;
	if (ip_parse(name, strlen(name), &ip) == 0)
		return true;
	for (const char *p = name; *p; p++) {
		bool is_alnum =
		        (*p >= '0' && *p <= '9') || (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z');
		if (!is_alnum && *p != '-' && *p != '.' && *p != '_')
			return false;
	}
	return *name && strlen(name) < CONTROL_HOST_MAX;
}

/* --- kinds ---------------------------------------------------------------- */

/*
 * Upstream fixes the kind by whether the file is there at the start; one that
 * comes later is then taken for PEM text or for the token itself. What looks
 * like a path is a path here, and its absence an error that heals.
 */
static void take_roots(struct control_auth *auth, const char *value)
{
	auth->roots = value;
	if (strcmp(value, "SYSTEM") == 0)
		auth->roots_kind = CONTROL_ROOTS_SYSTEM;
	else if (!file_exists(value) && strstr(value, "-----BEGIN"))
		auth->roots_kind = CONTROL_ROOTS_TEXT;
	else
		auth->roots_kind = CONTROL_ROOTS_FILE;
}

static void take_token(struct control_auth *auth)
{
	const char *value = auth->settings->auth_token;
	auth->token = value;
	if (!value) {
		auth->token = TOKEN_PATH;
		auth->token_kind = CONTROL_TOKEN_OPTIONAL;
	} else if (*value == '\0') {
		auth->token_kind = CONTROL_TOKEN_NONE;
	} else if (strchr(value, '/') || file_exists(value)) {
		auth->token_kind = CONTROL_TOKEN_FILE;
	} else {
		auth->token_kind = CONTROL_TOKEN_STATIC;
	}
}

static void warn_of_files(const struct control_auth *auth, struct log *log)
{
	if (auth->token_kind == CONTROL_TOKEN_FILE && !file_exists(auth->token))
		log_msg(log, LOG_WARN, TARGET, "AUTH_TOKEN: no file %s yet; calls fail until it is there",
		        auth->token);
	if (auth->roots_kind == CONTROL_ROOTS_FILE && !file_exists(auth->roots))
		log_msg(log, LOG_WARN, TARGET, "roots for %s: no file %s yet; calls fail until it is there",
		        auth->authority, auth->roots);
}

int control_auth_init(struct control_auth *auth, const struct settings *settings,
        enum control_purpose purpose, struct log *log, struct err *err)
{
	bool is_xds = purpose == CONTROL_XDS;
	*auth = (struct control_auth){.settings = settings};
	int r = take_address(auth, purpose, err);
	if (r < 0)
		return r;
	auth->alt_name = is_xds ? settings->alt_xds_hostname : settings->alt_ca_hostname;
	if (auth->alt_name && !is_server_name(auth->alt_name))
		return err_set(err, -EINVAL, "%s=%.200s is no host name",
		        is_xds ? "ALT_XDS_HOSTNAME" : "ALT_CA_HOSTNAME", auth->alt_name);
	auth->custom = is_xds ? &settings->xds_headers : &settings->ca_headers;
	auth->cluster_id = settings->meta_cluster_id ? settings->meta_cluster_id : settings->cluster_id;
	take_roots(auth, is_xds ? settings->xds_root_ca : settings->ca_root_ca);
	take_token(auth);
	warn_of_files(auth, log);
	return 0;
}

/* --- roots ---------------------------------------------------------------- */

static int read_dir(const char *path, struct buf *out, struct err *err)
{
	DIR *dir = opendir(path);
	if (!dir)
		return err_sys(err, -errno, "cannot read SSL_CERT_DIR %s", path);
	struct dirent *entry;
	while ((entry = readdir(dir))) {
		char file[PATH_MAX];
		int n = snprintf(file, sizeof(file), "%s/%s", path, entry->d_name);
		/* Folders and what cannot be read are passed over: the rest may do. */
		if (entry->d_name[0] != '.' && n > 0 && (size_t)n < sizeof(file) && file_read(file, out) == 0)
			buf_add_u8(out, '\n');
	}
	closedir(dir);
	return out->err ? err_sys(err, out->err, "cannot read SSL_CERT_DIR %s", path) : 0;
}

static int read_file(const char *what, const char *path, struct buf *out, struct err *err)
{
	int r = file_read(path, out);
	return r < 0 ? err_sys(err, r, "cannot read %s %s", what, path) : 0;
}

static int read_system(const struct settings *settings, struct buf *out, struct err *err)
{
	int r = 0;
	if (settings->ssl_cert_file && *settings->ssl_cert_file)
		r = read_file("SSL_CERT_FILE", settings->ssl_cert_file, out, err);
	if (r == 0 && settings->ssl_cert_dir && *settings->ssl_cert_dir)
		r = read_dir(settings->ssl_cert_dir, out, err);
	if (r < 0 || out->len > 0)
		return r;
	for (size_t i = 0; i < sizeof(SYSTEM_BUNDLES) / sizeof(SYSTEM_BUNDLES[0]); i++)
		if (file_read(SYSTEM_BUNDLES[i], out) == 0)
			return 0;
	return err_set(err, -ENOENT, "the system has no bundle of root certificates");
}

/* Roots without a certificate would refuse everybody in words about the server, which is not at fault. */
static int refuse_empty(const struct control_auth *auth, struct tls_trust *trust, struct err *err)
{
	if (!tls_trust_is_empty(trust))
		return 0;
	tls_trust_unref(trust);
	if (auth->roots_kind == CONTROL_ROOTS_FILE)
		return err_set(err, -EINVAL, "no certificate in root certificates %s", auth->roots);
	return err_set(err, -EINVAL, "no certificate in the root certificates");
}

int control_auth_trust(const struct control_auth *auth, struct tls_trust **ret_trust, struct err *err)
{
	const struct tls_policy policy = {
	        .tls12 = auth->settings->tls12_enabled, .pqc_only = auth->settings->pqc_only};
	struct buf pem;
	int r = 0;
	buf_init(&pem, LIMIT_FILE_ROOTS);
	if (auth->roots_kind == CONTROL_ROOTS_FILE)
		r = read_file("root certificates", auth->roots, &pem, err);
	else if (auth->roots_kind == CONTROL_ROOTS_SYSTEM)
		r = read_system(auth->settings, &pem, err);
	else if (buf_add_str(&pem, auth->roots) < 0)
		r = err_sys(err, pem.err, "root certificates");
	const char *text = r == 0 ? buf_cstr(&pem) : NULL;
	struct tls_trust *trust = NULL;
	if (r == 0 && !text)
		r = err_sys(err, -ENOMEM, "root certificates");
	if (r == 0)
		r = tls_trust_new(text, pem.len, auth->host, auth->alt_name, &policy, &trust, err);
	if (r == 0)
		r = refuse_empty(auth, trust, err);
	if (r == 0)
		*ret_trust = trust;
	buf_done(&pem);
	return r;
}

/* --- headers -------------------------------------------------------------- */

static bool is_reserved(const char *key, bool has_token)
{
	static const char *const names[] = {
	        "te", "content-type", "grpc-message", "grpc-message-type", "grpc-status"};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(key, names[i]) == 0)
			return true;
	return has_token && (strcmp(key, "authorization") == 0 || strcmp(key, "clusterid") == 0);
}

static int add_line(struct control_lines *lines, const char *name, const char *value, struct err *err)
{
	if (lines->cnt == H2_SEND_LINES_MAX)
		return err_set(err, ERR_TOO_MANY, "more than %u header lines", H2_SEND_LINES_MAX);
	/* The token must not enter the compression table. */
	lines->lines[lines->cnt++] = (struct h2_header){
	        .name = name, .value = value, .is_unique = strcmp(name, "authorization") == 0};
	return 0;
}

/* A newline at the end of a token file is no part of the token: upstream fails for it. */
static void trim_end(struct buf *buf)
{
	while (buf->len > 0 && strchr(" \t\r\n", buf->data[buf->len - 1]) && buf->data[buf->len - 1])
		buf->len--;
}

/* "Bearer <token>" into lines->bearer; 1 = there is a token, 0 = none is wanted. */
static int read_token(const struct control_auth *auth, struct control_lines *lines, struct err *err)
{
	struct buf *out = &lines->bearer;
	static const char prefix[] = "Bearer ";
	bool is_optional = auth->token_kind == CONTROL_TOKEN_OPTIONAL;
	if (auth->token_kind == CONTROL_TOKEN_NONE || (is_optional && !file_exists(auth->token)))
		return 0;
	buf_add_str(out, prefix);
	int r = auth->token_kind == CONTROL_TOKEN_STATIC ? buf_add_str(out, auth->token)
	                                                 : file_read(auth->token, out);
	if (r < 0)
		return err_sys(err, r, "cannot read token file %s", auth->token);
	trim_end(out);
	if (out->len < sizeof(prefix))
		return err_set(err, -EINVAL, "token file exists, but was empty: %s", auth->token);
	for (size_t i = 0; i < out->len; i++)
		if (out->data[i] < ' ' || out->data[i] >= 0x7f)
			return err_set(err, -EINVAL,
			        "failed to parse header value: the token%s%s has bytes that no header may carry",
			        auth->token_kind == CONTROL_TOKEN_STATIC ? "" : " in ",
			        auth->token_kind == CONTROL_TOKEN_STATIC ? "" : auth->token);
	return buf_cstr(out) ? 1 : err_sys(err, -ENOMEM, "token");
}

int control_lines_make(const struct control_auth *auth, struct control_lines *ret_lines, struct err *err)
{
	ret_lines->cnt = 0;
	buf_init(&ret_lines->bearer, LIMIT_FILE_TOKEN + sizeof("Bearer "));
	int r = read_token(auth, ret_lines, err);
	bool has_token = r > 0;
	if (r >= 0)
		r = add_line(ret_lines, "te", "trailers", err);
	if (r == 0)
		r = add_line(ret_lines, "content-type", "application/grpc", err);
	if (r == 0 && has_token)
		r = add_line(ret_lines, "authorization", (const char *)ret_lines->bearer.data, err);
	if (r == 0 && has_token)
		r = add_line(ret_lines, "clusterid", auth->cluster_id, err);
	for (size_t i = 0; r == 0 && i < auth->custom->cnt; i++)
		if (!is_reserved(auth->custom->pairs[i].key, has_token))
			r = add_line(
			        ret_lines, auth->custom->pairs[i].key, auth->custom->pairs[i].value, err);
	return r;
}

void control_lines_done(struct control_lines *lines)
{
	if (lines->bearer.data)
		mem_wipe(lines->bearer.data, lines->bearer.cap);
	buf_done(&lines->bearer);
}

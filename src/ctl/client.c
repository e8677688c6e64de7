/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Requests of libcurl and the reading of their outcome; see client.h. */
#include "ctl/client.h"

#include <ctype.h>
#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Seconds to connect, and seconds without a byte after that. */
#define PATIENCE_S 5L

/* Seconds for the whole answer: a daemon that drips is as good as none. */
#define PATIENCE_WHOLE_S 60L

/* Room for the path of a socket through /proc, and for a URL with names of the mesh in it. */
#define SOCKET_PATH_MAX 160
#define URL_MAX 4096

/* Bytes of a refusal's text that are shown. */
#define REASON_MAX 200

static size_t on_bytes(char *bytes, size_t size, size_t cnt, void *ctx)
{
	return buf_add(ctx, bytes, size * cnt) == 0 ? size * cnt : 0;
}

/* First line of a refusal, fit for a terminal. */
static void reason(const struct buf *body, char *dst)
{
	size_t len = 0;
	while (len < body->len && len < REASON_MAX && body->data[len] != '\n') {
		dst[len] = isprint(body->data[len]) ? (char)body->data[len] : '?';
		len++;
	}
	dst[len] = '\0';
}

static int explain(CURLcode code, const struct buf *body, struct err *err)
{
	switch (code) {
	case CURLE_OPERATION_TIMEDOUT:
		return err_set(err, -ETIMEDOUT,
		        "culvertd does not answer in time (%ld s without a byte, or %ld s in all)",
		        PATIENCE_S, PATIENCE_WHOLE_S);
	case CURLE_COULDNT_CONNECT:
		return err_set(err, -ECONNREFUSED,
		        "culvertd runs, but its admin socket does not answer; its broker may be starting, try again or see its log");
	case CURLE_WRITE_ERROR:
		if (body->err == -EMSGSIZE)
			return err_set(err, -EMSGSIZE, "culvertd's answer is larger than %u MB",
			        CLIENT_BODY_MAX >> 20);
		return err_set(err, -ENOMEM, "%s", err_str(-ENOMEM));
	case CURLE_PARTIAL_FILE:
	case CURLE_GOT_NOTHING:
	case CURLE_RECV_ERROR:
		return err_set(err, -EPROTO, "culvertd closed the connection before the end of its answer");
	default:
		return err_set(err, -EPROTO, "asking culvertd failed: %s", curl_easy_strerror(code));
	}
}

static int check_status(CURL *curl, const struct buf *body, const char *path, struct err *err)
{
	long status = 0;
	char text[REASON_MAX + 1];
	curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
	if (status == 200)
		return 0;
	reason(body, text);
	if (status == 404 && text[0])
		return err_set(err, -ESRCH, "%s", text);
	if (status == 400 && text[0])
		return err_set(err, -EINVAL, "%s", text);
	if (status == 404)
		return err_set(err, -EPROTO, "culvertd answered 404: it is of a release that has no %.*s",
		        (int)strcspn(path, "?"), path);
	return err_set(
	        err, -EPROTO, "culvertd answered %ld to %s%s%s", status, path, text[0] ? ": " : "", text);
}

/* Options that hold for every request. */
static void set_limits(CURL *curl)
{
	/* An http_proxy of the environment is not for a unix socket. */
	curl_easy_setopt(curl, CURLOPT_PROXY, "");
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, PATIENCE_S);
	curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
	curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, PATIENCE_S);
	curl_easy_setopt(curl, CURLOPT_TIMEOUT, PATIENCE_WHOLE_S);
}

int client_ask(const struct client *client, const char *socket, const char *path, bool is_post,
        struct buf *body, struct err *err)
{
	/* The socket is reached through the folder's descriptor, because its path may be longer than unix(7)
	 * allows. */
	char socket_path[SOCKET_PATH_MAX], url[URL_MAX];
	CURL *curl = curl_easy_init();
	if (!curl)
		return err_set(err, -ENOMEM, "%s", err_str(-ENOMEM));
	snprintf(socket_path, sizeof(socket_path), "/proc/self/fd/%d/%s", client->instance.fd, socket);
	snprintf(url, sizeof(url), "http://culvert%s", path);
	CURLcode code = CURLE_OK;
	if (curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, socket_path) != CURLE_OK ||
	        curl_easy_setopt(curl, CURLOPT_URL, url) != CURLE_OK)
		code = CURLE_OUT_OF_MEMORY;
	set_limits(curl);
	if (is_post) {
		curl_easy_setopt(curl, CURLOPT_POST, 1L);
		curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE, 0L);
	}
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_bytes);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, body);
	if (code == CURLE_OK)
		code = curl_easy_perform(curl);
	int r = code == CURLE_OK ? check_status(curl, body, path, err) : explain(code, body, err);
	curl_easy_cleanup(curl);
	return r;
}

int answer_parse(struct answer *answer, struct buf *body, const char *what, struct err *err)
{
	const char *end = NULL;
	*answer = (struct answer){.body = *body};
	const char *text = buf_cstr(&answer->body);
	if (!text) {
		answer_done(answer);
		return err_set(err, -ENOMEM, "%s", err_str(-ENOMEM));
	}
	answer->json = cJSON_ParseWithLengthOpts(text, answer->body.len + 1, &end, 0);
	while (answer->json && isspace((unsigned char)*end))
		end++;
	if (answer->json && end == text + answer->body.len)
		return 0;
	int r = err_set(err, -EPROTO, "%s is not JSON (at byte %zu of %zu)", what,
	        end ? (size_t)(end - text) : 0, answer->body.len);
	answer_done(answer);
	return r;
}

int client_json(const struct client *client, const char *socket, const char *path, struct answer *ret,
        struct err *err)
{
	char what[URL_MAX];
	struct buf body;
	struct answer answer;
	buf_init(&body, CLIENT_BODY_MAX);
	int r = client_ask(client, socket, path, false, &body, err);
	if (r < 0) {
		buf_done(&body);
		return r;
	}
	snprintf(what, sizeof(what), "culvertd's answer to %.200s", path);
	r = answer_parse(&answer, &body, what, err);
	if (r == 0)
		*ret = answer;
	return r;
}

int client_open(const struct ctl *ctl, struct client *ret_client, struct err *err)
{
	struct instance instance = {.fd = -1};
	int r = instance_find(ctl->options[CTL_OPT_RUN_DIR], ctl->options[CTL_OPT_INSTANCE], &instance, err);
	if (r == -ENOENT)
		return err->code = -EHOSTDOWN;
	if (r < 0)
		return r;
	if (instance.live_cnt > 1)
		fprintf(ctl->notes,
		        "culvertctl: %u instances are live; this is %s/%s, the youngest (--instance picks another)\n",
		        instance.live_cnt, instance.base, instance.name);
	ret_client->instance = instance;
	return 0;
}

void client_done(struct client *client)
{
	instance_done(&client->instance);
}

int client_get(const struct ctl *ctl, const char *path, struct answer *ret, struct err *err)
{
	struct client client;
	int r = client_open(ctl, &client, err);
	if (r < 0)
		return r;
	r = client_json(&client, CLIENT_ADMIN, path, ret, err);
	client_done(&client);
	return r;
}

void answer_done(struct answer *answer)
{
	cJSON_Delete(answer->json);
	answer->json = NULL;
	buf_done(&answer->body);
}

void client_escape(struct buf *url, const char *text)
{
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;
		if (isalnum(c) || strchr("-._~", c))
			buf_add_u8(url, c);
		else
			buf_printf(url, "%%%02X", c);
	}
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One request of libcurl and the reading of its outcome; see client.h. */
#include "ctl/client.h"

#include <ctype.h>
#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "ctl/instance.h"

/* Seconds to connect, and seconds without a byte after that. */
#define PATIENCE_S 5L

/* Seconds for the whole answer: a daemon that drips is as good as none. */
#define PATIENCE_WHOLE_S 60L

/* Most bytes of an answer: the broker's own ceiling of a dump, and the terminator. */
#define BODY_MAX ((256u << 20) + 1)

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
			return err_set(
			        err, -EMSGSIZE, "culvertd's answer is larger than %u MB", BODY_MAX >> 20);
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
	return err_set(
	        err, -EPROTO, "culvertd answered %ld to %s%s%s", status, path, text[0] ? ": " : "", text);
}

/* Sends the request. The socket is reached through the folder's descriptor, because its path may be longer
 * than unix(7) allows. */
static int transfer(int dir_fd, const char *path, struct buf *body, struct err *err)
{
	char socket_path[64], url[256];
	CURL *curl = curl_easy_init();
	if (!curl)
		return err_set(err, -ENOMEM, "%s", err_str(-ENOMEM));
	snprintf(socket_path, sizeof(socket_path), "/proc/self/fd/%d/admin.sock", dir_fd);
	snprintf(url, sizeof(url), "http://culvert%s", path);
	CURLcode code = CURLE_OK;
	if (curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, socket_path) != CURLE_OK ||
	        curl_easy_setopt(curl, CURLOPT_URL, url) != CURLE_OK)
		code = CURLE_OUT_OF_MEMORY;
	/* An http_proxy of the environment is not for a unix socket. */
	curl_easy_setopt(curl, CURLOPT_PROXY, "");
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, PATIENCE_S);
	curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
	curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, PATIENCE_S);
	curl_easy_setopt(curl, CURLOPT_TIMEOUT, PATIENCE_WHOLE_S);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_bytes);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, body);
	if (code == CURLE_OK)
		code = curl_easy_perform(curl);
	int r = code == CURLE_OK ? check_status(curl, body, path, err) : explain(code, body, err);
	curl_easy_cleanup(curl);
	return r;
}

static int parse(struct answer *answer, const char *path, struct err *err)
{
	const char *end = NULL;
	const char *text = buf_cstr(&answer->body);
	if (!text)
		return err_set(err, -ENOMEM, "%s", err_str(-ENOMEM));
	answer->json = cJSON_ParseWithLengthOpts(text, answer->body.len + 1, &end, 0);
	while (answer->json && isspace((unsigned char)*end))
		end++;
	if (!answer->json || end != text + answer->body.len)
		return err_set(err, -EPROTO, "culvertd's answer to %s is not JSON (at byte %zu of %zu)", path,
		        end ? (size_t)(end - text) : 0, answer->body.len);
	return 0;
}

int client_get(const struct ctl *ctl, const char *path, struct answer *ret, struct err *err)
{
	struct instance instance = {.fd = -1};
	struct answer answer = {.json = NULL};
	buf_init(&answer.body, BODY_MAX);
	int r = instance_find(ctl->run_dir, ctl->instance, &instance, err);
	if (r == 0 && instance.live_cnt > 1)
		fprintf(ctl->notes,
		        "culvertctl: %u instances are live; this is %s/%s, the youngest (--instance picks another)\n",
		        instance.live_cnt, instance.base, instance.name);
	if (r == 0)
		r = transfer(instance.fd, path, &answer.body, err);
	if (r == 0)
		r = parse(&answer, path, err);
	instance_done(&instance);
	if (r < 0)
		answer_done(&answer);
	else
		*ret = answer;
	return r;
}

void answer_done(struct answer *answer)
{
	cJSON_Delete(answer->json);
	answer->json = NULL;
	buf_done(&answer->body);
}

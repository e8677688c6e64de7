/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Calls to the CA and the judgement of its answers; see ca_client.h. Whether the leaf is for the right key is
 * found by the silo, which alone knows the key. */
#include "broker/ca_client.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "broker/broker.h"
#include "broker/control_channel.h"
#include "culvert/limits.h"
#include "pb/citadel.h"
#include "tls/cert.h"

/* Longest answer (the default of upstream's library). */
#define ANSWER_MAX (4u << 20)
/* Bytes of an encoded request: a CSR, an identity and some. */
#define REQUEST_MAX (16u << 10)
/* Bytes of words for a silo: what an answer record may carry. */
#define WORDS_MAX 1024
/* What a silo can be told in one record, names and lengths aside. */
#define CHAIN_MAX 16
#define CHAIN_BYTES_MAX (LIMIT_IPC_RECORD - 1024)

struct ca_client {
	struct broker *broker;
	struct control_channel *channel;
	struct list signs; /* under way */
};

struct ca_sign {
	struct list node; /* in client->signs */
	struct ca_client *client;
	struct control_call *call;
	char *identity;
	struct buf answer;
	bool has_answer; /* one whole message is in */
	ca_done *done;
	void *ctx;
};

static void sign_free(struct ca_sign *sign)
{
	list_del(&sign->node);
	buf_done(&sign->answer);
	mem_free(sign->identity);
	mem_free(sign);
}

static void fail(struct ca_sign *sign, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

static void fail(struct ca_sign *sign, int code, const char *fmt, ...)
{
	char words[WORDS_MAX + 4];
	va_list ap;
	va_start(ap, fmt);
	(void)vsnprintf(words, sizeof(words), fmt, ap);
	va_end(ap);
	size_t len = strlen(words);
	if (len >= WORDS_MAX)
		words[utf8_cut(words, len, WORDS_MAX - 1)] = '\0';
	sign->done(sign->ctx, code, NULL, 0, NULL, words);
}

/* --- judgement ------------------------------------------------------------ */

/* The first block of each element but the last must be a certificate, the first element's ours and valid. */
static int check_chain(const struct ca_sign *sign, const char *const *chain, size_t cnt,
        struct tls_certs *certs, struct err *err)
{
	for (size_t i = 0; i < cnt; i++) {
		int r = tls_certs_add_pem(certs, chain[i], strlen(chain[i]), TLS_PEM_FIRST, NULL, err);
		if (r < 0)
			return err_wrap(err, "failed to create CSR: element %zu of the chain", i);
	}
	const struct tls_cert *leaf = &certs->all[0];
	/* For a machine's own identity the CA decides, as upstream has it. */
	if (!sign->client->broker->settings.dedicated && strcmp(leaf->uri_san, sign->identity) != 0)
		return err_set(err, ERR_SIGNING, "did not find expected SAN: %s", sign->identity);
	if (leaf->not_after <= (int64_t)(clock_wall_us() / 1000000)) {
		char when[TLS_CERT_TIME_MAX];
		tls_cert_time_text(leaf->not_after, when);
		return err_set(err, ERR_CERT_EXPIRED, "certificate of %s expired at %s already",
		        sign->identity, when);
	}
	return 0;
}

static int check_size(const char *const *chain, size_t cnt, struct err *err)
{
	size_t len = 0;
	for (size_t i = 0; i < cnt; i++)
		len += strlen(chain[i]);
	if (cnt - 1 > CHAIN_MAX || len > CHAIN_BYTES_MAX)
		return err_set(err, ERR_TOO_LARGE,
		        "chain returned from CA is too large: %zu elements, %zu bytes", cnt, len);
	return 0;
}

static int check_answer(const struct ca_sign *sign, const char *const *chain, size_t cnt, struct err *err)
{
	struct tls_certs certs = {0};
	struct tls_certs roots = {0};
	if (cnt == 0)
		return err_set(err, ERR_SIGNING, "chain returned from CA is empty for: %s", sign->identity);
	int r = cnt == 1 ? err_set(err, ERR_SIGNING, "no root certificate present") : 0;
	if (r == 0)
		r = check_size(chain, cnt, err);
	if (r == 0)
		r = check_chain(sign, chain, cnt - 1, &certs, err);
	if (r == 0)
		r = tls_certs_add_pem(
		        &roots, chain[cnt - 1], strlen(chain[cnt - 1]), TLS_PEM_ALL_USABLE, NULL, err);
	if (r == 0 && roots.cnt == 0)
		r = err_set(err, ERR_SIGNING, "no root certificate present");
	tls_certs_done(&certs);
	tls_certs_done(&roots);
	return r;
}

static void judge(struct ca_sign *sign)
{
	struct arena *arena = arena_new(2 * ANSWER_MAX);
	const char *const *chain = NULL;
	struct err err = {0};
	size_t cnt = 0;
	int r = arena ? citadel_response_decode(
	                        sign->answer.data, sign->answer.len, arena, &chain, &cnt, &err)
	              : -ENOMEM;
	if (r == 0)
		r = check_answer(sign, chain, cnt, &err);
	if (r == 0)
		sign->done(sign->ctx, 0, chain, cnt - 1, chain[cnt - 1], NULL);
	else
		fail(sign, r, "%s", err.text[0] ? err.text : err_str(r));
	arena_unref(arena);
}

/* --- call ----------------------------------------------------------------- */

static int on_message(void *ctx, size_t len, struct err *err)
{
	struct ca_sign *sign = ctx;
	if (sign->has_answer || sign->answer.len > 0)
		return err_set(err, ERR_PROTOCOL, "a second message in a unary answer");
	return buf_reserve(&sign->answer, len);
}

static int on_bytes(void *ctx, const uint8_t *bytes, size_t len, bool is_last, struct err *err)
{
	struct ca_sign *sign = ctx;
	(void)err;
	sign->has_answer = is_last;
	return len ? buf_add(&sign->answer, bytes, len) : 0;
}

static void on_end(void *ctx, enum control_stage stage, const struct grpc_status *status)
{
	struct ca_sign *sign = ctx;
	(void)stage;
	sign->call = NULL;
	list_del(&sign->node);
	if (status->code != GRPC_OK)
		fail(sign, ERR_SIGNING, "signing gRPC error (%s): %s", grpc_code_text(status->code),
		        status->message);
	else if (!sign->has_answer)
		fail(sign, ERR_SIGNING, "signing gRPC error (%s): Missing response message.",
		        grpc_code_text(GRPC_INTERNAL));
	else
		judge(sign);
	sign_free(sign);
}

static const struct control_call_events call_events = {
        .on_message = on_message, .on_bytes = on_bytes, .on_end = on_end};

static int send_request(struct ca_sign *sign, const char *csr, size_t csr_len, struct err *err)
{
	const struct settings *settings = &sign->client->broker->settings;
	char *text = mem_strndup(csr, csr_len);
	struct buf bytes;
	buf_init(&bytes, REQUEST_MAX);
	const struct citadel_request request = {.csr = text,
	        .validity_s = settings->secret_ttl_ms / 1000,
	        .impersonated = settings->dedicated ? NULL : sign->identity};
	int r = text ? citadel_request_encode(&request, &bytes, err) : -ENOMEM;
	if (r == 0)
		r = control_call_send(sign->call, bytes.data, bytes.len);
	if (r == 0)
		control_call_half_close(sign->call);
	buf_done(&bytes);
	mem_free(text);
	return r;
}

int ca_client_sign(struct ca_client *client, const char *identity, const char *csr, size_t csr_len,
        ca_done *done, void *ctx, struct ca_sign **ret_sign, struct err *err)
{
	static const struct control_call_opts opts = {
	        .path = CITADEL_PATH, .deadline_ms = CA_DEADLINE_MS, .message_max = ANSWER_MAX};
	struct ca_sign *sign = mem_zalloc(1, sizeof(*sign));
	if (!sign)
		return err_set(err, -ENOMEM, "out of memory");
	sign->client = client;
	sign->done = done;
	sign->ctx = ctx;
	list_init(&sign->node);
	buf_init(&sign->answer, ANSWER_MAX);
	sign->identity = mem_strdup(identity);
	int r = sign->identity ? control_call_start(client->channel, &opts, &call_events, sign, &sign->call)
	                       : -ENOMEM;
	if (r == 0) {
		r = send_request(sign, csr, csr_len, err);
		/* The call's own failure is told by its end, not here. */
		if (r == -EPIPE)
			r = 0;
		if (r < 0)
			control_call_cancel(sign->call);
	}
	if (r < 0) {
		if (err->code == 0)
			err_set(err, r, "%s", err_str(r));
		sign_free(sign);
		return r;
	}
	list_add_tail(&client->signs, &sign->node);
	*ret_sign = sign;
	return 0;
}

void ca_sign_cancel(struct ca_sign *sign)
{
	if (!sign)
		return;
	control_call_cancel(sign->call);
	sign_free(sign);
}

int ca_client_new(struct broker *broker, struct ca_client **ret_client, struct err *err)
{
	struct ca_client *client = mem_zalloc(1, sizeof(*client));
	if (!client)
		return err_set(err, -ENOMEM, "out of memory");
	client->broker = broker;
	list_init(&client->signs);
	int r = control_channel_new(broker, CONTROL_CA, &client->channel, err);
	if (r < 0) {
		mem_free(client);
		return r;
	}
	*ret_client = client;
	return 0;
}

void ca_client_free(struct ca_client *client)
{
	if (!client)
		return;
	while (!list_empty(&client->signs))
		ca_sign_cancel(list_entry(client->signs.next, struct ca_sign, node));
	control_channel_free(client->channel);
	mem_free(client);
}

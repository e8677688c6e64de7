/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Trust in the control plane: see trust.h. The names are only kept here;
 * verify.c compares them.
 */
#include "tls/trust.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "tls/ctx.h"

/* Longest host name (RFC 1035 2.3.4), with a final dot. */
#define TRUST_NAME_MAX 254u

struct tls_trust {
	unsigned refs;            /* references */
	char *names[2];           /* host and alternative (may be NULL), owned */
	struct tls_certs roots;   /* anchors */
	struct tls_policy policy; /* copied */
	WOLFSSL_CTX *ctx;         /* NULL until first used */
};

static bool is_bad_name(const char *name)
{
	size_t len = strlen(name);
	return len == 0 || len > TRUST_NAME_MAX;
}

/* Copies a name without its final dot. */
static char *name_copy(const char *name)
{
	size_t len = strlen(name);
	return mem_strndup(name, len > 1 && name[len - 1] == '.' ? len - 1 : len);
}

static int trust_fill(struct tls_trust *trust, const char *roots, size_t roots_len, const char *name,
        const char *alt_name, struct err *err)
{
	trust->names[0] = name_copy(name);
	trust->names[1] = alt_name ? name_copy(alt_name) : NULL;
	if (!trust->names[0] || (alt_name && !trust->names[1]))
		return err_set(err, -ENOMEM, "out of memory");
	return tls_certs_add_pem(&trust->roots, roots, roots_len, TLS_PEM_ALL_USABLE, NULL, err);
}

int tls_trust_new(const char *roots, size_t roots_len, const char *name, const char *alt_name,
        const struct tls_policy *policy, struct tls_trust **ret_trust, struct err *err)
{
	if (is_bad_name(name) || (alt_name && is_bad_name(alt_name)))
		return err_set(err, -EINVAL, "invalid server name: %s", is_bad_name(name) ? name : alt_name);
	struct tls_trust *trust = mem_zalloc(1, sizeof(*trust));
	if (!trust)
		return err_set(err, -ENOMEM, "out of memory");
	trust->refs = 1;
	trust->policy = *policy;
	int ret = trust_fill(trust, roots, roots_len, name, alt_name, err);
	if (ret != 0) {
		tls_trust_unref(trust);
		return ret;
	}
	*ret_trust = trust;
	return 0;
}

bool tls_trust_is_empty(const struct tls_trust *trust)
{
	return trust->roots.cnt == 0;
}

struct tls_trust *tls_trust_ref(struct tls_trust *trust)
{
	trust->refs++;
	return trust;
}

void tls_trust_unref(struct tls_trust *trust)
{
	if (!trust || --trust->refs > 0)
		return;
	wolfSSL_CTX_free(trust->ctx);
	tls_certs_done(&trust->roots);
	mem_free(trust->names[0]);
	mem_free(trust->names[1]);
	mem_free(trust);
}

int tls_trust_ctx(struct tls_trust *trust, WOLFSSL_CTX **ret_ctx, struct err *err)
{
	if (!trust->ctx) {
		int ret = ctx_new(false, &trust->policy, NULL, &trust->roots, &trust->ctx, err);
		if (ret != 0)
			return ret;
	}
	*ret_ctx = trust->ctx;
	return 0;
}

const struct tls_policy *tls_trust_policy(const struct tls_trust *trust)
{
	return &trust->policy;
}

const char *tls_trust_name(const struct tls_trust *trust, unsigned i)
{
	return trust->names[i];
}

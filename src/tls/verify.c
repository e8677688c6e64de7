/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Peer identities: see verify.h. Must not judge chains or dates: the library
 * has done so before.
 */
#include "tls/verify.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "tls/cert_priv.h"

/* Ceiling of each list in an error text; err.h cuts the whole at 512. */
#define VERIFY_LIST_MAX 480u

static bool td_matches(const struct DecodedCert *dc, const struct spiffe *own)
{
	struct spiffe id;
	for (const struct DNS_entry *san = dc->altNames; san; san = san->next) {
		if (cert_san_spiffe(san, &id) && spiffe_same_td(&id, own))
			return true;
	}
	return false;
}

static bool is_accepted(const struct verify_rule *rule, const struct DNS_entry *san)
{
	for (size_t i = 0; i < rule->accept_cnt; i++) {
		const char *want = rule->accept[i];
		if (strlen(want) == (size_t)san->len && memcmp(want, san->name, (size_t)san->len) == 0)
			return true;
	}
	return false;
}

static bool accept_matches(const struct DecodedCert *dc, const struct verify_rule *rule)
{
	struct spiffe id;
	for (const struct DNS_entry *san = dc->altNames; san; san = san->next) {
		if (cert_san_spiffe(san, &id) && is_accepted(rule, san))
			return true;
	}
	return false;
}

/* A DNS SAN against a host name (RFC 6125 6.4): a "*" may only be the whole first label and stands for one
 * label. */
static bool dns_matches(const char *san, size_t len, const char *name)
{
	size_t name_len = strlen(name);
	if (len > 2 && san[0] == '*' && san[1] == '.') {
		const char *dot = strchr(name, '.');
		if (!dot || dot == name)
			return false;
		san++;
		len--;
		name_len -= (size_t)(dot - name);
		name = dot;
	}
	return len == name_len && !memchr(san, 0, len) && strncasecmp(san, name, len) == 0;
}

static bool name_matches(const struct DecodedCert *dc, const char *name)
{
	uint8_t ip[16];
	int ip_len = inet_pton(AF_INET, name, ip) == 1 ? 4 : inet_pton(AF_INET6, name, ip) == 1 ? 16 : 0;
	for (const struct DNS_entry *san = dc->altNames; san; san = san->next) {
		if (san->len <= 0)
			continue;
		if (ip_len && san->type == ASN_IP_TYPE && san->len == ip_len &&
		        memcmp(san->name, ip, (size_t)ip_len) == 0)
			return true;
		if (!ip_len && san->type == ASN_DNS_TYPE && dns_matches(san->name, (size_t)san->len, name))
			return true;
	}
	return false;
}

/* Adds a name of the peer as far as it may stand in a log line. */
static void list_add(struct buf *list, const char *text, size_t len)
{
	if (list->len)
		buf_add_str(list, ", ");
	for (size_t i = 0; i < len; i++)
		buf_add_u8(list, text[i] < 0x20 || text[i] == 0x7f ? (uint8_t)'?' : (uint8_t)text[i]);
}

/* The SANs of the certificate that the rule looks at, comma separated. */
static void list_presented(const struct verify_rule *rule, const struct DecodedCert *dc, struct buf *list)
{
	struct spiffe id;
	for (const struct DNS_entry *san = dc->altNames; san; san = san->next) {
		bool is_shown =
		        rule->kind == VERIFY_NAMES ? san->type == ASN_DNS_TYPE : cert_san_spiffe(san, &id);
		if (is_shown && san->len > 0)
			list_add(list, san->name, (size_t)san->len);
	}
}

static void list_expected(const struct verify_rule *rule, struct buf *list)
{
	for (size_t i = 0; rule->kind == VERIFY_ACCEPT && i < rule->accept_cnt; i++)
		list_add(list, rule->accept[i], strlen(rule->accept[i]));
	for (size_t i = 0; rule->kind == VERIFY_NAMES && i < 2; i++) {
		if (rule->names[i])
			list_add(list, rule->names[i], strlen(rule->names[i]));
	}
}

static int refuse(const struct verify_rule *rule, const struct DecodedCert *dc, struct err *err)
{
	struct buf expected;
	struct buf presented;
	struct spiffe own;
	const char *what = "SAN";
	buf_init(&expected, VERIFY_LIST_MAX);
	buf_init(&presented, VERIFY_LIST_MAX);
	list_presented(rule, dc, &presented);
	list_expected(rule, &expected);
	if (rule->kind == VERIFY_TRUST_DOMAIN &&
	        spiffe_parse(rule->own_id, strlen(rule->own_id), &own) == 0) {
		what = "trust domain";
		list_add(&expected, own.td, own.td_len);
	}
	int ret = err_set(err, ERR_TLS_SAN,
	        "identity verification error: peer did not present the expected %s (%.*s), got [%.*s]", what,
	        (int)expected.len, expected.data ? (const char *)expected.data : "", (int)presented.len,
	        presented.data ? (const char *)presented.data : "");
	buf_done(&expected);
	buf_done(&presented);
	return ret;
}

static bool rule_matches(const struct verify_rule *rule, const struct DecodedCert *dc)
{
	struct spiffe own;
	switch (rule->kind) {
	case VERIFY_TRUST_DOMAIN:
		return spiffe_parse(rule->own_id, strlen(rule->own_id), &own) != 0 || td_matches(dc, &own);
	case VERIFY_ACCEPT:
		return accept_matches(dc, rule);
	case VERIFY_NAMES:
		return name_matches(dc, rule->names[0]) ||
		       (rule->names[1] && name_matches(dc, rule->names[1]));
	}
	return false;
}

int verify_leaf(
        const struct verify_rule *rule, const uint8_t *der, size_t len, char **ret_peer, struct err *err)
{
	struct DecodedCert dc;
	int lib = cert_decode(&dc, der, len, CERT_TYPE, NO_VERIFY);
	if (lib != 0)
		return tls_lib_error(lib, -1, ERR_TLS_HANDSHAKE, err);
	int ret = 0;
	if (rule_matches(rule, &dc)) {
		const struct DNS_entry *first = cert_first_uri(&dc, true);
		*ret_peer = first ? mem_strndup(first->name, (size_t)first->len) : mem_strdup("");
		if (!*ret_peer)
			ret = err_set(err, -ENOMEM, "out of memory");
	} else {
		ret = refuse(rule, &dc, err);
	}
	wc_FreeDecodedCert(&dc);
	return ret;
}

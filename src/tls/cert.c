/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Certificates as values: see cert.h. The library decodes; here its result is
 * turned into plain fields. Judges no trust.
 */
#include "tls/cert.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "tls/cert_priv.h"
#include "tls/pem.h"

#define PEM_CERT_LABEL "CERTIFICATE"

/* Whether the outermost element is exactly the input: the library ignores what follows it. */
static bool is_one_element(const uint8_t *der, size_t len)
{
	if (len < 2 || der[0] != DER_SEQ)
		return false;
	if (der[1] < 0x80)
		return len == 2u + der[1];
	if (der[1] == 0x81)
		return len >= 3 && len == 3u + der[2];
	return der[1] == 0x82 && len >= 4 && len == 4u + ((size_t)der[2] << 8 | der[3]);
}

int cert_decode(struct DecodedCert *dc, const uint8_t *der, size_t len, int type, int verify)
{
	if (len > TLS_CERT_DER_MAX || !is_one_element(der, len))
		return ASN_PARSE_E;
	wc_InitDecodedCert(dc, der, (word32)len, NULL);
	int ret = wc_ParseCert(dc, type, verify, NULL);
	if (ret != 0)
		wc_FreeDecodedCert(dc);
	return ret;
}

bool cert_san_spiffe(const struct DNS_entry *san, struct spiffe *ret_id)
{
	return san->type == ASN_URI_TYPE && san->len > 0 &&
	       spiffe_parse(san->name, (size_t)san->len, ret_id) == 0;
}

const struct DNS_entry *cert_first_uri(const struct DecodedCert *dc, bool spiffe_only)
{
	const struct DNS_entry *first = NULL;
	struct spiffe id;
	/* The library keeps the names last to first. */
	for (const struct DNS_entry *san = dc->altNames; san; san = san->next) {
		if (san->type == ASN_URI_TYPE && (!spiffe_only || cert_san_spiffe(san, &id)))
			first = san;
	}
	return first;
}

const uint8_t *cert_point(const struct DecodedCert *dc)
{
	if (dc->keyOID != ECDSAk || dc->pkCurveOID != ECC_SECP256R1_OID || dc->pubKeySize < KEY_POINT_LEN)
		return NULL;
	/* Either the point alone or the whole SubjectPublicKeyInfo, which ends with it. */
	const uint8_t *point = dc->publicKey + dc->pubKeySize - KEY_POINT_LEN;
	return point[0] == 0x04 ? point : NULL;
}

bool cert_has_key(const uint8_t *der, size_t len, const struct tls_key *key)
{
	struct DecodedCert dc;
	if (cert_decode(&dc, der, len, CERT_TYPE, NO_VERIFY) != 0)
		return false;
	const uint8_t *point = cert_point(&dc);
	bool same = point && memcmp(point, tls_key_point(key), KEY_POINT_LEN) == 0;
	wc_FreeDecodedCert(&dc);
	return same;
}

/* Two digits of a time. */
static int two(const uint8_t *p)
{
	return (p[0] - '0') * 10 + (p[1] - '0');
}

/* A UTCTime or GeneralizedTime element in the forms of RFC 5280 4.1.2.5: Zulu, with seconds. */
static int cert_time(const uint8_t *p, int len, int64_t *ret_seconds)
{
	if (!p || len < 2 || (p[0] != DER_UTC_TIME && p[0] != DER_TIME))
		return -EBADMSG;
	size_t digits = p[0] == DER_UTC_TIME ? 12 : 14;
	if ((size_t)len != digits + 3 || p[1] != digits + 1 || p[2 + digits] != 'Z')
		return -EBADMSG;
	for (size_t i = 0; i < digits; i++) {
		if (p[2 + i] < '0' || p[2 + i] > '9')
			return -EBADMSG;
	}
	const uint8_t *at = p + 2;
	int year = two(at);
	if (digits == 14) {
		at += 2;
		year = year * 100 + two(at);
	} else {
		year += year < 50 ? 2000 : 1900;
	}
	struct tm tm = {.tm_year = year - 1900,
	        .tm_mon = two(at + 2) - 1,
	        .tm_mday = two(at + 4),
	        .tm_hour = two(at + 6),
	        .tm_min = two(at + 8),
	        .tm_sec = two(at + 10)};
	*ret_seconds = timegm(&tm);
	return 0;
}

/* A copy of the name; one with a NUL inside, which would read as a shorter one, counts as none. */
static char *san_text(const struct DNS_entry *san)
{
	if (!san || memchr(san->name, 0, (size_t)san->len))
		return mem_strdup("");
	return mem_strndup(san->name, (size_t)san->len);
}

/* Fills all but der and der_len. */
static int cert_fill(struct tls_cert *cert, const struct DecodedCert *dc)
{
	if (cert_time(dc->beforeDate, dc->beforeDateLen, &cert->not_before) != 0 ||
	        cert_time(dc->afterDate, dc->afterDateLen, &cert->not_after) != 0)
		return -EBADMSG;
	if (dc->serialSz < 0 || dc->serialSz > (int)TLS_CERT_SERIAL_MAX)
		return -EBADMSG;
	const uint8_t *serial = dc->serial;
	size_t serial_len = (size_t)dc->serialSz;
	for (; serial_len && serial[0] == 0; serial_len--)
		serial++;
	memcpy(cert->serial, serial, serial_len);
	cert->serial_len = serial_len;
	cert->is_ca = dc->isCA;
	cert->uri_san = san_text(cert_first_uri(dc, false));
	cert->spiffe_id = san_text(cert_first_uri(dc, true));
	return cert->uri_san && cert->spiffe_id ? 0 : -ENOMEM;
}

int tls_cert_parse(const uint8_t *der, size_t len, struct tls_cert *ret_cert, struct err *err)
{
	struct DecodedCert dc;
	struct tls_cert cert = {0};
	int lib = cert_decode(&dc, der, len, CERT_TYPE, NO_VERIFY);
	if (lib != 0)
		return tls_lib_error(lib, -1, ERR_CERT_PARSE, err);
	int ret = cert_fill(&cert, &dc);
	wc_FreeDecodedCert(&dc);
	if (ret == 0) {
		cert.der = mem_alloc(len);
		ret = cert.der ? 0 : -ENOMEM;
	}
	if (ret != 0) {
		tls_cert_done(&cert);
		if (ret == -ENOMEM)
			return err_set(err, -ENOMEM, "out of memory");
		return err_set(err, ERR_CERT_PARSE, "certificate with a bad date or serial number");
	}
	memcpy(cert.der, der, len);
	cert.der_len = len;
	*ret_cert = cert;
	return 0;
}

void tls_cert_done(struct tls_cert *cert)
{
	mem_free(cert->der);
	mem_free(cert->uri_san);
	mem_free(cert->spiffe_id);
	*cert = (struct tls_cert){0};
}

static int certs_grow(struct tls_certs *certs, struct err *err)
{
	if (certs->cnt >= TLS_CERT_BUNDLE_MAX)
		return err_set(err, ERR_TOO_MANY, "more than %u certificates", TLS_CERT_BUNDLE_MAX);
	struct tls_cert *all = mem_realloc(certs->all, (certs->cnt + 1) * sizeof(*all));
	if (!all)
		return err_set(err, -ENOMEM, "out of memory");
	certs->all = all;
	return 0;
}

/* Adds the certificate of one block. */
static int certs_add_block(struct tls_certs *certs, const struct pem_block *block, struct err *err)
{
	struct buf der;
	if (strcmp(block->label, PEM_CERT_LABEL) != 0)
		return err_set(err, ERR_CERT_PARSE, "PEM block %s is not a certificate", block->label);
	buf_init(&der, TLS_CERT_DER_MAX);
	int ret = pem_decode(block, &der);
	if (ret == -ENOMEM)
		ret = err_set(err, -ENOMEM, "out of memory");
	else if (ret != 0)
		ret = err_set(err, ERR_CERT_PARSE, "PEM block is not base64 of a certificate");
	else
		ret = certs_grow(certs, err);
	if (ret == 0)
		ret = tls_cert_parse(der.data, der.len, &certs->all[certs->cnt], err);
	if (ret == 0)
		certs->cnt++;
	buf_done(&der);
	return ret;
}

/* Drops the certificates behind the first cnt. */
static void certs_cut(struct tls_certs *certs, size_t cnt)
{
	while (certs->cnt > cnt)
		tls_cert_done(&certs->all[--certs->cnt]);
}

int tls_certs_add_pem(struct tls_certs *certs, const char *pem, size_t len, enum tls_pem_take take,
        unsigned *skipped, struct err *err)
{
	const char *at = pem;
	struct pem_block block;
	size_t before = certs->cnt;
	unsigned bad = 0;
	int ret;
	while ((ret = pem_next(&at, pem + len, &block)) == 1) {
		ret = certs_add_block(certs, &block, err);
		if (ret == ERR_CERT_PARSE && take == TLS_PEM_ALL_USABLE) {
			bad++;
			ret = 0;
		}
		if (ret != 0 || take == TLS_PEM_FIRST)
			break;
	}
	if (ret == -EBADMSG && take == TLS_PEM_ALL_USABLE) {
		bad++;
		ret = 0;
	} else if (ret == -EBADMSG) {
		ret = err_set(err, ERR_CERT_PARSE, "PEM block without an end");
	} else if (ret == 0 && certs->cnt == before && take != TLS_PEM_ALL_USABLE) {
		ret = err_set(err, ERR_CERT_PARSE, "no certificate in PEM text");
	}
	if (ret != 0)
		certs_cut(certs, before);
	else if (skipped)
		*skipped = bad;
	return ret;
}

void tls_certs_done(struct tls_certs *certs)
{
	certs_cut(certs, 0);
	mem_free(certs->all);
	*certs = (struct tls_certs){0};
}

int tls_cert_pem(const struct tls_cert *cert, unsigned columns, struct buf *out)
{
	return pem_encode(PEM_CERT_LABEL, cert->der, cert->der_len, columns, out);
}

void tls_cert_serial_text(const struct tls_cert *cert, char ret_text[TLS_CERT_SERIAL_TEXT_MAX])
{
	uint8_t number[TLS_CERT_SERIAL_MAX];
	char digits[TLS_CERT_SERIAL_TEXT_MAX];
	size_t cnt = 0;
	size_t first = 0;
	memcpy(number, cert->serial, cert->serial_len);
	do {
		unsigned rest = 0;
		for (size_t i = first; i < cert->serial_len; i++) {
			rest = rest << 8 | number[i];
			number[i] = (uint8_t)(rest / 10);
			rest %= 10;
		}
		digits[cnt++] = (char)('0' + rest);
		while (first < cert->serial_len && number[first] == 0)
			first++;
	} while (first < cert->serial_len);
	for (size_t i = 0; i < cnt; i++)
		ret_text[i] = digits[cnt - 1 - i];
	ret_text[cnt] = 0;
}

void tls_cert_time_text(int64_t seconds, char ret_text[TLS_CERT_TIME_MAX])
{
	time_t t = (time_t)seconds;
	struct tm tm;
	if (!gmtime_r(&t, &tm) || strftime(ret_text, TLS_CERT_TIME_MAX, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
		snprintf(ret_text, TLS_CERT_TIME_MAX, "0000-00-00T00:00:00Z");
}

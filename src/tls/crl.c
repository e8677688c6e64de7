/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * CRLs (RFC 5280 section 5) against chains. Names are compared as bytes, as
 * certificate issuers copy them. Dates are not looked at: an old list is
 * better than none (dataplane 12.2). Knows no session.
 */
#include "tls/crl_priv.h"

#include <errno.h>
#include <string.h>
#include <wolfssl/wolfcrypt/hash.h>
#include <wolfssl/wolfcrypt/rsa.h>
#include <wolfssl/wolfcrypt/signature.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "tls/cert_priv.h"
#include "tls/der.h"
#include "tls/pem.h"

/* Ceiling of one decoded CRL; the whole file has its own. */
#define CRL_DER_MAX (16u << 20)

/* One CRL; spans point into `der`. */
struct crl {
	uint8_t *der;                          /* owned */
	struct crl_span tbs;                   /* what is signed */
	struct crl_span issuer;                /* name, with its tag */
	struct crl_span revoked;               /* entries, without the list's own tag */
	struct crl_span oid;                   /* of the signature's algorithm */
	struct crl_span signature;             /* bits */
	uint8_t signer[WC_SHA256_DIGEST_SIZE]; /* hash of the last key that it was tried with */
	bool is_tried;                         /* signer and is_genuine mean something */
	bool is_genuine;                       /* that key has signed it */
};

struct tls_crls {
	struct crl *all; /* array of cnt, owned */
	size_t cnt;
};

struct tls_revocation {
	struct tls_crls *crls; /* owned; NULL = nothing is revoked */
	struct list members;   /* struct crl_member */
};

/* What of a certificate matters here; borrowed from it. */
struct names {
	struct crl_span serial;
	struct crl_span issuer;
	struct crl_span subject;
	struct crl_span key; /* SubjectPublicKeyInfo */
};

/* --- reading DER ---------------------------------------------------------- */

/* Takes the next element off `in`: whole, and its content. False when there is none or it is cut. */
static bool take(struct crl_span *in, uint8_t *ret_tag, struct crl_span *whole, struct crl_span *body)
{
	size_t head = 2;
	if (in->len < head)
		return false;
	size_t len = in->p[1];
	if (len & 0x80) {
		size_t cnt = len & 0x7f;
		head += cnt;
		/* Indefinite lengths are no DER, and nothing here needs more than four bytes. */
		if (cnt == 0 || cnt > 4 || in->len < head)
			return false;
		len = 0;
		for (size_t i = 0; i < cnt; i++)
			len = len << 8 | in->p[2 + i];
	}
	if (in->len - head < len)
		return false;
	*ret_tag = in->p[0];
	*whole = (struct crl_span){in->p, head + len};
	*body = (struct crl_span){in->p + head, len};
	in->p += head + len;
	in->len -= head + len;
	return true;
}

/* The same for an element that must be there; `whole` and `body` may be NULL. */
static bool take_tag(struct crl_span *in, uint8_t tag, struct crl_span *whole, struct crl_span *body)
{
	struct crl_span w, b;
	uint8_t got;
	if (!take(in, &got, &w, &b) || got != tag)
		return false;
	if (whole)
		*whole = w;
	if (body)
		*body = b;
	return true;
}

static bool is_next(const struct crl_span *in, uint8_t tag)
{
	return in->len > 0 && in->p[0] == tag;
}

static bool span_eq(const struct crl_span *a, const struct crl_span *b)
{
	return a->len == b->len && memcmp(a->p, b->p, a->len) == 0;
}

static bool skip_time(struct crl_span *in)
{
	return take_tag(in, is_next(in, DER_TIME) ? DER_TIME : DER_UTC_TIME, NULL, NULL);
}

/* TBSCertList of RFC 5280 5.1.2. */
static bool read_tbs(struct crl_span in, struct crl *crl)
{
	struct crl_span entries;
	if (is_next(&in, DER_INTEGER) && !take_tag(&in, DER_INTEGER, NULL, NULL))
		return false;
	if (!take_tag(&in, DER_SEQ, NULL, NULL) || !take_tag(&in, DER_SEQ, &crl->issuer, NULL) ||
	        !skip_time(&in))
		return false;
	if ((is_next(&in, DER_TIME) || is_next(&in, DER_UTC_TIME)) && !skip_time(&in))
		return false;
	if (is_next(&in, DER_SEQ) && !take_tag(&in, DER_SEQ, NULL, &crl->revoked))
		return false;
	if (is_next(&in, DER_CTX0) && !take_tag(&in, DER_CTX0, NULL, NULL))
		return false;
	/* Every entry now, so that later walks need no errors. */
	for (entries = crl->revoked; entries.len;) {
		struct crl_span entry;
		if (!take_tag(&entries, DER_SEQ, NULL, &entry) || !take_tag(&entry, DER_INTEGER, NULL, NULL))
			return false;
	}
	return in.len == 0;
}

static bool read_crl(struct crl *crl, size_t len)
{
	struct crl_span in = {crl->der, len};
	struct crl_span list, alg, tbs;
	if (!take_tag(&in, DER_SEQ, NULL, &list) || in.len)
		return false;
	if (!take_tag(&list, DER_SEQ, &crl->tbs, &tbs) || !take_tag(&list, DER_SEQ, NULL, &alg) ||
	        !take_tag(&alg, DER_OID, NULL, &crl->oid) ||
	        !take_tag(&list, DER_BITS, NULL, &crl->signature) || list.len)
		return false;
	/* The first byte counts unused bits: a signature has none. */
	if (crl->signature.len < 2 || crl->signature.p[0] != 0)
		return false;
	crl->signature.p++;
	crl->signature.len--;
	return read_tbs(tbs, crl);
}

static bool read_names(const struct crl_span *der, struct names *ret)
{
	struct crl_span in = *der;
	struct crl_span cert, tbs;
	if (!take_tag(&in, DER_SEQ, NULL, &cert) || !take_tag(&cert, DER_SEQ, NULL, &tbs))
		return false;
	if (is_next(&tbs, DER_CTX0) && !take_tag(&tbs, DER_CTX0, NULL, NULL))
		return false;
	return take_tag(&tbs, DER_INTEGER, NULL, &ret->serial) && take_tag(&tbs, DER_SEQ, NULL, NULL) &&
	       take_tag(&tbs, DER_SEQ, &ret->issuer, NULL) && take_tag(&tbs, DER_SEQ, NULL, NULL) &&
	       take_tag(&tbs, DER_SEQ, &ret->subject, NULL) && take_tag(&tbs, DER_SEQ, &ret->key, NULL);
}

/* --- sets ----------------------------------------------------------------- */

static int add_crl(struct tls_crls *crls, const void *der, size_t len, struct err *err)
{
	if (crls->cnt == TLS_CRL_MAX)
		return err_set(err, ERR_TOO_MANY, "more than %u CRLs", TLS_CRL_MAX);
	struct crl *all = mem_realloc(crls->all, (crls->cnt + 1) * sizeof(*all));
	if (!all)
		return err_set(err, -ENOMEM, "out of memory");
	crls->all = all;
	struct crl *crl = &all[crls->cnt];
	*crl = (struct crl){.der = mem_alloc(len ? len : 1)};
	if (!crl->der)
		return err_set(err, -ENOMEM, "out of memory");
	memcpy(crl->der, der, len);
	crls->cnt++;
	return read_crl(crl, len) ? 0 : err_set(err, ERR_CERT_PARSE, "CRL %zu cannot be parsed", crls->cnt);
}

static int add_pem(struct tls_crls *crls, const char *at, const char *end, struct err *err)
{
	struct pem_block block;
	int r;
	while ((r = pem_next(&at, end, &block)) == 1) {
		struct buf der;
		if (strcmp(block.label, "X509 CRL") != 0)
			continue;
		buf_init(&der, CRL_DER_MAX);
		r = pem_decode(&block, &der);
		if (r == 0)
			r = add_crl(crls, der.data, der.len, err);
		else
			r = err_set(err, r == -ENOMEM ? r : ERR_CERT_PARSE, "a PEM block cannot be decoded");
		buf_done(&der);
		if (r < 0)
			return r;
	}
	return r < 0 ? err_set(err, ERR_CERT_PARSE, "a PEM block has no end") : 0;
}

int tls_crls_new(const void *bytes, size_t len, struct tls_crls **ret_crls, struct err *err)
{
	static const char mark[] = "-----BEGIN";
	struct tls_crls *crls = mem_zalloc(1, sizeof(*crls));
	int r = 0;
	if (!crls)
		return err_set(err, -ENOMEM, "out of memory");
	if (len >= sizeof(mark) - 1 && memcmp(bytes, mark, sizeof(mark) - 1) == 0)
		r = add_pem(crls, bytes, (const char *)bytes + len, err);
	else if (len)
		r = add_crl(crls, bytes, len, err);
	if (r < 0)
		tls_crls_free(crls);
	else
		*ret_crls = crls;
	return r;
}

void tls_crls_free(struct tls_crls *crls)
{
	if (!crls)
		return;
	for (size_t i = 0; i < crls->cnt; i++)
		mem_free(crls->all[i].der);
	mem_free(crls->all);
	mem_free(crls);
}

size_t tls_crls_cnt(const struct tls_crls *crls)
{
	return crls->cnt;
}

/* --- signatures ----------------------------------------------------------- */

static const struct algorithm {
	uint8_t oid[9];
	uint8_t oid_len;
	enum wc_HashType hash;
	enum wc_SignatureType kind;
} algorithms[] = {
        {{0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2}, 8, WC_HASH_TYPE_SHA256, WC_SIGNATURE_TYPE_ECC},
        {{0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 3}, 8, WC_HASH_TYPE_SHA384, WC_SIGNATURE_TYPE_ECC},
        {{0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 4}, 8, WC_HASH_TYPE_SHA512, WC_SIGNATURE_TYPE_ECC},
        {{0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 11}, 9, WC_HASH_TYPE_SHA256, WC_SIGNATURE_TYPE_RSA_W_ENC},
        {{0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 12}, 9, WC_HASH_TYPE_SHA384, WC_SIGNATURE_TYPE_RSA_W_ENC},
        {{0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 13}, 9, WC_HASH_TYPE_SHA512, WC_SIGNATURE_TYPE_RSA_W_ENC},
};

static const struct algorithm *find_algorithm(const struct crl_span *oid)
{
	for (size_t i = 0; i < sizeof(algorithms) / sizeof(algorithms[0]); i++) {
		const struct algorithm *a = &algorithms[i];
		if (oid->len == a->oid_len && memcmp(oid->p, a->oid, oid->len) == 0)
			return a;
	}
	return NULL;
}

static bool verify_with(const struct algorithm *a, const struct crl *crl, void *key, size_t key_len)
{
	return wc_SignatureVerify(a->hash, a->kind, crl->tbs.p, (word32)crl->tbs.len, crl->signature.p,
	               (word32)crl->signature.len, key, (word32)key_len) == 0;
}

/* Whether the key of a SubjectPublicKeyInfo has signed the CRL. */
static bool has_signed(const struct crl_span *spki, const struct crl *crl)
{
	const struct algorithm *a = find_algorithm(&crl->oid);
	word32 at = 0;
	bool is_good = false;
	if (!a)
		return false;
	if (a->kind == WC_SIGNATURE_TYPE_ECC) {
		ecc_key key;
		if (wc_ecc_init(&key) != 0)
			return false;
		if (wc_EccPublicKeyDecode(spki->p, &at, &key, (word32)spki->len) == 0)
			is_good = verify_with(a, crl, &key, sizeof(key));
		wc_ecc_free(&key);
		return is_good;
	}
	RsaKey key;
	if (wc_InitRsaKey(&key, NULL) != 0)
		return false;
	if (wc_RsaPublicKeyDecode(spki->p, &at, &key, (word32)spki->len) == 0)
		is_good = verify_with(a, crl, &key, sizeof(key));
	wc_FreeRsaKey(&key);
	return is_good;
}

/* Whether a certificate may sign CRLs (RFC 5280 4.2.1.3: without the extension, everything). */
static bool may_sign(const struct crl_span *der)
{
	struct DecodedCert dc;
	if (cert_decode(&dc, der->p, der->len, CERT_TYPE, NO_VERIFY) != 0)
		return false;
	bool may = !dc.extKeyUsageSet || dc.extKeyUsage & KEYUSE_CRL_SIGN;
	wc_FreeDecodedCert(&dc);
	return may;
}

/* The same key is asked for at every handshake: the last answer is kept. */
static bool is_signer(const struct crl_span *der, const struct names *names, struct crl *crl)
{
	uint8_t hash[WC_SHA256_DIGEST_SIZE];
	if (wc_Sha256Hash(der->p, (word32)der->len, hash) != 0)
		return false;
	if (!crl->is_tried || memcmp(hash, crl->signer, sizeof(hash)) != 0) {
		memcpy(crl->signer, hash, sizeof(hash));
		crl->is_tried = true;
		crl->is_genuine = may_sign(der) && has_signed(&names->key, crl);
	}
	return crl->is_genuine;
}

/* --- judging -------------------------------------------------------------- */

static bool is_listed(const struct crl *crl, const struct crl_span *serial)
{
	struct crl_span entries = crl->revoked;
	struct crl_span entry, number;
	while (take_tag(&entries, DER_SEQ, NULL, &entry)) {
		if (take_tag(&entry, DER_INTEGER, NULL, &number) && span_eq(&number, serial))
			return true;
	}
	return false;
}

static bool is_anchor(const struct crl_member *member, const struct crl_span *der)
{
	for (size_t i = 0; i < member->roots->cnt; i++) {
		const struct tls_cert *root = &member->roots->all[i];
		if (root->der_len == der->len && memcmp(root->der, der->p, der->len) == 0)
			return true;
	}
	return false;
}

/* Whether one of the chain or of the anchors bears the CRL's name and has signed it. */
static bool is_genuine(const struct crl_member *member, struct crl *crl)
{
	for (size_t i = 0; i < member->chain_cnt + member->roots->cnt; i++) {
		const struct tls_cert *root =
		        i < member->chain_cnt ? NULL : &member->roots->all[i - member->chain_cnt];
		struct crl_span der = root ? (struct crl_span){root->der, root->der_len} : member->chain[i];
		struct names names;
		if (read_names(&der, &names) && span_eq(&names.subject, &crl->issuer) &&
		        is_signer(&der, &names, crl))
			return true;
	}
	return false;
}

static int check_one(
        struct tls_crls *crls, const struct crl_member *member, const struct crl_span *der, struct err *err)
{
	struct names names;
	if (is_anchor(member, der))
		return 0;
	if (!read_names(der, &names))
		return err_set(err, ERR_TLS_HANDSHAKE, "invalid peer certificate: BadEncoding");
	for (size_t i = 0; i < crls->cnt; i++) {
		struct crl *crl = &crls->all[i];
		if (!span_eq(&crl->issuer, &names.issuer))
			continue;
		if (!is_genuine(member, crl))
			return err_set(err, ERR_TLS_HANDSHAKE,
			        "invalid peer certificate: the CRL of its issuer has a bad signature");
		if (is_listed(crl, &names.serial))
			return err_set(err, ERR_TLS_REVOKED, "invalid peer certificate: Revoked");
	}
	return 0;
}

int crl_check(struct tls_crls *crls, const struct crl_member *member, struct err *err)
{
	for (size_t i = 0; crls && i < member->chain_cnt; i++) {
		int r = check_one(crls, member, &member->chain[i], err);
		if (r < 0)
			return r;
	}
	return 0;
}

/* --- the place ------------------------------------------------------------ */

struct tls_revocation *tls_revocation_new(void)
{
	struct tls_revocation *revocation = mem_zalloc(1, sizeof(*revocation));
	if (revocation)
		list_init(&revocation->members);
	return revocation;
}

void tls_revocation_free(struct tls_revocation *revocation)
{
	if (!revocation)
		return;
	tls_crls_free(revocation->crls);
	mem_free(revocation);
}

void tls_revocation_set(struct tls_revocation *revocation, struct tls_crls *crls)
{
	struct list all;
	struct err err;
	tls_crls_free(revocation->crls);
	revocation->crls = crls;
	/* Who is told may take others with it: each goes back before it is judged. */
	list_init(&all);
	list_move_all(&all, &revocation->members);
	while (!list_empty(&all)) {
		struct crl_member *member = list_entry(all.next, struct crl_member, node);
		list_del(&member->node);
		list_add_tail(&revocation->members, &member->node);
		if (crl_check(crls, member, &err) == ERR_TLS_REVOKED && member->told)
			member->told(member->ctx);
	}
}

static int keep_chain(struct crl_member *member, const WOLFSSL_BUFFER_INFO *chain, size_t cnt)
{
	size_t size = cnt * sizeof(struct crl_span);
	for (size_t i = 0; i < cnt; i++)
		size += chain[i].length;
	mem_free(member->chain);
	member->chain_cnt = 0;
	member->chain = mem_alloc(size);
	if (!member->chain)
		return -ENOMEM;
	uint8_t *at = (uint8_t *)(member->chain + cnt);
	for (size_t i = 0; i < cnt; i++) {
		memcpy(at, chain[i].buffer, chain[i].length);
		member->chain[i] = (struct crl_span){at, chain[i].length};
		at += chain[i].length;
	}
	member->chain_cnt = cnt;
	return 0;
}

int crl_admit(struct tls_revocation *revocation, struct crl_member *member, const WOLFSSL_BUFFER_INFO *chain,
        size_t cnt, struct err *err)
{
	if (cnt > CRL_CHAIN_MAX)
		return err_set(err, ERR_TLS_HANDSHAKE, "more than %u certificates in a chain", CRL_CHAIN_MAX);
	if (keep_chain(member, chain, cnt) < 0)
		return err_set(err, -ENOMEM, "out of memory");
	int r = crl_check(revocation->crls, member, err);
	if (r == 0 && !member->node.next)
		list_init(&member->node);
	if (r == 0 && list_empty(&member->node))
		list_add_tail(&revocation->members, &member->node);
	return r;
}

void crl_leave(struct crl_member *member)
{
	if (member->node.next)
		list_del(&member->node);
	mem_free(member->chain);
	member->chain = NULL;
	member->chain_cnt = 0;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Private keys: see key.h. Only the 32 bytes of the scalar are kept, in a page
 * of their own; the library's large key object is rebuilt on the stack for
 * each signature and wiped. Must not know certificates.
 */
#include "tls/key_priv.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "tls/lib.h"
#include "tls/pem.h"

#define KEY_SCALAR_LEN 32u
/* Largest DER private key that is read; P-256 in PKCS#8 is below 150 bytes. */
#define KEY_DER_MAX 512u

struct tls_key {
	unsigned refs;                /* references */
	bool is_locked;               /* mlock succeeded */
	WC_RNG *rng;                  /* generator for nonces; made in the process that uses it */
	uint8_t point[KEY_POINT_LEN]; /* public half */
	uint8_t *scalar; /* private half, KEY_SCALAR_LEN bytes at the start of a page of its own */
	size_t map_len;  /* bytes of that mapping */
};

static int key_map(struct tls_key *key)
{
	size_t len = (size_t)sysconf(_SC_PAGESIZE);
	void *page = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		return -ENOMEM;
	key->scalar = page;
	key->map_len = len;
	/* Best effort: the chart's 8 MB of locked memory may be used up, and old kernels lack the advice. */
	key->is_locked = mlock(page, len) == 0;
	madvise(page, len, MADV_DONTDUMP);
	madvise(page, len, MADV_WIPEONFORK);
	return 0;
}

static struct tls_key *key_alloc(struct err *err)
{
	struct tls_key *key = tls_lib_init() == 0 ? mem_zalloc(1, sizeof(*key)) : NULL;
	if (key) {
		key->refs = 1;
		key->rng = wc_rng_new(NULL, 0, NULL);
	}
	if (!key || !key->rng || key_map(key) != 0) {
		err_set(err, -ENOMEM, "out of memory for a private key");
		tls_key_unref(key);
		return NULL;
	}
	return key;
}

struct tls_key *tls_key_ref(struct tls_key *key)
{
	key->refs++;
	return key;
}

void tls_key_unref(struct tls_key *key)
{
	if (!key || --key->refs > 0)
		return;
	wc_rng_free(key->rng);
	if (key->scalar) {
		mem_wipe(key->scalar, KEY_SCALAR_LEN);
		munmap(key->scalar, key->map_len);
	}
	mem_free(key);
}

const void *tls_key_page(const struct tls_key *key)
{
	return key->scalar;
}

bool tls_key_is_locked(const struct tls_key *key)
{
	return key->is_locked;
}

const uint8_t *tls_key_point(const struct tls_key *key)
{
	return key->point;
}

/* Frees the library's object and what its memory still holds. */
static void ecc_wipe(ecc_key *ecc)
{
	wc_ecc_free(ecc);
	mem_wipe(ecc, sizeof(*ecc));
}

/* Copies both halves of the library's object into ours. */
static int key_take(struct tls_key *key, ecc_key *ecc)
{
	word32 scalar_len = KEY_SCALAR_LEN;
	word32 point_len = KEY_POINT_LEN;
	if (wc_ecc_export_private_only(ecc, key->scalar, &scalar_len) != 0 || scalar_len != KEY_SCALAR_LEN)
		return -EIO;
	if (wc_ecc_export_x963(ecc, key->point, &point_len) != 0 || point_len != KEY_POINT_LEN)
		return -EIO;
	return 0;
}

int tls_key_new(struct tls_key **ret_key, struct err *err)
{
	struct tls_key *key = key_alloc(err);
	if (!key)
		return -ENOMEM;
	ecc_key ecc;
	int ret = wc_ecc_init(&ecc);
	if (ret == 0)
		ret = wc_ecc_make_key_ex(key->rng, KEY_SCALAR_LEN, &ecc, ECC_SECP256R1);
	if (ret == 0)
		ret = key_take(key, &ecc);
	ecc_wipe(&ecc);
	if (ret != 0) {
		tls_key_unref(key);
		return err_set(err, -EIO, "cannot make a P-256 key (%d)", ret);
	}
	*ret_key = key;
	return 0;
}

/* Finds the first private key block and decodes it into `der`. */
static int key_der(const char *pem, size_t len, struct buf *der)
{
	const char *at = pem;
	struct pem_block block;
	int ret;
	while ((ret = pem_next(&at, pem + len, &block)) == 1) {
		if (strcmp(block.label, "EC PRIVATE KEY") == 0 || strcmp(block.label, "PRIVATE KEY") == 0)
			return pem_decode(&block, der);
	}
	return ret < 0 ? ret : -EBADMSG;
}

/* Decodes DER into ours, making the public half if the file lacks it. */
static int key_import(struct tls_key *key, const uint8_t *der, size_t len)
{
	ecc_key ecc;
	word32 at = 0;
	int ret = wc_ecc_init(&ecc);
	if (ret == 0)
		ret = wc_EccPrivateKeyDecode(der, &at, &ecc, (word32)len);
	if (ret == 0 && wc_ecc_get_curve_id(ecc.idx) != ECC_SECP256R1)
		ret = -EBADMSG;
	/* Always made anew: a stored public half that does not belong to the private one must not be
	 * believed. */
	if (ret == 0)
		ret = wc_ecc_make_pub_ex(&ecc, NULL, key->rng);
	if (ret == 0)
		ret = key_take(key, &ecc);
	ecc_wipe(&ecc);
	return ret == 0 ? 0 : -EBADMSG;
}

int tls_key_from_pem(const char *pem, size_t len, struct tls_key **ret_key, struct err *err)
{
	struct buf der;
	buf_init(&der, KEY_DER_MAX);
	/* At once, so that growing never leaves a copy behind. */
	int ret = buf_reserve(&der, KEY_DER_MAX);
	if (ret == 0)
		ret = key_der(pem, len, &der);
	struct tls_key *key = ret == 0 ? key_alloc(err) : NULL;
	if (ret == 0)
		ret = key ? key_import(key, der.data, der.len) : -ENOMEM;
	if (der.data)
		mem_wipe(der.data, der.cap);
	buf_done(&der);
	if (ret != 0) {
		tls_key_unref(key);
		ret = ret == -ENOMEM ? -ENOMEM : -EBADMSG;
		return err_set(err, ret,
		        ret == -ENOMEM ? "out of memory for a private key"
		                       : "not a P-256 private key in PEM");
	}
	*ret_key = key;
	return 0;
}

int tls_key_sign(struct tls_key *key, const uint8_t *hash, size_t hash_len, uint8_t *sig, size_t *len)
{
	ecc_key ecc;
	word32 sig_len = (word32)*len;
	int ret = wc_ecc_init(&ecc);
	if (ret == 0)
		ret = wc_ecc_import_private_key_ex(key->scalar, KEY_SCALAR_LEN, NULL, 0, &ecc, ECC_SECP256R1);
	if (ret == 0)
		ret = wc_ecc_sign_hash(hash, (word32)hash_len, sig, &sig_len, key->rng, &ecc);
	ecc_wipe(&ecc);
	if (ret != 0)
		return -EIO;
	*len = sig_len;
	return 0;
}

int tls_key_random(struct tls_key *key, uint8_t *p, size_t len)
{
	return wc_RNG_GenerateBlock(key->rng, p, (word32)len) == 0 ? 0 : -EIO;
}

/* ecPublicKey and prime256v1 (RFC 5480 2.1.1). */
static const uint8_t oid_ec_public_key[] = {0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01};
static const uint8_t oid_prime256v1[] = {0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07};
/* ecdsa-with-SHA256 (RFC 5758 3.2). */
static const uint8_t oid_ecdsa_sha256[] = {0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02};

void der_spki(struct der *d, const uint8_t point[KEY_POINT_LEN])
{
	size_t since = der_len(d);
	der_bits(d, point, KEY_POINT_LEN);
	size_t algorithm = der_len(d);
	der_elem(d, DER_OID, oid_prime256v1, sizeof(oid_prime256v1));
	der_elem(d, DER_OID, oid_ec_public_key, sizeof(oid_ec_public_key));
	der_wrap(d, DER_SEQ, algorithm);
	der_wrap(d, DER_SEQ, since);
}

void der_ecdsa_sha256(struct der *d)
{
	size_t since = der_len(d);
	der_elem(d, DER_OID, oid_ecdsa_sha256, sizeof(oid_ecdsa_sha256));
	der_wrap(d, DER_SEQ, since);
}

int tls_key_sign_der(struct tls_key *key, const struct der *body, struct der *ret_signed)
{
	uint8_t hash[WC_SHA256_DIGEST_SIZE];
	uint8_t sig[KEY_SIG_MAX];
	size_t sig_len = sizeof(sig);
	if (body->err)
		return body->err;
	if (wc_Sha256Hash(der_bytes(body), (word32)der_len(body), hash) != 0)
		return -EIO;
	int ret = tls_key_sign(key, hash, sizeof(hash), sig, &sig_len);
	if (ret != 0)
		return ret;
	der_init(ret_signed);
	der_bits(ret_signed, sig, sig_len);
	der_ecdsa_sha256(ret_signed);
	der_raw(ret_signed, der_bytes(body), der_len(body));
	der_wrap(ret_signed, DER_SEQ, 0);
	return ret_signed->err;
}

int tls_key_pem(const struct tls_key *key, struct buf *out)
{
	struct der d;
	der_init(&d);
	size_t public = der_len(&d);
	der_bits(&d, key->point, KEY_POINT_LEN);
	der_wrap(&d, DER_CTX1, public);
	size_t curve = der_len(&d);
	der_elem(&d, DER_OID, oid_prime256v1, sizeof(oid_prime256v1));
	der_wrap(&d, DER_CTX0, curve);
	der_elem(&d, DER_OCTETS, key->scalar, KEY_SCALAR_LEN);
	der_uint(&d, (const uint8_t *)"\x01", 1);
	der_wrap(&d, DER_SEQ, 0);
	int ret = d.err ? d.err : pem_encode("EC PRIVATE KEY", der_bytes(&d), der_len(&d), 64, out);
	mem_wipe(&d, sizeof(d));
	return ret;
}

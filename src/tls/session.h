/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One TLS connection without any I/O: bytes from the peer are lent with
 * tls_feed, bytes for the peer are appended to a chain, and in between stand
 * handshake, read and write. Behaviour: reference dataplane.md 7. Knows no
 * socket, no ring, no clock of its own, and nothing of HTTP/2 but the ALPN
 * name.
 *
 * The way to drive it:
 *   tls_feed(s, bytes, len);
 *   until tls_is_established(s): tls_handshake(s) -> 0, -EAGAIN or an error;
 *   while (tls_read(s, buf, cap) > 0) ...;
 *   send the chain, whatever was returned: an error leaves the alert there.
 *
 * Sessions are not re-entrant and call nobody back.
 */
#ifndef TLS_SESSION_H
#define TLS_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct chain;
struct chunk_pool;
struct err;
struct tls_identity;
struct tls_trust;

/* Most plaintext in one record (RFC 8446 5.1). A write of exactly this much makes one record. */
#define TLS_RECORD_MAX 16384u
/* Most bytes a record of full size has on the wire: header, tag, content type (RFC 8446 5.2). */
#define TLS_RECORD_WIRE_MAX (TLS_RECORD_MAX + 5u + 256u)
/* Most identities in an accept list; service records hold a handful. */
#define TLS_ACCEPT_MAX 1024u

/* One connection, client or server side. */
struct tls_session;

/*
 * A client session towards another workload. `identity` gives our
 * certificate and the roots; a reference is taken. The server is accepted if
 * one of its SPIFFE URI SANs is among the `accept_cnt` strings of `accept`
 * (copied; strings that are no SPIFFE ids never match; an empty list accepts
 * nobody). No SNI; ALPN offers h2. Everything for the peer is appended to
 * `out` in chunks of `pool`; both are borrowed for the life of the session.
 * The ClientHello comes with the first tls_handshake. Returns 0, -ENOMEM,
 * ERR_TOO_MANY, or ERR_TLS_SETUP when the library refuses the identity.
 */
int tls_client_new(struct tls_identity *identity, const char *const *accept, size_t accept_cnt,
        struct chunk_pool *pool, struct chain *out, struct tls_session **ret_session, struct err *err);

/*
 * A server session: a client certificate is demanded; it must lead to our
 * roots and carry a SPIFFE id of our own trust domain. ALPN as in
 * dataplane.md 7. Otherwise as tls_client_new.
 */
int tls_server_new(struct tls_identity *identity, struct chunk_pool *pool, struct chain *out,
        struct tls_session **ret_session, struct err *err);

/*
 * A client session towards the control plane: the server must carry one of
 * the names of `trust`; no certificate of ours. A reference to `trust` is
 * taken. Otherwise as tls_client_new.
 */
int tls_control_new(struct tls_trust *trust, struct chunk_pool *pool, struct chain *out,
        struct tls_session **ret_session, struct err *err);

/*
 * Calls `told` when a later set of CRLs revokes the peer (tls/crl.h); from there the session, and any other,
 * may be freed. Sessions whose policy names no place for CRLs are never told.
 */
void tls_on_revoked(struct tls_session *s, void (*told)(void *ctx), void *ctx);

/* Frees the session and its references; what is in the output chain stays. Sends nothing. NULL is fine. */
void tls_free(struct tls_session *s);

/*
 * Lends `len` bytes from the peer. They must stay valid until tls_feed_left
 * is 0, and the next feed comes only then: a session that is not read (its
 * reader is full) leaves them untouched, which is the back-pressure.
 */
void tls_feed(struct tls_session *s, const void *bytes, size_t len);

/* Bytes of the last feed that were not taken yet; they are its end. */
size_t tls_feed_left(const struct tls_session *s);

/*
 * Takes back what is left of the last feed: the session forgets it, the caller
 * may lend it again. For input whose memory must go now.
 */
void tls_feed_drop(struct tls_session *s);

/* True while tls_read has something to work on: lent bytes, or the rest of a record that its last caller had
 * no room for. */
bool tls_is_readable(const struct tls_session *s);

/*
 * Takes the handshake as far as the input allows. Returns 0 when established
 * (for good; further calls return 0 too), -EAGAIN when more input is needed,
 * or an error that ends the session, with its text in `err`:
 * ERR_TLS_REVOKED    its certificate, or one above it, is on a CRL
 * ERR_TLS_SAN        the peer's identity is not one of those we accept
 * ERR_TLS_HANDSHAKE  anything else: its certificate, an alert it sent, bytes that are no TLS
 * -ENOMEM            no memory, or the chunk pool's ceiling
 * The texts stand alone: the caller prefixes them as its log wants. After an
 * error the chain may hold an alert for the peer.
 */
int tls_handshake(struct tls_session *s, struct err *err);

/* True once the handshake is complete. */
bool tls_is_established(const struct tls_session *s);

/*
 * Decrypts into `buf` as many whole or partial records as `cap` holds.
 * Returns the bytes written (> 0), 0 when the peer has sent close_notify and
 * everything before it was read, -EAGAIN when the input is used up,
 * ERR_TLS_RECORD (bad record, alert of the peer) or -ENOMEM; these two end the
 * session. Answers to key updates go to the output chain. Established
 * sessions only (else -EINVAL).
 */
ssize_t tls_read(struct tls_session *s, void *buf, size_t cap, struct err *err);

/*
 * Encrypts all `len` bytes, in records of at most TLS_RECORD_MAX, to the
 * output chain. Ceilings are the caller's: it looks at the chain's length
 * before writing. Returns 0, -EPIPE after tls_close_notify, or an error that
 * ends the session (-ENOMEM, ERR_TLS_RECORD). Established sessions only (else
 * -EINVAL).
 */
int tls_write(struct tls_session *s, const void *bytes, size_t len, struct err *err);

/*
 * The same for the first `max` bytes of `in`, which are consumed. Pieces that
 * are not a full record by themselves are gathered, so that every record but
 * the last is full. On an error `in` keeps what was not encrypted.
 */
int tls_write_chain(struct tls_session *s, struct chain *in, size_t max, struct err *err);

/*
 * Appends close_notify: nothing can be written after it, reading goes on
 * (half-close, RFC 8446 6.1). Once only, later calls do nothing; before the
 * handshake is complete it does nothing either. Returns 0 or -ENOMEM.
 */
int tls_close_notify(struct tls_session *s, struct err *err);

/* True once the peer's close_notify was read: an end of the stream without it is a truncation. */
bool tls_peer_closed(const struct tls_session *s);

/*
 * The peer's identity: the first SPIFFE URI SAN of its verified leaf, NULL
 * before the handshake is complete, "" when it has none (control plane).
 * Borrowed for the life of the session.
 */
const char *tls_peer_identity(const struct tls_session *s);

/* Names of what was negotiated ("TLSv1.3", "TLS_AES_256_GCM_SHA384", "X25519"), for logs and tests; ""
 * before. */
const char *tls_version_name(const struct tls_session *s);
const char *tls_cipher_name(const struct tls_session *s);
const char *tls_group_name(const struct tls_session *s);

/* True if ALPN chose h2; false when the peer offered or chose no protocol. */
bool tls_alpn_is_h2(const struct tls_session *s);

/* Name and version of the TLS library as linked, for `--version`. */
const char *tls_library_version(void);

#endif

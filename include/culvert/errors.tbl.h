/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Our own error codes: E(NAME, text, response flag). base/err.h numbers them
 * downward from -1001 in this order; they never leave a release, so rows may
 * be moved. Texts follow reference dataplane.md 17; a detail is appended as
 * ": x" by whoever sets the error.
 */
/* clang-format off */
/* Routing: early denials; the flag only shows where a connection was tracked already. */
E(SELF_CALL,          "attempted recursive call to ourselves",                   CONNECT)
E(NO_LOCAL_WORKLOAD,  "failed to fetch information about local workload",        CONNECT)
E(UNKNOWN_WAYPOINT,   "unknown waypoint",                                        CONNECT)
E(UNKNOWN_GATEWAY,    "unknown network gateway",                                 CONNECT)
E(NO_HEALTHY,         "no healthy upstream",                                     CONNECT)
E(NO_DESTINATION,     "no valid routing destination for workload",               CONNECT)
E(NO_SERVICE,         "no service for target address",                           CONNECT)
E(NO_RESOLVED_IP,     "no ip addresses were resolved for workload",              CONNECT)
E(NO_A_RECORDS,       "valid dns response had no A/AAAA records",                CONNECT)
E(NOT_CONNECT,        "expected method CONNECT",                                 CONNECT)
E(BAD_AUTHORITY,      "no valid authority pseudo header",                        CONNECT)
E(IP_MISMATCH,        "ip mismatch",                                             CONNECT)
E(NO_HOST,            "no service or workload for hostname",                     CONNECT)
E(NO_PORT,            "cannot resolve port",                                     CONNECT)
E(NO_ADDRESS,         "service has no IP addresses",                             CONNECT)
E(SOCKS,              "socks5 negotiation failed",                               CONNECT)
/* Policy. */
E(NOT_ALLOWED,        "connection closed due to policy rejection: allow policies exist, but none allowed", DENY)
E(DENIED,             "connection closed due to policy rejection: explicitly denied by", DENY)
E(POLICY_CHANGE,      "connection closed due to policy change",                  DENY)
/* Delivery. */
E(CONNECT_FAILED,     "connection failed",                                       CONNECT)
E(REVOKED,            "connection closed: peer certificate revoked by CRL",      CERT_REVOKED)
E(NETWORK_POLICY,     "connection timed out, maybe a NetworkPolicy is blocking HBONE port 15008", NETWORK_POLICY)
E(IDENTITY,           "identity error",                                          IDENTITY_ERROR)
E(TLS_SETUP,          "tls error",                                               TLS_FAILURE)
E(TLS_HANDSHAKE,      "tls handshake error",                                     CONNECT)
E(TLS_RECORD,         "tls record error",                                        CONNECT)
E(TLS_REVOKED,        "invalid peer certificate: Revoked",                       CONNECT)
E(TLS_SAN,            "identity verification error: peer did not present the expected SAN", CONNECT)
E(H2_HANDSHAKE,       "http2 handshake failed",                                  H2_HANDSHAKE_FAILURE)
E(H2,                 "h2 failed",                                               H2_HANDSHAKE_FAILURE)
E(H2_PING_TIMEOUT,    "h2 failed: ping timeout",                                 H2_HANDSHAKE_FAILURE)
E(HTTP_STATUS,        "http status",                                             CONNECT)
E(SEND,               "send",                                                    CONNECT)
E(DRAINED,            "connection closed due to connection drain",               NONE)
/* Time limits. */
E(TIMEOUT_HANDSHAKE,  "handshake timeout",                                       CONNECT)
E(TIMEOUT_FETCH,      "timed out waiting for the broker",                        CONNECT)
/* Input that breaks a protocol or a ceiling. */
E(PROTOCOL,           "protocol violation",                                      CONNECT)
E(TOO_LARGE,          "too large",                                               CONNECT)
E(TOO_MANY,           "too many",                                                CONNECT)
E(TRUNCATED,          "truncated",                                               CONNECT)
E(BAD_UTF8,           "not valid UTF-8",                                         CONNECT)
E(BAD_VERSION,        "version not supported",                                   CONNECT)
E(BAD_PHASE,          "not permitted in this phase",                             CONNECT)
E(BAD_SENDER,         "not permitted from this sender",                          CONNECT)
E(BAD_FD,             "missing, surplus or wrong descriptor",                    CONNECT)
E(UNSUPPORTED,        "not supported by the peer",                               CONNECT)
/* Certificates and the CA. */
E(CERT_PARSE,         "malformed certificate",                                   IDENTITY_ERROR)
E(CERT_EXPIRED,       "certificate is not valid at this time",                   IDENTITY_ERROR)
E(SIGNING,            "signing error",                                           IDENTITY_ERROR)
/* Ours. */
E(GONE,               "already ended",                                           CONNECT)
E(CONFIG,             "invalid configuration",                                   NONE)
/* clang-format on */

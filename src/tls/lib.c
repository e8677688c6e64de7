/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Library set-up and error texts: see lib.h. Texts of well-known refusals
 * are worded like those the mesh's users know from their logs.
 */
#include "tls/lib.h"

#include <errno.h>

#include "base/err.h"
#include "tls/session.h"

int tls_lib_init(void)
{
	return wolfSSL_Init() == WOLFSSL_SUCCESS ? 0 : -ENOMEM;
}

const char *tls_library_version(void)
{
	return "wolfSSL " LIBWOLFSSL_VERSION_STRING;
}

const char *tls_alert_name(int alert)
{
	static const struct {
		int alert;
		const char *name;
	} names[] = {
	        {0, "CloseNotify"},
	        {10, "UnexpectedMessage"},
	        {20, "BadRecordMac"},
	        {21, "DecryptionFailed"},
	        {22, "RecordOverflow"},
	        {40, "HandshakeFailure"},
	        {41, "NoCertificate"},
	        {42, "BadCertificate"},
	        {43, "UnsupportedCertificate"},
	        {44, "CertificateRevoked"},
	        {45, "CertificateExpired"},
	        {46, "CertificateUnknown"},
	        {47, "IllegalParameter"},
	        {48, "UnknownCA"},
	        {49, "AccessDenied"},
	        {50, "DecodeError"},
	        {51, "DecryptError"},
	        {70, "ProtocolVersion"},
	        {71, "InsufficientSecurity"},
	        {80, "InternalError"},
	        {86, "InappropriateFallback"},
	        {90, "UserCanceled"},
	        {100, "NoRenegotiation"},
	        {109, "MissingExtension"},
	        {110, "UnsupportedExtension"},
	        {112, "UnrecognisedName"},
	        {113, "BadCertificateStatusResponse"},
	        {115, "UnknownPSKIdentity"},
	        {116, "CertificateRequired"},
	        {120, "NoApplicationProtocol"},
	};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (names[i].alert == alert)
			return names[i].name;
	}
	return "unknown alert";
}

/* Our words for a library error, NULL when its own have to do. */
static const char *known_text(int lib_error)
{
	switch (lib_error) {
	case ASN_AFTER_DATE_E:
		return "invalid peer certificate: Expired";
	case ASN_BEFORE_DATE_E:
		return "invalid peer certificate: NotValidYet";
	case ASN_NO_SIGNER_E:
	case ASN_SELF_SIGNED_E:
		return "invalid peer certificate: UnknownIssuer";
	case ASN_SIG_CONFIRM_E:
		return "invalid peer certificate: BadSignature";
	case EXTKEYUSE_AUTH_E:
		return "invalid peer certificate: InvalidPurpose";
	case CRL_CERT_REVOKED:
		return "invalid peer certificate: Revoked";
	case NO_PEER_CERT:
		return "peer sent no certificates";
	case UNKNOWN_ALPN_PROTOCOL_NAME_E:
		return "peer doesn't support any known protocol";
	case VERSION_ERROR:
		return "peer is incompatible: no common protocol version";
	case MATCH_SUITE_ERROR:
		return "peer is incompatible: no common cipher suite";
	case DECRYPT_ERROR:
	case VERIFY_MAC_ERROR:
	case AES_GCM_AUTH_E:
		return "cannot decrypt peer's message";
	default:
		return NULL;
	}
}

int tls_lib_error(int lib_error, int alert, int code, struct err *err)
{
	if (lib_error == MEMORY_E)
		return err_set(err, -ENOMEM, "out of memory");
	/* After an alert the library only says that there was one. */
	if (lib_error == FATAL_ERROR && alert >= 0)
		return err_set(err, code, "received fatal alert: %s", tls_alert_name(alert));
	const char *text = known_text(lib_error);
	if (text)
		return err_set(err, code, "%s", text);
	return err_set(err, code, "%s (%d)", wolfSSL_ERR_reason_error_string((unsigned long)-(long)lib_error),
	        lib_error);
}

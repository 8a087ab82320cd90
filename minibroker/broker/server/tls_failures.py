"""Sentences for the operator when TLS fails: the reason, and the setting that mends it.

OpenSSL names a reason with a word such as `NO_SHARED_CIPHER`. An alert of the peer is a reason too:
the client says what it does not like.

Source: OpenSSL sslerr.h; RFC 8446, 6.
"""

from __future__ import annotations

import ssl
from typing import Final

_NO_TLS: Final = (
    "the client does not speak TLS: set security.protocol to SSL or SASL_SSL in its configuration,"
    " or let it connect to another listener"
)
_NOT_TRUSTED: Final = (
    "the client does not trust the broker's certificate: give it the CA's certificate"
    " (ssl.truststore.location, ssl.ca.location), and compare the host name it connects to"
)
_NOTHING_IN_COMMON: Final = (
    "the client offers no version of TLS and no cipher suite that this listener accepts"
    " (ssl.enabled.protocols, ssl.cipher.suites)"
)
_REASONS: Final = {
    "HTTP_REQUEST": _NO_TLS,
    "HTTPS_PROXY_REQUEST": _NO_TLS,
    "WRONG_VERSION_NUMBER": _NO_TLS,
    "PACKET_LENGTH_TOO_LONG": _NO_TLS,
    "BAD_RECORD_TYPE": _NO_TLS,
    "RECORD_LAYER_FAILURE": _NO_TLS,
    "TLSV1_ALERT_UNKNOWN_CA": _NOT_TRUSTED,
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": _NOT_TRUSTED,
    "SSLV3_ALERT_BAD_CERTIFICATE": _NOT_TRUSTED,
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "the broker's certificate is expired: renew it",
    "NO_SHARED_CIPHER": _NOTHING_IN_COMMON,
    "UNSUPPORTED_PROTOCOL": _NOTHING_IN_COMMON,
    "VERSION_TOO_LOW": _NOTHING_IN_COMMON,
    "TLSV1_ALERT_PROTOCOL_VERSION": _NOTHING_IN_COMMON,
    "SSLV3_ALERT_HANDSHAKE_FAILURE": _NOTHING_IN_COMMON,
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": (
        "the client sent no certificate, and ssl.client.auth=required: give it a key store"
        " (ssl.keystore.location)"
    ),
}


def explain_failure(failure: BaseException) -> str:
    """Return the reason of a failed handshake or record, and the way out, as one sentence."""
    if isinstance(failure, ssl.SSLCertVerificationError):
        return (
            f"the client's certificate is not accepted ({failure.verify_message}): add the CA that"
            " issued it to the listener's trust store (ssl.truststore.location)"
        )
    if isinstance(failure, ssl.SSLError) and failure.reason:
        return _REASONS.get(failure.reason, failure.reason.lower().replace("_", " "))
    return str(failure) or type(failure).__name__

"""Reasons of OpenSSL become sentences with the way out."""

from __future__ import annotations

import ssl

import pytest

from minibroker.broker.server.tls_failures import explain_failure


def failure(kind: type[ssl.SSLError], reason: str) -> ssl.SSLError:
    error = kind(1, f"[SSL: {reason}] {reason.lower()} (_ssl.c:1000)")
    error.reason = reason
    return error


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("WRONG_VERSION_NUMBER", "set security.protocol to SSL"),
        ("TLSV1_ALERT_UNKNOWN_CA", "does not trust the broker's certificate"),
        ("NO_SHARED_CIPHER", "ssl.cipher.suites"),
        ("PEER_DID_NOT_RETURN_A_CERTIFICATE", "ssl.client.auth=required"),
        ("SOMETHING_ELSE", "something else"),
    ],
)
def test_a_reason_becomes_a_sentence(reason: str, expected: str) -> None:
    assert expected in explain_failure(failure(ssl.SSLError, reason))


def test_a_certificate_that_is_not_accepted_names_the_trust_store() -> None:
    error = failure(ssl.SSLCertVerificationError, "CERTIFICATE_VERIFY_FAILED")
    error.verify_message = "self-signed certificate"  # type: ignore[attr-defined]
    assert "(self-signed certificate)" in explain_failure(error)
    assert "ssl.truststore.location" in explain_failure(error)


def test_other_errors_are_shown_as_they_are() -> None:
    assert explain_failure(ConnectionResetError("reset by peer")) == "reset by peer"
    assert explain_failure(TimeoutError()) == "TimeoutError"

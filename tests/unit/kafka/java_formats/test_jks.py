"""JKS stores of keytool are read; wrong passwords and damaged bytes are one sentence."""

from __future__ import annotations

import ssl
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minibroker.broker.security.certificate import subject_name
from minibroker.kafka.errors import ConfigError
from minibroker.kafka.java_formats.jks import read_key_entry, read_trusted
from tests.support.certificates import STORES

KEYS = (STORES / "keys.jks").read_bytes()
TRUSTED = (STORES / "trusted.jks").read_bytes()
NAME = "CN=localhost,OU=Tests,O=minibroker,C=DE"


def test_key_and_certificate_of_keytool() -> None:
    store = read_key_entry(KEYS, "store-secret", "key-secret", "source")
    assert store.key.startswith("-----BEGIN PRIVATE KEY-----\n")
    (certificate,) = store.certificates
    assert subject_name(ssl.PEM_cert_to_DER_cert(certificate)) == NAME


def test_trusted_certificates_of_keytool() -> None:
    (certificate,) = read_trusted(TRUSTED, "store-secret", "source")
    assert subject_name(ssl.PEM_cert_to_DER_cert(certificate)) == NAME


def test_a_trust_store_needs_no_password() -> None:
    assert read_trusted(TRUSTED, None, "source") == read_trusted(TRUSTED, "store-secret", "source")


def test_wrong_passwords_are_told_apart() -> None:
    with pytest.raises(ConfigError, match="store's password is wrong"):
        read_key_entry(KEYS, "guess", "key-secret", "source")
    with pytest.raises(ConfigError, match=r"ssl\.key\.password"):
        read_key_entry(KEYS, "store-secret", "guess", "source")


def test_the_other_kind_of_entry_is_not_enough() -> None:
    with pytest.raises(ConfigError, match="no private key"):
        read_key_entry(TRUSTED, "store-secret", "key-secret", "source")
    with pytest.raises(ConfigError, match="no trusted certificate"):
        read_trusted(KEYS, "store-secret", "source")


@given(st.integers(4, len(TRUSTED) - 1), st.integers(1, 255), st.integers(0, len(TRUSTED)))
def test_a_damaged_store_is_one_sentence(place: int, change: int, end: int) -> None:
    """Without a password nothing compares the digest before the entries are read."""
    damaged = bytearray(TRUSTED)
    damaged[place] ^= change
    for data in (bytes(damaged), TRUSTED[: max(end, 4)]):
        with suppress(ConfigError):
            assert read_trusted(data, None, "source")

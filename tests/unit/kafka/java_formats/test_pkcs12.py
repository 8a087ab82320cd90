"""PKCS12 stores: of keytool, with a chain in any order, and without the package."""

from __future__ import annotations

import ssl
import sys

import pytest
import trustme
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption
from cryptography.hazmat.primitives.serialization import load_pem_private_key as load_key
from cryptography.hazmat.primitives.serialization.pkcs12 import serialize_key_and_certificates
from cryptography.x509 import load_pem_x509_certificate as load_certificate

from minibroker.broker.security.certificate import subject_name
from minibroker.kafka.errors import ConfigError
from minibroker.kafka.java_formats.pkcs12 import read_pkcs12
from tests.support.certificates import STORES

KEYS = (STORES / "keys.p12").read_bytes()


def test_key_and_certificate_of_keytool() -> None:
    store = read_pkcs12(KEYS, "store-secret", "source").key_store("source")
    assert store.key.startswith("-----BEGIN PRIVATE KEY-----\n")
    (certificate,) = store.certificates
    name = subject_name(ssl.PEM_cert_to_DER_cert(certificate))
    assert name == "CN=localhost,OU=Tests,O=minibroker,C=DE"


def test_each_certificate_stands_before_its_issuer() -> None:
    root = trustme.CA()
    middle = root.create_child_ca()
    leaf = middle.issue_cert("localhost", common_name="leaf")
    others = [root.cert_pem, middle.cert_pem]
    data = serialize_key_and_certificates(
        b"broker",
        load_key(leaf.private_key_pem.bytes(), None),  # type: ignore[arg-type]
        load_certificate(leaf.cert_chain_pems[0].bytes()),
        [load_certificate(pem.bytes()) for pem in others],
        BestAvailableEncryption(b"secret"),
    )
    chain = read_pkcs12(data, "secret", "source").key_store("source").certificates
    expected = [leaf.cert_chain_pems[0], middle.cert_pem, root.cert_pem]
    assert list(chain) == [pem.bytes().decode() for pem in expected]


def test_a_wrong_password_and_no_store_are_one_sentence() -> None:
    for data, password in ((KEYS, "guess"), (KEYS, None), (b"no store", "guess")):
        with pytest.raises(ConfigError, match=r"source: the store's password is missing or wrong"):
            read_pkcs12(data, password, "source")


def test_the_other_kind_of_entry_is_not_enough() -> None:
    trusted = read_pkcs12((STORES / "trusted.p12").read_bytes(), "store-secret", "source")
    with pytest.raises(ConfigError, match="no private key"):
        trusted.key_store("source")
    with pytest.raises(ConfigError, match="no trusted certificate"):
        read_pkcs12(KEYS, "store-secret", "source").trusted("source")


def test_a_missing_package_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    package = "cryptography.hazmat.primitives.serialization.pkcs12"
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ConfigError, match=r"pip install 'minibroker\[security\]'"):
        read_pkcs12(KEYS, "store-secret", "source")

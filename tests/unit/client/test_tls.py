"""TLS contexts have the versions, ciphers and certificates of Kafka's settings."""

from __future__ import annotations

import os
import ssl
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization

from minibroker.broker.config.settings import ConfigValues
from minibroker.broker.security.listener_tls import server_context
from minibroker.client import tls
from minibroker.client.tls import client_context
from minibroker.kafka.errors import ConfigError
from minibroker.kafka.java_formats.key_material import KeyStore, TrustStore
from tests.support.certificates import authority_pem, broker_certificate, client_tls, shake_hands


def keys_of(number: int = 0, *, key: str | None = None, password: str | None = None) -> KeyStore:
    certificate = broker_certificate(number)
    chain = tuple(pem.bytes().decode() for pem in certificate.cert_chain_pems)
    return KeyStore(
        key or certificate.private_key_pem.bytes().decode(), password, chain, "the source"
    )


def encrypted_key(password: bytes) -> str:
    key = serialization.load_pem_private_key(broker_certificate().private_key_pem.bytes(), None)
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(password),
    ).decode()


def server(**values: str) -> ssl.SSLContext:
    settings = ConfigValues({key.replace("_", "."): text for key, text in values.items()})
    trusted = TrustStore((authority_pem(),), "the trust store")
    return server_context(settings, keys_of(), trusted, client_auth="none")


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_only_enabled_versions_are_spoken(version: str) -> None:
    context = server(ssl_enabled_protocols=f"{version},TLSv1.1")
    assert shake_hands(context, client_tls()).version() == version
    other = client_tls()
    if version == "TLSv1.2":
        other.minimum_version = ssl.TLSVersion.TLSv1_3
    else:
        other.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises(ssl.SSLError):
        shake_hands(context, other)


def test_a_client_gets_the_newest_version_by_default() -> None:
    assert shake_hands(server(), client_tls()).version() == "TLSv1.3"


def test_the_default_suites_do_not_depend_on_the_build_of_python() -> None:
    for context in (server(), client_context(ConfigValues({}), None, None)):
        names = {suite["name"] for suite in context.get_ciphers()}
        older = {name for name in names if not name.startswith("TLS_")}
        assert older == {
            f"ECDHE-{key}-{cipher}"
            for key in ("ECDSA", "RSA")
            for cipher in (
                "AES128-GCM-SHA256",
                "AES128-SHA256",
                "AES256-GCM-SHA384",
                "AES256-SHA384",
                "CHACHA20-POLY1305",
            )
        }
        assert context.security_level == 2


@pytest.mark.parametrize(
    ("suites", "version", "cipher"),
    [
        ("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "TLSv1.2", "ECDHE-ECDSA-AES128-GCM-SHA256"),
        (
            "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,TLS_DHE_RSA_WITH_AES_256_GCM_SHA384",
            "TLSv1.2",
            "ECDHE-ECDSA-CHACHA20-POLY1305",
        ),
        (
            "TLS_AES_256_GCM_SHA384,TLS_CHACHA20_POLY1305_SHA256,TLS_AES_128_GCM_SHA256",
            "TLSv1.3",
            "TLS_AES_256_GCM_SHA384",
        ),
    ],
)
def test_only_named_suites_are_used(suites: str, version: str, cipher: str) -> None:
    side = shake_hands(server(ssl_cipher_suites=suites), client_tls())
    cipher_in_use = side.cipher()
    assert cipher_in_use is not None
    assert (side.version(), cipher_in_use[0]) == (version, cipher)


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        ({"ssl_protocol": "SSLv3"}, "ssl.protocol=SSLv3: expected one of TLS, TLSv1.2"),
        ({"ssl_enabled_protocols": "TLSv1.1"}, "expected TLSv1.2 and TLSv1.3"),
        ({"ssl_enabled_protocols": "TLSv1.2,TLSv1.4"}, "expected TLSv1.2 and TLSv1.3"),
        ({"ssl_cipher_suites": "AES128-SHA"}, "expected names such as TLS_ECDHE_RSA"),
        ({"ssl_cipher_suites": "TLS_RSA_WITH_RC4_128_MD5"}, "expected names such as"),
        ({"ssl_cipher_suites": "TLS_FOO_WITH_AES_128_GCM_SHA256"}, "OpenSSL has none of them"),
        (
            {
                "ssl_cipher_suites": "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
                "ssl_enabled_protocols": "TLSv1.3",
            },
            "no suite of a protocol in ssl.enabled.protocols",
        ),
    ],
)
def test_a_wrong_setting_is_refused(values: dict[str, str], complaint: str) -> None:
    with pytest.raises(ConfigError) as refused:
        server(**values)
    assert complaint in str(refused.value)


@pytest.mark.skipif(
    hasattr(ssl.SSLContext, "set_ciphersuites"), reason="this Python can choose suites of TLS 1.3"
)
def test_some_suites_of_tls_1_3_are_refused_rather_than_all_accepted() -> None:
    with pytest.raises(ConfigError, match=r"cannot choose among the suites of TLS 1\.3"):
        server(ssl_cipher_suites="TLS_AES_256_GCM_SHA384")


def test_an_encrypted_key_needs_its_password() -> None:
    key = encrypted_key(b"key-secret")
    settings = ConfigValues({})
    server_context(settings, keys_of(key=key, password="key-secret"), None, client_auth="none")
    for password in (None, "guess"):
        with pytest.raises(ConfigError, match=r"the source: the password of the key \(ssl\.key"):
            server_context(settings, keys_of(key=key, password=password), None, client_auth="none")


def test_a_key_of_another_certificate_is_refused() -> None:
    key = broker_certificate(1).private_key_pem.bytes().decode()
    with pytest.raises(ConfigError, match="belongs to another certificate"):
        server_context(ConfigValues({}), keys_of(key=key), None, client_auth="none")


def test_a_listener_needs_a_certificate() -> None:
    with pytest.raises(ConfigError, match=r"set ssl\.keystore\.location"):
        server_context(ConfigValues({}), None, None, client_auth="none")


def test_a_damaged_certificate_names_the_trust_store() -> None:
    damaged = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----"
    with pytest.raises(ConfigError, match="the trust store: a certificate cannot be read"):
        client_context(ConfigValues({}), None, TrustStore((damaged,), "the trust store"))


def test_the_host_name_counts_unless_it_is_turned_off() -> None:
    trusted = TrustStore((authority_pem(),), "t")
    assert client_context(ConfigValues({}), None, trusted).check_hostname
    name = "ssl.endpoint.identification.algorithm"
    assert not client_context(ConfigValues({name: ""}), None, trusted).check_hostname
    with pytest.raises(ConfigError, match="expected https, or no value"):
        client_context(ConfigValues({name: "ldaps"}), None, trusted)


def test_the_file_of_the_key_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only this user can read it meanwhile, where the system has no files in memory."""
    monkeypatch.delattr(os, "memfd_create", raising=False)
    with tls._private_file(b"secret") as path:
        assert Path(path).read_bytes() == b"secret"
        assert Path(path).stat().st_mode & 0o777 == 0o600
    assert not Path(path).exists()

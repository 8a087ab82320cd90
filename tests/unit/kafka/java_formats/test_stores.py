"""Key stores and trust stores in every format that Kafka reads; wrong ones name the setting."""

from __future__ import annotations

import ssl
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
import trustme
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
)
from cryptography.hazmat.primitives.serialization import load_pem_private_key as load_key
from cryptography.hazmat.primitives.serialization.pkcs12 import serialize_key_and_certificates
from cryptography.x509 import load_pem_x509_certificate as load_certificate
from hypothesis import given
from hypothesis import strategies as st

from minibroker.broker.config.settings import ConfigValues
from minibroker.broker.security.certificate import subject_name
from minibroker.kafka.errors import ConfigError
from minibroker.kafka.java_formats import stores
from minibroker.kafka.java_formats.der import read_oid, read_values
from minibroker.kafka.java_formats.jks import read_key_entry, read_trusted
from minibroker.kafka.java_formats.pkcs12 import read_pkcs12
from minibroker.kafka.java_formats.stores import load_key_store, load_trust_store
from tests.support.certificates import (
    STORES,
    authority_pem,
    broker_certificate,
    pem_of,
)

if TYPE_CHECKING:
    from pathlib import Path


def settings_of(prefix: str, **values: str) -> ConfigValues:
    return ConfigValues({f"{prefix}.{key.replace('_', '.')}": text for key, text in values.items()})


def test_no_setting_is_no_store() -> None:
    assert load_key_store(ConfigValues({})) is None
    assert load_trust_store(ConfigValues({})) is None


def test_a_pem_file_has_key_and_certificates(tmp_path: Path) -> None:
    file = tmp_path / "keys.pem"
    file.write_text("a remark\n" + pem_of(broker_certificate()))
    store = load_key_store(settings_of("ssl.keystore", type="PEM", location=str(file)))
    assert store is not None
    assert store.key.strip() in pem_of(broker_certificate())
    assert len(store.certificates) == len(broker_certificate().cert_chain_pems)
    assert store.source == f"ssl.keystore.location={file}"


def test_pem_stands_in_the_settings(tmp_path: Path) -> None:
    pem = pem_of(broker_certificate())
    keys = settings_of("ssl.keystore", type="PEM", key=pem, certificate_chain=pem)
    assert load_key_store(keys) is not None
    both = authority_pem(0) + authority_pem(1)
    trusted = load_trust_store(settings_of("ssl.truststore", type="PEM", certificates=both))
    assert trusted is not None
    assert len(trusted.certificates) == 2


@pytest.mark.parametrize("store_type", ["JKS", "PKCS12"])
@pytest.mark.parametrize("suffix", ["jks", "p12"])
def test_the_content_decides_between_jks_and_pkcs12(store_type: str, suffix: str) -> None:
    keys = settings_of(
        "ssl.keystore",
        type=store_type,
        location=str(STORES / f"keys.{suffix}"),
        password="store-secret",
    )
    if suffix == "jks":
        keys.originals["ssl.key.password"] = "key-secret"
    store = load_key_store(keys)
    assert store is not None
    assert store.key_password is None
    assert len(store.certificates) == 1
    trusted = settings_of(
        "ssl.truststore",
        type=store_type,
        location=str(STORES / f"trusted.{suffix}"),
        password="store-secret",
    )
    loaded = load_trust_store(trusted)
    assert loaded is not None
    assert len(loaded.certificates) == 1


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        ({"location": "/k"}, "needs ssl.keystore.password"),
        ({"password": "secret"}, "ssl.keystore.location is not"),
        ({"type": "BKS", "location": "/k"}, "ssl.keystore.type=BKS: expected one of PEM, JKS"),
        ({"type": "PEM", "location": "/k", "password": "secret"}, "no ssl.keystore.password"),
        ({"type": "PEM", "location": "/nowhere"}, "/nowhere cannot be read: No such file"),
        ({"key": "secret", "certificate_chain": "x"}, "set ssl.keystore.type=PEM"),
        ({"type": "PEM", "key": "secret"}, "ssl.keystore.certificate.chain is missing"),
        ({"type": "PEM", "certificate_chain": "x"}, "ssl.keystore.key is missing"),
        ({"type": "PEM", "key": "secret", "certificate_chain": "x"}, "0 private keys"),
        (
            {"type": "PEM", "key": "secret", "certificate_chain": "x", "location": "/k"},
            "ssl.keystore.location is set",
        ),
    ],
)
def test_a_wrong_key_store_is_refused(values: dict[str, str], complaint: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load_key_store(settings_of("ssl.keystore", **values))
    assert complaint in str(refused.value)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        ({"password": "secret"}, "ssl.truststore.location is not"),
        ({"type": "PEM", "location": "/t", "password": "secret"}, "no ssl.truststore.password"),
        ({"type": "PEM", "certificates": "secret"}, "no certificate, expected"),
        ({"certificates": "secret"}, "set ssl.truststore.type=PEM"),
        ({"location": "/nowhere", "password": "secret"}, "/nowhere cannot be read"),
    ],
)
def test_a_wrong_trust_store_is_refused(values: dict[str, str], complaint: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load_trust_store(settings_of("ssl.truststore", **values))
    assert complaint in str(refused.value)
    assert "secret" not in str(refused.value)


def test_files_that_are_no_store_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    for data, store_type, complaint in (
        (b"\x30\x82\xff", "PEM", "this file is no PEM"),
        (b"\xce\xce\xce\xce\0\0", "JKS", "JCEKS is not served"),
        (b"anything", "JKS", "no store of type PKCS12 or JKS"),
    ):
        file.write_bytes(data)
        values = {"type": store_type, "location": str(file)}
        if store_type != "PEM":
            values["password"] = "secret"
        with pytest.raises(ConfigError, match=complaint):
            load_key_store(settings_of("ssl.keystore", **values))
    monkeypatch.setattr(stores, "STORE_BYTES_MAX", 3)
    with pytest.raises(ConfigError, match="8 bytes, expected at most 3"):
        load_trust_store(settings_of("ssl.truststore", location=str(file)))


# JKS stores of keytool are read; wrong passwords and damaged bytes are one sentence.


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


# PKCS12 stores: of keytool, with a chain in any order, and without the package.


STORE_OF_KEYS = (STORES / "keys.p12").read_bytes()


def test_key_and_certificate_in_pkcs12() -> None:
    store = read_pkcs12(STORE_OF_KEYS, "store-secret", "source").key_store("source")
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
    for data, password in ((STORE_OF_KEYS, "guess"), (STORE_OF_KEYS, None), (b"no store", "guess")):
        with pytest.raises(ConfigError, match=r"source: the store's password is missing or wrong"):
            read_pkcs12(data, password, "source")


def test_pkcs12_with_the_other_kind_of_entry_is_not_enough() -> None:
    trusted = read_pkcs12((STORES / "trusted.p12").read_bytes(), "store-secret", "source")
    with pytest.raises(ConfigError, match="no private key"):
        trusted.key_store("source")
    with pytest.raises(ConfigError, match="no trusted certificate"):
        read_pkcs12(STORE_OF_KEYS, "store-secret", "source").trusted("source")


def test_a_missing_package_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    package = "cryptography.hazmat.primitives.serialization.pkcs12"
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ConfigError, match=r"pip install 'minibroker\[security\]'"):
        read_pkcs12(STORE_OF_KEYS, "store-secret", "source")


# Values of DER are read as they stand; a length that does not fit is an error.


def test_values_stand_one_behind_the_other() -> None:
    data = bytes.fromhex("0c0161") + bytes.fromhex("13020062") + b"\x30\x82\x01\x00" + bytes(256)
    text, printable, sequence = read_values(data)
    assert (text.tag, text.content, text.encoded) == (0x0C, b"a", b"\x0c\x01a")
    assert printable.content == b"\0b"
    assert len(sequence.content) == 256


@pytest.mark.parametrize("data", [b"\x0c", b"\x0c\x02a", b"\x30\x82\x01", b"\x30\xff" + bytes(9)])
def test_a_length_beyond_the_bytes_is_an_error(data: bytes) -> None:
    with pytest.raises(ValueError, match="DER value"):
        list(read_values(data))


@given(st.binary(max_size=64))
def test_bytes_are_values_or_an_error(data: bytes) -> None:
    try:
        values = list(read_values(data))
    except ValueError:
        return
    assert b"".join(value.encoded for value in values) == data


@pytest.mark.parametrize(
    ("encoded", "oid"),
    [
        ("550403", "2.5.4.3"),
        ("2a864886f70d010901", "1.2.840.113549.1.9.1"),
        ("0992268993f22c640119", "0.9.2342.19200300.100.1.25"),
        ("883703", "2.999.3"),
    ],
)
def test_object_identifiers(encoded: str, oid: str) -> None:
    assert read_oid(bytes.fromhex(encoded)) == oid

"""Key stores and trust stores in every format that Kafka reads; wrong ones name the setting."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.broker.config.settings import ConfigValues
from minibroker.kafka.errors import ConfigError
from minibroker.kafka.java_formats import stores
from minibroker.kafka.java_formats.stores import load_key_store, load_trust_store
from tests.support.certificates import STORES, authority_pem, broker_certificate, pem_of

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
    found = load_trust_store(trusted)
    assert found is not None
    assert len(found.certificates) == 1


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

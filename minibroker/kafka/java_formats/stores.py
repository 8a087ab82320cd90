"""Key stores and trust stores: read from PEM, PKCS12 and JKS, given to OpenSSL as PEM.

    ssl.keystore.*   ─► KeyStore    a private key and its certificates, the owner's first
    ssl.truststore.* ─► TrustStore  certificates that are trusted

The broker and the pipeline read with it. As in Java, a store of type JKS may be
a PKCS12 file and the reverse: the content decides. Passwords stand in no message.

Source: Kafka DefaultSslEngineFactory (KIP-651), java.security.KeyStore.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final, Protocol

from minibroker.kafka.errors import ConfigError
from minibroker.kafka.java_formats.key_material import KeyStore, TrustStore

PEM: Final = "PEM"
STORE_TYPES: Final = (PEM, "JKS", "PKCS12")
STORE_BYTES_MAX: Final = 16 << 20
_PEM_MARK: Final = b"-----BEGIN"
_JKS_MAGIC: Final = b"\xfe\xed\xfe\xed"
_JCEKS_MAGIC: Final = b"\xce\xce\xce\xce"
_CERTIFICATE: Final = re.compile(
    r"-----BEGIN (TRUSTED |X509 |)CERTIFICATE-----.*?-----END \1CERTIFICATE-----", re.DOTALL
)
_KEY: Final = re.compile(
    r"-----BEGIN ([A-Z]+ |)PRIVATE KEY-----.*?-----END \1PRIVATE KEY-----", re.DOTALL
)


class StoreSettings(Protocol):
    """The settings `ssl.keystore.*`, `ssl.truststore.*` and `ssl.key.password` of somebody."""

    def text(self, name: str) -> str | None:
        """Return a setting, its default if it is not set, None without one."""


def load_key_store(settings: StoreSettings) -> KeyStore | None:
    """Return the store of `ssl.keystore.*`, None where none is set. Raises ConfigError."""
    location = settings.text("ssl.keystore.location")
    password = settings.text("ssl.keystore.password")
    key_password = settings.text("ssl.key.password")
    key = settings.text("ssl.keystore.key")
    chain = settings.text("ssl.keystore.certificate.chain")
    is_pem = _type_of(settings, "ssl.keystore.type") == PEM
    if key is not None or chain is not None:
        _check_inline(settings, "ssl.keystore")
        if key is None or chain is None:
            missing = "ssl.keystore.key" if key is None else "ssl.keystore.certificate.chain"
            raise ConfigError(
                f"{missing} is missing: a private key and its certificates go together"
            )
        return _pem_key_store(key, chain, key_password, "ssl.keystore.key")
    if location is None:
        if password is not None:
            raise ConfigError("ssl.keystore.password is set, and ssl.keystore.location is not")
        return None
    source = f"ssl.keystore.location={location}"
    if is_pem:
        if password is not None:
            raise ConfigError(
                f"{source} is PEM, which has no ssl.keystore.password; the password of the key is"
                " ssl.key.password"
            )
        text = _read_text(source, location)
        return _pem_key_store(text, text, key_password, source)
    if password is None:
        raise ConfigError(f"{source} needs ssl.keystore.password")
    data = _read(source, location)
    if data.startswith(_JKS_MAGIC):
        from minibroker.kafka.java_formats.jks import read_key_entry  # noqa: PLC0415  seldom used

        return read_key_entry(data, password, key_password or password, source)
    from minibroker.kafka.java_formats.pkcs12 import read_pkcs12  # noqa: PLC0415  needs an extra

    return read_pkcs12(data, password, source).key_store(source)


def load_trust_store(settings: StoreSettings) -> TrustStore | None:
    """Return the store of `ssl.truststore.*`, None where none is set. Raises ConfigError."""
    location = settings.text("ssl.truststore.location")
    password = settings.text("ssl.truststore.password")
    inline = settings.text("ssl.truststore.certificates")
    is_pem = _type_of(settings, "ssl.truststore.type") == PEM
    if inline is not None:
        _check_inline(settings, "ssl.truststore")
        return TrustStore(
            _pem_certificates(inline, "ssl.truststore.certificates"), "ssl.truststore.certificates"
        )
    if location is None:
        if password is not None:
            raise ConfigError("ssl.truststore.password is set, and ssl.truststore.location is not")
        return None
    source = f"ssl.truststore.location={location}"
    if is_pem:
        if password is not None:
            raise ConfigError(f"{source} is PEM, which has no ssl.truststore.password")
        return TrustStore(_pem_certificates(_read_text(source, location), source), source)
    data = _read(source, location)
    if data.startswith(_JKS_MAGIC):
        from minibroker.kafka.java_formats.jks import read_trusted  # noqa: PLC0415  seldom used

        return TrustStore(read_trusted(data, password, source), source)
    from minibroker.kafka.java_formats.pkcs12 import read_pkcs12  # noqa: PLC0415  needs an extra

    return TrustStore(read_pkcs12(data, password, source).trusted(source), source)


def is_pem_file(location: str) -> bool:
    """Return whether a file looks like PEM. Raises ConfigError if it cannot be read."""
    return _PEM_MARK in _read(location, location)


def _type_of(settings: StoreSettings, key: str) -> str:
    store_type = settings.text(key) or ""
    if store_type.upper() not in STORE_TYPES:
        raise ConfigError(f"{key}={store_type}: expected one of {', '.join(STORE_TYPES)}")
    return store_type.upper()


def _check_inline(settings: StoreSettings, prefix: str) -> None:
    """Check the settings beside PEM text in the configuration. Raises ConfigError."""
    store_type = _type_of(settings, f"{prefix}.type")
    if store_type != PEM:
        raise ConfigError(
            f"{prefix}.type={store_type}: certificates in the configuration are {PEM}, set"
            f" {prefix}.type={PEM}"
        )
    for location_key in ("location", "password"):
        if settings.text(f"{prefix}.{location_key}") is not None:
            raise ConfigError(
                f"{prefix}.{location_key} is set, and so are certificates in the configuration:"
                " remove one"
            )


def _pem_key_store(key: str, chain: str, key_password: str | None, source: str) -> KeyStore:
    keys = [match.group() for match in _KEY.finditer(key)]
    if len(keys) != 1:
        raise ConfigError(f"{source}: {len(keys)} private keys, expected one, as PEM")
    return KeyStore(keys[0], key_password, _pem_certificates(chain, source), source)


def _pem_certificates(text: str, source: str) -> tuple[str, ...]:
    certificates = tuple(match.group() for match in _CERTIFICATE.finditer(text))
    if not certificates:
        raise ConfigError(f"{source}: no certificate, expected -----BEGIN CERTIFICATE----- (PEM)")
    return certificates


def _read_text(source: str, path: str) -> str:
    data = _read(source, path)
    if not data.isascii() and _PEM_MARK not in data:
        raise ConfigError(f"{source}: this file is no PEM; set the store's type to JKS or PKCS12")
    return data.decode("utf-8", "replace")


def _read(source: str, path: str) -> bytes:
    """Return the content of a store. Raises ConfigError."""
    try:
        size = os.stat(path).st_size  # noqa: PTH116  as the next
        if size > STORE_BYTES_MAX:
            raise ConfigError(f"{source}: {size} bytes, expected at most {STORE_BYTES_MAX}")
        data = Path(path).read_bytes()
    except OSError as error:
        raise ConfigError(f"{source} cannot be read: {error.strerror}") from None
    if data.startswith(_JCEKS_MAGIC):
        raise ConfigError(
            f"{source}: type JCEKS is not served; keytool -importkeystore -deststoretype PKCS12"
            " makes a PKCS12 store of it"
        )
    return data

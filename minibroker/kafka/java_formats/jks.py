"""Java's own key store format, JKS: the certificates and the first private key of a store.

    magic, version, number of entries, entries, SHA-1 of the password and of all before
    entry: 1, alias, time, encrypted key, number of certificates, certificates
           2, alias, time, certificate

The key is XORed with a stream of SHA-1 digests of password and salt. Java has written PKCS12 by
default since version 9, and warns of JKS; old installations still have it.

Source: JDK sun.security.provider JavaKeyStore, KeyProtector.
"""

from __future__ import annotations

import hashlib
import hmac
import ssl
import struct
from base64 import encodebytes
from typing import Final, NamedTuple

from minibroker.kafka.errors import ConfigError
from minibroker.kafka.java_formats.der import read_values
from minibroker.kafka.java_formats.key_material import KeyStore

_INT: Final = struct.Struct(">I")
_SHORT: Final = struct.Struct(">H")
_TIME_BYTES: Final = 8
_DIGEST_BYTES: Final = 20
_PRIVATE_KEY: Final = 1
_TRUSTED_ENTRY: Final = 2
_WITH_TYPES: Final = 2
"""Version from which on each certificate names its type."""
_SALT_OF_STORE: Final = b"Mighty Aphrodite"


class _Content(NamedTuple):
    keys: list[tuple[bytes, list[bytes]]]
    """Encrypted key and its certificates, in the order of the store."""
    trusted: list[bytes]


def read_key_entry(data: bytes, password: str, key_password: str, source: str) -> KeyStore:
    """Return the first private key of a store. Raises ConfigError."""
    content = _read(data, password, source)
    if not content.keys:
        raise ConfigError(f"{source}: the store has no private key")
    encrypted_key, certificates = content.keys[0]
    key = _decrypt(encrypted_key, key_password, source)
    pem = f"-----BEGIN PRIVATE KEY-----\n{encodebytes(key).decode()}-----END PRIVATE KEY-----\n"
    return KeyStore(pem, None, tuple(map(ssl.DER_cert_to_PEM_cert, certificates)), source)


def read_trusted(data: bytes, password: str | None, source: str) -> tuple[str, ...]:
    """Return the certificates of a store as PEM; without a password its digest is not compared, as
    in Java. Raises ConfigError.
    """
    content = _read(data, password, source)
    if not content.trusted:
        raise ConfigError(f"{source}: the store has no trusted certificate")
    return tuple(map(ssl.DER_cert_to_PEM_cert, content.trusted))


def _read(data: bytes, password: str | None, source: str) -> _Content:
    body, digest = data[:-_DIGEST_BYTES], data[-_DIGEST_BYTES:]
    if password is not None:
        computed = _sha1(password.encode("utf-16-be"), _SALT_OF_STORE, body)
        if not hmac.compare_digest(computed, digest):
            raise ConfigError(f"{source}: the store's password is wrong, or the store is damaged")
    try:
        return _JksReader(body).content()
    except (struct.error, ValueError) as error:
        raise ConfigError(f"{source}: the store is damaged: {error}") from None


class _JksReader:
    """Reads a store from its beginning. Raises struct.error and ValueError."""

    __slots__ = ("_data", "_position", "_version")

    def __init__(self, body: bytes) -> None:
        self._data = body
        self._position = 4  # behind the magic
        self._version = self._int()

    def content(self) -> _Content:
        """Return all entries."""
        content = _Content([], [])
        for _ in range(self._int()):
            kind = self._int()
            self._skip_text()  # alias
            self._bytes(_TIME_BYTES)
            if kind == _PRIVATE_KEY:
                key = self._bytes(self._int())
                content.keys.append((key, [self._certificate() for _ in range(self._int())]))
            elif kind == _TRUSTED_ENTRY:
                content.trusted.append(self._certificate())
            else:
                raise ValueError(f"an entry of kind {kind}")
        return content

    def _certificate(self) -> bytes:
        if self._version >= _WITH_TYPES:
            self._skip_text()
        return self._bytes(self._int())

    def _skip_text(self) -> None:
        (length,) = _SHORT.unpack_from(self._data, self._position)
        self._position += _SHORT.size
        self._bytes(length)

    def _int(self) -> int:
        (value,) = _INT.unpack_from(self._data, self._position)
        self._position += _INT.size
        return int(value)

    def _bytes(self, length: int) -> bytes:
        end = self._position + length
        if end > len(self._data):
            raise ValueError(f"{length} bytes at {self._position} of {len(self._data)}")
        data = self._data[self._position : end]
        self._position = end
        return data


def _decrypt(encrypted_key: bytes, password: str, source: str) -> bytes:
    """Return the private key as PKCS 8. Raises ConfigError."""
    try:
        (info,) = read_values(encrypted_key)
        _algorithm, octets = read_values(info.content)
    except ValueError as error:
        raise ConfigError(f"{source}: the private key is damaged: {error}") from None
    secret = password.encode("utf-16-be")
    salt, cipher, digest = (
        octets.content[:_DIGEST_BYTES],
        octets.content[_DIGEST_BYTES:-_DIGEST_BYTES],
        octets.content[-_DIGEST_BYTES:],
    )
    stream = bytearray()
    block = bytes(salt)
    while len(stream) < len(cipher):
        block = _sha1(secret, block)
        stream += block
    key = bytes(byte ^ pad for byte, pad in zip(cipher, stream, strict=False))
    if not hmac.compare_digest(_sha1(secret, key), digest):
        raise ConfigError(f"{source}: the password of the key (ssl.key.password) is wrong")
    return key


def _sha1(*parts: bytes) -> bytes:
    digest = hashlib.sha1(usedforsecurity=False)
    for part in parts:
        digest.update(part)
    return digest.digest()

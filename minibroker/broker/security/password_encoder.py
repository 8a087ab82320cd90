"""`PasswordEncoder`: how a password that was altered at run time stands in the metadata tree.

A text of name:value pairs, with everything but the secret that is needed to read it:

    initializationVector:…,keyLength:128,salt:…,keyFactoryAlgorithm:PBKDF2WithHmacSHA512,
    cipherAlgorithm:AES/CBC/PKCS5Padding,iterations:4096,passwordLength:6,encryptedPassword:…

Kafka 3.9 reads what this module writes, and the other way round. Pure, but for random bytes.
`encode` and `decode` take milliseconds, so callers run them beside the loop.

Source: Kafka EncryptingPasswordEncoder, IvParamsEncoder, GcmParamsEncoder, PasswordEncoderConfigs.
Differs from Kafka: the cipher is AES/CBC or AES/GCM. Others are refused at the start.
"""

from __future__ import annotations

import base64
import hashlib
import os
from typing import TYPE_CHECKING, Final

from minibroker.kafka.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from minibroker.broker.config.settings import ConfigValues

SECRET_KEY: Final = "password.encoder.secret"
OLD_SECRET_KEY: Final = "password.encoder.old.secret"
_FACTORY_KEY: Final = "password.encoder.keyfactory.algorithm"
_CIPHER_KEY: Final = "password.encoder.cipher.algorithm"
_LENGTH_KEY: Final = "password.encoder.key.length"
_ITERATIONS_KEY: Final = "password.encoder.iterations"
_HASHES: Final = {
    f"PBKDF2WithHmacSHA{bits}": f"sha{bits}" for bits in ("512", "384", "256", "224", "1")
}
"""Java's name of a key derivation → the hash."""
_DEFAULT_FACTORY: Final = "PBKDF2WithHmacSHA512"
_CBC: Final = "AES/CBC/PKCS5Padding"
_GCM: Final = "AES/GCM/NoPadding"
_CIPHERS: Final = (_CBC, _GCM)
_KEY_LENGTHS: Final = (128, 192, 256)
"""Bits of a key of AES."""
ITERATIONS_MAX: Final = 10_000_000
"""More would keep a thread busy for seconds, for one password."""
_SALT_BYTES: Final = 256
_BLOCK_BYTES: Final = 16
_GCM_VECTOR_BYTES: Final = 12
_TAG_BYTES: Final = 16


class PasswordEncoder:
    """Encodes with one secret, and decodes with it. Constant after construction."""

    __slots__ = ("_cipher", "_factory", "_iterations", "_key_bits", "_secret")

    def __init__(self, secret: str, settings: ConfigValues) -> None:
        """`settings`: those of `password.encoder.…`. Raises ConfigError."""
        self._secret = secret.encode("utf-8", "surrogatepass")
        self._factory = settings.text(_FACTORY_KEY) or _DEFAULT_FACTORY
        self._cipher = settings.text(_CIPHER_KEY) or ""
        self._key_bits = settings.integer(_LENGTH_KEY)
        self._iterations = settings.integer(_ITERATIONS_KEY)
        for key, value, expected_text in (
            (_FACTORY_KEY, self._factory, tuple(_HASHES)),
            (_CIPHER_KEY, self._cipher, _CIPHERS),
            (_LENGTH_KEY, self._key_bits, _KEY_LENGTHS),
        ):
            if value not in expected_text:
                raise ConfigError(
                    f"{key}={value}: expected one of {', '.join(map(str, expected_text))}"
                )
        if self._iterations > ITERATIONS_MAX:
            raise ConfigError(
                f"{_ITERATIONS_KEY}={self._iterations}: expected at most {ITERATIONS_MAX}"
            )
        _import_ciphers()

    def encode(self, password: str) -> str:
        """Return the text for the tree, another one with every call."""
        salt = os.urandom(_SALT_BYTES)
        is_gcm = self._cipher == _GCM
        vector = os.urandom(_GCM_VECTOR_BYTES if is_gcm else _BLOCK_BYTES)
        key = self._key(self._factory, salt, self._iterations, self._key_bits)
        plain = password.encode("utf-8", "surrogatepass")
        cipher_bytes = _encrypt(self._cipher, key, vector, plain)
        pairs = {
            "initializationVector": _base64(vector),
            "keyLength": self._key_bits,
            "salt": _base64(salt),
            "keyFactoryAlgorithm": self._factory,
            "cipherAlgorithm": self._cipher,
            "iterations": self._iterations,
            "passwordLength": _java_length(password),
        }
        if is_gcm:
            pairs["authenticationTagLength"] = 8 * _TAG_BYTES
        pairs["encryptedPassword"] = _base64(cipher_bytes)
        return ",".join(f"{name}:{value}" for name, value in pairs.items())

    def decode(self, text: str) -> str:
        """Return the password of a text of the tree. Raises ConfigError, without the text."""
        pairs = pairs_of(text)
        try:
            password = self._decrypt(pairs)
            is_whole = _java_length(password) == int(pairs["passwordLength"])
        except (KeyError, ValueError):  # binascii.Error and UnicodeDecodeError are ValueErrors
            is_whole = False
        if not is_whole:
            raise ConfigError("Password could not be decoded")
        return password

    def _decrypt(self, pairs: Mapping[str, str]) -> str:
        """Raises KeyError, ValueError."""
        iterations, bits = int(pairs["iterations"]), int(pairs["keyLength"])
        cipher = pairs["cipherAlgorithm"]
        if not 0 < iterations <= ITERATIONS_MAX or bits not in _KEY_LENGTHS:
            raise ValueError(cipher)
        salt, vector, cipher_bytes = (
            base64.b64decode(pairs[name], validate=True)
            for name in ("salt", "initializationVector", "encryptedPassword")
        )
        key = self._key(pairs["keyFactoryAlgorithm"], salt, iterations, bits)
        if cipher == _GCM and int(pairs["authenticationTagLength"]) != 8 * _TAG_BYTES:
            raise ValueError(cipher)
        return _decrypt(cipher, key, vector, cipher_bytes).decode("utf-8", "surrogatepass")

    def _key(self, factory: str, salt: bytes, iterations: int, bits: int) -> bytes:
        """Return the key for one password. Raises KeyError."""
        return hashlib.pbkdf2_hmac(_HASHES[factory], self._secret, salt, iterations, bits // 8)


def pairs_of(text: str) -> dict[str, str]:
    """Return the pairs of a stored text; a text that is none gives few or none."""
    pairs = (pair.rpartition(":") for pair in text.split(","))
    return {name.strip(): value.strip() for name, colon, value in pairs if colon}


def is_encoded(text: str) -> bool:
    """Return whether a text of the tree is an encoded password, of whatever secret."""
    return {"encryptedPassword", "salt", "cipherAlgorithm"} <= pairs_of(text).keys()


def encoder_of(settings: ConfigValues, key: str = SECRET_KEY) -> PasswordEncoder | None:
    """Return the encoder with the secret of this setting, None where it is not set. Raises
    ConfigError.
    """
    secret = settings.text(key)
    return None if secret is None else PasswordEncoder(secret, settings)


def _import_ciphers() -> None:
    """Raise ConfigError where the package of the ciphers is missing."""
    try:
        import cryptography  # noqa: F401, PLC0415  an extra
    except ImportError:
        raise ConfigError(
            f"{SECRET_KEY} needs the package cryptography: pip install 'minibroker[security]'"
        ) from None


def _encrypt(cipher: str, key: bytes, vector: bytes, plain: bytes) -> bytes:
    from cryptography.hazmat.primitives.ciphers import (  # noqa: PLC0415  an extra
        Cipher,
        aead,
        algorithms,
        modes,
    )
    from cryptography.hazmat.primitives.padding import PKCS7  # noqa: PLC0415  an extra

    if cipher == _GCM:
        return aead.AESGCM(key).encrypt(vector, plain, None)
    padder = PKCS7(8 * _BLOCK_BYTES).padder()
    encryptor = Cipher(algorithms.AES(key), modes.CBC(vector)).encryptor()
    padded_bytes = padder.update(plain) + padder.finalize()
    return encryptor.update(padded_bytes) + encryptor.finalize()


def _decrypt(cipher: str, key: bytes, vector: bytes, cipher_bytes: bytes) -> bytes:
    """Raises ValueError: another key, or bytes that nobody encrypted."""
    from cryptography.exceptions import InvalidTag  # noqa: PLC0415  an extra
    from cryptography.hazmat.primitives.ciphers import (  # noqa: PLC0415  an extra
        Cipher,
        aead,
        algorithms,
        modes,
    )
    from cryptography.hazmat.primitives.padding import PKCS7  # noqa: PLC0415  an extra

    if cipher == _GCM:
        try:
            return aead.AESGCM(key).decrypt(vector, cipher_bytes, None)
        except InvalidTag as error:
            raise ValueError(cipher) from error
    if cipher != _CBC:
        raise ValueError(cipher)
    decryptor = Cipher(algorithms.AES(key), modes.CBC(vector)).decryptor()
    unpadder = PKCS7(8 * _BLOCK_BYTES).unpadder()
    padded_bytes = decryptor.update(cipher_bytes) + decryptor.finalize()
    return unpadder.update(padded_bytes) + unpadder.finalize()


def _java_length(text: str) -> int:
    """Return the length that Java's String gives: characters beyond 16 bits count twice."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")

"""Assertions: signed texts that prove to an identity provider who we are (RFC 7523).

They stand in place of a client's secret, so the provider has only a public key of ours. An
assertion is made for each request for a token (`token_endpoint`), or read from a file that
something else renews:

    sasl.oauthbearer.assertion.file              a ready assertion; it goes before the others
    sasl.oauthbearer.assertion.private.key.*     the key that signs one, for `….algorithm`
    sasl.oauthbearer.assertion.claim.*           its claims: aud, iss, sub, and how long it holds
    sasl.oauthbearer.assertion.template.file     JSON with more of `header` and `payload`

Files are read for each assertion, so a key that is replaced counts for the next token. Calls block.

Source: Kafka 4.4 AssertionSupplierFactory, AssertionUtils, DefaultAssertionCreator,
LayeredAssertionJwtTemplate, FileAssertionCreator (KIP-1139, KIP-1258).
"""

from __future__ import annotations

import json
import uuid
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from minibroker.kafka.errors import ConfigError
from minibroker.kafka.oauthbearer import MESSAGE_BYTES_MAX, TokenError, claims_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from minibroker.kafka.config_keys import TypedSettings

_PREFIX: Final = "sasl.oauthbearer.assertion."
FILE_KEY: Final = f"{_PREFIX}file"
ISSUER_KEY: Final = f"{_PREFIX}claim.iss"
KEY_FILE_KEY: Final = f"{_PREFIX}private.key.file"
TEMPLATE_KEY: Final = f"{_PREFIX}template.file"
_CLAIMS: Final = ("aud", "iss", "sub")


def has_assertions(settings: TypedSettings) -> bool:
    """Return whether assertions stand for the secret of the client."""
    return bool(_text(settings, FILE_KEY) or _text(settings, ISSUER_KEY))


def assertions_of(settings: TypedSettings, now_ms: Callable[[], int]) -> Callable[[], str]:
    """Return what gives an assertion, and raises ConfigError where there is none. One is made here:
    so a file that is wrong is told at the start. Raises ConfigError.
    """
    file = _text(settings, FILE_KEY)
    make = partial(_ready, file) if file else partial(_signed, settings, now_ms)
    make()
    return make


def _ready(file: str) -> str:
    """Return the assertion in a file. Raises ConfigError."""
    assertion = _read(FILE_KEY, file).decode("utf-8", "replace").strip()
    try:
        claims_of(assertion)
    except TokenError as error:
        raise ConfigError(f"{FILE_KEY}={file} has no assertion: {error}") from None
    return assertion


def _signed(settings: TypedSettings, now_ms: Callable[[], int]) -> str:
    """Return a new assertion. Raises ConfigError."""
    try:
        from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415  seldom set, 20 ms
        from cryptography.hazmat.primitives.serialization import (  # noqa: PLC0415  as above
            load_pem_private_key,
        )
        from jwt import PyJWS, PyJWTError  # noqa: PLC0415  as above
    except ImportError as error:
        raise ConfigError(
            f"assertions need the package {error.name}: pip install 'minibroker[security]'"
        ) from None
    file = _text(settings, KEY_FILE_KEY)
    if not file:
        raise ConfigError(f"an assertion needs {KEY_FILE_KEY}, or {FILE_KEY}")
    pem = _read(KEY_FILE_KEY, file)
    passphrase = settings.text(f"{_PREFIX}private.key.passphrase")
    algorithm = (settings.text(f"{_PREFIX}algorithm") or "").upper()
    header, payload = _template_of(_text(settings, TEMPLATE_KEY))
    header |= {"alg": algorithm, "typ": "JWT"}
    claim_texts = {name: _text(settings, f"{_PREFIX}claim.{name}") for name in _CLAIMS}
    claims = {name: text for name, text in claim_texts.items() if text} | payload
    claims |= _times_of(settings, now_ms() // 1000)
    if settings.boolean(f"{_PREFIX}claim.jti.include"):
        claims["jti"] = str(uuid.uuid4())
    try:
        key: Any = load_pem_private_key(pem, passphrase.encode() if passphrase else None)
        return PyJWS().encode(json.dumps(claims).encode(), key, algorithm, headers=header)
    except (PyJWTError, UnsupportedAlgorithm, TypeError, ValueError) as error:
        raise ConfigError(
            f"{KEY_FILE_KEY}={file}: expected a private key for {algorithm}, in PEM: {error}"
        ) from None


def _times_of(settings: TypedSettings, now_s: int) -> dict[str, Any]:
    """Return the claims that say when an assertion holds."""
    return {
        "iat": now_s,
        "exp": now_s + settings.integer(f"{_PREFIX}claim.exp.seconds"),
        "nbf": now_s - settings.integer(f"{_PREFIX}claim.nbf.seconds"),
    }


def _template_of(file: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return header and payload of a template; "" stands for none. Raises ConfigError."""
    if not file:
        return {}, {}
    data = _read(TEMPLATE_KEY, file)
    try:
        template = json.loads(data)
        header, payload = dict(template.get("header", {})), dict(template.get("payload", {}))
    except (AttributeError, TypeError, ValueError, RecursionError):
        raise ConfigError(
            f'{TEMPLATE_KEY}={file}: expected JSON, {{"header": {{…}}, "payload": {{…}}}}'
        ) from None
    return header, payload


def _read(key: str, file: str) -> bytes:
    """Return a file's bytes. Raises ConfigError, also where there are too many."""
    try:
        with Path(file).open("rb") as source:
            data = source.read(MESSAGE_BYTES_MAX + 1)
    except OSError as error:
        raise ConfigError(f"{key}={file} cannot be read: {error.strerror or error}") from None
    if len(data) > MESSAGE_BYTES_MAX:
        raise ConfigError(f"{key}={file} has more than {MESSAGE_BYTES_MAX} bytes")
    return data


def _text(settings: TypedSettings, key: str) -> str:
    """Return a setting without blanks around it, "" where there is none."""
    return (settings.text(key) or "").strip()

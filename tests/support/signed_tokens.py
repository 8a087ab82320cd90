"""Signed tokens for tests: the keys of an identity provider, its JWKS, tokens good and bad.

Tokens are put together by hand, because a library refuses to make bad ones. Keys are made once in a
process.
"""

from __future__ import annotations

import base64
import hmac
import json
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

if TYPE_CHECKING:
    from pathlib import Path

ISSUER: Final = "https://issuer.example"
AUDIENCE: Final = "the-cluster"
FAR_S: Final = 7_000_000_000
CLAIMS: Final = {
    "sub": "alice",
    "iss": ISSUER,
    "aud": AUDIENCE,
    "exp": FAR_S,
    "iat": 1_700_000_000,
    "scope": ["read", "write"],
}
SHARED: Final = b"a secret that the provider and the broker share, 32 bytes or more"
_HASHES: Final = {"256": hashes.SHA256(), "384": hashes.SHA384(), "512": hashes.SHA512()}


@cache
def rsa_key(name: str, bits: int = 2048) -> rsa.RSAPrivateKey:
    """Return the RSA key of this name."""
    return rsa.generate_private_key(65537, bits)


@cache
def ec_key(name: str) -> ec.EllipticCurvePrivateKey:
    """Return the key of this name on the curve P-256."""
    return ec.generate_private_key(ec.SECP256R1())


def write_key(path: Path, key: Any, passphrase: bytes = b"") -> str:
    """Write a private key as Java reads it; return the file."""
    encryption = BestAvailableEncryption(passphrase) if passphrase else NoEncryption()
    path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption))
    return str(path)


def jwks() -> dict[str, Any]:
    """Return the published keys of the provider."""
    return {
        "keys": [
            _rsa_jwk("rsa", use="sig"),
            _rsa_jwk("encryption", use="enc"),
            _rsa_jwk("small", bits=1024),
            _ec_jwk("ec"),
            {"kty": "oct", "kid": "shared", "k": encoded(SHARED)},
            {"kty": "oct", "kid": "short", "k": encoded(SHARED[:8])},
            {"kty": "RSA", "kid": "broken", "n": "AA"},
            {"kty": "unheard-of", "kid": "unheard-of"},
        ]
    }


def write_jwks(directory: Path) -> str:
    """Write the keys to a file; return its URL."""
    path = directory / "jwks.json"
    path.write_text(json.dumps(jwks()))
    return path.as_uri()


def token(
    claims: dict[str, Any] | None = None,
    *,
    key: str = "rsa",
    header: dict[str, Any] | None = None,
    payload: bytes | None = None,
) -> str:
    """Return a token whose claims and header are the usual ones with these changes; None: without.

    `key`: the key's name; the algorithm of the header says how it signs.
    """
    head = {"alg": "RS256", "kid": key, **(header or {})}
    head = {name: value for name, value in head.items() if value is not None}
    body = {
        name: value for name, value in {**CLAIMS, **(claims or {})}.items() if value is not None
    }
    signed = f"{encoded(_json(head))}.{encoded(_json(body) if payload is None else payload)}"
    return f"{signed}.{encoded(_signature(str(head.get('alg')), key, signed.encode()))}"


def encoded(data: bytes) -> str:
    """Return base64 as tokens have it."""
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def public_pem(key: str = "rsa") -> bytes:
    """Return a public key as PEM, which everybody may know."""
    return rsa_key(key).public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def with_signature(text: str, secret: bytes) -> str:
    """Return a token with the HMAC by this secret in place of its signature."""
    signed = text.rpartition(".")[0]
    return f"{signed}.{encoded(hmac.digest(secret, signed.encode(), 'sha256'))}"


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()


def _signature(algorithm: str, key: str, signed: bytes) -> bytes:
    kind, digest = algorithm[:2], _HASHES.get(algorithm[2:], hashes.SHA256())
    if kind == "HS":
        secret = SHARED[:8] if key == "short" else SHARED
        return hmac.digest(secret, signed, digest.name)
    if kind == "ES":
        pair = decode_dss_signature(ec_key(key).sign(signed, ec.ECDSA(digest)))
        return b"".join(number.to_bytes(32, "big") for number in pair)
    bits = 1024 if key == "small" else 2048
    if kind == "PS":
        pss = padding.PSS(padding.MGF1(digest), digest.digest_size)
        return rsa_key(key, bits).sign(signed, pss, digest)
    return rsa_key(key, bits).sign(signed, padding.PKCS1v15(), digest)


def _rsa_jwk(name: str, *, bits: int = 2048, **fields: str) -> dict[str, str]:
    numbers = rsa_key(name, bits).public_key().public_numbers()
    return {"kty": "RSA", "kid": name, "n": _number(numbers.n), "e": _number(numbers.e), **fields}


def _ec_jwk(name: str) -> dict[str, str]:
    numbers = ec_key(name).public_key().public_numbers()
    return {
        "kty": "EC",
        "crv": "P-256",
        "kid": name,
        "x": encoded(numbers.x.to_bytes(32, "big")),
        "y": encoded(numbers.y.to_bytes(32, "big")),
    }


def _number(value: int) -> str:
    return encoded(value.to_bytes((value.bit_length() + 7) // 8, "big"))

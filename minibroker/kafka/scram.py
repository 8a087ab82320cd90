"""SCRAM credentials as the tree stores them: a text per user and mechanism.

They stand beside the user's quotas in /config/users/<user>, under the name of the mechanism:
`salt=…,stored_key=…,server_key=…,iterations=4096`, with keys and salt in base 64. The text does not
hold the password: the server key and the hash of the client key are enough to check it (RFC 5802).

`credential_of` reads the text for a login, `salted_password` is the slow step of RFC 5802, which
clients make: a login costs the broker three hashes.

Source: Kafka ScramFormatter, ScramCredentialUtils, ZkAdminManager.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

ITERATIONS_MIN: Final = 4096
ITERATIONS_MAX: Final = 16384
SALT_BYTES: Final = 16
_ITERATIONS: Final = "iterations="

MECHANISMS: Final[Mapping[int, str]] = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
"""Code in requests → name of the mechanism, which is the key in the user's configuration."""
HASHES: Final = {1: "sha256", 2: "sha512"}
"""Code in requests → name of the hash."""
CODES: Final = {name: code for code, name in MECHANISMS.items()}


class ScramCredential(NamedTuple):
    """The broker's half of a SCRAM credential; it does not give the password away."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    def __repr__(self) -> str:
        """Return a text without keys: it may come into a log."""
        return f"ScramCredential(iterations={self.iterations})"


def credential(mechanism: int, salt: bytes, salted_password: bytes, iterations: int) -> str:
    """Return the text to store. `salted_password` is what the client derived from password and
    salt.
    """
    name = HASHES[mechanism]
    client_key = hmac.digest(salted_password, b"Client Key", name)
    stored_key = hashlib.new(name, client_key).digest()
    server_key = hmac.digest(salted_password, b"Server Key", name)
    return text_of(ScramCredential(salt, stored_key, server_key, iterations))


def text_of(stored_credential: ScramCredential) -> str:
    """Return the text to store; `credential_of` reads it."""
    salt, stored_key, server_key, iterations = stored_credential
    return (
        f"salt={_text(salt)},stored_key={_text(stored_key)},server_key={_text(server_key)},"
        f"{_ITERATIONS}{iterations}"
    )


def salted_password(mechanism: int, password: str, salt: bytes, iterations: int) -> bytes:
    """Return the salted password of RFC 5802: `iterations` hashes, milliseconds of work."""
    return hashlib.pbkdf2_hmac(HASHES[mechanism], password.encode(), salt, iterations)


def credential_of(text: str) -> ScramCredential | None:
    """Return the credential of a stored text, None if the text cannot be read."""
    parts = dict(part.partition("=")[::2] for part in text.split(","))
    iterations = iterations_of(text)
    if iterations is None:
        return None
    try:
        salt, stored_key, server_key = (
            base64.b64decode(parts[name], validate=True)
            for name in ("salt", "stored_key", "server_key")
        )
    except (KeyError, ValueError):
        return None
    return ScramCredential(salt, stored_key, server_key, iterations)


def iterations_of(text: str) -> int | None:
    """Return the iterations of a stored text, None if the text cannot be read."""
    for part in text.split(","):
        if part.startswith(_ITERATIONS) and part.removeprefix(_ITERATIONS).isdecimal():
            return int(part.removeprefix(_ITERATIONS))
    return None


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")

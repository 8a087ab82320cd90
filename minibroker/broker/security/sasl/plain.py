"""PLAIN: the client sends its name and its password (RFC 4616).

The users stand in the listener's JAAS line: `user_alice="secret"`. Bytes that are no UTF-8 count as
replacement characters, as in Java.

Source: Kafka PlainSaslServer, PlainServerCallbackHandler.
"""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING, Final

from minibroker.broker.security.sasl.exchange import RefusedError

if TYPE_CHECKING:
    from collections.abc import Mapping

MECHANISM: Final = "PLAIN"
_USER: Final = "user_"
_PARTS: Final = 3
_NOBODY: Final = "\0no password holds a zero byte"
"""Compared with the password of an unknown user, so that both cases take the same time."""


def users_of(options: Mapping[str, str]) -> dict[str, str]:
    """Return user → password of a JAAS line's options."""
    return {
        key.removeprefix(_USER): password
        for key, password in options.items()
        if key.startswith(_USER)
    }


class PlainExchange:
    """One attempt: one token."""

    may_block = False

    __slots__ = ("_users", "expires_ms", "is_complete", "is_token", "name")

    def __init__(self, users: Mapping[str, str]) -> None:
        """`users`: name → password."""
        self._users = users
        self.is_complete = False
        self.name = ""
        self.expires_ms: int | None = None
        self.is_token = False

    def respond(self, token: bytes, now_ms: int) -> bytes:
        """Do `SaslExchange.respond`."""
        parts = token.decode("utf-8", "replace").split("\0", _PARTS)
        if len(parts) != _PARTS:
            raise RefusedError(f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(parts)}")
        authorization_id, name, password = parts
        if not name:
            raise RefusedError("Authentication failed: username not specified")
        if not password:
            raise RefusedError("Authentication failed: password not specified")
        user = self._users.get(name)
        checked_user = _NOBODY if user is None else user
        if not hmac.compare_digest(_bytes(checked_user), _bytes(password)) or user is None:
            raise RefusedError("Authentication failed: Invalid username or password")
        if authorization_id not in {"", name}:
            raise RefusedError(
                "Authentication failed: Client requested an authorization id that is different"
                " from username"
            )
        self.name = name
        self.is_complete = True
        return b""


def _bytes(text: str) -> bytes:
    """Return the UTF-16 units of a text; a properties file may give them one by one."""
    return text.encode("utf-16-be", "surrogatepass")

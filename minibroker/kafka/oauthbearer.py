"""The parts that both sides of OAUTHBEARER share: constants of its messages, the claims of a token
(RFC 7519, RFC 7628).

Source: Kafka OAuthBearerClientInitialResponse, OAuthBearerUnsecuredJws, SerializedJwt.
"""

from __future__ import annotations

import base64
import binascii
import json
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

MECHANISM: Final = "OAUTHBEARER"
MESSAGE_BYTES_MAX: Final = 64 * 1024
ERROR_HEARD: Final = b"\x01"
"""The answer of a client to the reason for which its token is not believed (RFC 7628, 3.2.3)."""
PARTS: Final = 3
"""Parts of a token: header, claims, signature."""
LATEST_S: Final = 1e13
"""Times are cut to this: no token lasts longer than 300,000 years."""


class TokenError(Exception):
    """A token that is not believed. The text is for the log, without anything secret."""

    status = "invalid_token"
    """The word that the client is told."""
    scope: str | None = None
    """The scope that is wanted."""


def claims_of(token: str) -> dict[str, Any]:
    """Return the claims of a token, believed or not. Raises TokenError."""
    parts = token.split(".")
    if len(parts) != PARTS:
        raise TokenError("a token has three parts")
    return json_of(parts[1])


def json_of(part: str) -> dict[str, Any]:
    """Return the JSON object of a part of a token. Raises TokenError."""
    padded = part.replace("-", "+").replace("_", "/") + "=" * (-len(part) % 4)
    try:
        members = json.loads(base64.b64decode(padded, validate=True), parse_constant=no_number)
    except (binascii.Error, ValueError, RecursionError):
        raise TokenError("a part of the token is no JSON in base64") from None
    if not isinstance(members, dict):
        raise TokenError("a part of the token is no JSON object")
    return members


def no_number(text: str) -> float:
    """Refuse NaN and the infinities, which JSON does not have."""
    raise ValueError(text)


def seconds_of(claims: Mapping[str, Any], name: str) -> float | None:
    """Return a time in seconds since the epoch, None where there is none. Raises TokenError."""
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TokenError(f"claim {name} is no number")
    return float(max(-LATEST_S, min(LATEST_S, value)))

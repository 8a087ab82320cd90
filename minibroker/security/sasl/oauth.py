"""OAUTHBEARER: the client sends a token, and the broker believes its claims (RFC 7628).

The tokens are unsecured (`"alg": "none"`), as in Kafka without a callback handler: they are for
tests and for development. Options of the JAAS line that begin with `unsecuredValidator` say which
claims are wanted. A session ends with its token.

Source: Kafka OAuthBearerSaslServer, OAuthBearerClientInitialResponse, OAuthBearerUnsecuredJws,
OAuthBearerUnsecuredValidatorCallbackHandler, OAuthBearerValidationUtils.
Differs from Kafka: a token without `alg`, or with claims that are no JSON object, is an invalid
token; in Kafka it ends the connection without an answer. The alphabet of URLs is taken, too.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from minibroker.errors import ConfigError, ProtocolError
from minibroker.security.sasl.exchange import CredentialsError, RefusedError

if TYPE_CHECKING:
    from collections.abc import Mapping

MECHANISM: Final = "OAUTHBEARER"
MESSAGE_BYTES_MAX: Final = 64 * 1024
_NAME: Final = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_MESSAGE: Final = re.compile(
    rf"n,(?:a=(?P<authorization>{_NAME}))?,\x01(?P<pairs>(?:[A-Za-z]+=[\x20-\x7e\t\r\n]+\x01)*)\x01"
)
_AUTH: Final = re.compile(r"(?P<scheme>\w+) +(?P<token>[-_~+/.a-zA-Z0-9]+=*)", re.ASCII)
_OPTION: Final = "unsecuredValidator"
_PARTS: Final = 3
_LATEST_S: Final = 1e13
"""Times are cut to this: no token lasts longer than 300,000 years."""


class TokenRules(NamedTuple):
    """The claims that a token needs."""

    name_claim: str = "sub"
    scope_claim: str = "scope"
    scope: tuple[str, ...] = ()
    """All of these have to be in the token's scope."""
    skew_ms: int = 0
    """How far the clocks of client and broker may be apart."""


class _TokenError(Exception):
    """A token that is not believed."""

    def __init__(self, status: str, scope: str | None = None) -> None:
        super().__init__(status)
        self.status = status
        self.scope = scope


class OAuthToken(NamedTuple):
    """The claims of a token that hold."""

    name: str
    expires_ms: int


def rules_of(options: Mapping[str, str]) -> TokenRules:
    """Return the rules of a JAAS line. Raises ConfigError."""

    def option(name: str, default: str) -> str:
        return options.get(_OPTION + name, "").strip() or default

    skew = option("AllowableClockSkewMs", "0")
    if not (skew.isdecimal() and len(skew) < 10):
        raise ConfigError(
            f"{_OPTION}AllowableClockSkewMs={skew}: expected a number of milliseconds from 0"
        )
    return TokenRules(
        option("PrincipalClaimName", "sub"),
        option("ScopeClaimName", "scope"),
        tuple(option("RequiredScope", "").split()),
        int(skew),
    )


class OAuthExchange:
    """One attempt: a token; behind a bad one, the client's word that it has heard of it."""

    __slots__ = ("_error", "_rules", "expires_ms", "is_complete", "is_token", "name")

    def __init__(self, rules: TokenRules) -> None:
        self._rules = rules
        self._error: str | None = None
        """The answer to a token that was not believed."""
        self.is_complete = False
        self.name = ""
        self.expires_ms: int | None = None
        self.is_token = False

    def respond(self, token: bytes, now_ms: int) -> bytes:
        """Do `Exchange.respond`."""
        if token == b"\x01" and self._error is not None:
            raise RefusedError(self._error)
        self._error = None
        text = token.decode("utf-8", "replace") if len(token) <= MESSAGE_BYTES_MAX else ""
        message = _MESSAGE.fullmatch(text)
        if message is None:
            raise CredentialsError("the OAUTHBEARER message is malformed")
        pairs = dict(pair.partition("=")[::2] for pair in message["pairs"].split("\x01") if pair)
        auth = _AUTH.fullmatch(pairs.get("auth", ""))
        if auth is None:
            raise CredentialsError("the OAUTHBEARER message has no token")
        if auth["scheme"].lower() != "bearer":
            # Kafka answers nothing, too: it fails while it writes the answer.
            raise ProtocolError("the token of the OAUTHBEARER message is no bearer token")
        try:
            found = check_unsecured(auth["token"], self._rules, now_ms)
        except _TokenError as error:
            scope = "" if error.scope is None else f', "scope":"{error.scope}"'
            self._error = f'{{"status":"{error.status}"{scope}}}'
            return self._error.encode()
        authorization = message["authorization"]
        if authorization and authorization != found.name:
            raise RefusedError(
                f"Authentication failed: Client requested an authorization id ({authorization})"
                f" that is different from the token's principal name ({found.name})"
            )
        self.name, self.expires_ms, self.is_complete = found.name, found.expires_ms, True
        return b""


def check_unsecured(token: str, rules: TokenRules, now_ms: int) -> OAuthToken:
    """Return the claims of an unsecured token. Raises _TokenError."""
    parts = token.split(".")
    if ".." in token or len(parts) != _PARTS or parts[2]:
        raise _TokenError("invalid_token")
    header, claims = _claims(parts[0]), _claims(parts[1])
    name = claims.get(rules.name_claim)
    if header.get("alg") != "none" or not isinstance(name, str) or not name.strip():
        raise _TokenError("invalid_token")
    issued_s, ends_s = _seconds(claims, "iat"), _seconds(claims, "exp")
    is_early = issued_s is not None and 1000 * issued_s > now_ms + rules.skew_ms
    if ends_s is None or is_early or now_ms - rules.skew_ms >= 1000 * ends_s:
        raise _TokenError("invalid_token")
    if issued_s is not None and ends_s <= issued_s:
        raise _TokenError("invalid_token")
    if not _scope(claims.get(rules.scope_claim)).issuperset(rules.scope):
        raise _TokenError("insufficient_scope", f"[{', '.join(rules.scope)}]")
    return OAuthToken(name, round(ends_s * 1000))


def _claims(part: str) -> dict[str, Any]:
    """Return the JSON object of a part of a token. Raises _TokenError."""
    padded = part.replace("-", "+").replace("_", "/") + "=" * (-len(part) % 4)
    try:
        found = json.loads(base64.b64decode(padded, validate=True), parse_constant=_no_number)
    except (binascii.Error, ValueError, RecursionError):
        raise _TokenError("invalid_token") from None
    if not isinstance(found, dict):
        raise _TokenError("invalid_token")
    return found


def _no_number(text: str) -> float:
    """Refuse NaN and the infinities, which JSON does not have."""
    raise ValueError(text)


def _seconds(claims: Mapping[str, Any], name: str) -> float | None:
    """Return a time in seconds since the epoch, None where there is none. Raises _TokenError."""
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise _TokenError("invalid_token")
    return float(max(-_LATEST_S, min(_LATEST_S, value)))


def _scope(value: object) -> set[str]:
    """Return the scope of a token: a text is one word of it, as in Kafka."""
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, list):
        return set()
    return {str(word).strip() for word in value if str(word).strip()}

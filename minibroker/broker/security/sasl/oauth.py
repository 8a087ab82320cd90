"""OAUTHBEARER: the client sends a token, and the broker believes its claims (RFC 7628).

Without a callback handler the tokens are unsecured (`"alg": "none"`), as in Kafka: they are for
tests and for development. Options of the JAAS line that begin with `unsecuredValidator` say which
claims are wanted. `signed_token` checks tokens with a signature. A session ends with its token.

Source: Kafka OAuthBearerSaslServer, OAuthBearerClientInitialResponse, OAuthBearerUnsecuredJws,
OAuthBearerUnsecuredValidatorCallbackHandler, OAuthBearerValidationUtils.
Differs from Kafka: a token without `alg`, or with claims that are no JSON object, is an invalid
token; in Kafka it ends the connection without an answer. The alphabet of URLs is taken, too.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.broker.security.sasl.exchange import CredentialsError, RefusedError
from minibroker.kafka.errors import ConfigError, ProtocolError
from minibroker.kafka.oauthbearer import (
    ERROR_HEARD,
    MESSAGE_BYTES_MAX,
    PARTS,
    TokenError,
    json_of,
    seconds_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_NAME: Final = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_MESSAGE: Final = re.compile(
    rf"n,(?:a=(?P<authorization>{_NAME}))?,\x01(?P<pairs>(?:[A-Za-z]+=[\x20-\x7e\t\r\n]+\x01)*)\x01"
)
_AUTH: Final = re.compile(r"(?P<scheme>\w+) +(?P<token>[-_~+/.a-zA-Z0-9]+=*)", re.ASCII)
_OPTION: Final = "unsecuredValidator"


class TokenRules(NamedTuple):
    """The claims that a token needs."""

    name_claim: str = "sub"
    scope_claim: str = "scope"
    scope: tuple[str, ...] = ()
    """All of these have to be in the token's scope."""
    skew_ms: int = 0
    """How far the clocks of client and broker may be apart."""


class ScopeError(TokenError):
    """A token whose scope is too small."""

    status = "insufficient_scope"

    def __init__(self, scope: str) -> None:
        super().__init__("the scope of the token is too small")
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

    may_block = False

    __slots__ = ("_check", "_error", "expires_ms", "is_complete", "is_token", "name")

    def __init__(self, check: Callable[[str, int], OAuthToken]) -> None:
        """Take `check`: token, wall clock in ms → its claims; it raises TokenError."""
        self._check = check
        self._error: RefusedError | None = None
        """Raised once the client has heard that its token is not believed."""
        self.is_complete = False
        self.name = ""
        self.expires_ms: int | None = None
        self.is_token = False

    def respond(self, token: bytes, now_ms: int) -> bytes:
        """Do `SaslExchange.respond`."""
        if token == ERROR_HEARD and self._error is not None:
            raise self._error
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
            claims = self._check(auth["token"], now_ms)
        except TokenError as error:
            scope = "" if error.scope is None else f', "scope":"{error.scope}"'
            answer = f'{{"status":"{error.status}"{scope}}}'
            self._error = RefusedError(answer, str(error))
            return answer.encode()
        authorization = message["authorization"]
        if authorization and authorization != claims.name:
            raise RefusedError(
                f"Authentication failed: Client requested an authorization id ({authorization})"
                f" that is different from the token's principal name ({claims.name})"
            )
        self.name, self.expires_ms, self.is_complete = claims.name, claims.expires_ms, True
        return b""


def check_unsecured(token: str, rules: TokenRules, now_ms: int) -> OAuthToken:
    """Return the claims of an unsecured token. Raises TokenError."""
    parts = token.split(".")
    if ".." in token or len(parts) != PARTS or parts[2]:
        raise TokenError("an unsecured token has two parts and a point")
    header, claims = json_of(parts[0]), json_of(parts[1])
    name = claims.get(rules.name_claim)
    if header.get("alg") != "none" or not isinstance(name, str) or not name.strip():
        raise TokenError("the token has another algorithm than none, or no name")
    issued_s, ends_s = seconds_of(claims, "iat"), seconds_of(claims, "exp")
    is_early = issued_s is not None and 1000 * issued_s > now_ms + rules.skew_ms
    if ends_s is None or is_early or now_ms - rules.skew_ms >= 1000 * ends_s:
        raise TokenError("the token has expired, or is not valid yet")
    if issued_s is not None and ends_s <= issued_s:
        raise TokenError("the token ends before it begins")
    if not _scope(claims.get(rules.scope_claim)).issuperset(rules.scope):
        raise ScopeError(f"[{', '.join(rules.scope)}]")
    return OAuthToken(name, round(ends_s * 1000))


def _scope(value: object) -> set[str]:
    """Return the scope of a token: a text is one word of it, as in Kafka."""
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, list):
        return set()
    return {str(word).strip() for word in value if str(word).strip()}

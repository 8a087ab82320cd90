"""A signed token of OAUTHBEARER: its signature, and the claims that the broker needs (RFC 7519).

Pure. `oauth.OAuthExchange` gives a token and the time, `key_set.KeySet` has the keys. PyJWT and
`cryptography` (`pip install 'minibroker[security]'`) read the token and verify the signature. The
claims are judged here, by the broker's clock, as jose4j and Kafka judge them.

The algorithm stands in the token, which may be hostile. So it says only which kind of key counts: a
key of the JWKS with another type or curve never verifies it, and `none` is no algorithm.

Source: Kafka ValidatorAccessTokenValidator (3.9), BrokerJwtValidator (4.x), ClaimValidationUtils;
jose4j JwtConsumer, VerificationJwkSelector, NumericDateValidator, AudValidator.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from jwt import PyJWS, PyJWTError

from minibroker.broker.security.sasl.oauth import OAuthToken
from minibroker.kafka.errors import ProtocolError
from minibroker.kafka.oauthbearer import LATEST_S, TokenError, no_number

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_RSA: Final = ("RSA", None)
_SECRET: Final = ("oct", None)
ALGORITHMS: Final = {
    **{f"{family}{bits}": _RSA for family in ("RS", "PS") for bits in (256, 384, 512)},
    **{f"HS{bits}": _SECRET for bits in (256, 384, 512)},
    "ES256": ("EC", "P-256"),
    "ES384": ("EC", "P-384"),
    "ES512": ("EC", "P-521"),
    "ES256K": ("EC", "secp256k1"),
    "EdDSA": ("OKP", None),
}
"""Algorithm → type and curve of its keys; None: any curve. Those of Kafka (jose4j)."""
_JWS: Final = PyJWS(options={"enforce_minimum_key_length": True})
_PARTS: Final = 3
_BLANKS: Final = "".join(map(chr, range(33)))
"""The characters that Java's `trim` removes."""


class PublishedKey(NamedTuple):
    """A key of a JWKS."""

    key_id: str | None
    key_type: str
    curve: str | None
    use: str | None
    algorithm: str | None
    """The only algorithm that it is for; None: any of its type."""
    key: Any
    """As PyJWT takes it."""


class SignedRules(NamedTuple):
    """The claims that a token needs."""

    name_claim: str = "sub"
    scope_claim: str = "scope"
    skew_s: int = 30
    """How far the clocks of provider and broker may be apart."""
    issuer: str | None = None
    audiences: frozenset[str] = frozenset()
    """The token is for one of them."""
    any_audience: bool = False
    """False: without `audiences`, a token that has an audience is for somebody else."""


class UnknownKeyError(TokenError):
    """A token whose key is not in the set; a newer set may have it."""

    def __init__(self, key_id: str | None) -> None:
        super().__init__("no key of the JWKS is the token's")
        self.key_id = key_id


def check_signed(
    token: str, keys: Iterable[PublishedKey], rules: SignedRules, now_ms: int
) -> OAuthToken:
    """Return the claims of a token that is signed with one of the keys.

    Raises TokenError, whose text is for the log; ProtocolError for claims that end a connection.
    """
    parts = token.split(".")
    if len(parts) != _PARTS or not all(parts):
        raise TokenError("a signed token has three parts")
    header, payload = _verify(token, keys)
    if "b64" in header:
        raise TokenError("the token is signed without base64")
    claims = _claims(payload)
    _check_parties(claims, rules)
    expires_s = _check_times(claims, rules, now_ms // 1000)
    _check_scope(claims.get(rules.scope_claim))
    name = _text(claims, rules.name_claim)
    name = "" if name is None else name.strip(_BLANKS)
    if not name:
        raise TokenError(f"claim {rules.name_claim} is missing")
    if expires_s < 0:
        raise TokenError("claim exp is below 0")
    return OAuthToken(name, expires_s * 1000)


def _verify(token: str, keys: Iterable[PublishedKey]) -> tuple[Mapping[str, Any], bytes]:
    """Return header and payload, once the signature holds. Raises TokenError."""
    try:
        # The header only: nothing is believed before the next call.
        header = _JWS.get_unverified_header(token)
        algorithm = header.get("alg")
        if not isinstance(algorithm, str) or algorithm not in ALGORITHMS:
            raise TokenError("the algorithm of the token is not allowed")
        key = _key_of(header, algorithm, keys)
        token_parts = _JWS.decode_complete(token, key.key, algorithms=[algorithm])
    except PyJWTError as error:
        raise TokenError(f"{type(error).__name__}: {error}") from None
    return token_parts["header"], token_parts["payload"]


def _key_of(
    header: Mapping[str, Any], algorithm: str, keys: Iterable[PublishedKey]
) -> PublishedKey:
    """Return the key that has to have signed. Raises UnknownKeyError."""
    key_id = header.get("kid")
    key_type, curve = ALGORITHMS[algorithm]
    candidates = [
        key
        for key in keys
        if key.key_type == key_type
        and (curve is None or key.curve == curve)
        and (key_id is None or key.key_id == key_id)
        and key.use in {None, "sig"}
        and key.algorithm in {None, algorithm}
    ]
    if not candidates:
        raise UnknownKeyError(key_id)
    return candidates[0]


def _claims(payload: bytes) -> dict[str, Any]:
    """Return the JSON object of a token. Raises TokenError."""
    try:
        claims = json.loads(payload, parse_constant=no_number, object_pairs_hook=_object)
    except (ValueError, RecursionError):
        raise TokenError("the claims are no JSON") from None
    if not isinstance(claims, dict):
        raise TokenError("the claims are no JSON object")
    return claims


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object; two claims of one name are a lie for one of two readers."""
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a name comes twice")
    return members


def _check_parties(claims: Mapping[str, Any], rules: SignedRules) -> None:
    """Raise TokenError for another issuer or audience."""
    issuer = _text(claims, "iss")
    if rules.issuer is not None and issuer != rules.issuer:
        raise TokenError("the token has another issuer (sasl.oauthbearer.expected.issuer)")
    for name in ("sub", "jti"):
        _text(claims, name)
    if rules.any_audience and not rules.audiences:
        return
    audience = claims.get("aud", [])
    audience = [audience] if isinstance(audience, str) else audience
    if not isinstance(audience, list) or not all(isinstance(word, str) for word in audience):
        raise TokenError("claim aud is no text and no list of texts")
    if rules.audiences.isdisjoint(audience) if rules.audiences else "aud" in claims:
        raise TokenError("the token has another audience (sasl.oauthbearer.expected.audience)")


def _check_times(claims: Mapping[str, Any], rules: SignedRules, now_s: int) -> int:
    """Return the end of the token in seconds since the epoch. Raises TokenError."""
    ends_s, issued_s = _seconds(claims, "exp"), _seconds(claims, "iat")
    begins_s = _seconds(claims, "nbf")
    if ends_s is None or issued_s is None:
        raise TokenError(f"claim {'exp' if ends_s is None else 'iat'} is missing")
    if issued_s < 0:
        raise TokenError("claim iat is below 0")
    if now_s - rules.skew_s >= ends_s:
        raise TokenError("the token has expired")
    if ends_s < issued_s or (begins_s is not None and ends_s < begins_s):
        raise TokenError("the token ends before it begins")
    if begins_s is not None and now_s + rules.skew_s < begins_s:
        raise TokenError("the token is not valid yet")
    return ends_s


def _check_scope(scope: object) -> None:
    """Raise TokenError for a scope that is blank or comes twice, ProtocolError for no text in it.

    The words do not count: an ACL says what the client may do.
    """
    if isinstance(scope, str):
        scope = [scope]
    if not isinstance(scope, list):
        return
    words: set[str] = set()
    for word in scope:
        if word is not None and not isinstance(word, str):
            # Kafka answers nothing, too: its cast of it fails.
            raise ProtocolError("a scope of the token is no text")
        scope_word = "" if word is None else word.strip(_BLANKS)
        if not scope_word or scope_word in words:
            raise TokenError("a scope of the token is blank or comes twice")
        words.add(scope_word)


def _text(claims: Mapping[str, Any], name: str) -> str | None:
    """Return a claim that is text, None where there is none. Raises TokenError."""
    value = claims.get(name)
    if value is not None and not isinstance(value, str):
        raise TokenError(f"claim {name} is no text")
    return value


def _seconds(claims: Mapping[str, Any], name: str) -> int | None:
    """Return a time in whole seconds since the epoch, None where there is none. Raises
    TokenError.
    """
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TokenError(f"claim {name} is no number")
    return int(max(-LATEST_S, min(LATEST_S, value)))

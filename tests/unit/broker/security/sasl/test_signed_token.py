"""Signed tokens; Kafka's own answers are in the dialogues (golden/sasl.json)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from minibroker.broker.security.sasl.key_set import parse_jwks
from minibroker.broker.security.sasl.oauth import OAuthToken, TokenError
from minibroker.broker.security.sasl.signed_token import (
    ALGORITHMS,
    SignedRules,
    UnknownKeyError,
    check_signed,
)
from minibroker.kafka.errors import ProtocolError
from tests.support.signed_tokens import (
    AUDIENCE,
    FAR_S,
    ISSUER,
    encoded,
    jwks,
    public_pem,
    token,
    with_signature,
)

NOW_MS = 1_800_000_000_500
NOW_S = NOW_MS // 1000
RULES = SignedRules(issuer=ISSUER, audiences=frozenset({AUDIENCE}))
KEYS = parse_jwks(json.dumps(jwks()).encode())


def check(text: str, rules: SignedRules = RULES) -> OAuthToken:
    return check_signed(text, KEYS, rules, NOW_MS)


def test_a_token_names_its_user_and_ends() -> None:
    assert check(token({"sub": " ä ", "exp": FAR_S + 0.9})) == OAuthToken("ä", FAR_S * 1000)


def test_other_claims_may_have_name_and_scope() -> None:
    rules = RULES._replace(name_claim="mail", scope_claim="scp")
    assert check(token({"mail": "a@b", "scope": [1]}), rules).name == "a@b"
    with pytest.raises(TokenError, match="claim mail is missing"):
        check(token(), rules)
    with pytest.raises(TokenError, match="blank or comes twice"):
        check(token({"mail": "a", "scp": ["x", "x"]}), rules)


@pytest.mark.parametrize(
    ("claims", "is_taken"),
    [
        ({"exp": NOW_S - 29}, True),
        ({"exp": NOW_S - 30}, False),
        ({"nbf": NOW_S + 30}, True),
        ({"nbf": NOW_S + 31}, False),
        ({"iat": NOW_S + 1000}, True),
    ],
)
def test_clocks_may_be_apart(claims: dict[str, Any], is_taken: bool) -> None:
    text = token(claims)
    if is_taken:
        assert check(text).name == "alice"
    else:
        with pytest.raises(TokenError, match=r"expired|not valid yet"):
            check(text)


@pytest.mark.parametrize("secret", [public_pem(), public_pem().strip(), b"", b"alice"])
@pytest.mark.parametrize("key_id", ["rsa", None, "shared"])
def test_a_public_key_is_no_secret(secret: bytes, key_id: str | None) -> None:
    """The attack: HS256 with the bytes of the key that verifies RS256."""
    forged = with_signature(token(header={"alg": "HS256", "kid": key_id}), secret)
    with pytest.raises(TokenError):
        check(forged)


@pytest.mark.parametrize("algorithm", ["none", "None", "NONE", "nOnE", "", None, 5, ["RS256"]])
def test_no_algorithm_signs_nothing(algorithm: object) -> None:
    signed = token(header={"alg": algorithm})
    for text in (signed, signed.rpartition(".")[0] + ".", signed.rpartition(".")[0] + ".AA"):
        with pytest.raises(TokenError):
            check(text)


def test_none_is_no_algorithm() -> None:
    assert not any(name.lower() == "none" for name in ALGORITHMS)


@pytest.mark.parametrize(
    "header",
    [{"b64": False}, {"b64": False, "crit": ["b64"]}, {"b64": True, "crit": ["b64"]}],
)
def test_a_token_has_its_claims_in_base64(header: dict[str, Any]) -> None:
    with pytest.raises(TokenError):
        check(token(header=header))


@pytest.mark.parametrize(
    "payload",
    [b"", b"{", b"null", b"[" * 20_000, b'{"exp":NaN}', b'{"exp":' + b"9" * 5000 + b"}", b"\xff"],
)
def test_claims_that_say_nothing_are_an_error_of_the_token(payload: bytes) -> None:
    with pytest.raises(TokenError):
        check(token(payload=payload))


@pytest.mark.parametrize("text", ["", ".", "..", "a.b.c", "a.b", "a.b.c.d", "." * 1000, "é.b.c"])
def test_a_text_that_is_no_token_is_an_error_of_the_token(text: str) -> None:
    with pytest.raises(TokenError):
        check(text)


def test_a_number_of_great_length_is_bounded() -> None:
    assert check(token(payload=json.dumps({**json.loads(CLAIMS), "exp": 1e308}).encode()))


CLAIMS = json.dumps({"sub": "a", "iss": ISSUER, "aud": AUDIENCE, "iat": 1})


def test_an_audience_counts_where_none_is_expected() -> None:
    nobody = RULES._replace(audiences=frozenset())
    assert check(token({"aud": None}), nobody).name == "alice"
    with pytest.raises(TokenError, match="another audience"):
        check(token(), nobody)
    assert check(token({"aud": 5}), nobody._replace(any_audience=True)).name == "alice"


def test_an_unknown_key_is_named() -> None:
    with pytest.raises(UnknownKeyError) as unknown:
        check(token(header={"kid": "new"}))
    assert unknown.value.key_id == "new"
    with pytest.raises(UnknownKeyError):
        check(token(key="ec", header={"alg": "ES384"}))


def test_a_scope_that_is_no_text_ends_the_connection() -> None:
    with pytest.raises(ProtocolError):
        check(token({"scope": ["read", 5]}))


def test_a_token_is_not_in_the_error() -> None:
    """A reader of the log could log in with it."""
    changed = token().rpartition(".")[0] + "." + encoded(b"another signature")
    with pytest.raises(TokenError) as refused:
        check(changed)
    assert changed.split(".")[1] not in str(refused.value)

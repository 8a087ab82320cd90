"""OAUTHBEARER: unsecured tokens; Kafka's own answers are in the dialogues (golden/sasl.json)."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from minibroker.broker.security.sasl.exchange import CredentialsError, RefusedError
from minibroker.broker.security.sasl.oauth import (
    MESSAGE_BYTES_MAX,
    OAuthExchange,
    TokenRules,
    check_unsecured,
    rules_of,
)
from minibroker.kafka.errors import ConfigError, ProtocolError

NOW_MS = 1_000_000
INVALID = b'{"status":"invalid_token"}'


def part(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def message(claims: Any, *, header: Any = None) -> bytes:
    token = f"{part(header or {'alg': 'none'})}.{part(claims)}."
    return f"n,,\x01auth=Bearer {token}\x01\x01".encode()


def exchange(rules: TokenRules) -> OAuthExchange:
    """Return an attempt with an unsecured token."""
    return OAuthExchange(lambda token, now_ms: check_unsecured(token, rules, now_ms))


def test_a_token_names_the_client_and_ends_its_session() -> None:
    attempt = exchange(TokenRules())
    assert attempt.respond(message({"sub": "~ä?", "exp": 1000.5}), NOW_MS) == b""
    assert (attempt.is_complete, attempt.name, attempt.expires_ms) == (True, "~ä?", 1_000_500)


def test_clocks_may_be_apart() -> None:
    claims = {"sub": "a", "exp": 999, "iat": 998}
    assert exchange(TokenRules()).respond(message(claims), NOW_MS) == INVALID
    assert exchange(TokenRules(skew_ms=1001)).respond(message(claims), NOW_MS) == b""
    late = {"sub": "a", "exp": 2000, "iat": 1001}
    assert exchange(TokenRules()).respond(message(late), NOW_MS) == INVALID
    assert exchange(TokenRules(skew_ms=1000)).respond(message(late), NOW_MS) == b""


@pytest.mark.parametrize(
    "claims",
    [
        "[]",
        "null",
        '{"sub":"a","exp":NaN}',
        '{"sub":"a","exp":true}',
        '{"sub":"a","exp":-1e400}',
        '{"sub":{},"exp":5000}',
        "[" * 10_000,
    ],
)
def test_claims_that_say_nothing_are_an_invalid_token(claims: str) -> None:
    assert exchange(TokenRules()).respond(message(claims), NOW_MS) == INVALID


@pytest.mark.parametrize("header", [{"alg": "HS256"}, {"alg": None}, {"typ": "JWT"}])
def test_another_algorithm_is_an_invalid_token(header: Any) -> None:
    """So no signed token gets in whose signature nobody has checked."""
    claims = {"sub": "a", "exp": 5000}
    attempt = exchange(TokenRules())
    assert attempt.respond(message(claims, header=header), NOW_MS) == INVALID
    assert not attempt.is_complete


def test_a_refused_token_is_named_when_the_client_has_heard() -> None:
    attempt = exchange(TokenRules(scope=("read", "write")))
    answer = attempt.respond(message({"sub": "a", "exp": 5000, "scope": ["read"]}), NOW_MS)
    assert answer == b'{"status":"insufficient_scope", "scope":"[read, write]"}'
    with pytest.raises(RefusedError, match="insufficient_scope"):
        attempt.respond(b"\x01", NOW_MS)
    with pytest.raises(CredentialsError):
        exchange(TokenRules()).respond(b"\x01", NOW_MS)


def test_messages_that_no_client_sends_fail() -> None:
    for wrong in (
        b"",
        b"n,,\x01\x01",
        b"y,,\x01auth=Bearer a\x01\x01",
        bytes(MESSAGE_BYTES_MAX + 1),
    ):
        with pytest.raises(CredentialsError):
            exchange(TokenRules()).respond(wrong, NOW_MS)
    with pytest.raises(ProtocolError):
        exchange(TokenRules()).respond(b"n,,\x01auth=Basic a\x01\x01", NOW_MS)


def test_the_rules_stand_in_the_line() -> None:
    prefix = "unsecuredValidator"
    options = {
        f"{prefix}PrincipalClaimName": " name ",
        f"{prefix}ScopeClaimName": "roles",
        f"{prefix}RequiredScope": " a  b ",
        f"{prefix}AllowableClockSkewMs": "30",
        "unsecuredLoginStringClaim_sub": "broker",
    }
    assert rules_of(options) == TokenRules("name", "roles", ("a", "b"), 30)
    assert rules_of({}) == TokenRules()
    with pytest.raises(ConfigError, match="AllowableClockSkewMs=-1"):
        rules_of({f"{prefix}AllowableClockSkewMs": "-1"})

"""OAUTHBEARER: unsecured tokens; Kafka's own answers are in the dialogues (golden/sasl.json)."""

from __future__ import annotations

import base64
import json
import logging
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.broker.config.broker import BrokerConfig
from minibroker.broker.config.settings import ConfigValues
from minibroker.broker.security.sasl.exchange import CredentialsError, RefusedError
from minibroker.broker.security.sasl.oauth import (
    OAuthExchange,
    TokenRules,
    check_unsecured,
    rules_of,
)
from minibroker.broker.security.sasl.oauth_settings import OAuthSettings
from minibroker.client.identity_provider import ALLOWED_URLS_KEY
from minibroker.client.oauth import HANDLER_KEY, RETRIEVER_KEY, URL_KEY, oauth_login
from minibroker.kafka.errors import ConfigError, ProtocolError
from minibroker.kafka.oauthbearer import ERROR_HEARD, MESSAGE_BYTES_MAX, TokenError
from tests.support.in_process import ManualClock

if TYPE_CHECKING:
    from pathlib import Path


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


# The token of this broker for others: from the JAAS line, or from a file.


CLOCK = ManualClock()
LOGIN_MS = CLOCK.now_ms()
PACKAGE = "org.apache.kafka.common.security.oauthbearer."
FILE = {HANDLER_KEY: f"{PACKAGE}OAuthBearerLoginCallbackHandler"}
OPTIONS = {
    "unsecuredLoginStringClaim_sub": "broker",
    "unsecuredLoginListClaim_scope": "|read|write",
    "unsecuredLoginNumberClaim_level": "5",
    "unsecuredLoginLifetimeSeconds": "60",
    "unsecuredLoginExtension_host": "here",
}


def test_a_broker_believes_the_token_of_another_one() -> None:
    rules = TokenRules(scope=("read", "write"))
    theirs = OAuthExchange(lambda token, now: check_unsecured(token, rules, now))
    ours = oauth_login(ConfigValues({}), OPTIONS, CLOCK.now_ms).begin("host")
    first = ours.begin()
    assert b"\x01host=here\x01" in first
    assert ours.respond(theirs.respond(first, LOGIN_MS)) == b""
    assert (ours.is_complete, theirs.is_complete, theirs.name) == (True, True, "broker")
    assert theirs.expires_ms == LOGIN_MS + 60_000


def test_the_token_of_a_file_is_read_for_each_login(tmp_path: Path) -> None:
    file = tmp_path / "a token"
    login = oauth_login(ConfigValues({**FILE, URL_KEY: file.as_uri()}), {}, CLOCK.now_ms)
    for token in ("first", "second"):
        file.write_text(f" {token}\n")
        assert login.begin("host").begin() == f"n,,\x01auth=Bearer {token}\x01\x01".encode()
    file.unlink()
    with pytest.raises(OSError, match="a token"):
        login.begin("host").begin()


def test_a_broker_that_does_not_believe_it_says_so() -> None:
    """It ends the login with an error then; one that goes on instead is no broker."""
    client = oauth_login(ConfigValues({}), OPTIONS, CLOCK.now_ms).begin("host")
    client.begin()
    assert client.respond(b'{"status":"invalid_token"}') == ERROR_HEARD
    assert not client.is_complete
    with pytest.raises(ProtocolError, match="invalid_token"):
        client.respond(b"")


@pytest.mark.parametrize(
    ("settings", "options", "sentence"),
    [
        ({}, {}, "does not say where a token comes from"),
        ({}, {"unsecuredLoginStringClaim_sub": " "}, "does not say where a token comes from"),
        ({}, {**OPTIONS, "unsecuredLoginPrincipalClaimName": "mail"}, "StringClaim_mail"),
        ({}, {**OPTIONS, "unsecuredLoginStringClaim_exp": "1"}, "exp is set for each token"),
        ({}, {**OPTIONS, "unsecuredLoginNumberClaim_x": "y"}, "NumberClaim_x of the JAAS line is"),
        ({}, {**OPTIONS, "unsecuredLoginLifetimeSeconds": "-1"}, "LifetimeSeconds=-1"),
        ({HANDLER_KEY: "a.Custom"}, OPTIONS, "no Java class is loaded"),
        (FILE, {}, "or file:/PATH"),
        ({**FILE, URL_KEY: "https://issuer.example/token"}, {}, "or clientId in the JAAS line"),
        ({**FILE, URL_KEY: "ftp://issuer.example/token"}, {}, "or file:/PATH"),
        (
            {**FILE, URL_KEY: "http://a/", RETRIEVER_KEY: f"{PACKAGE}FileJwtRetriever"},
            {},
            "from there, expected file:/PATH",
        ),
        ({**FILE, URL_KEY: "http://a/", RETRIEVER_KEY: "a.Custom"}, {}, "no Java class is loaded"),
        ({**FILE, URL_KEY: "http://a/", ALLOWED_URLS_KEY: "http://b/"}, OPTIONS, "is not among"),
        ({**FILE, URL_KEY: "file://host/token"}, {}, "or file:/PATH"),
        ({**FILE, URL_KEY: "http://host:99999/"}, OPTIONS, "99999/: the token of OAUTHBEARER"),
        ({**FILE, URL_KEY: "http://[::1/"}, OPTIONS, "1/: the token of OAUTHBEARER"),
        ({**FILE, URL_KEY: "http://a b/"}, OPTIONS, "a b/: the token of OAUTHBEARER"),
        ({**FILE, URL_KEY: "http://host/ä"}, OPTIONS, "ä: the token of OAUTHBEARER"),
    ],
)
def test_a_login_without_a_token_is_refused(
    settings: dict[str, str], options: dict[str, str], sentence: str
) -> None:
    with pytest.raises(ConfigError, match=sentence):
        oauth_login(ConfigValues(settings), options, CLOCK.now_ms)


# The settings of OAUTHBEARER: the class decides which tokens are believed.


HANDLER = "listener.name.sasl_plaintext.oauthbearer.sasl.server.callback.handler.class"
SIGNED = {
    HANDLER: f"{PACKAGE}secured.OAuthBearerValidatorCallbackHandler",
    "sasl.oauthbearer.jwks.endpoint.url": "https://issuer.example/keys",
    "sasl.oauthbearer.expected.issuer": "https://issuer.example",
    "sasl.oauthbearer.expected.audience": "a, b",
}
UNSECURED = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhIiwiZXhwIjo5OTk5fQ."


def oauth(settings: dict[str, str], **options: str) -> OAuthSettings:
    config = BrokerConfig(
        {
            "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
            "inter.broker.listener.name": "SASL_PLAINTEXT",
            **settings,
        }
    )
    return OAuthSettings(config.of_mechanism("SASL_PLAINTEXT", "OAUTHBEARER"), options)


def test_without_a_class_tokens_are_unsecured() -> None:
    name = "internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
    for settings in ({}, {HANDLER: PACKAGE + name}):
        validator = oauth(settings)
        assert validator.keys is None
        assert validator.check(UNSECURED, 1000).name == "a"
        validator_with_scope = oauth(settings, unsecuredValidatorRequiredScope="read")
        with pytest.raises(TokenError):
            validator_with_scope.check(UNSECURED, 1000)


@pytest.mark.parametrize("package", ["", "secured."])
def test_the_class_of_signed_tokens_takes_no_unsecured_ones(package: str) -> None:
    name = f"{PACKAGE}{package}OAuthBearerValidatorCallbackHandler"
    validator = oauth({**SIGNED, HANDLER: name})
    assert validator.keys is not None
    assert validator.keys._rules.audiences == {"a", "b"}
    with pytest.raises(TokenError):
        validator.check(UNSECURED, 1000)


def test_settings_of_the_mechanism_stand_over_those_of_all() -> None:
    own = "listener.name.sasl_plaintext.oauthbearer.sasl.oauthbearer.clock.skew.seconds"
    validator = oauth({**SIGNED, "sasl.oauthbearer.clock.skew.seconds": "1", own: "2"})
    assert validator.keys is not None
    assert validator.keys._rules.skew_s == 2


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({HANDLER: "a.Custom"}, "no Java class is loaded"),
        ({HANDLER: ""}, "unsecured tokens would get in"),
        ({"sasl.oauthbearer.jwks.endpoint.url": ""}, "signed tokens need the JWKS"),
        ({"sasl.oauthbearer.jwks.endpoint.url": "ftp://host/keys"}, "signed tokens need the JWKS"),
        ({"sasl.oauthbearer.jwks.endpoint.url": "file://host/keys"}, "signed tokens need the"),
        ({"sasl.oauthbearer.jwks.endpoint.url": "http://host:99999/"}, "signed tokens need the"),
        ({"sasl.oauthbearer.jwks.endpoint.refresh.ms": "0"}, "expected a refresh.ms above 0"),
        ({"sasl.oauthbearer.jwks.endpoint.retry.backoff.ms": "99999"}, "retry.backoff.ms=99999"),
        ({"sasl.oauthbearer.sub.claim.name": " "}, "sub.claim.name is blank"),
        ({"sasl.oauthbearer.jwt.validator.class": "a.B"}, "jwt.validator.class=a.B: no Java"),
        (
            {
                "sasl.oauthbearer.expected.audience": "",
                "sasl.oauthbearer.allow.unverified.audience": "false",
            },
            "allow.unverified.audience=false wants it",
        ),
        (
            {"org.apache.kafka.sasl.oauthbearer.allowed.urls": "https://a, https://b"},
            "is not among org.apache.kafka.sasl.oauthbearer.allowed.urls",
        ),
    ],
)
def test_settings_that_cannot_act_are_refused(change: dict[str, str], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        oauth({**SIGNED, **change})


def test_an_allowed_url_is_taken() -> None:
    allowed = "org.apache.kafka.sasl.oauthbearer.allowed.urls"
    assert oauth({**SIGNED, allowed: f"https://a, {list(SIGNED.values())[1]}"}).keys is not None


def test_a_missing_issuer_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        oauth({**SIGNED, "sasl.oauthbearer.expected.issuer": ""})
    assert "expected.issuer is not set: tokens are accepted whatever their issuer" in caplog.text

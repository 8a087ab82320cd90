"""The settings of OAUTHBEARER: the class decides which tokens are believed."""

from __future__ import annotations

import logging

import pytest

from minibroker.broker.config.broker import BrokerConfig
from minibroker.broker.security.sasl.oauth import TokenError
from minibroker.broker.security.sasl.oauth_settings import OAuthSettings
from minibroker.kafka.errors import ConfigError

PACKAGE = "org.apache.kafka.common.security.oauthbearer."
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
        found = oauth(settings)
        assert found.keys is None
        assert found.check(UNSECURED, 1000).name == "a"
        wanted = oauth(settings, unsecuredValidatorRequiredScope="read")
        with pytest.raises(TokenError):
            wanted.check(UNSECURED, 1000)


@pytest.mark.parametrize("package", ["", "secured."])
def test_the_class_of_signed_tokens_takes_no_unsecured_ones(package: str) -> None:
    name = f"{PACKAGE}{package}OAuthBearerValidatorCallbackHandler"
    found = oauth({**SIGNED, HANDLER: name})
    assert found.keys is not None
    assert found.keys._rules.audiences == {"a", "b"}
    with pytest.raises(TokenError):
        found.check(UNSECURED, 1000)


def test_settings_of_the_mechanism_stand_over_those_of_all() -> None:
    own = "listener.name.sasl_plaintext.oauthbearer.sasl.oauthbearer.clock.skew.seconds"
    found = oauth({**SIGNED, "sasl.oauthbearer.clock.skew.seconds": "1", own: "2"})
    assert found.keys is not None
    assert found.keys._rules.skew_s == 2


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

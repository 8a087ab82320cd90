"""Logins by OAUTHBEARER in the settings of the pipeline, and where each client gets its tokens."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.client.settings import UnservedError, wire_settings
from minibroker.kafka.java_formats import jaas
from minibroker.kafka.oauthbearer import claims_of
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.kafka.client_settings import (
    for_admin,
    for_connector,
    for_reader,
    with_token,
)
from minibroker.pipeline.kafka.token_logins import JAAS_KEY, MODULE, line_of, login_of
from tests.support.certificates import authority_pem
from tests.support.signed_tokens import rsa_key, write_key
from tests.support.token_provider import CLIENT, TokenProvider

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PACKAGE = "org.apache.kafka.common.security.oauthbearer."
HANDLER = f"{PACKAGE}OAuthBearerLoginCallbackHandler"
BASE = {
    "bootstrap.servers": "a:1",
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "OAUTHBEARER",
}
OF_CLIENT = {"clientId": CLIENT[0], "clientSecret": CLIENT[1]}
OIDC = {
    "sasl.oauthbearer.method": "oidc",
    "sasl.oauthbearer.client.id": CLIENT[0],
    "sasl.oauthbearer.client.secret": CLIENT[1],
}
KAFKA_4 = {
    "sasl.oauthbearer.client.credentials.client.id": CLIENT[0],
    "sasl.oauthbearer.client.credentials.client.secret": CLIENT[1],
}
URL = "sasl.oauthbearer.token.endpoint.url"
ASSERTION = "sasl.oauthbearer.assertion."
UNSECURED = {"enable.sasl.oauthbearer.unsecure.jwt": "true"}


@pytest.fixture
def provider() -> Iterator[TokenProvider]:
    with TokenProvider() as running:
        yield running


def shown(settings: dict[str, str]) -> tuple[str, dict[str, Any]]:
    """Return the first message of the tasks' own client, and the login of librdkafka."""
    translated = for_reader({**BASE, **settings})
    told = with_token(translated)
    for name in ("log_level", *BASE):
        assert told.pop(name) == translated[name]
    mechanism, exchange = wire_settings(translated).login()
    assert mechanism == "OAUTHBEARER"
    return exchange.begin().decode(), told


def called(login: dict[str, Any]) -> Any:
    """Return what librdkafka's call-back gives."""
    assert list(login) == ["oauth_cb"]
    return login["oauth_cb"]("")


@pytest.mark.parametrize("names", ["options of the line", "Kafka 4", "librdkafka"])
def test_a_secret_serves_every_client(provider: TokenProvider, names: str) -> None:
    extension, scope = {"extension_a": "b"}, {"scope": "read write"}
    given = {
        "options of the line": {JAAS_KEY: line_of(MODULE, {**OF_CLIENT, **scope, **extension})},
        "Kafka 4": {
            **KAFKA_4,
            JAAS_KEY: line_of(MODULE, extension),
            "sasl.oauthbearer.scope": "read write",
        },
        "librdkafka": {
            **OIDC,
            "sasl.oauthbearer.scope": "read write",
            "sasl.oauthbearer.extensions": "a=b",
        },
    }[names]
    given |= {URL: provider.url}
    first, told = shown(given)
    assert shown(given) == (first, told)
    (token,) = provider.given
    assert first == f"n,,\x01auth=Bearer {token}\x01a=b\x01\x01"
    assert told == {
        **OIDC,
        URL: provider.url,
        "sasl.oauthbearer.scope": "read write",
        "sasl.oauthbearer.extensions": "a=b",
    }
    (asked,) = provider.asked
    assert asked.client == ":".join(CLIENT)
    assert asked.body == "grant_type=client_credentials&scope=read+write"


def test_threads_that_begin_together_ask_once(provider: TokenProvider) -> None:
    settings = for_reader({**BASE, **OIDC, URL: provider.url})
    with ThreadPoolExecutor(4) as pool:
        tokens = list(pool.map(lambda _: login_of(settings).token(), range(8)))
    assert tokens == provider.given * 8


@pytest.mark.parametrize("names", ["Java", "librdkafka"])
@pytest.mark.parametrize("grant", ["client_credentials", "jwt-bearer"])
def test_an_assertion_stands_for_the_secret(
    provider: TokenProvider, tmp_path: Path, names: str, grant: str
) -> None:
    provider.public_key = rsa_key("job").public_key()
    template = tmp_path / "template.json"
    template.write_text('{"payload": {"x": 1}}')
    given = {
        URL: provider.url,
        f"{ASSERTION}claim.aud": provider.url,
        f"{ASSERTION}claim.iss": CLIENT[0],
        f"{ASSERTION}claim.sub": CLIENT[0],
        f"{ASSERTION}private.key.file": write_key(tmp_path / "key.pem", rsa_key("job")),
    }
    if names == "Java":
        kind = {"jwt-bearer": "JwtBearer", "client_credentials": "ClientCredentials"}[grant]
        given["sasl.oauthbearer.jwt.retriever.class"] = f"{PACKAGE}{kind}JwtRetriever"
        given[f"{ASSERTION}template.file"] = str(template)
    else:
        urn = "urn:ietf:params:oauth:grant-type:" if grant == "jwt-bearer" else ""
        given["sasl.oauthbearer.grant.type"] = f"{urn}{grant}"
        given[f"{ASSERTION}jwt.template.file"] = str(template)
    _, login = shown(given)
    (asked,) = provider.asked
    assert asked.fields["grant_type"].endswith(grant)
    (text,) = provider.given
    assert called(login) == (text, claims_of(text)["exp"], "", {})


@pytest.mark.parametrize("names", ["Java", "librdkafka", "librdkafka, a text"])
def test_the_provider_is_trusted_by_its_ca(tmp_path: Path, names: str) -> None:
    """A store of the JAAS line is read here: a worker does not need the file."""
    ca = tmp_path / "ca.pem"
    ca.write_text(authority_pem())
    stores = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(ca)}
    given = {
        "Java": {JAAS_KEY: line_of(MODULE, {**OF_CLIENT, **stores})},
        "librdkafka": {**OIDC, "https.ca.location": str(ca)},
        "librdkafka, a text": {**OIDC, "https.ca.pem": authority_pem()},
    }[names]
    with TokenProvider(is_tls=True) as provider:
        settings = for_reader({**BASE, **given, URL: provider.url})
        ca.unlink()
        assert login_of(settings).token() == provider.given[0]
        assert with_token(settings)["https.ca.pem"].strip() == authority_pem().strip()


@pytest.mark.parametrize(
    "more",
    [
        {"sasl.login.retry.backoff.ms": "1"},
        {"sasl.oauthbearer.header.urlencode": "false"},
        {JAAS_KEY: line_of(MODULE, {"extension_a": ","})},
    ],
)
def test_librdkafka_calls_back_where_its_own_login_is_another(
    provider: TokenProvider, more: dict[str, str]
) -> None:
    _, login = shown({**OIDC, URL: provider.url, **more})
    assert called(login)[0] == provider.given[0]


@pytest.mark.parametrize(
    "given",
    [
        {
            JAAS_KEY: line_of(
                MODULE,
                {
                    "unsecuredLoginStringClaim_sub": "alice",
                    "unsecuredLoginListClaim_scope": ",read,write",
                    "unsecuredLoginLifetimeSeconds": "60",
                    "unsecuredLoginExtension_a": "b",
                },
            )
        },
        {
            **UNSECURED,
            "sasl.oauthbearer.config": (
                "principal=alice scope=read,write lifeSeconds=60 extension_a=b"
            ),
        },
    ],
)
def test_an_unsecured_token_is_made_here(given: dict[str, str]) -> None:
    first, login = shown(given)
    text, ends_s, _, extensions = called(login)
    said = claims_of(text)
    assert (said["sub"], said["scope"], extensions) == ("alice", ["read", "write"], {"a": "b"})
    assert said["exp"] - said["iat"] == pytest.approx(60)
    assert ends_s == said["exp"]
    assert first.endswith("\x01a=b\x01\x01")


def test_claims_of_librdkafkas_text_have_other_names() -> None:
    told = "principalClaimName=mail principal=a@b scopeClaimName=rights scope=x"
    _, login = shown({**UNSECURED, "sasl.oauthbearer.config": told})
    said = claims_of(called(login)[0])
    assert (said["mail"], said["rights"]) == ("a@b", ["x"])


def test_the_token_of_a_file_is_shown(tmp_path: Path, provider: TokenProvider) -> None:
    file = tmp_path / "token"
    with_token(for_reader({**BASE, **OIDC, URL: provider.url}))
    file.write_text(provider.given[0])
    first, login = shown({URL: file.as_uri()})
    assert f"Bearer {provider.given[0]}\x01" in first
    assert called(login)[0] == provider.given[0]
    file.write_text("no token")
    with pytest.raises(PipelineError, match=r"no token to log in with.*a token has three parts"):
        shown({URL: file.as_uri()})


@pytest.mark.parametrize(
    "alone",
    [
        {"sasl.oauthbearer.metadata.authentication.type": "azure_imds"},
        {f"{ASSERTION}private.key.pem": "the key"},
        {"https.ca.location": "probe"},
        {"https.ca.location": "/"},
    ],
)
def test_a_login_that_is_librdkafkas_alone_stays(alone: dict[str, str]) -> None:
    given = {**BASE, **OIDC, **alone, URL: "http://127.0.0.1:1/"}
    assert for_reader(given) == {"log_level": "0", **given}
    assert for_admin(given) == {"log_level": "0", **given}
    assert with_token(for_reader(given)) == for_reader(given)
    with pytest.raises(UnservedError, match="is librdkafka's alone"):
        wire_settings(for_reader(given))
    with pytest.raises(PipelineError, match="is librdkafka's alone"):
        for_connector(given)
    with pytest.raises(PipelineError, match="librdkafka's alone: give the others with"):
        for_reader({**given, JAAS_KEY: line_of(MODULE, {})})


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({}, "does not say where a token comes from"),
        ({"sasl.oauthbearer.method": "oidc"}, f"{URL}=: the token of OAUTHBEARER comes from there"),
        ({URL: "http://a/"}, "or clientId in the JAAS line"),
        ({URL: "ftp://a/"}, "expected https?://HOST"),
        ({**OIDC, URL: "http://a/", "sasl.oauthbearer.grant.type": "x"}, "grant.type=x: expected"),
        ({**UNSECURED, "sasl.oauthbearer.config": "name=x"}, "config has name: expected principal"),
        ({"sasl.login.callback.handler.class": "my.Handler"}, "no Java class is loaded"),
        ({JAAS_KEY: "nothing"}, "control flag"),
        ({**OIDC, URL: "http://a/", "sasl.login.read.timeout.ms": "x"}, "read.timeout.ms"),
    ],
)
def test_settings_without_a_token_are_one_sentence(given: dict[str, str], sentence: str) -> None:
    with pytest.raises(PipelineError, match=sentence) as told:
        for_reader({**BASE, **given})
    assert CLIENT[1] not in str(told.value)


def test_a_wrong_secret_is_told_and_not_repeated(provider: TokenProvider) -> None:
    settings = for_reader(
        {**BASE, **OIDC, URL: provider.url, "sasl.oauthbearer.client.secret": "guessed"}
    )
    with pytest.raises(PipelineError, match=r"no token to log in with: .* HTTP status 401") as told:
        with_token(settings)
    assert "guessed" not in f"{told.value} {told.value.__cause__!r} {wire_settings(settings)!r}"


def test_the_connector_gets_the_line_of_java() -> None:
    given = {
        **BASE,
        **OIDC,
        URL: "https://a/",
        "https.ca.pem": "one\ntwo",
        "sasl.oauthbearer.scope": 'a "b"',
        "sasl.oauthbearer.extensions": "x=1,y=2",
    }
    found = for_connector(given)
    line = found.pop(JAAS_KEY)
    assert jaas.parse_line(line) == (
        MODULE,
        {
            **OF_CLIENT,
            "ssl.truststore.certificates": "one\ntwo",
            "ssl.truststore.type": "PEM",
            "extension_x": "1",
            "extension_y": "2",
            "scope": 'a "b"',
        },
    )
    assert found == {
        **BASE,
        URL: "https://a/",
        "sasl.oauthbearer.scope": 'a "b"',
        "sasl.login.callback.handler.class": HANDLER,
    }
    java = {**BASE, URL: "https://a/", JAAS_KEY: line_of(MODULE, OF_CLIENT)}
    assert for_connector(java) == java
    with pytest.raises(PipelineError, match="control flag"):
        for_connector({**given, JAAS_KEY: "nothing"})

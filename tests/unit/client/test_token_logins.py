"""Logins by OAUTHBEARER in the settings of the pipeline, and where the client gets its tokens."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from minibroker.client.oauth import JAAS_KEY, login_of
from minibroker.client.token_logins import MODULE, line_of
from minibroker.kafka.java_formats import jaas
from minibroker.kafka.oauthbearer import claims_of
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.kafka.client_settings import connection_settings, for_reader
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


def first_message(settings: dict[str, str]) -> str:
    """Return the first message of the client."""
    mechanism, exchange = connection_settings(for_reader({**BASE, **settings})).login("a")
    assert mechanism == "OAUTHBEARER"
    return exchange.begin().decode()


def token_in(message: str) -> str:
    return message.partition("auth=Bearer ")[2].partition("\x01")[0]


@pytest.mark.parametrize("names", ["options of the line", "Kafka 4", "librdkafka"])
def test_a_secret_gets_a_token(provider: TokenProvider, names: str) -> None:
    extension, scope = {"extension_a": "b"}, {"scope": "read write"}
    settings = {
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
    settings |= {URL: provider.url}
    first = first_message(settings)
    assert first_message(settings) == first
    (token,) = provider.tokens
    assert first == f"n,,\x01auth=Bearer {token}\x01a=b\x01\x01"
    (request,) = provider.requests
    assert request.client == ":".join(CLIENT)
    assert request.body == "grant_type=client_credentials&scope=read+write"


def test_threads_that_begin_together_ask_once(provider: TokenProvider) -> None:
    settings = for_reader({**BASE, **OIDC, URL: provider.url})
    with ThreadPoolExecutor(4) as pool:
        tokens = list(pool.map(lambda _: login_of(settings).token(), range(8)))
    assert tokens == provider.tokens * 8


@pytest.mark.parametrize("names", ["Java", "librdkafka"])
@pytest.mark.parametrize("grant", ["client_credentials", "jwt-bearer"])
def test_an_assertion_stands_for_the_secret(
    provider: TokenProvider, tmp_path: Path, names: str, grant: str
) -> None:
    provider.public_key = rsa_key("job").public_key()
    template = tmp_path / "template.json"
    template.write_text('{"payload": {"x": 1}}')
    settings = {
        URL: provider.url,
        f"{ASSERTION}claim.aud": provider.url,
        f"{ASSERTION}claim.iss": CLIENT[0],
        f"{ASSERTION}claim.sub": CLIENT[0],
        f"{ASSERTION}private.key.file": write_key(tmp_path / "key.pem", rsa_key("job")),
    }
    if names == "Java":
        kind = {"jwt-bearer": "JwtBearer", "client_credentials": "ClientCredentials"}[grant]
        settings["sasl.oauthbearer.jwt.retriever.class"] = f"{PACKAGE}{kind}JwtRetriever"
        settings[f"{ASSERTION}template.file"] = str(template)
    else:
        urn = "urn:ietf:params:oauth:grant-type:" if grant == "jwt-bearer" else ""
        settings["sasl.oauthbearer.grant.type"] = f"{urn}{grant}"
        settings[f"{ASSERTION}jwt.template.file"] = str(template)
    message = first_message(settings)
    (request,) = provider.requests
    assert request.fields["grant_type"].endswith(grant)
    assert [token_in(message)] == provider.tokens


@pytest.mark.parametrize("names", ["Java", "librdkafka", "librdkafka, a text"])
def test_the_provider_is_trusted_by_its_ca(tmp_path: Path, names: str) -> None:
    """A store of the JAAS line is read here: a worker does not need the file."""
    ca = tmp_path / "ca.pem"
    ca.write_text(authority_pem())
    stores = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(ca)}
    names_of_tls = {
        "Java": {JAAS_KEY: line_of(MODULE, {**OF_CLIENT, **stores})},
        "librdkafka": {**OIDC, "https.ca.location": str(ca)},
        "librdkafka, a text": {**OIDC, "https.ca.pem": authority_pem()},
    }[names]
    with TokenProvider(is_tls=True) as provider:
        settings = for_reader({**BASE, **names_of_tls, URL: provider.url})
        ca.unlink()
        assert login_of(settings).token() == provider.tokens[0]


@pytest.mark.parametrize(
    "settings",
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
def test_an_unsecured_token_is_made_here(settings: dict[str, str]) -> None:
    first = first_message(settings)
    claims = claims_of(token_in(first))
    assert (claims["sub"], claims["scope"]) == ("alice", ["read", "write"])
    assert claims["exp"] - claims["iat"] == pytest.approx(60)
    assert first.endswith("\x01a=b\x01\x01")


def test_claims_of_librdkafkas_text_have_other_names() -> None:
    config = "principalClaimName=mail principal=a@b scopeClaimName=rights scope=x"
    claims = claims_of(token_in(first_message({**UNSECURED, "sasl.oauthbearer.config": config})))
    assert (claims["mail"], claims["rights"]) == ("a@b", ["x"])


def test_the_token_of_a_file_is_shown(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("a.b.c\n")
    assert token_in(first_message({URL: file.as_uri()})) == "a.b.c"


@pytest.mark.parametrize(
    "alone",
    [
        {"sasl.oauthbearer.metadata.authentication.type": "azure_imds"},
        {f"{ASSERTION}private.key.pem": "the key"},
    ],
)
def test_a_setting_that_librdkafka_alone_has_is_refused(alone: dict[str, str]) -> None:
    (name,) = alone
    with pytest.raises(PipelineError, match=f"{name} is a setting of OAUTHBEARER that this client"):
        for_reader({**BASE, **OIDC, **alone, URL: "http://127.0.0.1:1/"})


@pytest.mark.parametrize(
    ("settings", "sentence"),
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
def test_settings_without_a_token_are_one_sentence(settings: dict[str, str], sentence: str) -> None:
    with pytest.raises(PipelineError, match=sentence) as caught:
        for_reader({**BASE, **settings})
    assert CLIENT[1] not in str(caught.value)


def test_a_wrong_secret_is_no_part_of_a_message(provider: TokenProvider) -> None:
    settings = connection_settings(
        for_reader({**BASE, **OIDC, URL: provider.url, "sasl.oauthbearer.client.secret": "guessed"})
    )
    _, exchange = settings.login("a")
    with pytest.raises(OSError, match="HTTP status 401") as caught:
        exchange.begin()
    assert "guessed" not in f"{caught.value} {caught.value.__cause__!r} {settings!r}"


def test_names_of_librdkafka_become_the_line_of_java() -> None:
    settings = {
        **BASE,
        **OIDC,
        URL: "https://a/",
        "https.ca.pem": authority_pem(),
        "sasl.oauthbearer.scope": 'a "b"',
        "sasl.oauthbearer.extensions": "x=1,y=2",
    }
    java_settings = for_reader(settings)
    line = java_settings.pop(JAAS_KEY)
    assert jaas.parse_line(line) == (
        MODULE,
        {
            **OF_CLIENT,
            "ssl.truststore.certificates": authority_pem().strip(),
            "ssl.truststore.type": "PEM",
            "extension_x": "1",
            "extension_y": "2",
            "scope": 'a "b"',
        },
    )
    assert java_settings == {
        **BASE,
        URL: "https://a/",
        "sasl.oauthbearer.scope": 'a "b"',
        "sasl.login.callback.handler.class": HANDLER,
    }

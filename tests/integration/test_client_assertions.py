"""Requests for tokens beside those of Apache Kafka: a tool of 4.3.1 asks the same provider."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

import jwt
import pytest

from minibroker.broker.config.settings import ConfigValues
from minibroker.client.token_endpoint import endpoint_of
from minibroker.clock import SystemClock
from minibroker.kafka.java_formats.properties import escape
from tests.support import java
from tests.support.peers import write_properties
from tests.support.signed_tokens import rsa_key, token, write_key
from tests.support.token_provider import CLIENT, TokenProvider, TokenRequest

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.java

PACKAGE = "org.apache.kafka.common.security.oauthbearer."
LOGIN = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "OAUTHBEARER",
    "sasl.login.callback.handler.class": f"{PACKAGE}OAuthBearerLoginCallbackHandler",
    "sasl.jaas.config": f"{PACKAGE}OAuthBearerLoginModule required;",
    # No broker is there: the client asks for its token before it connects.
    "default.api.timeout.ms": "1",
    "request.timeout.ms": "1",
}


def comparable(request: TokenRequest) -> Any:
    """Return a request with its assertion decoded, times relative."""
    fields: dict[str, Any] = dict(request.fields)
    for name in {"client_assertion", "assertion"} & fields.keys():
        claims = jwt.decode(fields[name], options={"verify_signature": False})
        start_s = claims.pop("iat")
        claims |= {key: claims[key] - start_s for key in ("exp", "nbf")}
        claims["jti"] = claims["jti"].count("-")
        fields[name] = jwt.get_unverified_header(fields[name]), claims
    headers = {key: request.headers.get(key) for key in ("accept", "content-type", "authorization")}
    return list(fields.items()), headers, request.method, request.path


def ask_by_java(directory: Path, settings: dict[str, str], url: str, files: str = "") -> str:
    """Have a tool of Kafka ask for a token; return what it prints."""
    write_properties(directory / "client.properties", settings)
    command = java.java_command(
        java.TOOLS_43,
        "org.apache.kafka.tools.TopicCommand",
        *("--bootstrap-server", "127.0.0.1:1", "--list"),
        *("--command-config", str(directory / "client.properties")),
        options=[
            f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={url}",
            f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.files={files}",
        ],
    )
    run = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
    return run.stderr


@pytest.mark.parametrize("retriever", ["ClientCredentialsJwtRetriever", "JwtBearerJwtRetriever"])
def test_a_provider_is_asked_as_kafka_asks_it(tmp_path: Path, retriever: str) -> None:
    key, template = write_key(tmp_path / "key.pem", rsa_key("c")), tmp_path / "template.json"
    template.write_text('{"header": {"kid": "k", "alg": "x"}, "payload": {"iss": "t", "x": [1]}}')
    with TokenProvider() as provider:
        provider.public_key = rsa_key("c").public_key()
        settings = {
            "sasl.oauthbearer.token.endpoint.url": provider.url,
            "sasl.oauthbearer.jwt.retriever.class": PACKAGE + retriever,
            "sasl.oauthbearer.scope": "read write",
            "sasl.oauthbearer.client.credentials.client.id": "an id",
            "sasl.oauthbearer.assertion.claim.aud": provider.url,
            "sasl.oauthbearer.assertion.claim.iss": CLIENT[0],
            "sasl.oauthbearer.assertion.claim.sub": CLIENT[0],
            "sasl.oauthbearer.assertion.claim.jti.include": "true",
            "sasl.oauthbearer.assertion.private.key.file": key,
            "sasl.oauthbearer.assertion.template.file": str(template),
        }
        is_bearer = retriever.startswith("JwtBearer")
        endpoint_of(
            provider.url,
            ConfigValues(settings),
            {},
            None,
            SystemClock().now_ms,
            is_bearer=is_bearer,
        ).token()
        stderr = ask_by_java(tmp_path, {**settings, **LOGIN}, provider.url, f"{key},{template}")
        assert len(provider.tokens) == 2, stderr
        mine, theirs = map(comparable, provider.requests)
    assert mine == theirs


def test_id_and_secret_are_encoded_as_kafka_encodes_them(tmp_path: Path) -> None:
    settings = {
        "sasl.oauthbearer.header.urlencode": "true",
        "sasl.oauthbearer.client.credentials.client.id": "an id: a+b",
        "sasl.oauthbearer.client.credentials.client.secret": "~*-._ %2B/äö€&=",
    }
    with TokenProvider() as provider:
        provider.answer = json.dumps({"access_token": token()}).encode()
        settings["sasl.oauthbearer.token.endpoint.url"] = provider.url
        endpoint_of(provider.url, ConfigValues(settings), {}, None, SystemClock().now_ms).token()
        in_file = {name: escape(text) for name, text in settings.items()}
        stderr = ask_by_java(tmp_path, {**in_file, **LOGIN}, provider.url)
        assert len(provider.requests) == 2, stderr
        mine, theirs = map(comparable, provider.requests)
    assert mine == theirs

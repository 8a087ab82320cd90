"""Real clients log in with signed tokens, and what they see of a bad one."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.abc import AbstractTokenProvider
from confluent_kafka import KafkaError, Producer

from minibroker.testing import Broker
from tests.support import java
from tests.support.kafka_tools import run_commands
from tests.support.sasl_dialogues import VALIDATOR
from tests.support.signed_tokens import AUDIENCE, ISSUER, token, write_jwks

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.filterwarnings("ignore:.*_text is deprecated:DeprecationWarning")
SECONDS = 180
LISTENER = "listener.name.sasl_plaintext.oauthbearer."


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker that believes the tokens of one issuer."""
    settings = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "security.inter.broker.protocol": "SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        f"{LISTENER}sasl.server.callback.handler.class": VALIDATOR,
        "sasl.oauthbearer.jwks.endpoint.url": write_jwks(tmp_path_factory.mktemp("jwks")),
        "sasl.oauthbearer.expected.audience": AUDIENCE,
        "sasl.oauthbearer.expected.issuer": ISSUER,
    }
    with Broker(config=settings) as broker:
        yield broker


def librdkafka(broker: Broker, text: str, errors: list[KafkaError] | None = None) -> Producer:
    config: dict[str, Any] = {
        "bootstrap.servers": broker.bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "oauth_cb": lambda _: (text, time.time() + 3600),
        "error_cb": ([] if errors is None else errors).append,
    }
    return Producer(config)


async def test_clients_log_in_with_a_signed_token(broker: Broker) -> None:
    from kafka import KafkaProducer  # noqa: PLC0415  it warns while it is imported
    from kafka.net.sasl.oauth import AbstractTokenProvider as Provider  # noqa: PLC0415  as above

    class Tokens(AbstractTokenProvider):  # type: ignore[misc]
        async def token(self) -> str:
            return token(key="ec", header={"alg": "ES256"})

    class OtherTokens(Provider):  # type: ignore[misc]
        def token(self) -> str:
            return token(header={"alg": "PS256"})

    producer = librdkafka(broker, token())
    producer.produce("t", b"librdkafka")
    assert producer.flush(SECONDS) == 0
    common: dict[str, Any] = {
        "bootstrap_servers": broker.bootstrap,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "OAUTHBEARER",
    }
    async with AIOKafkaProducer(**common, sasl_oauth_token_provider=Tokens()) as asynchronous:
        await asynchronous.send_and_wait("t", b"aiokafka")
    python = KafkaProducer(**common, sasl_oauth_token_provider=OtherTokens())
    python.send("t", b"kafka-python").get(SECONDS)
    python.close()
    assert broker._node.app.cluster.image.topics["t"]


@pytest.mark.parametrize("claims", [{"exp": 2_000}, {"aud": "another"}, {"iss": "another"}])
def test_a_client_hears_that_its_token_is_not_believed(
    broker: Broker, claims: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    errors: list[KafkaError] = []
    text = token(claims)
    producer = librdkafka(broker, text, errors)
    while not any(error.code() == KafkaError._AUTHENTICATION for error in errors):
        producer.poll(0.1)
    assert "invalid_token" in " ".join(str(error) for error in errors)
    assert text.split(".")[1] not in caplog.text


@pytest.mark.java
def test_the_java_client_logs_in_with_a_token_of_a_file(broker: Broker, tmp_path: Path) -> None:
    """As Kafka's documentation has it: a file that something else renews holds the token."""
    file = tmp_path / "token"
    file.write_text(token())
    properties = tmp_path / "client.properties"
    properties.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=OAUTHBEARER\n"
        "sasl.jaas.config=org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
        " required;\n"
        "sasl.login.callback.handler.class=org.apache.kafka.common.security.oauthbearer."
        "OAuthBearerLoginCallbackHandler\n"
        f"sasl.oauthbearer.token.endpoint.url={file.as_uri()}\n"
    )
    arguments = ("--bootstrap-server", broker.bootstrap, "--command-config", str(properties))
    create = ("org.apache.kafka.tools.TopicCommand", *arguments, "--create", "--topic", "of-java")
    (outcome,) = run_commands(java.KAFKA_39, create)
    assert outcome.failure is None, outcome
    assert "Created topic of-java" in outcome.text

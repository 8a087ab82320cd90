"""Real clients log in with the settings of `Broker.client_config`, by every mechanism."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from aiokafka import AIOKafkaProducer
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer

from minibroker.broker.config.secured import MECHANISMS
from minibroker.broker.config.sources import from_environment
from minibroker.testing import Broker
from tests.support.java import TOOLS_43
from tests.support.kafka_tools import run_commands

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


pytestmark = pytest.mark.filterwarnings("ignore:.*_text is deprecated:DeprecationWarning")
SECONDS = 180
USERS = {"alice": 'it\'s "quoted"', "bob": "other"}


@pytest.fixture(scope="module", params=["SASL_PLAINTEXT", "SASL_SSL"])
def broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    """A broker with two users."""
    with Broker(security=request.param, users=USERS) as broker:
        yield broker


@pytest.mark.parametrize("mechanism", MECHANISMS)
async def test_clients_log_in_and_produce(broker: Broker, mechanism: str) -> None:
    from kafka import KafkaProducer  # noqa: PLC0415  it warns while it is imported

    topic = f"of-{mechanism}"

    def config(kind: str) -> dict[str, Any]:
        return broker.client_config(kind, mechanism=mechanism)

    librdkafka = Producer(config("confluent-kafka"))
    librdkafka.produce(topic, b"librdkafka")
    assert librdkafka.flush(SECONDS) == 0
    python = KafkaProducer(**config("kafka-python"))
    python.send(topic, b"kafka-python").get(SECONDS)
    python.close()
    async with AIOKafkaProducer(**config("aiokafka")) as producer:
        await producer.send_and_wait(topic, b"aiokafka")
    values = [record.value for record in broker.records(topic)]
    assert values == [b"librdkafka", b"kafka-python", b"aiokafka"]


def test_a_wrong_password_is_an_error_of_the_client(broker: Broker) -> None:
    errors: list[KafkaError] = []
    config: dict[str, Any] = {
        **broker.client_config("confluent-kafka"),
        "sasl.password": "wrong",
        "group.id": "g",
        "error_cb": errors.append,
    }
    consumer = Consumer(config)
    consumer.subscribe(["t"])
    while not any(error.code() == KafkaError._AUTHENTICATION for error in errors):
        consumer.poll(0.1)
    consumer.close()


def test_a_new_password_holds_for_the_next_login(broker: Broker) -> None:
    """Set it as `kafka-configs --alter --add-config SCRAM-SHA-256=[password=…]` does."""
    from kafka.admin import (  # noqa: PLC0415  as above
        KafkaAdminClient,
        ScramMechanism,
        UserScramCredentialUpsertion,
    )

    admin = KafkaAdminClient(**broker.client_config("kafka-python"))
    upsertion = UserScramCredentialUpsertion("carol", ScramMechanism.SCRAM_SHA_256, b"new")
    admin.alter_user_scram_credentials([upsertion])
    admin.close()
    config = {**broker.client_config("confluent-kafka"), "sasl.username": "carol"}
    producer = Producer({**config, "sasl.password": "new"})
    assert producer.list_topics(timeout=SECONDS).brokers


@pytest.mark.java
def test_java_logs_in_with_any_letters_in_a_password(tmp_path: Path) -> None:
    name, password = 'al\\ice "1"', "\\n back\\slash \"quote' = # é, \N{GRINNING FACE}"
    topics = "org.apache.kafka.tools.TopicCommand"
    with Broker(security="SASL_PLAINTEXT", users={name: password}, topics=["t"]) as broker:
        commands = []
        for mechanism in MECHANISMS:
            settings = broker.client_config("java-properties", mechanism=mechanism)
            file = tmp_path / f"{mechanism}.properties"
            file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
            server = ("--bootstrap-server", broker.bootstrap, "--command-config", str(file))
            commands.append((topics, *server, "--list"))
        outcomes = run_commands(TOOLS_43, *commands)
    assert [outcome.text.splitlines()[0] for outcome in outcomes] == ["t"] * len(MECHANISMS), (
        outcomes
    )


# A broker whose logins stand in a JAAS file.


FILE = """
KafkaServer {
    org.apache.kafka.common.security.plain.PlainLoginModule required
        username="admin"
        password="admin-secret"
        user_admin="admin-secret"
        user_alice="alice-secret";
};
"""


def test_users_of_a_jaas_file_log_in(tmp_path: Path) -> None:
    file = tmp_path / "jaas.conf"
    file.write_text(FILE)
    settings = {
        **from_environment({"KAFKA_OPTS": f"-Djava.security.auth.login.config={file}"}),
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "security.inter.broker.protocol": "SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
    }
    with Broker(config=settings) as broker:
        client: dict[str, Any] = {
            "bootstrap.servers": broker.bootstrap,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "alice",
            "sasl.password": "alice-secret",
        }
        assert Producer(client).list_topics(timeout=SECONDS).brokers
        with pytest.raises(KafkaException):
            Producer({**client, "sasl.password": "wrong"}).list_topics(timeout=2)

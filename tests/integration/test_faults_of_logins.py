"""Reactions of real clients to faults of logins: the errors of a real refusal, and then success."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaConnectionError
from confluent_kafka import KafkaError, Producer

from minibroker.kafka.errors import ConfigError
from minibroker.testing import Broker

if TYPE_CHECKING:
    from collections.abc import Iterator

SECONDS = 180
USERS = {"alice": "secret", "bob": "other"}
TOPIC = "orders"
QUICK = {"reconnect.backoff.ms": 10, "reconnect.backoff.max.ms": 20, "log_level": 0}


class Writer:
    """A producer of librdkafka, and the errors that its application hears of."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.errors: list[KafkaError] = []
        self.producer = Producer({**settings, **QUICK, "error_cb": self.errors.append})
        self.producer.produce(TOPIC, b"librdkafka")

    @property
    def texts(self) -> list[str]:
        """Return the errors of logins and of connections, without those that sum them up."""
        summary = KafkaError._ALL_BROKERS_DOWN
        return [error.str() for error in self.errors if error.code() != summary]

    def settle(self) -> None:
        """Wait until the record is written."""
        assert self.producer.flush(SECONDS) == 0


async def write_by_aiokafka(settings: dict[str, Any]) -> None:
    """Write a record. Raises KafkaConnectionError where the client does not get in."""
    producer = AIOKafkaProducer(**settings)
    try:
        await producer.start()
        await producer.send_and_wait(TOPIC, b"aiokafka")
    finally:
        await producer.stop()


@pytest.fixture(scope="module", params=["SASL_PLAINTEXT", "SASL_SSL"])
def broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    with Broker(security=request.param, users=USERS, topics=[TOPIC]) as broker:
        yield broker


@pytest.mark.parametrize(
    ("mechanism", "sentence"),
    [
        ("PLAIN", "Authentication failed: Invalid username or password"),
        ("SCRAM-SHA-512", "due to invalid credentials with SASL mechanism SCRAM-SHA-512"),
    ],
)
async def test_logins_are_refused_as_for_a_wrong_password(
    broker: Broker, mechanism: str, sentence: str, caplog: pytest.LogCaptureFixture
) -> None:
    with broker.faults.add(login="wrong_password", user="alice", times=2) as fault:
        bob = Writer(broker.client_config("confluent-kafka", user="bob", mechanism=mechanism))
        bob.settle()
        assert bob.texts == []
        alice = Writer(broker.client_config("confluent-kafka", mechanism=mechanism))
        alice.settle()
        assert fault.hits == 2
        refused = [e for e in alice.errors if e.code() == KafkaError._AUTHENTICATION]
        assert [sentence in error.str() for error in refused] == [True, True]
    with broker.faults.add(login="wrong_password", times=1):
        settings = broker.client_config("aiokafka", mechanism=mechanism)
        with pytest.raises(KafkaConnectionError):
            await write_by_aiokafka(settings)
        assert sentence in caplog.text
        await write_by_aiokafka(settings)


async def test_a_login_is_cut(broker: Broker) -> None:
    with broker.faults.add(login="sasl_cut", times=2) as fault:
        writer = Writer(broker.client_config("confluent-kafka"))
        writer.settle()
        assert fault.hits == 2
        assert all("SaslAuthenticateRequest failed" in text for text in writer.texts)
    with broker.faults.add(login="sasl_cut", times=1):
        settings = broker.client_config("aiokafka")
        with pytest.raises(KafkaConnectionError):
            await write_by_aiokafka(settings)
        await write_by_aiokafka(settings)


@pytest.mark.parametrize("login", ["sasl_slow", "tls_slow"])
async def test_a_login_takes_long_by_the_clock_of_the_broker(broker: Broker, login: str) -> None:
    if login == "tls_slow" and broker.client_config("java")["security.protocol"] != "SASL_SSL":
        with pytest.raises(ConfigError, match=r"login=tls_slow: no listener .* has TLS"):
            broker.faults.add(login="tls_slow", delay_ms=1)
        return
    with broker.faults.add(login=login, delay_ms=20_000, times=1) as fault:
        writer = Writer(broker.client_config("confluent-kafka"))
        await fault.wait_async(1, SECONDS)
        assert len(writer.producer) == 1
        broker.clock.advance(seconds=20)
        await asyncio.to_thread(writer.settle)
        assert writer.errors == []
    with broker.faults.add(login=login, delay_ms=20_000, times=1) as fault:
        delivery = asyncio.create_task(write_by_aiokafka(broker.client_config("aiokafka")))
        await fault.wait_async(1, SECONDS)
        assert not delivery.done()
        fault.remove()  # those that wait go on at once
        await delivery


async def test_a_tls_handshake_is_cut() -> None:
    with Broker(security="SSL", topics=[TOPIC]) as broker:
        with broker.faults.add(login="tls_cut", times=2) as fault:
            writer = Writer(broker.client_config("confluent-kafka"))
            writer.settle()
            assert fault.hits == 2
            assert all("SSL" in text for text in writer.texts)
        with broker.faults.add(login="tls_cut", times=1):
            settings = broker.client_config("aiokafka")
            with pytest.raises(KafkaConnectionError):
                await write_by_aiokafka(settings)
            await write_by_aiokafka(settings)
        with pytest.raises(ConfigError, match=r"login=wrong_password: no listener .* has SASL"):
            broker.faults.add(login="wrong_password")


def test_a_token_has_expired() -> None:
    """Without aiokafka, which does not read that a token is refused."""
    oauth = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "security.inter.broker.protocol": "SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
    }
    with Broker(config=oauth, topics=[TOPIC]) as broker:
        librdkafka = {
            "bootstrap.servers": broker.bootstrap,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "enable.sasl.oauthbearer.unsecure.jwt": True,
            "sasl.oauthbearer.config": "principal=alice",
        }
        with broker.faults.add(login="expired_token", times=2) as fault:
            writer = Writer(librdkafka)
            writer.settle()
            assert fault.hits == 2
            refused = [e for e in writer.errors if e.code() == KafkaError._AUTHENTICATION]
            assert ['{"status":"invalid_token"}' in error.str() for error in refused] == [True] * 2

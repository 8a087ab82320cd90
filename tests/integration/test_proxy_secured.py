"""A proxy before three brokers with SASL_SSL: TLS and logins end here, or go through."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import trustme
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import KafkaError, Producer

from minibroker.kafka.errors import ConfigError
from minibroker.kafka.protocol.messages.metadata import MetadataRequest
from minibroker.kafka.protocol.messages.sasl_handshake import SaslHandshakeRequest
from minibroker.testing import Broker, Cluster, Proxy
from tests.support.dialogues import RawClient

if TYPE_CHECKING:
    from collections.abc import Iterator

USERS = {"alice": "secret", "bob": "other"}
TOPIC = "wide"
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Yield three brokers."""
    with Cluster(3, security="SASL_SSL", users=USERS, topics=[f"{TOPIC}:6"]) as cluster:
        yield cluster


def java_settings(cluster: Cluster, user: str | None = None) -> dict[str, str]:
    """Return the settings of a client of Java: TLS alone, or with a login."""
    settings: dict[str, str] = cluster.client_config("java", user=user)
    if user is None:
        settings = {
            name: value for name, value in settings.items() if not name.startswith("sasl.")
        } | {"security.protocol": "SSL"}
    return settings


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return a file of a key and its certificate for 127.0.0.1, and one of its authority."""
    directory = tmp_path_factory.mktemp("proxy")
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1", "localhost")
    issued.private_key_and_cert_chain_pem.write_to_path(directory / "own.pem")
    authority.cert_pem.write_to_path(directory / "ca.pem")
    return directory / "own.pem", directory / "ca.pem"


def write(settings: dict[str, Any], count: int = 60) -> None:
    """Write records to all partitions, which are those of all brokers."""
    producer = Producer({"log_level": 0, **settings})
    for number in range(count):
        producer.produce(TOPIC, str(number).encode(), partition=number % 6)
    assert producer.flush(60) == 0


def of_proxy(proxy: Proxy, mechanism: str | None, protocol: str) -> dict[str, Any]:
    """Return the settings of librdkafka for a client of the proxy."""
    login = {"sasl.mechanism": mechanism, "sasl.username": "alice", "sasl.password": "secret"}
    return {
        "bootstrap.servers": proxy.bootstrap,
        "security.protocol": protocol,
        **(login if mechanism is not None else {}),
    }


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_logins_go_through_and_tls_is_the_proxys(cluster: Cluster, mechanism: str) -> None:
    with Proxy(cluster.bootstrap, java_settings(cluster)) as proxy:
        write(of_proxy(proxy, mechanism, "SASL_PLAINTEXT"))
        assert len(proxy.brokers) == 3
        apis = {request.api for request in proxy.requests}
        assert {"SaslHandshake", "SaslAuthenticate", "Produce"} <= apis
        assert "secret" not in proxy.report()
        assert not [request for request in proxy.requests if "secret" in request.subject]


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_the_proxy_has_a_certificate_of_its_own(
    cluster: Cluster, certificate: tuple[Path, Path], mechanism: str
) -> None:
    own, authority = certificate
    with Proxy(cluster.bootstrap, java_settings(cluster), tls=own) as proxy:
        settings = of_proxy(proxy, mechanism, "SASL_SSL")
        write({**settings, "ssl.ca.location": str(authority)})
        assert len(proxy.brokers) == 3


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_proxy_logs_in_for_its_clients(cluster: Cluster, mechanism: str) -> None:
    settings = cluster.client_config("java", user="alice", mechanism=mechanism)
    with Proxy(cluster.bootstrap, settings) as proxy:
        write({"bootstrap.servers": proxy.bootstrap})
        assert len(proxy.brokers) == 3
        assert not [request for request in proxy.requests if request.api.startswith("Sasl")]


async def test_aiokafka_writes_and_reads_through_it(cluster: Cluster) -> None:
    with Proxy(cluster.bootstrap, java_settings(cluster)) as proxy:
        settings = {
            "bootstrap_servers": proxy.bootstrap,
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": "SCRAM-SHA-256",
            "sasl_plain_username": "alice",
            "sasl_plain_password": "secret",
        }
        async with AIOKafkaProducer(**settings) as producer:
            await producer.send_and_wait(TOPIC, b"by aiokafka", partition=3)
        consumer = AIOKafkaConsumer(
            TOPIC, group_id="readers", auto_offset_reset="earliest", **settings
        )
        async with consumer:
            values: set[bytes | None] = set()
            while b"by aiokafka" not in values:
                values.add((await consumer.getone()).value)
        await proxy.wait_for_requests_async("LeaveGroup")


def test_tls_that_ends_at_kafka_passes_unread(cluster: Cluster) -> None:
    with Proxy(cluster.bootstrap) as proxy:
        settings = cluster.client_config("confluent-kafka", user="alice", mechanism="PLAIN")
        write({**settings, "bootstrap.servers": proxy.bootstrap})
        assert "speaks TLS, which ends at Kafka" in proxy.events[0]
        assert proxy.requests == []


def test_a_wrong_login_of_the_proxy_is_a_sentence(cluster: Cluster) -> None:
    settings = cluster.client_config("java", user="alice", mechanism="PLAIN")
    wrong = {**settings, "sasl.jaas.config": settings["sasl.jaas.config"].replace("secret", "no")}
    with Proxy(cluster.bootstrap, wrong) as proxy:
        with RawClient(proxy.bootstrap) as client:
            assert client.socket.recv(1) == b""
        assert "Authentication failed: Invalid username or password" in proxy.events[0]


def test_a_certificate_that_is_none_is_a_sentence(cluster: Cluster, tmp_path: Path) -> None:
    file = tmp_path / "empty.pem"
    file.write_text("")
    with pytest.raises(ConfigError, match="no private key with its certificate"):
        Proxy(cluster.bootstrap, tls=file).start()


def test_a_session_of_the_proxy_is_renewed() -> None:
    """Kafka ends a connection whose login is older than connections.max.reauth.ms."""
    with Broker(
        security="SASL_PLAINTEXT", users=USERS, config={"connections.max.reauth.ms": 1_300}
    ) as broker:
        settings = broker.client_config("java", user="alice", mechanism="PLAIN")
        with Proxy(broker.bootstrap, settings) as proxy, RawClient(proxy.bootstrap) as client:
            deadline = time.monotonic() + 4
            while time.monotonic() < deadline:
                assert client.ask(MetadataRequest(topics=[]), 9).brokers
        assert proxy.events == []


# Faults of logins.


@pytest.mark.parametrize(
    ("mechanism", "text"),
    [
        ("PLAIN", "Authentication failed: Invalid username or password"),
        ("SCRAM-SHA-512", "due to invalid credentials with SASL mechanism SCRAM-SHA-512"),
    ],
)
def test_a_login_is_refused_as_for_a_wrong_password(
    cluster: Cluster, mechanism: str, text: str
) -> None:
    with Proxy(cluster.bootstrap, java_settings(cluster)) as proxy:
        proxy.faults.add(login="wrong_password", user="bob", may_miss=True)
        fault = proxy.faults.add(login="wrong_password", user="alice", times=2)
        errors: list[KafkaError] = []
        settings = of_proxy(proxy, mechanism, "SASL_PLAINTEXT")
        write({**settings, "error_cb": errors.append, "reconnect.backoff.ms": 10})
        assert fault.hits == 2
        assert any(text in error.str() for error in errors)


def test_a_login_is_cut_and_slow(cluster: Cluster) -> None:
    with Proxy(cluster.bootstrap, java_settings(cluster)) as proxy:
        cut = proxy.faults.add(login="sasl_cut", times=1)
        slow = proxy.faults.add(login="sasl_slow", delay_ms=200, times=1)
        settings = of_proxy(proxy, "PLAIN", "SASL_PLAINTEXT")
        write({**settings, "reconnect.backoff.ms": 10})
        assert cut.hits == slow.hits == 1
        slowest = max(
            request.duration_ms for request in proxy.requests if request.api == "SaslAuthenticate"
        )
        assert slowest >= 200


def test_tokens_without_a_header_go_through(cluster: Cluster) -> None:
    """Clients before Kafka 1.0 send them, behind a handshake of version 0."""
    with Proxy(cluster.bootstrap, java_settings(cluster)) as proxy:
        with RawClient(proxy.bootstrap) as client:
            assert client.ask(SaslHandshakeRequest(mechanism="PLAIN"), 0).error_code == 0
            token = b"\0alice\0secret"
            client.send_bytes(len(token).to_bytes(4) + token)
            assert client.receive_frame() == b""
            assert len(client.ask(MetadataRequest(topics=[]), 1).brokers) == 3
        lines = [f"{request.api} {request.subject}" for request in proxy.requests]
        assert [text for text in lines if text.startswith("SASL token")]
        assert not [text for text in lines if "secret" in text or b"secret".hex() in text]

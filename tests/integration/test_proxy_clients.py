"""Real clients through a proxy, before minibroker and two Kafkas: each reads what it wrote."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from minibroker.testing import Broker, Proxy
from tests.support.clients import CLIENTS, Client, expected
from tests.support.new_topics import make_topic

if TYPE_CHECKING:
    from collections.abc import Iterator

COUNT = 500
KAFKAS = (
    "minibroker",
    pytest.param("kafka_39", marks=pytest.mark.java),
    pytest.param("kafka_44", marks=pytest.mark.java),
)
EACH_CLIENT = [
    pytest.param(
        client,
        id=client.name.replace(" ", "-"),
        marks=[pytest.mark.java] if client.needs_java else [],
    )
    for client in CLIENTS
]
RELEASES = ("0.8.2", "0.10.2", "1.1", "2.8", "3.9", "4.4")
NUMBERS = itertools.count()


@pytest.fixture(scope="module", params=KAFKAS)
def proxy(request: pytest.FixtureRequest) -> Iterator[Proxy]:
    """Yield a proxy before each Kafka."""
    with Proxy(request.getfixturevalue(request.param).address) as proxy:
        yield proxy


@pytest.mark.parametrize("client", EACH_CLIENT)
def test_a_client_reads_what_it_has_written(proxy: Proxy, client: Client) -> None:
    if client.name == "kcat" and client.missing:
        pytest.skip(f"not run: {client.missing}")
    topic = f"through-{next(NUMBERS)}"
    make_topic(proxy.bootstrap, topic)
    client.produce(proxy.bootstrap, topic, "lz4", "v", COUNT)
    assert client.consume(proxy.bootstrap, topic, COUNT) == expected("v", COUNT)
    assert proxy.events == []


@pytest.mark.parametrize("release", RELEASES)
def test_brokers_of_each_time_are_behind_it(release: str) -> None:
    """minibroker passes for them. A client has to be told that a broker is as old as 0.8."""
    version_settings = {"api.version.request": False, "broker.version.fallback": "0.8.2.2"}
    with Broker(version=release, topics=["old"]) as broker, Proxy(broker.bootstrap) as proxy:
        settings = {
            "bootstrap.servers": proxy.bootstrap,
            "group.id": "g",
            **(version_settings if release == "0.8.2" else {}),
        }
        producer = Producer(settings)
        for number in range(50):
            producer.produce("old", str(number).encode())
        assert producer.flush(60) == 0
        consumer = Consumer({**settings, "enable.auto.commit": False})
        consumer.assign([TopicPartition("old", 0, 0)])
        values = [message.value() for message in consumer.consume(50, 60)]
        consumer.close()
        assert values == [str(number).encode() for number in range(50)]
        assert {"Metadata", "Produce", "Fetch"} <= {request.api for request in proxy.requests}

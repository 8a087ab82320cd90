"""Reactions of real clients to faults of a whole broker: three libraries each, as beside Apache
Kafka.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from minibroker.testing import Broker
from tests.support.reacting import (
    DEADLINE_S,
    IMPATIENT,
    PATIENT,
    READERS,
    WRITERS,
    Client,
    opened_clients,
    settle,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.peers import ZooKeeper

CLIENTS = tuple(WRITERS)
open_client = pytest.fixture(opened_clients)


def values(broker: Broker, topic: str) -> list[bytes | None]:
    return [record.value for record in broker.records(topic)]


@pytest.mark.parametrize("client", CLIENTS)
def test_a_full_disk_is_tried_again_until_there_is_room(
    kafka: Broker, kafka_topic: str, open_client: Callable[[Client], Any], client: str
) -> None:
    writer = open_client(WRITERS[client](kafka.bootstrap))
    assert settle(writer.send(kafka_topic, b"1")) == "done"
    with kafka.faults.add(broker="disk_full"):
        waiting = writer.send(kafka_topic, b"2")
        kafka.wait_for_requests("Produce", error="KAFKA_STORAGE_ERROR", count=2)
        assert not waiting.done()
    assert settle(waiting) == "done"
    assert values(kafka, kafka_topic) == [b"1", b"2"]


@pytest.mark.parametrize("client", CLIENTS)
def test_a_slow_sync_is_waited_for(
    kafka: Broker, open_client: Callable[[Client], Any], client: str
) -> None:
    kafka.create_topic("synced", config={"flush.messages": 1})
    writer = open_client(WRITERS[client](kafka.bootstrap, **PATIENT[client]))
    assert settle(writer.send("synced", b"1")) == "done"
    with kafka.faults.add(broker="slow_sync", delay_ms=300):
        assert settle(writer.send("synced", b"2")) == "done"
    produced = [request for request in kafka.requests if request.api == "Produce"]
    assert produced[-1].duration_ms >= 300
    assert values(kafka, "synced") == [b"1", b"2"]


@pytest.mark.parametrize("client", CLIENTS)
def test_a_pause_is_sat_out(
    kafka: Broker, kafka_topic: str, open_client: Callable[[Client], Any], client: str
) -> None:
    """It is longer than the clients' time-outs: they connect again, and write nothing twice."""
    writer = open_client(WRITERS[client](kafka.bootstrap, **IMPATIENT[client]))
    reader = open_client(READERS[client](kafka.bootstrap, kafka_topic, **IMPATIENT[client]))
    assert settle(writer.send(kafka_topic, b"1")) == "done"
    assert settle(reader.read(1)) == "done"
    with kafka.faults.add(broker="paused") as fault:
        delivery = writer.send(kafka_topic, b"2")
        reading = reader.read(2)
        fault.wait(4, DEADLINE_S)
        assert not delivery.done()
    assert (settle(delivery), settle(reading)) == ("done", "done")
    assert values(kafka, kafka_topic) == reader.values == [b"1", b"2"]


# kafka-python 3.0 outlives it as the others do, here and with Kafka 4.4.0, but forgets the sockets
# of connections that are refused, and pytest counts them against whatever test runs then.
@pytest.mark.parametrize("client", ["confluent", "aiokafka"])
def test_a_kill_is_outlived(
    kafka: Broker, kafka_topic: str, open_client: Callable[[Client], Any], client: str
) -> None:
    """Producer and group member go on with the same objects; no record is lost or doubled."""
    writer = open_client(WRITERS[client](kafka.bootstrap))
    member = open_client(READERS[client](kafka.bootstrap, kafka_topic, "g"))
    for value in (b"1", b"2"):
        assert settle(writer.send(kafka_topic, value)) == "done"
    assert settle(member.read(2)) == "done"
    assert settle(member.commit()) == "done"
    with kafka.faults.add(broker="killed"):
        delivery = writer.send(kafka_topic, b"3")
    assert settle(delivery) == "done"
    assert settle(member.read(3)) == "done"
    assert settle(member.commit()) == "done"
    assert values(kafka, kafka_topic) == member.values == [b"1", b"2", b"3"]
    assert kafka.committed("g") == {(kafka_topic, 0): 3}


@pytest.mark.java
def test_a_lost_session_with_zookeeper_is_not_felt(
    zookeeper: ZooKeeper, open_client: Callable[[Client], Any]
) -> None:
    """The broker registers again; connected clients go on with their partitions."""
    config = {
        "zookeeper.connect": f"{zookeeper.connect}/felt",
        "zookeeper.session.timeout.ms": 6000,
    }
    with Broker(topics=["orders"], config=config) as broker:
        tree = broker.call(lambda: broker._node.app.cluster.tree)
        writers = {name: open_client(WRITERS[name](broker.bootstrap)) for name in CLIENTS}
        for writer in writers.values():
            assert settle(writer.send("orders", b"before")) == "done"
        session = tree.session_id
        broker.faults.add(broker="zookeeper_session_lost")
        for writer in writers.values():
            assert settle(writer.send("orders", b"after")) == "done"
        while tree.session_id in (0, session):
            assert settle(writer.send("orders", b"and on")) == "done"
        assert len(broker.records("orders")) >= 6
        for writer in writers.values():
            writer.close()

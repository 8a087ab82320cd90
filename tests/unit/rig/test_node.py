"""Faults of a whole broker, as librdkafka and aiokafka see them."""

from __future__ import annotations

import asyncio
import socket
from time import perf_counter
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from aiokafka import AIOKafkaProducer
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from minibroker.broker.cluster.image import MetadataImage, TopicImage
from minibroker.kafka.errors import ConfigError
from minibroker.kafka.ids import TopicId
from minibroker.rig import topic_records
from minibroker.rig.fault_interceptor import StaleServices
from minibroker.rig.faults import BROKER_FAULTS
from minibroker.rig.topic_records import records_of
from minibroker.testing import Broker, Cluster, Fault
from tests.support.waiting import wait_until
from tests.unit.broker.partitions.conftest import World, world

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.peers import ZooKeeper


QUIET = {
    "log_level": 0,
    "retry.backoff.ms": 10,
    "linger.ms": 0,
    "reconnect.backoff.ms": 10,
    "reconnect.backoff.max.ms": 50,
}


def producer_for(broker: Broker, **settings: object) -> Producer:
    return Producer({"bootstrap.servers": broker.bootstrap, **QUIET, **settings})


def values(broker: Broker, topic: str) -> list[bytes | None]:
    return [record.value for record in broker.records(topic)]


def test_a_full_disk_refuses_records_and_has_room_again(kafka_broker: Broker) -> None:
    kafka_broker.create_topic("orders")
    refusals: list[KafkaError] = []
    once = producer_for(kafka_broker, retries=0)
    with kafka_broker.faults.add(broker="disk_full"):
        once.produce("orders", b"lost", on_delivery=lambda error, _: refusals.append(error))
        once.flush(60)
        patient = producer_for(kafka_broker, retries=1_000)
        patient.produce("orders", b"late")
        while not any(request.client_id == "rdkafka" for request in kafka_broker.requests[2:]):
            patient.poll(0.01)
    assert [refusal.name() for refusal in refusals] == ["KAFKA_STORAGE_ERROR"]
    assert patient.flush(60) == 0
    assert values(kafka_broker, "orders") == [b"late"]


@pytest.mark.kafka(topics=["orders:1:flush.messages=1"])
async def test_a_slow_sync_delays_who_waits_for_it(kafka_broker: Broker) -> None:
    client = {"bootstrap_servers": kafka_broker.bootstrap}
    async with AIOKafkaProducer(**client) as producer:
        await producer.send_and_wait("orders", b"1")
        with kafka_broker.faults.add(broker="slow_sync", delay_ms=200):
            began_s = perf_counter()
            await producer.send_and_wait("orders", b"2")
            assert perf_counter() - began_s >= 0.2


@pytest.mark.kafka(topics=["orders"])
async def test_a_paused_broker_does_nothing_until_it_goes_on(kafka_broker: Broker) -> None:
    producer = producer_for(kafka_broker)
    async with AIOKafkaProducer(bootstrap_servers=kafka_broker.bootstrap) as other:
        fault = kafka_broker.faults.add(broker="paused")
        producer.produce("orders", b"1")
        task = asyncio.create_task(other.send_and_wait("orders", b"2"))
        while fault.hits < 2:
            producer.poll(0.01)
            await asyncio.sleep(0)
        assert values(kafka_broker, "orders") == []
        fault.remove()
        await task
    assert producer.flush(60) == 0
    assert sorted(values(kafka_broker, "orders")) == [b"1", b"2"]  # type: ignore[type-var]


def test_time_outs_wait_while_it_is_paused(kafka_broker: Broker) -> None:
    kafka_broker.create_topic("orders")
    consumer = Consumer({"bootstrap.servers": kafka_broker.bootstrap, "group.id": "g", **QUIET})
    consumer.subscribe(["orders"])
    while kafka_broker.groups.get("g") != "Stable":
        consumer.poll(0.01)
    with kafka_broker.faults.add(broker="paused"):
        kafka_broker.clock.advance(minutes=10)
        assert kafka_broker.groups == {"g": "Stable"}
    assert kafka_broker.groups != {"g": "Stable"}
    consumer.close()


@pytest.mark.kafka(topics=["orders:2"])
def test_a_killed_broker_comes_back_with_what_it_acknowledged(kafka_broker: Broker) -> None:
    address = kafka_broker.bootstrap
    producer = producer_for(kafka_broker, **{"enable.idempotence": True})
    producer.produce("orders", b"before", partition=0)
    assert producer.flush(60) == 0
    consumer = Consumer({"bootstrap.servers": address, "group.id": "g", **QUIET})
    consumer.commit(offsets=[TopicPartition("orders", 0, 1)], asynchronous=False)
    with kafka_broker.faults.add(broker="killed"):
        host, _, port = address.partition(":")
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((host, int(port)), 5)
        with pytest.raises(RuntimeError, match="killed"):
            kafka_broker.records("orders")
        producer.produce("orders", b"after", partition=0)
    assert kafka_broker.bootstrap == address
    assert producer.flush(60) == 0
    assert values(kafka_broker, "orders") == [b"before", b"after"]
    (committed,) = consumer.committed([TopicPartition("orders", 0)], 10)
    assert committed.offset == 1
    consumer.close()


def test_a_broker_that_is_killed_can_be_stopped() -> None:
    broker = Broker(topics=["a"])
    broker.start()
    broker.faults.add(broker="killed")
    broker.stop()


def test_there_is_no_session_to_lose_without_zookeeper(kafka_broker: Broker) -> None:
    with pytest.raises(ConfigError, match="no ZooKeeper"):
        kafka_broker.faults.add(broker="zookeeper_session_lost")
    assert list(kafka_broker.faults) == []


@pytest.mark.java
def test_the_zookeeper_session_is_lost_and_clients_go_on(zookeeper: ZooKeeper) -> None:
    config = {
        "zookeeper.connect": f"{zookeeper.connect}/lost",
        "zookeeper.session.timeout.ms": 6000,
    }
    with Broker(topics=["orders"], config=config) as broker:
        tree = broker.call(lambda: broker._node.app.cluster.tree)
        session = tree.session_id
        producer = producer_for(broker)
        producer.produce("orders", b"1")
        assert producer.flush(60) == 0
        broker.faults.add(broker="zookeeper_session_lost")
        producer.produce("orders", b"2")
        assert producer.flush(60) == 0
        while tree.session_id in (0, session):
            producer.poll(0.01)
        while not broker.call(lambda: broker._node.app.cluster.is_controller):
            producer.poll(0.01)
        broker.create_topic("late")

        with broker.faults.add(broker="killed"):
            pass  # its session stands, and is taken up
        producer.produce("orders", b"3")
        assert producer.flush(60) == 0
        assert values(broker, "orders") == [b"1", b"2", b"3"]


@pytest.mark.parametrize(
    ("rule", "sentence"),
    [
        ({"broker": "burning"}, "broker 'burning'"),
        ({"broker": "paused", "topic": "a"}, "topic is for requests"),
        ({"broker": "slow_sync"}, "delay_ms 0"),
        ({"broker": "killed", "delay_ms": 5}, "delay_ms 5"),
    ],
)
def test_arguments_of_a_rule_for_the_broker(rule: dict[str, object], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        Fault(**rule)  # type: ignore[arg-type]


def test_the_rules_have_names() -> None:
    assert repr(Fault(broker="paused")) == "Fault(broker='paused')"
    assert "killed" in BROKER_FAULTS


# Nodes of one cluster; `tests/integration/test_faults_of_cluster.py` has what clients see.


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(3, topics=["t:3"]) as started:
        yield started


def test_paused_and_killed_brokers_are_told(cluster: Cluster) -> None:
    cluster.make_controller(0)  # a paused one would stay it
    with cluster.pause(1, may_miss=True):
        with pytest.raises(ValueError, match="broker 1 is paused: restart or resume it first"):
            cluster.make_controller(1)
        cluster.kill(0)
        cluster.make_leader(2, "t", 2)  # broker 0 or 2 led it
        cluster.kill(2)
        with pytest.raises(RuntimeError, match="all brokers of the cluster are killed or paused"):
            cluster.leader("t")
    wait_until(lambda: cluster.leader("t", 1) == 1, "the broker that is left leads")


def test_the_controller_is_asked_for_the_metadata(cluster: Cluster) -> None:
    cluster.make_controller(2)
    cluster.expire_session(2)
    assert cluster.controller in (0, 1)
    cluster.wait_until_in_sync(60)


def test_a_wait_says_what_it_waited_for(cluster: Cluster) -> None:
    with pytest.raises(TimeoutError, match=r"waited 0.05 s until in sync of t-0 are \[0\]"):
        cluster.wait_until("t", in_sync=[0], timeout_s=0.05)


async def test_waits_have_an_async_form(cluster: Cluster) -> None:
    await cluster.wait_until_async("t", in_sync=[0, 1, 2])
    with pytest.raises(RuntimeError, match="await wait_until_async"):
        cluster.wait_until("t", in_sync=[0, 1, 2])


def test_reset_makes_a_cluster_as_it_was(cluster: Cluster) -> None:
    cluster.create_topic("more")
    cluster.clock.advance(hours=1)
    cluster.kill(2)
    cluster.reset()
    assert cluster.broker(2).topics == {"t": 3}
    assert cluster.broker(2).requests is not None
    assert abs(cluster.clock.now_ms() - cluster.node(0).app.clock.now_ms()) < 60_000
    assert [cluster.in_sync("t", index) for index in range(3)] == [[0, 1, 2]] * 3


# Records of a partition: over the limit of one read, from a moved start, in time.


__all__ = ["world"]


def test_reading_goes_on_where_one_read_ended(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topic_records, "READ_BYTES", 100)
    world.create("t")
    for number in range(5):
        world.append(b"%d" % number * 40, b"x")
    world.manager.commit()
    records = list(records_of(world.partition(), "read_uncommitted"))
    assert [record.offset for record in records] == list(range(10))


def test_it_begins_at_the_log_start(world: World) -> None:
    world.create("t")
    world.append(b"a", b"b", b"c")
    world.manager.commit()
    world.partition().log.advance_log_start(2)
    assert [record.value for record in records_of(world.partition(), "read_committed")] == [b"c"]


# Metadata that do not change any more.


def test_the_image_stays_and_all_else_is_the_brokers() -> None:
    image = MetadataImage()
    image.controller_id = 1
    old = image.topics["t"] = TopicImage("t", TopicId(b"1" * 16), [])
    cluster = SimpleNamespace(image=image, broker_id=5)
    services: Any = SimpleNamespace(cluster=cluster, clock="the clock")
    stale = StaleServices(services)
    image.controller_id = 2
    image.topics["t"] = TopicImage("t", TopicId(b"2" * 16), [])
    image.topics["u"] = TopicImage("u", TopicId(b"3" * 16), [])
    request: Any = SimpleNamespace(services=services, version=3)
    context = stale.context_of(request)
    assert context.version == 3
    assert context.services.clock == "the clock"  # type: ignore[comparison-overlap]
    assert context.services.cluster.broker_id == 5
    assert context.services.cluster.image.controller_id == 1
    assert context.services.cluster.image.topics == {"t": old}
    assert request.services.cluster.image is image

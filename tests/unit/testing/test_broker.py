"""`minibroker.testing.Broker`: its life, and what a test does with it."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
)

from minibroker.error_codes import ErrorCode
from minibroker.errors import ConfigError, KafkaError
from minibroker.testing import Broker

if TYPE_CHECKING:
    from collections.abc import Iterator

QUIET = {"log_level": 0}
CYCLES = int(os.environ.get("MINIBROKER_CYCLES", "60"))
"""1,000 take 20 s on a machine of two cores."""


@pytest.fixture(scope="module")
def shared() -> Iterator[Broker]:
    with Broker(topics=["orders:3"]) as broker:
        yield broker


@pytest.fixture
def broker(shared: Broker) -> Broker:
    shared.reset()
    return shared


def sent(broker: Broker, topic: str, *values: bytes) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, **QUIET})
    for value in values:
        producer.produce(topic, value, partition=0)
    assert producer.flush(60) == 0


def objects_now() -> int:
    gc.collect()
    return len(gc.get_objects())


# Life.


def test_nothing_is_left_behind() -> None:
    with Broker() as broker:  # what is loaded once stays loaded
        sent(broker, "t", b"v")
    process = psutil.Process()
    threads, handles = set(threading.enumerate()), process.num_fds()
    directories: list[str] = []
    objects = objects_now()
    for _ in range(CYCLES):
        with Broker(topics=["t"]) as broker:
            broker.produce("t", b"v")
            directories.append(broker._own_dir or "")
            assert Path(directories[-1]).is_dir()
    assert objects_now() - objects < CYCLES  # not one of each
    assert set(threading.enumerate()) <= threads  # what other tests left may end meanwhile
    assert process.num_fds() <= handles
    assert not any(Path(directory).exists() for directory in directories)


def test_several_run_side_by_side() -> None:
    with Broker(topics=["t"]) as one, Broker(topics=["t"]) as other:
        assert one.bootstrap != other.bootstrap
        one.produce("t", b"one")
        assert other.records("t") == []


def test_it_starts_again_and_keeps_what_has_a_directory(tmp_path: Path) -> None:
    broker = Broker(topics=["t"], data_dir=tmp_path)
    for count in range(3):
        with broker:
            assert len(broker.records("t")) == count
            broker.produce("t", b"v")


def test_a_start_that_fails_says_why_and_leaves_nothing() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        broker = Broker(config={"listeners": f"PLAINTEXT://127.0.0.1:{port}"})
        with pytest.raises(Exception, match=f"cannot listen on 127.0.0.1:{port}"):
            broker.start()
    broker.start()
    broker.stop()


def test_a_wrong_setting_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"message\.max\.bytes"):
        Broker(config={"message.max.bytes": "many"}).start()


def test_outside_its_block_it_says_so() -> None:
    broker = Broker()
    with pytest.raises(RuntimeError, match="not running"):
        broker.create_topic("t")
    with broker, pytest.raises(RuntimeError, match="is running"):
        broker.start()
    broker.stop()


async def test_in_a_loop() -> None:
    async with Broker(topics=["t"]) as broker:
        waiting = asyncio.ensure_future(broker.wait_for_async("t", 1))
        broker.produce("t", b"v")
        assert [record.value for record in await waiting] == [b"v"]


# Records.


def test_records_come_decoded(broker: Broker) -> None:
    written = broker.produce("orders", b"v", key=b"k", headers=[("h", b"1")], timestamp=5)
    (found,) = broker.records("orders")
    assert found == written
    assert (found.key, found.value, found.headers) == (b"k", b"v", (("h", b"1"),))
    assert (found.offset, found.timestamp, found.timestamp_type) == (0, 5, "CreateTime")
    assert broker.records("orders", found.partition) == [found]


def test_what_clients_write_is_there(broker: Broker) -> None:
    sent(broker, "orders", b"a", b"b")
    assert [one.value for one in broker.wait_for("orders", 2)] == [b"a", b"b"]


def test_log_append_time_follows_the_clock(broker: Broker) -> None:
    broker.create_topic("times", config={"message.timestamp.type": "LogAppendTime"})
    first = broker.produce("times", b"v")
    broker.clock.advance(hours=2)
    second = broker.produce("times", b"v")
    assert first.timestamp_type == "LogAppendTime"
    assert 7_200_000 <= second.timestamp - first.timestamp < 7_260_000


def test_aborted_records_are_seen_by_whom_wants_them(broker: Broker) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": "t", **QUIET})
    producer.init_transactions(60)
    for value, end in ((b"no", producer.abort_transaction), (b"yes", producer.commit_transaction)):
        producer.begin_transaction()
        producer.produce("orders", value, partition=1)
        assert producer.flush(60) == 0
        end(60)
    everything = broker.records("orders", 1)
    assert [one.value for one in everything] == [b"no", b"yes"]
    assert broker.records("orders", 1, isolation="read_committed") == everything[1:]
    with pytest.raises(ValueError, match="isolation 'dirty'"):
        broker.records("orders", isolation="dirty")


def test_a_wait_in_vain_says_what_is_there(broker: Broker) -> None:
    broker.produce("orders", b"v")
    with pytest.raises(TimeoutError, match="for 2 records in topic 'orders', which has 1"):
        broker.wait_for("orders", 2, timeout_s=0.01)
    with pytest.raises(TimeoutError, match="'unknown', which has 0"):
        broker.wait_for("unknown", 1, timeout_s=0.01)


def test_a_topic_that_is_not_there_is_an_error(broker: Broker) -> None:
    with pytest.raises(KafkaError) as caught:
        broker.records("unknown")
    assert caught.value.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_topic_has_no_more_partitions_than_one_request_makes(broker: Broker) -> None:
    with pytest.raises(KafkaError, match="Excessively large number of partitions"):
        broker.create_topic("large", 2**31 - 1)
    assert "large" not in broker.topics


# Groups, time, requests.


def test_committed_offsets_and_groups(broker: Broker) -> None:
    assert broker.committed("g") == {}
    for value in (b"a", b"b"):
        broker.produce("orders", value, partition=0)
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "g",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **QUIET,
        }
    )
    consumer.subscribe(["orders"])
    assert len(consumer.consume(2, 60)) == 2
    assert broker.groups == {"g": "Stable"}
    consumer.commit(asynchronous=False)
    assert broker.committed("g")["orders", 0] == 2
    consumer.close()
    assert broker.groups == {"g": "Empty"}


def test_a_session_ends_when_its_time_is_moved_on(broker: Broker) -> None:
    settings = {"session.timeout.ms": 45_000, "heartbeat.interval.ms": 40_000}
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap, "group.id": "g", **settings, **QUIET}
    )
    consumer.subscribe(["orders"])
    while not consumer.assignment():
        consumer.poll(0.1)
    broker.clock.advance(seconds=46)
    assert broker.groups == {"g": "Empty"}
    consumer.close()


def test_time_does_not_go_back(broker: Broker) -> None:
    with pytest.raises(ValueError, match="does not go back"):
        broker.clock.advance(seconds=-1)


def test_requests_are_written_down(broker: Broker) -> None:
    producer = Producer(
        {"bootstrap.servers": broker.bootstrap, "client.id": "mine", "acks": 1, **QUIET}
    )
    producer.produce("orders", b"v", partition=0)
    producer.produce("orders", b"v", partition=0)
    assert producer.flush(60) == 0
    seen = [one for one in broker.requests if one.client_id == "mine"]
    assert {"ApiVersions", "Metadata", "Produce"} <= {one.api for one in seen}
    assert all(one.error is None and one.duration_ms >= 0 for one in seen)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, **QUIET})
    (future,) = admin.create_topics([NewTopic("orders", 1, 1)]).values()
    assert "already exists" in str(future.exception(10))
    failed = [one for one in broker.requests if one.error is not None]
    assert [(one.api, one.error) for one in failed] == [("CreateTopics", "TOPIC_ALREADY_EXISTS")]
    assert any("Produce" in line for line in broker.last_events(["orders", "unknown"]))
    assert broker.last_events(["orders"])[-1] == "topic orders: 2 records"


# Anew.


def test_after_a_reset_it_is_as_at_the_start(broker: Broker) -> None:
    sent(broker, "orders", b"v")
    broker.create_topic("more", partitions=2)
    resource = ConfigResource(
        ConfigResource.Type.BROKER,
        "0",
        incremental_configs=[
            ConfigEntry("log.retention.ms", "5000", incremental_operation=AlterConfigOpType.SET)
        ],
    )
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, **QUIET})
    admin.incremental_alter_configs([resource])[resource].result(60)
    broker.reset()
    (described,) = admin.describe_configs([ConfigResource("broker", "0")]).values()
    assert described.result(60)["log.retention.ms"].value != "5000"
    broker.reset()
    assert broker.topics == {"orders": 3}
    assert broker.records("orders") == []
    assert broker.requests == []
    assert broker.groups == {}


def test_a_topic_can_go(broker: Broker) -> None:
    broker.create_topic("more", partitions=2, config={"cleanup.policy": "compact"})
    assert broker.topics == {"orders": 3, "more": 2}
    broker.delete_topic("more")
    assert broker.topics == {"orders": 3}
    with pytest.raises(ConfigError, match="no-such-key"):
        broker.create_topic("bad", config={"no-such-key": 1})

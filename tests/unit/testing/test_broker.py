"""`minibroker.testing.Broker`: its life, and what a test does with it."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import sys
import threading
import time
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import CorruptRecordException
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
)

from minibroker.broker import slices
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import ConfigError, KafkaError
from minibroker.rig import topic_records
from minibroker.testing import Broker, Cluster
from minibroker.testing.loop_thread import LoopThread
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from minibroker.testing.in_process import InProcess


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


def send(broker: Broker, topic: str, *values: bytes) -> None:
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
        send(broker, "t", b"v")
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
    with Broker(topics=["t"]) as first, Broker(topics=["t"]) as other:
        assert first.bootstrap != other.bootstrap
        first.produce("t", b"one")
        assert other.records("t") == []


def test_it_starts_again_and_keeps_what_has_a_directory(tmp_path: Path) -> None:
    broker = Broker(topics=["t"], data_dir=tmp_path)
    for count in range(3):
        with broker:
            assert len(broker.records("t")) == count
            broker.produce("t", b"v")


def test_a_start_that_fails_says_why_and_leaves_nothing() -> None:
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = holder.getsockname()[1]
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


async def test_no_call_stops_the_loop_of_the_test() -> None:
    async with Broker(topics=["t"]) as broker:
        fault = broker.faults.add("Produce", error="CORRUPT_MESSAGE")
        for wait, name in (
            (lambda: broker.wait_for("t", 1), "wait_for"),
            (lambda: broker.wait_for_requests("Produce"), "wait_for_requests"),
            (fault.wait, "wait"),
        ):
            with pytest.raises(RuntimeError, match=f"`await {name}_async"):
                wait()
        async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap) as producer:
            with pytest.raises(CorruptRecordException):
                await producer.send_and_wait("t", b"v")
        await fault.wait_async()
        (request,) = await broker.wait_for_requests_async("Produce", error="CORRUPT_MESSAGE")
        assert request.api == "Produce"
        with pytest.raises(TimeoutError, match="1 requests that meet"):
            await broker.faults.add("Fetch", hold=True).wait_async(timeout_s=0.01)


# Records.


def test_records_come_decoded(broker: Broker) -> None:
    record = broker.produce("orders", b"v", key=b"k", headers=[("h", b"1")], timestamp=5)
    (copy,) = broker.records("orders")
    assert copy == record
    assert (copy.key, copy.value, copy.headers) == (b"k", b"v", (("h", b"1"),))
    assert (copy.offset, copy.timestamp, copy.timestamp_type) == (0, 5, "CreateTime")
    assert broker.records("orders", copy.partition) == [copy]


def test_values_are_written_as_a_test_has_them(broker: Broker) -> None:
    stamp = datetime(2026, 5, 4, 3, 2, 1, tzinfo=UTC)
    text = broker.produce("orders", "größe", key="k", headers={"source": "web"}, timestamp=stamp)
    assert (text.key, text.value, text.text) == (b"k", "größe".encode(), "größe")
    assert (text.header("source"), text.header("other"), text.time) == (b"web", None, stamp)
    assert broker.produce("orders", {"id": 1}).json() == {"id": 1}
    tombstone = broker.produce("orders", None, key=b"k", timestamp=-1)
    assert (tombstone.value, tombstone.text, tombstone.json(), tombstone.time) == (None,) * 4
    with pytest.raises(TypeError, match=r"1.5 is no key or value .* expected str, bytes, a dict"):
        broker.produce("orders", 1.5)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="timestamp 'now'"):
        broker.produce("orders", b"v", timestamp="now")  # type: ignore[call-overload]


def test_a_list_is_as_many_records(broker: Broker) -> None:
    values = ["a", b"b", {"c": 1}, None, "d" * 20_000, "e"]
    records = broker.produce("orders", values, partition=2)
    assert [record.offset for record in records] == [0, 1, 2, 3, 4, 5]
    assert broker.records("orders", 2) == records
    assert [record.value for record in records[:4]] == [b"a", b"b", b'{"c": 1}', None]
    assert broker.produce("orders", []) == []


def test_to_produce_costs_the_same_however_much_is_there(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.produce("orders", [b"v" * 100] * 5000, partition=0)
    decoded: list[int] = []
    read_records = topic_records.read_records

    def counting(*arguments: Any) -> Any:
        for record in read_records(*arguments):
            decoded.append(record.offset)
            yield record

    monkeypatch.setattr(topic_records, "read_records", counting)
    assert broker.produce("orders", "last", partition=0).offset == 5000
    assert decoded == [5000]


def test_a_record_is_there_once_it_is_synced() -> None:
    with Broker(topics=["t"], config={"log.flush.interval.messages": 1}) as broker:
        records = broker.produce("t", ["a", "b"])
        assert broker.records("t") == records


def test_records_of_clients_are_there(broker: Broker) -> None:
    send(broker, "orders", b"a", b"b")
    assert [record.value for record in broker.wait_for("orders", 2)] == [b"a", b"b"]


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
    assert [record.value for record in everything] == [b"no", b"yes"]
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


def test_a_partition_that_is_not_there_is_named(broker: Broker) -> None:
    for call in (
        broker.records,
        lambda topic, partition: broker.produce(topic, "v", partition=partition),
    ):
        with pytest.raises(KafkaError, match="topic 'orders' has no partition 3: it has 3, from 0"):
            call("orders", 3)


def test_a_topic_that_the_broker_does_not_make_is_named() -> None:
    with Broker(config={"auto.create.topics.enable": False}) as broker:
        with pytest.raises(KafkaError) as refusal:
            broker.produce("missing", "v")
        assert refusal.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert "'missing', and this broker makes none (auto.create" in str(refusal.value)


def test_a_broker_is_shown_with_its_address(cluster: Cluster) -> None:
    broker = Broker()
    assert repr(broker) == "<Broker that is not running>"
    with broker:
        assert repr(broker) == f"<Broker at {broker.bootstrap}>"
    assert repr(cluster) == f"<Cluster at {cluster.bootstrap}>"
    assert repr(cluster.broker(1)) == f"<broker 1 of {cluster!r}>"


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
    broker.produce("orders", "c", partition=0)
    assert broker.lag("g")["orders", 0] == 1
    (member,) = broker.members("g")
    assert member.client_id == "rdkafka"
    assert member.partitions == (("orders", 0), ("orders", 1), ("orders", 2))
    assert broker.members("unknown") == []
    with pytest.raises(KafkaError, match=r"there is no group 'unknown', .* are: 'g'"):
        broker.lag("unknown")
    assert any("orders-0 orders-1" in line for line in broker.report().splitlines())
    consumer.close()
    assert broker.groups == {"g": "Empty"}
    assert broker.members("g") == []


def test_members_of_the_consumer_protocol_have_their_partitions(broker: Broker) -> None:
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "g",
            "group.protocol": "consumer",
            "client.id": "mine",
            **QUIET,
        }
    )
    consumer.subscribe(["orders"])
    while len(consumer.assignment()) < 3:
        consumer.poll(0.1)
    (member,) = broker.members("g")
    assert (member.client_id, member.instance_id) == ("mine", None)
    assert member.partitions == (("orders", 0), ("orders", 1), ("orders", 2))
    consumer.close()


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


def test_names_are_checked_at_once(broker: Broker) -> None:
    with pytest.raises(ValueError, match=r"'Prodcue' is not .* did you mean Produce\?"):
        broker.wait_for_requests("Prodcue")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"did you mean UNKNOWN_MEMBER_ID\?"):
        broker.wait_for_requests("Heartbeat", error="UNKNOWN_MEMBER")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"did you mean JoinGroup\?"):
        broker.faults.add("JoinGruop", hold=True)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"'Foo' is not .* protocol, such as Produce"):
        broker.wait_for_requests("Foo")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="isolation 'committed'"):
        broker.records("unknown", isolation="committed")  # type: ignore[arg-type]
    assert list(broker.faults) == []


def test_a_report_is_short_and_shows_what_is_there(broker: Broker) -> None:
    assert broker.report() == "no client sent anything"
    broker.produce("orders", ["x" * 100, b"\xff", None] + ["v"] * 9, partition=1, key="k")
    rows = [line.split() for line in broker.report(records=11).splitlines()[2:]]
    assert rows[0] == ["partition", "offset", "time", "key", "value"]
    assert [(row[0], row[1], row[4]) for row in rows[1:3]] == [
        ("orders-1", "1", r"b'\xff'"),
        ("orders-1", "2", "null"),
    ]
    assert len(rows) == 12
    with broker.faults.add(broker="killed"):
        assert broker.report().endswith("killed by a fault")


def test_a_report_shows_a_record_of_a_time_that_no_calendar_has(broker: Broker) -> None:
    broker.produce("orders", "v", timestamp=2**60)
    assert f" {2**60} ms " in broker.report(records=1).splitlines()[-1]


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
    requests = [request for request in broker.requests if request.client_id == "mine"]
    assert {"ApiVersions", "Metadata", "Produce"} <= {request.api for request in requests}
    assert all(request.error is None and request.duration_ms >= 0 for request in requests)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, **QUIET})
    (future,) = admin.create_topics([NewTopic("orders", 1, 1)]).values()
    assert "already exists" in str(future.exception(10))
    failed = [request for request in broker.requests if request.error is not None]
    assert [(request.api, request.error) for request in failed] == [
        ("CreateTopics", "TOPIC_ALREADY_EXISTS")
    ]
    report = broker.report()
    assert "orders-0   1       " in report.splitlines()[-1]
    assert any(" Produce v" in line and " ok " in line for line in report.splitlines())


# Anew.


def test_after_a_reset_it_is_as_at_the_start(broker: Broker) -> None:
    send(broker, "orders", b"v")
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
    broker.faults.add("Fetch", delay_ms=1)
    broker.clock.advance(days=30)
    broker.reset()
    assert abs(broker.clock.now_ms() - time.time() * 1000) < 60_000
    assert list(broker.faults) == broker.faults.missed == []
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


# Calls for one broker of a cluster; `test_broker` has those of a broker alone.


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(2, topics=["t:1"]) as started:
        started.make_leader(0, "t")
        yield started


def test_each_broker_shows_its_own_replica(cluster: Cluster) -> None:
    leader, follower = cluster.brokers
    assert cluster.bootstrap == f"{leader.bootstrap},{follower.bootstrap}"
    assert leader.produce("t", "x", key="k").offset == 0
    for broker in (leader, follower):
        wait_until(lambda broker=broker: broker.records("t") != [], "it has the record")  # type: ignore[misc]
        assert [record.text for record in broker.records("t")] == ["x"]
        assert broker.topics == {"t": 1}
    with pytest.raises(KafkaError, match="NOT_LEADER_OR_FOLLOWER"):
        follower.produce("t", "y")


def test_a_wait_on_a_follower_ends_when_the_record_is_there(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its partition may not be on the broker yet, and is followed then."""
    monkeypatch.setattr(slices, "SLICE_S", -1.0)  # brokers hear of a topic one after another
    leader, follower = cluster.brokers
    assert leader.produce("t", "x").offset == 0
    assert [record.text for record in follower.wait_for("t", 1)] == ["x"]
    cluster.create_topic("later", 3)
    assert [broker.topics.get("later") for broker in cluster.brokers] == [3, 3]
    on = cluster.leader("later", 2)
    cluster.broker(on).produce("later", "y", partition=2)
    assert [record.text for record in cluster.broker(1 - on).wait_for("later", 1)] == ["y"]


async def test_calls_that_wait_have_an_async_form(cluster: Cluster) -> None:
    leader = cluster.broker(0)
    leader.produce("t", ["x", "y"])
    assert len(await leader.wait_for_async("t", 2)) == 2
    requests = await leader.wait_for_requests_async("Fetch")
    assert requests[0].api == "Fetch"


def test_a_killed_broker_says_so(cluster: Cluster) -> None:
    cluster.kill(1)
    with pytest.raises(RuntimeError, match="this broker was killed"):
        _ = cluster.broker(1).topics
    assert "this broker was killed by a fault" in cluster.report()
    with pytest.raises(ValueError, match="there is no broker 2, they are 0 to 1"):
        cluster.broker(2)


# Rules for all brokers of a cluster, and for one of them.


@pytest.fixture(scope="module")
def broker_faults_cluster() -> Iterator[Cluster]:
    with Cluster(2) as started:
        yield started


def test_a_rule_of_all_is_one_rule(broker_faults_cluster: Cluster) -> None:
    fault = broker_faults_cluster.faults.add("Produce", delay_ms=1)
    of_one = broker_faults_cluster.broker(1).faults.add("Fetch", delay_ms=1, may_miss=True)
    assert list(broker_faults_cluster.faults) == [fault, of_one]
    assert list(broker_faults_cluster.broker(0).faults) == [fault]
    fault.remove()
    assert list(broker_faults_cluster.faults) == [of_one]
    broker_faults_cluster.broker(1).faults.clear()
    assert list(broker_faults_cluster.faults) == []
    assert broker_faults_cluster.faults.missed == [fault]
    broker_faults_cluster.faults.forget()
    assert broker_faults_cluster.faults.missed == []


def test_rules_of_one_broker_are_missed_by_the_cluster(broker_faults_cluster: Cluster) -> None:
    with broker_faults_cluster.broker(1).faults.add("Produce", error="INVALID_RECORD") as fault:
        assert broker_faults_cluster.faults.missed == [fault]
    with broker_faults_cluster.broker(1).faults.add(broker="slow_sync", delay_ms=1):
        assert broker_faults_cluster.faults.missed == [fault]
    broker_faults_cluster.faults.forget()


# The life that a broker and a cluster have in common.


KINDS = [(Broker, "broker"), (lambda: Cluster(2), "cluster")]


@pytest.mark.parametrize(("make", "noun"), KINDS)
def test_calls_need_a_start(make: Callable[[], InProcess], noun: str) -> None:
    served = make()
    for _ in range(2):
        with pytest.raises(RuntimeError, match=f"this {noun} is not running: use it in a with"):
            served.call(lambda: None)
        served.start()
        assert served.call(lambda: 1) == 1
        with pytest.raises(RuntimeError, match="running: stop it before"):
            served.start()
        served.stop()
        served.stop()


@pytest.mark.parametrize(("make", "noun"), KINDS)
async def test_a_loop_may_start_it_too(make: Callable[[], InProcess], noun: str) -> None:
    assert noun
    async with make() as served:
        assert served.call(lambda: 1) == 1


@pytest.mark.parametrize("make", [Broker, Cluster])
def test_data_without_a_directory_go_at_the_end(
    make: Callable[..., InProcess], tmp_path: Path
) -> None:
    served = make()
    with served:
        own = Path(served._own_dir or "")
        assert own.is_dir()
    assert not own.exists()
    broker_of_directory = make(data_dir=tmp_path / "new" / "data")
    with broker_of_directory:
        assert broker_of_directory._own_dir is None
    assert list((tmp_path / "new" / "data").iterdir())


# A thread with a loop of its own.


def test_a_thread_serves_between_begin_and_end() -> None:
    lines: list[str] = []

    @asynccontextmanager
    async def serving() -> AsyncIterator[None]:
        lines.append("begin")
        yield
        lines.append("end")

    thread = LoopThread(serving, on_end=lambda: lines.append("over"))
    thread.begin().result(10)
    with pytest.raises(RuntimeError, match="is running"):
        thread.begin()

    async def loop_is_its_own() -> bool:
        return asyncio.get_running_loop() is thread.loop

    assert thread.submit(loop_is_its_own()).result(10)
    ended = thread.end()
    assert ended is not None
    ended.result(10)
    thread.join()
    assert lines == ["begin", "end", "over"]
    assert not thread.is_running
    assert thread.end() is None


def test_a_start_that_fails_is_told_and_can_be_repeated() -> None:
    @asynccontextmanager
    async def serving() -> AsyncIterator[None]:
        raise ValueError("no room")
        yield

    thread = LoopThread(serving)
    for _ in range(2):
        with pytest.raises(ValueError, match="no room"):
            thread.begin().result(10)


def test_registry_names_the_library_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "minibroker.registry.service", raising=False)
    monkeypatch.setitem(sys.modules, "minibroker.control.server", None)
    with pytest.raises(ConfigError, match=r"registry=True needs .*minibroker\[registry\]"):
        Broker(registry=True)


def test_a_reset_takes_delegation_tokens() -> None:
    settings = {"delegation.token.secret.key": "a secret of brokers"}
    with Broker(security="SASL_PLAINTEXT", users={"alice": "secret"}, config=settings) as broker:
        tokens = broker.nodes[0].app.access.tokens
        assert tokens is not None
        broker.await_node(lambda _: tokens.create("User:alice", "User:alice", (), 60_000))
        assert len(tokens.all()) == 1
        broker.reset()
        assert tokens.all() == []


async def test_a_wait_for_records_outlives_a_kill(broker: Broker) -> None:
    broker.produce("t", "before")
    waiting = asyncio.create_task(broker.wait_for_async("t", 2))
    await asyncio.sleep(0)
    broker.call(bool)  # the wait has begun
    with broker.faults.add(broker="killed"):
        pass
    broker.produce("t", "after")
    assert [record.text for record in await waiting] == ["before", "after"]

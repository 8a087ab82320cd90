"""Apache Kafka 3.9.1 judges our directories: its tool reads them, a broker starts on them."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec
from kazoo.client import KazooClient

from minibroker.broker.storage.files import REAL_FILES
from minibroker.broker.storage.partition_metadata import read_metadata
from tests.support.generated_logs import fetch
from tests.support.java import KAFKA_39, run_java
from tests.support.logs import (
    NOW_MS,
    TOPIC_ID,
    ManualClock,
    abandon,
    append,
    config,
    flush,
    open_manager,
    values_of,
    wait_for_a_later_time,
)
from tests.support.peers import KafkaPeer
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from minibroker.broker.storage.log_manager import LogManager
    from minibroker.broker.storage.partition_log import PartitionLog
    from tests.support.peers import ZooKeeper

pytestmark = pytest.mark.java

DUMP = "kafka.tools.DumpLogSegments"
SETTINGS = config(segment_bytes=3000, index_interval_bytes=400)
COMPLAINTS = re.compile(r"mismatch|corrupt|non-consecutive|exception|invalid|error", re.IGNORECASE)


def dump(files: list[Path], *flags: str) -> str:
    names = ",".join(str(path) for path in sorted(files))
    return run_java(KAFKA_39, DUMP, "--files", names, *flags)


def write(path: Path) -> tuple[LogManager, PartitionLog]:
    """Eighty batches of one to three records in all codecs, half of them idempotent."""
    manager = open_manager(str(path), topic=SETTINGS, clock=ManualClock())
    log = manager.create_log("t", 0, TOPIC_ID, SETTINGS)
    codecs = ("none", "gzip", "snappy", "lz4", "zstd")
    sequence = 0
    for number in range(80):
        values = [b"%d-%d" % (number, part) * 9 for part in range(number % 3 + 1)]
        times = [NOW_MS + number * 10 - part for part in range(len(values))]
        fields: dict[str, object] = {"codec": codecs[number % 5], "timestamps": times}
        if number % 2:
            fields |= {"producer_id": 8, "producer_epoch": 1, "sequence": sequence}
            sequence += len(values)
        append(log, *values, leader_epoch=number // 50, **fields)
    return manager, log


def write_as_follower(path: Path) -> tuple[LogManager, PartitionLog]:
    """The same, fetched from a leader."""
    leading, leader = write(path / "leader")
    manager = open_manager(str(path), topic=SETTINGS, clock=ManualClock())
    log = manager.create_log("t", 0, TOPIC_ID, SETTINGS)
    fetch(leader, log, 1000)
    abandon(leading)
    return manager, log


@pytest.mark.parametrize(
    ("written", "clean"), [(write, True), (write, False), (write_as_follower, True)]
)
def test_dump_log_segments_has_nothing_to_say(
    tmp_path: Path, written: Callable[[Path], tuple[LogManager, PartitionLog]], clean: bool
) -> None:
    manager, log = written(tmp_path)
    end = log.log_end_offset
    if clean:
        manager.close()
    else:
        flush(log)
        abandon(manager)
    directory = tmp_path / "t-0"
    logs = dump(list(directory.glob("*.log")), "--deep-iteration", "--print-data-log")
    assert not COMPLAINTS.search(logs)
    offsets = [int(number) for number in re.findall(r"^\| offset: (\d+)", logs, re.MULTILINE)]
    assert offsets == list(range(end))
    assert "isvalid: false" not in logs
    indexes = [*directory.glob("*.index"), *directory.glob("*.timeindex")]
    filled = [path for path in indexes if path.stat().st_size]
    assert len(filled) >= 6
    output = dump(filled, "--index-sanity-check")
    assert not COMPLAINTS.search(output)
    assert output.count("passed sanity check.") == len(filled)
    checked = dump([path for path in filled if path.suffix == ".timeindex"])
    assert not COMPLAINTS.search(checked)
    snapshots = dump(list(directory.glob("*.snapshot")))
    assert not COMPLAINTS.search(snapshots)
    assert "producerId: 8 producerEpoch: 1" in snapshots


@pytest.mark.parametrize("end", ["clean stop", "kill"])
def test_kafka_3_9_starts_on_our_directory_and_we_on_kafka_s(
    tmp_path: Path, zookeeper: ZooKeeper, end: str
) -> None:
    """Kafka makes the topic, we take the directory over and append, Kafka serves our records and
    appends its own, and we read all of them; with clean stops, and with kills on both sides.
    Kafka also goes on with a partition that we made and nobody wrote to: one without a segment."""
    kafka = KafkaPeer(
        "3.9.1",
        tmp_path / "kafka",
        zookeeper=f"{zookeeper.connect}/storage-{end.replace(' ', '-')}",
        settings={"log.index.interval.bytes": "400", "log.segment.bytes": "4000"},
    )

    def stop() -> None:
        if end == "clean stop":
            kafka.stop()
        else:
            kafka.kill()
            _forget_session(str(kafka.zookeeper))

    kafka.start()
    admin = AdminClient({"bootstrap.servers": kafka.address})
    for creation in admin.create_topics([NewTopic("t", 1, 1), NewTopic("e", 1, 1)]).values():
        creation.result(60)
    expected = _produce(kafka.address, [b"kafka %d" % number for number in range(30)])
    stop()
    clock = ManualClock(NOW_MS)
    topic_id = read_metadata(REAL_FILES, str(kafka.log_dir / "e-0"))
    assert topic_id is not None
    shutil.rmtree(kafka.log_dir / "e-0")
    manager = _take_over(kafka.log_dir, clock)
    manager.create_log("e", 0, topic_id, SETTINGS)
    assert [path.name for path in (kafka.log_dir / "e-0").iterdir()] == ["partition.metadata"]
    log = manager.get("t", 0)
    assert log is not None
    assert values_of(log) == expected
    for number in range(90):
        value = b"ours %d " % number * 5
        append(log, value, timestamp_ms=NOW_MS + number)
        expected.append(value)
    if end == "clean stop":
        manager.close()
    else:
        abandon(manager)
    kafka.start()
    assert _consume(kafka.address, len(expected)) == expected
    expected += _produce(kafka.address, [b"again %d" % number for number in range(20)])
    _produce(kafka.address, [b"first"], topic="e")
    stop()
    manager = _take_over(kafka.log_dir, clock)
    log = manager.get("t", 0)
    assert log is not None
    assert values_of(log) == expected
    empty = manager.get("e", 0)
    assert empty is not None
    assert values_of(empty) == [b"first"]
    assert empty.place.topic_id == topic_id
    manager.close()
    kafka_log = (tmp_path / "kafka" / "kafka.log").read_text()
    assert "Could not find offset index file" not in kafka_log
    assert "corrupted index" not in kafka_log


def test_a_last_segment_that_was_damaged_after_a_clean_stop_ends_where_kafka_says(
    tmp_path: Path, zookeeper: ZooKeeper
) -> None:
    """Kafka reads the end of the file at each start. Where a batch is torn it appends behind the
    rest of it, and nobody can read what comes then; we cut the rest."""
    kafka = KafkaPeer(
        "3.9.1",
        tmp_path / "kafka",
        zookeeper=f"{zookeeper.connect}/damaged",
        settings={"log.index.interval.bytes": "400", "log.segment.bytes": "2000"},
    )
    kafka.start()
    admin = AdminClient({"bootstrap.servers": kafka.address})
    for creation in admin.create_topics([NewTopic(name, 1, 1) for name in DAMAGES]).values():
        creation.result(60)
    values = [b"kafka %d" % number * 5 for number in range(40)]
    producer = Producer({"bootstrap.servers": kafka.address, "enable.idempotence": True})
    for value in values:
        for topic in DAMAGES:
            producer.produce(topic, value, partition=0)
        assert producer.flush(60) == 0
    kafka.stop()
    ours = tmp_path / "ours"
    shutil.copytree(kafka.log_dir, ours)
    wait_for_a_later_time(ours)
    for root in (kafka.log_dir, ours):
        for topic, damage in DAMAGES.items():
            damage(sorted((root / f"{topic}-0").glob("*.log"))[-1])
    manager = _take_over(ours, ManualClock(NOW_MS))
    ends = {}
    for topic in DAMAGES:
        log = manager.get(topic, 0)
        assert log is not None
        ends[topic] = log.log_end_offset
        assert values_of(log) == values[: ends[topic]]
        append(log, b"more")
        assert values_of(log) == [*values[: ends[topic]], b"more"]
    manager.close()
    kafka.start()
    specs = {TopicPartition(topic, 0): OffsetSpec.latest() for topic in ends}
    admin = AdminClient({"bootstrap.servers": kafka.address})
    wait_until(lambda: all(_has_leader(admin, topic) for topic in ends), "Kafka leads", 60)
    answers = admin.list_offsets(specs, request_timeout=60)
    assert {name.topic: answer.result(60).offset for name, answer in answers.items()} == ends
    kafka.stop()
    assert ends["whole"] == 40
    assert 0 < ends["empty"] == ends["missing"] == ends["gone"] < ends["cut"] == 39


def _has_leader(admin: AdminClient, topic: str) -> bool:
    partitions = admin.list_topics(topic, timeout=60).topics[topic].partitions
    return 0 in partitions and partitions[0].leader >= 0


def _remove_files(log: Path) -> None:
    for path in log.parent.glob(f"{log.stem}.*"):
        path.unlink()


DAMAGES: dict[str, Callable[[Path], object]] = {
    "whole": lambda log: None,
    "empty": lambda log: log.write_bytes(b""),
    "missing": Path.unlink,
    "gone": _remove_files,
    "cut": lambda log: log.write_bytes(log.read_bytes()[:-50]),
}


def _forget_session(connect: str) -> None:
    """Remove the killed broker's ephemeral nodes, which would go with its session some seconds
    later.
    """
    client = KazooClient(connect)
    client.start()
    for path in ("/brokers/ids/0", "/controller"):
        client.delete(path)
    client.stop()
    client.close()


def _take_over(path: Path, clock: ManualClock) -> LogManager:
    from minibroker.broker.storage.log_manager import LogManager  # noqa: PLC0415

    manager = LogManager([str(path)], clock=clock, config_of=lambda _: SETTINGS)
    manager.open()
    assert manager.cluster_id is not None
    manager.claim(0, manager.cluster_id)
    manager.load()
    return manager


def _produce(address: str, values: list[bytes], *, topic: str = "t") -> list[bytes]:
    producer = Producer({"bootstrap.servers": address, "enable.idempotence": True, "linger.ms": 0})
    for value in values:
        producer.produce(topic, value, partition=0)
        producer.poll(0)
    assert producer.flush(60) == 0
    return values


def _consume(address: str, count: int) -> list[bytes]:
    consumer = Consumer(
        {"bootstrap.servers": address, "group.id": "g", "enable.auto.commit": False}
    )
    consumer.assign([TopicPartition("t", 0, 0)])
    values: list[bytes] = []
    while len(values) < count:
        message = consumer.poll(60)
        assert message is not None, f"{len(values)} of {count} records came"
        assert message.error() is None
        values.append(message.value())
    consumer.close()
    return values

"""`copy`: a record stays as it is and is there once, and groups follow to the same record."""

from __future__ import annotations

import shutil
import time
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from minibroker.pipeline import PipelineError, compare, copy
from minibroker.pipeline.kafka.cluster import Kafka
from minibroker.pipeline.kafka.preflight import ask
from minibroker.pipeline.spark.target_topics import create, grow
from tests.pipeline import topics
from tests.pipeline.committed import commit, offsets, records, rest, values
from tests.pipeline.made_records import PARTITIONS, RECORDS, copy_in_transactions, outcomes, write

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from minibroker.pipeline.spark.progress import Note
    from minibroker.testing import Broker

MORE_THAN_TASKS = 20
"""Partitions; a batch has 16 tasks."""

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(900)]


def test_to_another_cluster_and_groups_follow(
    spark: SparkSession, minibroker_address: str, address: str, topic: str, tmp_path: Path
) -> None:
    """The source has markers and aborted records between; the target is made, with settings."""
    source, group = f"{topic}-source", f"readers-of-{topic}"
    copy_in_transactions(minibroker_address, source)
    new_offsets = {0: 50, 1: 0, 2: 1000}
    commit(minibroker_address, group, source, new_offsets)
    common: dict[str, Any] = {
        "bootstrap": minibroker_address,
        "to_bootstrap": address,
        "to_topic": topic,
        "checkpoint": tmp_path / "copy",
        "groups": group,
        "spark": spark,
    }
    outcome = copy(source, batch_rows=150, **common)
    assert (outcome.rows, outcome.batches > 1) == (RECORDS + 1, True)
    assert records(address, topic) == records(minibroker_address, source)
    resource = ConfigResource(ResourceType.TOPIC, topic)
    client = AdminClient({"bootstrap.servers": address})
    config = client.describe_configs([resource])[resource].result(topics.SECONDS)
    assert config["retention.ms"].value == "-1"
    moved = offsets(address, group)
    for partition, offset in new_offsets.items():
        copied_offset = moved[topic, partition][0]
        assert rest(address, topic, partition, copied_offset) == rest(
            minibroker_address, source, partition, offset
        )
    assert copy(source, **common).rows == 0
    assert offsets(address, group) == moved


def test_large_records_that_the_topic_takes(
    spark: SparkSession, minibroker_address: str, topic: str, tmp_path: Path
) -> None:
    """The target is made with the source's `max.message.bytes`; no client has a lower bound."""
    large = {"max.message.bytes": "20000000"}
    topics.create(minibroker_address, topic, 1, large)
    client = topics.producer(minibroker_address, message_max_bytes="20000000")
    originals = [b"a" * 3_000_000, b"b", b"c" * 8_000_000]
    for value in originals:
        client.produce(topic, value, partition=0)
    assert client.flush(topics.SECONDS) == 0
    options: dict[str, Any] = {"bootstrap": minibroker_address, "checkpoint": tmp_path / "copy"}
    assert copy(topic, to_topic=f"{topic}-copy", spark=spark, **options).rows == 3
    assert values(minibroker_address, f"{topic}-copy") == originals


def test_by_key_renamed_and_refused(
    spark: SparkSession, minibroker_address: str, topic: str, tmp_path: Path
) -> None:
    """Several topics in one cluster get a prefix; a copy never reads what it writes."""
    names = [f"{topic}-a", f"{topic}-b"]
    for name in names:
        write(minibroker_address, name, outcomes())
    common: dict[str, Any] = {"bootstrap": minibroker_address, "spark": spark}
    notes: list[Note] = []
    topics.create(minibroker_address, f"copied-{names[0]}", 2, topics.FOR_EVER)
    with pytest.raises(PipelineError, match="has 3: add partitions"):
        copy(names, prefix="copied-", checkpoint=tmp_path / "0", **common)
    outcome = copy(names, prefix="copied-", by_key=True, checkpoint=tmp_path / "1", **common)
    assert outcome.rows == 2 * (RECORDS + 1)
    for name in names:
        assert values(minibroker_address, f"copied-{name}") == values(minibroker_address, name)
    comparison = compare(names[0], f"copied-{names[0]}", ignore=("partition", "order"), **common)
    assert comparison.is_same, comparison
    with pytest.raises(PipelineError, match="which is read, in the same cluster"):
        copy(names, checkpoint=tmp_path / "2", **common)
    with pytest.raises(PipelineError, match="copies would be copied again"):
        copy(pattern=f".*{topic}-.*", prefix="x-", checkpoint=tmp_path / "3", **common)
    with pytest.raises(PipelineError, match="belongs to a job with copies 'copied-TOPIC'"):
        copy(names, prefix="other-", by_key=True, checkpoint=tmp_path / "1", **common)
    with pytest.raises(PipelineError, match="offsets are translated within partitions"):
        copy(names, prefix="y-", by_key=True, groups="g", checkpoint=tmp_path / "4", **common)
    assert not notes


def test_an_active_group_stays(
    spark: SparkSession, in_process: Broker, topic: str, tmp_path: Path
) -> None:
    """A group with a member in the target keeps its offsets, and none goes back."""
    minibroker_address = in_process.bootstrap
    source, group = f"{topic}-source", f"members-of-{topic}"
    write(minibroker_address, source, outcomes(), partitions=1)
    write(minibroker_address, topic, [], partitions=1)
    commit(minibroker_address, group, source, {0: 100})
    member = Consumer(
        {
            "bootstrap.servers": minibroker_address,
            "group.id": group,
            "auto.offset.reset": "latest",
            "enable.auto.commit": False,
        }
    )
    common: dict[str, Any] = {
        "bootstrap": minibroker_address,
        "to_topic": topic,
        "checkpoint": tmp_path / "copy",
        "groups_pattern": f"members-of-{topic}",
        "spark": spark,
    }
    member.subscribe([topic])
    while not member.assignment():
        member.poll(0.1)
    assert copy(source, **common).rows == RECORDS + 1
    assert (topic, 0) not in offsets(minibroker_address, group)
    member.close()
    with (
        in_process.faults.add("OffsetCommit", error="UNKNOWN_MEMBER_ID", times=1),
        pytest.raises(PipelineError, match=r"groups cannot be copied: .*UNKNOWN_MEMBER_ID"),
    ):
        copy(source, **common)
    assert copy(source, **common).rows == 0
    assert offsets(minibroker_address, group)[topic, 0][0] == 100
    commit(minibroker_address, group, topic, {0: 300})
    assert copy(source, **common).rows == 0
    assert offsets(minibroker_address, group)[topic, 0][0] == 300


def test_a_target_that_was_made_anew_is_refused(
    spark: SparkSession, minibroker_address: str, topic: str, tmp_path: Path
) -> None:
    source = f"{topic}-source"
    write(minibroker_address, source, outcomes()[:5])
    common: dict[str, Any] = {
        "bootstrap": minibroker_address,
        "to_topic": topic,
        "checkpoint": tmp_path / "copy",
        "spark": spark,
    }
    assert copy(source, **common).rows == 5
    topics.delete(minibroker_address, topic)
    with pytest.raises(PipelineError, match="that is gone: give another directory"):
        copy(source, **common)
    topics.create(minibroker_address, topic, PARTITIONS)
    with pytest.raises(PipelineError, match="that is gone: give another directory"):
        copy(source, **common)


def test_an_older_checkpoint_is_refused_before_any_task_writes(
    spark: SparkSession, minibroker_address: str, topic: str, tmp_path: Path
) -> None:
    """It is put back by two batches and by one, where no task of the next batch has a marker of it.

    The largest range of a batch is that of its first task. Here it has aborted records alone, so
    that task left no marker, and the ranges of the others are those of other tasks now.
    """
    source, directory = f"{topic}-source", tmp_path / "copy"
    topics.create(minibroker_address, source, MORE_THAN_TASKS)
    client = topics.producer(minibroker_address, transactional_id=f"of-{topic}")
    client.init_transactions(topics.SECONDS)
    common: dict[str, Any] = {
        "bootstrap": minibroker_address,
        "to_topic": topic,
        "checkpoint": directory,
        "spark": spark,
    }

    def send(counts: dict[int, int], *, is_aborted: bool = False) -> None:
        client.begin_transaction()
        for partition, count in counts.items():
            for number in range(count):
                client.produce(source, b"%d" % number, partition=partition)
        assert client.flush(topics.SECONDS) == 0
        (client.abort_transaction if is_aborted else client.commit_transaction)(topics.SECONDS)

    send(dict.fromkeys(range(MORE_THAN_TASKS), 1))
    assert copy(source, **common).rows == MORE_THAN_TASKS
    for number in range(2):
        shutil.copytree(directory, tmp_path / f"before-{number}")
        send({0: 20}, is_aborted=True)
        send({1: 10})
        assert copy(source, **common).rows == 10
    directory.rename(tmp_path / "newest")
    old_records = records(minibroker_address, topic)
    send({2: 30})

    for number in range(2):
        shutil.copytree(tmp_path / f"before-{number}", directory)
        with pytest.raises(PipelineError, match=r"the checkpoint is older than the topic; put the"):
            copy(source, **common)
        assert records(minibroker_address, topic) == old_records
        shutil.rmtree(directory)
    (tmp_path / "newest").rename(directory)
    assert copy(source, **common).rows == 30
    assert records(minibroker_address, topic) == records(minibroker_address, source)


def test_a_target_has_more_partitions_than_one_request_makes(
    minibroker_address: str, topic: str
) -> None:
    """The broker refuses 10,000 in one request; it makes them in steps, or says why not."""
    kafka = Kafka(minibroker_address)
    create(kafka, topic, 10_000)
    assert ask(kafka).partitions[topic] == 10_000
    with pytest.raises(
        PipelineError,
        match=f"topic '{topic}' has 1 partitions and gets no more .* number to 9, and",
    ):
        grow(kafka, topic, 1, 9)
    topics.delete(minibroker_address, topic)


def test_a_rate_in_bytes_is_kept_by_the_tasks_together(
    spark: SparkSession, minibroker_address: str, topic: str, tmp_path: Path
) -> None:
    """Each of a copy of all records, and of one that Spark chooses from; the time is a bound."""
    topics.create(minibroker_address, topic, 2)
    client = topics.producer(minibroker_address)
    for number in range(2 * 500):
        client.produce(topic, b"x" * 1_000, partition=number % 2)
    assert client.flush(topics.SECONDS) == 0
    options: dict[str, Any] = {
        "bootstrap": minibroker_address,
        "spark": spark,
        "max_rate": "512KB/s",
    }
    for name, condition in (("all", None), ("chosen", "value IS NOT NULL")):
        begun_s = time.monotonic()
        done = copy(
            topic,
            to_topic=f"{topic}-{name}",
            checkpoint=tmp_path / name,
            where=condition,
            **options,
        )
        assert done.rows == 1_000
        assert time.monotonic() - begun_s >= 1_000 * 1_000 / (512 << 10)

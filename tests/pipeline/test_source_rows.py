"""Both sources return the same rows: ours and Spark's connector, from every kind of topic."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from benchmarks import connector
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.kafka.source.frames import PUSH_DOWN, read_topics
from tests.pipeline import topics
from tests.pipeline.source_rows import Rows, sorted_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.java, pytest.mark.timeout(900)]

BOTH = ("minibroker", "connector")


def rows_of(spark: SparkSession, address: str, source: str, **more: str) -> Rows:
    """Return every row, by topic, partition and offset; bytes as bytes."""
    settings = {"kafka.bootstrap.servers": address, **more}
    read_source = read_topics if source == "minibroker" else connector.read_topics
    return sorted_rows(read_source(spark, settings).collect())


def test_every_format_codec_and_odd_record_is_the_same_row(
    spark: SparkSession, address: str, topic: str
) -> None:
    """One pattern over all topics, with headers, compared with a plain consumer."""
    names = topics.fill_formats(address, f"{topic}-all-") + topics.fill_odd(
        address, f"{topic}-all-"
    )

    ours, connectors = (
        rows_of(spark, address, source, subscribePattern=f"{topic}-all-.*", includeHeaders="true")
        for source in BOTH
    )

    assert ours == connectors
    fields = [(row[2], row[3], row[4], row[0], row[1]) for row in ours]
    consumed = [
        (name, partition, *fields)
        for name in sorted(names)
        for partition in (range(2) if name.endswith("v2") else range(1))
        for fields in topics.read_all(address, name, partition)
    ]
    assert fields == consumed
    assert {row[6] for row in ours if row[2].endswith("appended")} == {1}


@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
def test_transactions_are_the_same_rows_cut_anywhere(
    spark: SparkSession, address: str, topic: str, isolation: str
) -> None:
    """Tasks of seven offsets at most: their ends lie on markers and in aborted transactions."""
    topics.fill_transactional(address, f"{topic}-a")
    topics.fill_aborted_at_the_end(address, f"{topic}-b")
    settings = {"subscribe": f"{topic}-a,{topic}-b", "kafka.isolation.level": isolation}

    ours = rows_of(spark, address, "minibroker", **settings)
    cut = rows_of(spark, address, "minibroker", **settings, maxRecordsPerPartition="7")
    connectors = rows_of(spark, address, "connector", **settings)

    assert ours == cut == connectors
    assert len(ours) == (16 if isolation == "read_committed" else 26)


def test_a_compacted_topic_is_the_same_rows(spark: SparkSession, address: str, topic: str) -> None:
    topics.fill_compacted(address, topic)

    ours, connectors = (rows_of(spark, address, source, subscribe=topic) for source in BOTH)

    assert ours == connectors
    assert len(ours) == 11


def test_bounds_by_offset_and_time_are_the_same_rows(
    spark: SparkSession, address: str, topic: str
) -> None:
    topics.create(address, topic, 2, topics.FOR_EVER)
    client = topics.producer(address)
    for number in range(40):
        client.produce(topic, f"{number}", partition=number % 2, timestamp=1_000_000 + number)
    assert client.flush(topics.SECONDS) == 0
    some = json.dumps({topic: {"0": 3, "1": -2}})
    until = json.dumps({topic: {"0": -1, "1": 5}})
    stamps = json.dumps({topic: {"0": 1_000_010, "1": 1_000_031}})
    expected = {
        json.dumps({"startingOffsets": some, "endingOffsets": until}): 17 + 5,
        json.dumps({"startingOffsetsByTimestamp": stamps}): 15 + 5,
        json.dumps({"startingTimestamp": "1000030", "endingTimestamp": "1000036"}): 6,
        json.dumps(
            {"startingTimestamp": "2000000", "startingOffsetsByTimestampStrategy": "latest"}
        ): 0,
        json.dumps({"minPartitions": "7"}): 40,
    }

    for options, count in expected.items():
        ours, connectors = (
            rows_of(spark, address, source, subscribe=topic, **json.loads(options))
            for source in BOTH
        )
        assert ours == connectors, options
        assert len(ours) == count, options


def test_assigned_partitions_are_read_and_no_others(
    spark: SparkSession, minibroker_address: str, topic: str
) -> None:
    topics.create(minibroker_address, topic, 3)
    for partition in range(3):
        topics.send(minibroker_address, topic, 2, partition=partition)

    rows = rows_of(spark, minibroker_address, "minibroker", assign=json.dumps({topic: [2, 0]}))

    assert [row[3] for row in rows] == [0, 0, 2, 2]


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"subscribe": "nobody-made-it"}, r"topic 'nobody-made-it' does not exist on .*: create"),
        ({"subscribePattern": "no.such.*"}, r"pattern 'no.such.\*' matches no topic"),
        ({"assign": '{"nobody-made-it": [0]}'}, "does not exist"),
    ],
)
def test_a_topic_that_is_not_there_is_one_sentence(
    spark: SparkSession, minibroker_address: str, settings: dict[str, str], sentence: str
) -> None:
    with pytest.raises(PipelineError, match=sentence):
        read_topics(spark, {"kafka.bootstrap.servers": minibroker_address, **settings})


def test_a_broker_that_is_not_there_is_one_sentence(spark: SparkSession) -> None:
    settings = {
        "kafka.bootstrap.servers": "127.0.0.1:1",
        "kafka.default.api.timeout.ms": "500",
        "subscribe": "t",
    }

    with pytest.raises(PipelineError, match=r"no broker answers at 127.0.0.1:1.*: start it"):
        read_topics(spark, settings)


def test_a_setting_that_the_client_does_not_know_is_named(
    spark: SparkSession, minibroker_address: str
) -> None:
    settings = {
        "kafka.bootstrap.servers": minibroker_address,
        "kafka.no.such.setting": "1",
        "subscribe": "t",
    }

    with pytest.raises(PipelineError, match=r"no\.such\.setting is no setting that this"):
        read_topics(spark, settings)


def test_the_sentence_of_a_failed_task_reaches_the_user(
    spark: SparkSession, minibroker_address: str, topic: str
) -> None:
    """The format alone, as a user of Spark writes it: bounds outside of the partition."""
    topics.create(minibroker_address, topic)
    topics.send(minibroker_address, topic, 3)
    frame = (
        spark.read.format("minibroker")
        .option("kafka.bootstrap.servers", minibroker_address)
        .option("subscribe", topic)
        .option("endingOffsets", json.dumps({topic: {"0": 9}}))
        .load()
    )

    with pytest.raises(Exception, match=rf"endingOffsets is 9 for {topic}-0, which ends at 3"):
        frame.collect()


def test_filters_on_partition_offset_and_time_decide_what_is_read(
    spark: SparkSession, minibroker_address: str, topic: str
) -> None:
    """A task for each range that is left, with Spark's setting; every range without it.

    So does a filter on the first time, and a record that is out of order stays one.
    """
    topics.create(minibroker_address, topic, 3)
    for partition in range(3):
        topics.send(minibroker_address, topic, 9, partition=partition)
    settings = {"kafka.bootstrap.servers": minibroker_address, "subscribe": topic}
    condition = "partition in (1, 2) and offset >= 3 and offset < 5 and topic is not null"
    for setting, tasks in (("true", 2), ("false", 3)):
        spark.conf.set(PUSH_DOWN, setting)
        try:
            frame = read_topics(spark, {**settings, "minPartitions": "1"}).where(condition)
            rows = sorted((row.partition, row.offset) for row in frame.collect())
            assert frame.rdd.getNumPartitions() == tasks
        finally:
            spark.conf.set(PUSH_DOWN, "true")
        assert rows == [(1, 3), (1, 4), (2, 3), (2, 4)]
    nothing = read_topics(spark, settings).where("offset = 99")
    assert (nothing.count(), nothing.rdd.getNumPartitions()) == (0, 1)

    # A task for each core: two partitions share one, and each is in its order.
    joined = read_topics(spark, settings)
    assert joined.rdd.getNumPartitions() == 2
    assert [(row.partition, row.offset) for row in joined.collect()] == [
        (partition, offset) for partition in range(3) for offset in range(9)
    ]

    client = topics.producer(minibroker_address)
    for hour in (1, 3, 2, 1):
        client.produce(topic, f"{hour}", partition=1, timestamp=hour * 3_600_000)
    assert client.flush(topics.SECONDS) == 0
    day = "timestamp < '1970-01-02'"
    timed = read_topics(spark, settings).where(f"{day} and timestamp >= '1970-01-01 02:00:00'")
    assert [row.value for row in timed.sort("offset").collect()] == [b"3", b"2"]
    # Partitions 0 and 2 are of today. Of partition 1 the first nine are, too.
    late = read_topics(spark, settings).where("timestamp >= '2100-01-01'")
    assert (late.count(), late.rdd.getNumPartitions()) == (0, 1)

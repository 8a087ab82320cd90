"""Streams of topics: limits of batches, positions in the checkpoint, new and deleted partitions.

Each query runs with Trigger.AvailableNow into Parquet files: every record is there exactly once,
and the next query with the same checkpoint goes on.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from benchmarks import connector
from minibroker.pipeline.checkpoints.checkpoint_files import start_query
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.kafka.source.frames import stream_topics
from minibroker.pipeline.kafka.source.stream import StreamReader
from tests.pipeline import topics
from tests.pipeline.queries import run

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import StreamingQuery

pytestmark = [pytest.mark.java, pytest.mark.timeout(900)]


class Archive:
    """The files and the checkpoint of a query; `run` is one run of it."""

    def __init__(self, spark: SparkSession, address: str, directory: Path) -> None:
        self.spark = spark
        self.address = address
        self.directory = directory
        self.last: StreamingQuery

    def run(self, *, source: str = "minibroker", **options: str) -> list[tuple[Any, ...]]:
        """Read all existing records; return topic, partition and offset of all rows until now."""
        settings = {
            "kafka.bootstrap.servers": self.address,
            "startingOffsets": "earliest",
            **options,
        }
        stream = stream_topics if source == "minibroker" else connector.stream_topics
        rows = stream(self.spark, settings)
        writer = rows.writeStream.format("parquet").option("path", str(self.directory / "files"))
        writer = writer.trigger(availableNow=True)
        checkpoint = str(self.directory / "checkpoint")
        self.last = run(lambda: start_query(self.spark, writer, checkpoint))
        rows = self.spark.read.parquet(str(self.directory / "files"))
        return sorted(tuple(row) for row in rows.select("topic", "partition", "offset").collect())

    @property
    def positions(self) -> list[str]:
        """Return the offsets in the checkpoint, batch by batch."""
        batches = sorted(
            (self.directory / "checkpoint" / "offsets").glob("[0-9]*"),
            key=lambda path: int(path.name),
        )
        return [batch.read_text().splitlines()[2] for batch in batches]


@pytest.fixture
def archive(spark: SparkSession, address: str, tmp_path: Path) -> Archive:
    return Archive(spark, address, tmp_path)


@pytest.fixture
def own_archive(spark: SparkSession, minibroker_address: str, tmp_path: Path) -> Archive:
    """Return an archive of the minibroker in this process, for tests that need no other."""
    return Archive(spark, minibroker_address, tmp_path)


def expected(counts: dict[tuple[str, int], int]) -> list[tuple[Any, ...]]:
    return sorted(
        (topic, partition, offset)
        for (topic, partition), count in counts.items()
        for offset in range(count)
    )


def test_a_checkpoint_changes_hands_between_both_sources(archive: Archive, topic: str) -> None:
    """Ours, the connector, ours: each goes on where the other stopped, and no row comes twice."""
    topics.create(archive.address, topic, 2)
    topics.send(archive.address, topic, 5, partition=0)
    assert archive.run(subscribe=topic) == expected({(topic, 0): 5})

    topics.send(archive.address, topic, 4, partition=1)
    rows = archive.run(subscribe=topic, source="connector")
    assert rows == expected({(topic, 0): 5, (topic, 1): 4})

    topics.send(archive.address, topic, 3, partition=0)
    rows = archive.run(subscribe=topic)
    assert rows == expected({(topic, 0): 8, (topic, 1): 4})

    assert [json.loads(position) for position in archive.positions] == [
        {topic: {"0": 5, "1": 0}},
        {topic: {"0": 5, "1": 4}},
        {topic: {"0": 8, "1": 4}},
    ]


def test_transactions_in_small_batches_are_read_once_each(archive: Archive, topic: str) -> None:
    """Seven offsets a batch over 30: ends fall on markers and among aborted records."""
    topics.fill_transactional(archive.address, topic)
    originals = topics.read_all(archive.address, topic, isolation="read_committed")

    rows = archive.run(
        subscribe=topic, maxOffsetsPerTrigger="7", **{"kafka.isolation.level": "read_committed"}
    )

    assert [row[2] for row in rows] == [offset for offset, _, _ in originals]
    ends = [json.loads(position)[topic]["0"] for position in archive.positions]
    assert ends == [7, 14, 21, 28, 30]


def test_new_partitions_and_topics_are_picked_up_from_their_beginning(
    archive: Archive, topic: str
) -> None:
    topics.create(archive.address, f"{topic}-a")
    topics.send(archive.address, f"{topic}-a", 3)
    archive.run(subscribePattern=f"{topic}-.*")

    topics.add_partitions(archive.address, f"{topic}-a", 2)
    topics.create(archive.address, f"{topic}-b")
    topics.send(archive.address, f"{topic}-a", 4, partition=1)
    topics.send(archive.address, f"{topic}-b", 5)
    # For what is new a stream that begins at the end begins at the beginning too.
    rows = archive.run(subscribePattern=f"{topic}-.*", startingOffsets="latest")

    assert rows == expected({(f"{topic}-a", 0): 3, (f"{topic}-a", 1): 4, (f"{topic}-b", 0): 5})


def test_a_limit_is_kept_batch_by_batch(own_archive: Archive, topic: str) -> None:
    topics.create(own_archive.address, topic, 2)
    topics.send(own_archive.address, topic, 30, partition=0)
    topics.send(own_archive.address, topic, 10, partition=1)

    rows = own_archive.run(subscribe=topic, maxOffsetsPerTrigger="20", minPartitions="4")

    assert rows == expected({(topic, 0): 30, (topic, 1): 10})
    assert [json.loads(position)[topic] for position in own_archive.positions] == [
        {"0": 15, "1": 5},
        {"0": 30, "1": 10},
    ]
    progress = own_archive.last.recentProgress
    assert [batch["numInputRows"] for batch in progress if batch["numInputRows"]] == [20, 20]
    assert json.loads(progress[0]["sources"][0]["latestOffset"]) == {topic: {"0": 30, "1": 10}}


def test_a_stream_begins_at_the_end_unless_told_otherwise(own_archive: Archive, topic: str) -> None:
    topics.create(own_archive.address, topic)
    topics.send(own_archive.address, topic, 3)
    assert own_archive.run(subscribe=topic, startingOffsets="latest") == []

    topics.send(own_archive.address, topic, 2)
    rows = own_archive.run(subscribe=topic, startingOffsets="earliest")

    assert rows == [(topic, 0, 3), (topic, 0, 4)]


def test_a_topic_made_anew_is_data_loss(own_archive: Archive, topic: str) -> None:
    topics.create(own_archive.address, topic)
    topics.send(own_archive.address, topic, 5)
    own_archive.run(subscribe=topic)
    topics.delete(own_archive.address, topic)
    topics.create(own_archive.address, topic)
    topics.send(own_archive.address, topic, 2)

    with pytest.raises(Exception, match=rf"the end of {topic}-0 went back from offset 5 to 2"):
        own_archive.run(subscribe=topic)
    rows = own_archive.run(subscribe=topic, failOnDataLoss="false")
    assert rows == expected({(topic, 0): 5})

    topics.send(own_archive.address, topic, 4)
    rows = own_archive.run(subscribe=topic, failOnDataLoss="false")
    assert rows == sorted([*expected({(topic, 0): 5}), *[(topic, 0, at) for at in range(2, 6)]])


def test_a_topic_that_went_is_data_loss(own_archive: Archive, topic: str) -> None:
    for name in (f"{topic}-a", f"{topic}-b"):
        topics.create(own_archive.address, name)
        topics.send(own_archive.address, name, 2)
    own_archive.run(subscribePattern=f"{topic}-.*")
    topics.delete(own_archive.address, f"{topic}-b")
    topics.send(own_archive.address, f"{topic}-a", 1)

    with pytest.raises(Exception, match=rf"{topic}-b-0 of the stream's position is gone"):
        own_archive.run(subscribePattern=f"{topic}-.*")
    rows = own_archive.run(subscribePattern=f"{topic}-.*", failOnDataLoss="false")
    assert rows == expected({(f"{topic}-a", 0): 3, (f"{topic}-b", 0): 2})


@pytest.mark.parametrize("way", ["subscribe", "subscribePattern"])
def test_a_topic_made_anew_while_a_stream_runs_is_noticed(
    minibroker_address: str, topic: str, way: str
) -> None:
    """Its end is past the position of the stream, so that offsets alone show nothing."""
    topics.create(minibroker_address, topic)
    topics.send(minibroker_address, topic, 3)
    settings = {
        "kafka.bootstrap.servers": minibroker_address,
        way: topic,
        "startingOffsets": "earliest",
    }
    stream = StreamReader(settings)
    position = stream.latestOffset(stream.initialOffset(), ReadAllAvailable())
    assert position == {topic: {"0": 3}}
    topics.delete(minibroker_address, topic)
    topics.create(minibroker_address, topic)
    topics.send(minibroker_address, topic, 5)

    with pytest.raises(PipelineError, match="was made anew since the stream began"):
        stream.latestOffset(position, ReadAllAvailable())
    later = StreamReader({**settings, "topicIds": json.dumps({topic: "an older one"})})
    with pytest.raises(PipelineError, match="was made anew since the stream began"):
        later.latestOffset(position, ReadAllAvailable())

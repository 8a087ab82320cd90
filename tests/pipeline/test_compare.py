"""`compare`: what differs between two topics, or a topic and its archive, is found, and only that.

Expected results are counted from the records that the test has written.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka.admin import AdminClient, OffsetSpec

from minibroker.pipeline import PipelineError, archive, compare
from tests.pipeline import topics
from tests.pipeline.made_records import (
    BEGUN_MS,
    KEYS,
    RECORDS,
    copy_in_transactions,
    outcomes,
    write,
)

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def original(minibroker_address: str) -> str:
    """Return the topic that all others are compared with."""
    topic = "compared"
    write(minibroker_address, topic, outcomes())
    return topic


def counts(comparison: Any) -> dict[str, int]:
    """Return the numbers of a comparison that are not 0."""
    names = ("equal", "missing", "only", "changed", "out_of_order")
    return {name: comparison.total(name) for name in names if comparison.total(name)}


def test_the_same_records_on_each_broker(
    spark: SparkSession, original: str, minibroker_address: str, address: str, topic: str
) -> None:
    """The other topic has them compressed, at other offsets, on another cluster."""
    copy_in_transactions(address, topic, compression="lz4")
    comparison = compare(
        original, topic, bootstrap=minibroker_address, with_bootstrap=address, spark=spark
    )
    assert comparison.is_same
    assert counts(comparison) == {"equal": RECORDS + 1}
    assert comparison.records("a") == comparison.records("b") == RECORDS + 1


def test_aborted_records_and_offsets_count_where_asked(
    spark: SparkSession, original: str, minibroker_address: str, topic: str
) -> None:
    copy_in_transactions(minibroker_address, topic)
    other = f"{topic}@{minibroker_address}"
    uncommitted = compare(
        f"{original}@{minibroker_address}",
        other,
        kafka={"isolation.level": "read_uncommitted"},
        spark=spark,
    )
    assert counts(uncommitted) == {"equal": RECORDS + 1, "only": 5}
    assert {example.kind for example in uncommitted.examples} == {"only"}
    offsets = compare(original, other, bootstrap=minibroker_address, same_offsets=True, spark=spark)
    changed = offsets.total("changed")
    assert counts(offsets) == {"equal": RECORDS + 1 - changed, "changed": changed}
    assert offsets.changed_fields == {"offset": changed}
    assert changed > RECORDS // 2


def test_each_difference_is_found_once(
    spark: SparkSession, original: str, minibroker_address: str, topic: str, tmp_path: Path
) -> None:
    records = outcomes()
    of_key = [number for number in range(RECORDS) if records[number].key == b"key 6"]
    missing, twice = of_key[3], of_key[5]
    of_key = [number for number in range(RECORDS) if records[number].key == b"key 5"]
    changed, moved = of_key[7], of_key[9]
    changed_header, changed_time = 300, 301
    other = list(records)
    other[changed] = other[changed]._replace(value=b"another value")
    other[changed_header] = other[changed_header]._replace(headers=(("n", b"300"),))
    other[changed_time] = other[changed_time]._replace(timestamp_ms=5)
    moved_record = other[moved]
    write(
        minibroker_address,
        topic,
        [
            *(record for number, record in enumerate(other) if number not in (missing, moved)),
            other[twice],
            moved_record,
        ],
    )
    report = tmp_path / "compare.html"
    comparison = compare(original, topic, bootstrap=minibroker_address, report=report, spark=spark)
    # `missing` is gone and `twice` is there once more: two records of one key, so one changed.
    assert counts(comparison) == {"equal": RECORDS + 1 - 4, "changed": 4, "out_of_order": 1}
    assert comparison.changed_fields == {"value": 2, "headers": 2, "timestamp": 2}
    by_kind = {
        kind: [e for e in comparison.examples if e.kind == kind] for kind in ("changed", "late")
    }
    assert [example.key for example in by_kind["late"]] == ["key 5"]
    text = report.read_text()
    assert "4 changed, 1 out of order" in text
    assert not re.search("(src|href)=", text)
    without = compare(
        original, topic, bootstrap=minibroker_address, ignore=("timestamp", "order"), spark=spark
    )
    assert counts(without) == {"equal": RECORDS + 1 - 3, "changed": 3}


def test_in_other_partitions_only_the_order_of_a_key_counts(
    spark: SparkSession, original: str, minibroker_address: str, topic: str
) -> None:
    """Five partitions instead of three; the same records for those who ignore that."""
    moved = [
        record._replace(partition=(record.timestamp_ms - BEGUN_MS) % KEYS % 5)
        for record in outcomes()
    ]
    write(minibroker_address, topic, moved, partitions=5)
    common: dict[str, Any] = {"bootstrap": minibroker_address, "spark": spark}
    assert compare(original, topic, ignore="partition", **common).is_same
    comparison = compare(original, topic, **common)
    assert comparison.has_other_partitions
    assert comparison.total("missing") + comparison.total("changed") > 0
    with pytest.raises(
        PipelineError, match="ignore 'offset': expected timestamp, partition, headers or order"
    ):
        compare(original, topic, ignore="offset", **common)


@pytest.mark.parametrize("file_format", ["parquet", "iceberg", "csv"])
def test_a_topic_and_its_archive(
    spark: SparkSession, minibroker_address: str, topic: str, tmp_path: Path, file_format: str
) -> None:
    """Archived in small batches it is the same with its offsets; a later record is missing."""
    second = f"{topic}-second"
    write(minibroker_address, topic, outcomes())
    write(minibroker_address, second, outcomes()[:9])
    directory = f"{tmp_path}/archive"
    archive(
        [second, topic],
        to=directory,
        format=file_format,
        batch_rows=450,
        bootstrap=minibroker_address,
        spark=spark,
    )
    common: dict[str, Any] = {"bootstrap": minibroker_address, "spark": spark}
    if file_format == "parquet":
        assert compare(topic, directory, same_offsets=True, **common).is_same
    late = outcomes()[0]._replace(value=b"later", key=b"later")
    client = topics.producer(minibroker_address)
    client.produce(topic, late.value, late.key, partition=0)
    assert client.flush(topics.SECONDS) == 0
    comparison = compare(f"{directory}#{topic}", topic, **common)
    assert counts(comparison) == {"equal": RECORDS + 1, "only": 1}
    (example,) = comparison.examples
    end = ends(minibroker_address, topic)
    assert (example.a, example.b, example.key) == (None, (0, end - 1), "later")
    if file_format == "csv":
        with pytest.raises(PipelineError, match=f"name one as {directory}#{topic}"):
            compare(directory, directory, **common)
        with pytest.raises(PipelineError, match="no topic 'absent'"):
            compare("absent", directory, **common)


def ends(address: str, topic: str) -> int:
    """Return the end offset of partition 0."""
    client = AdminClient({"bootstrap.servers": address})
    place = topics.TopicPartition(topic, 0)
    return int(client.list_offsets({place: OffsetSpec.latest()})[place].result(180).offset)


def test_one_shuffle_at_most(
    spark: SparkSession, original: str, minibroker_address: str, topic: str
) -> None:
    """Equal topics need none, counted by Spark's own status."""
    write(minibroker_address, topic, outcomes()[1:])
    tracker = spark.sparkContext.statusTracker()

    def stages(name: str, b: str) -> int:
        spark.sparkContext.setJobGroup(name, name)
        compare(original, b, bootstrap=minibroker_address, spark=spark)
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(name)]
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)
        return len({stage for job in jobs if job is not None for stage in job.stageIds})

    assert stages("equal", original) == 1
    assert stages("different", topic) <= 1 + 2 + 1  # the shuffle's files may be listed once more

"""`archive --format iceberg` and `delta`: the same rows for every reader; versions; refusals."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from minibroker.pipeline import PipelineError, archive, replay
from tests.pipeline import topics
from tests.pipeline.committed import records
from tests.pipeline.table_readers import READERS

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(900)]

FORMATS = ("iceberg", "delta")


@pytest.mark.parametrize("file_format", FORMATS)
def test_every_reader_sees_every_record_once(
    spark: SparkSession, minibroker_address: str, topic: str, file_format: str, tmp_path: Path
) -> None:
    """Two topics, odd records and values without end; the second run goes on."""
    address, directory = minibroker_address, tmp_path / "archive"
    topics.create(address, topic, 3)
    topics.create(address, f"{topic}-odd", 1, topics.FOR_EVER)
    common = {"to": directory, "bootstrap": address, "spark": spark, "format": file_format}
    for partition in range(3):
        topics.send(address, topic, 20, partition=partition)
    client = topics.producer(address)
    client.produce(f"{topic}-odd", None, b"tombstone", timestamp=1_795_000_000_123)
    client.produce(f"{topic}-odd", b"", b"", headers=[("a", b"1"), ("a", None)])
    client.produce(f"{topic}-odd", b"large" * 40_000)
    assert client.flush(topics.SECONDS) == 0
    first = archive([topic, f"{topic}-odd"], batch_rows=30, target_file_size="1KB", **common)
    assert first.rows == 63
    topics.send(address, topic, 5)
    assert archive([topic, f"{topic}-odd"], **common).rows == 5
    assert archive([topic, f"{topic}-odd"], **common).rows == 0

    expected = [
        (name, partition, offset, record.value)
        for name in (topic, f"{topic}-odd")
        for partition, part in sorted(records(address, name).items())
        for offset, record in enumerate(part)
    ]
    for reader in READERS[file_format]:
        assert reader(directory) == expected, reader

    copy = f"{topic}-copy"
    common = {"bootstrap": address, "spark": spark}
    common |= {"keep_partitions": True, "keep_timestamps": True}
    assert replay(directory, to_topic=copy, topics=topic, batch_rows=30, **common).rows == 65
    assert records(address, copy) == records(address, topic)


def test_a_record_of_the_year_11476(
    spark: SparkSession, minibroker_address: str, topic: str, tmp_path: Path
) -> None:
    """Files keep it; tables set it aside."""
    topics.create(minibroker_address, topic, 1)
    topics.send(minibroker_address, topic, 1)
    client = topics.producer(minibroker_address)
    client.produce(topic, None, b"far", timestamp=300_000_000_000_000)
    assert client.flush(topics.SECONDS) == 0
    common = {"bootstrap": minibroker_address, "spark": spark}
    assert archive(topic, to=tmp_path / "files", **common).rows == 2
    assert list(tmp_path.glob("files/topic=*/date=9999-12-31/*.parquet"))
    for file_format in FORMATS:
        outcome = archive(topic, to=tmp_path / file_format, format=file_format, **common)
        assert (outcome.rows, outcome.bad_records) == (1, 1)


@pytest.mark.parametrize("file_format", FORMATS)
def test_a_removed_checkpoint_is_no_reason_to_write_twice(
    spark: SparkSession, minibroker_address: str, topic: str, file_format: str, tmp_path: Path
) -> None:
    address, directory = minibroker_address, tmp_path / "archive"
    topics.create(address, topic)
    topics.send(address, topic, 3)
    common = {"to": directory, "bootstrap": address, "spark": spark, "format": file_format}
    archive(topic, **common)
    shutil.rmtree(directory / "_minibroker" / "checkpoint")
    with pytest.raises(PipelineError, match="written with another checkpoint than the one"):
        archive(topic, **common)
    for reader in READERS[file_format]:
        assert len(reader(directory)) == 3, reader


def test_a_table_in_a_catalogue(
    spark: SparkSession, minibroker_address: str, topic: str, tmp_path: Path
) -> None:
    """The catalogue is PyIceberg's own in memory of a file; the name finds the table there."""
    from pyiceberg.catalog import load_catalog  # noqa: PLC0415  only here

    address = minibroker_address
    topics.create(address, topic)
    topics.send(address, topic, 4)
    settings = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalogue.db"}
    archive(
        topic,
        to=tmp_path / "archive",
        format="iceberg",
        catalog=settings,
        table="logs.orders",
        bootstrap=address,
        spark=spark,
    )
    table = load_catalog("minibroker", **settings).load_table("logs.orders")
    assert table.scan().to_arrow()["offset"].to_pylist() == [0, 1, 2, 3]
    with pytest.raises(PipelineError, match=r"table logs.orders is at .*archive and not at"):
        archive(
            topic,
            to=tmp_path / "elsewhere",
            format="iceberg",
            catalog=settings,
            table="logs.orders",
            bootstrap=address,
            spark=spark,
        )

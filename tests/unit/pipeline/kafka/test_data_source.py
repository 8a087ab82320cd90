"""The data source as Spark meets it before anything is read: its name and its columns."""

from __future__ import annotations

import pickle
import subprocess
import sys

import pyarrow as pa
import pytest

from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.kafka import schemas
from minibroker.pipeline.kafka.data_source import TopicSource
from minibroker.pipeline.kafka.partition_rows import rows_by_partition
from minibroker.pipeline.kafka.source.batch import BatchReader, FilteredReader


def test_its_columns_follow_include_headers_alone() -> None:
    assert TopicSource.name() == "minibroker"
    assert TopicSource({}).schema() == schemas.RECORD
    assert TopicSource({"includeHeaders": "true"}).schema() == schemas.RECORD_WITH_HEADERS
    assert TopicSource({"emit": "ranges"}).schema() == schemas.RANGE


def test_only_a_reader_that_was_told_so_takes_filters() -> None:
    """Spark refuses one that takes them in a session without push-down."""
    settings = {"kafka.bootstrap.servers": "x:1", "subscribe": "t"}
    for more, kind in (({}, BatchReader), ({"pushFilters": "true"}, FilteredReader)):
        assert type(TopicSource({**settings, **more}).reader(schemas.RECORD)) is kind


def test_its_readers_check_the_options() -> None:
    source = TopicSource({"subscribe": "t"})

    for make in (source.reader, source.streamReader):
        with pytest.raises(PipelineError, match=r"kafka\.bootstrap\.servers is missing"):
            make(schemas.RECORD)


def test_its_readers_travel_to_the_tasks() -> None:
    source = TopicSource({"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "t"})

    for reader in (source.reader(schemas.RECORD), source.streamReader(schemas.RECORD)):
        assert type(pickle.loads(pickle.dumps(reader))) is type(reader)


def test_a_process_that_plans_a_query_imports_no_reader_of_records_and_no_sink() -> None:
    """Spark starts one for each streaming query, and waits for it."""
    code = (
        "import sys; from minibroker.pipeline.kafka.data_source import TopicSource; "
        "given = {'kafka.bootstrap.servers': 'x:1', 'subscribe': 't'}; "
        "TopicSource(given).streamReader(TopicSource(given).schema()); "
        "print([name for name in sys.modules if name == 'pyarrow.compute' or "
        "name.startswith(('minibroker.pipeline.kafka.source.range_', "
        "'minibroker.pipeline.kafka.sink'))])"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert result.stdout == "[]\n"


def test_columns_are_those_of_sparks_kafka_source_in_its_order() -> None:
    assert schemas.RECORD.simpleString() == (
        "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,"
        "timestamp:timestamp,timestampType:int>"
    )


def test_headers_come_last_and_only_when_asked_for() -> None:
    with_headers = schemas.record_schema(include_headers=True)

    assert with_headers.fields[:-1] == schemas.record_schema(include_headers=False).fields
    assert with_headers.fields[-1].simpleString() == (
        "headers:array<struct<key:string,value:binary>>"
    )


def test_arrow_has_the_same_columns() -> None:
    arrow = schemas.arrow_schema(include_headers=True)

    assert arrow.names == schemas.RECORD_WITH_HEADERS.fieldNames()
    assert str(arrow.field("timestamp").type) == "timestamp[us, tz=UTC]"


def test_an_archive_adds_the_date_that_its_directories_bear() -> None:
    assert schemas.ARCHIVE.fieldNames()[-2:] == ["headers", "date"]
    assert set(schemas.ARCHIVE_PARTITION_COLUMNS) <= set(schemas.ARCHIVE.fieldNames())


def test_rows_come_by_topic_and_partition_in_their_order() -> None:
    rows = [("a", 1, 5), ("b", 0, 6), ("a", 1, 7), ("a", 0, 8), ("b", 0, 4)]
    columns = [list(column) for column in zip(*rows, strict=True)]
    batch = pa.RecordBatch.from_pydict(
        dict(zip(("topic", "partition", "offset"), columns, strict=True))
    )
    modules = [
        (topic, partition, part["offset"].to_pylist())
        for topic, partition, part in rows_by_partition(batch)
    ]
    assert modules == [("a", 1, [5, 7]), ("a", 0, [8]), ("b", 0, [6, 4])]
    assert not list(rows_by_partition(batch.slice(0, 0)))


def test_a_batch_of_one_partition_is_not_copied() -> None:
    batch = pa.RecordBatch.from_pydict({"topic": ["a", "a"], "partition": [0, 0]})
    [(_, _, part)] = rows_by_partition(batch)
    assert part is batch

"""Columns of a frame as the parts of records, in the order of the rows."""

from __future__ import annotations

import datetime
import random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from minibroker.kafka.records.partitioner import partition_of
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.kafka.schemas import ARCHIVE, RECORD, RECORD_WITH_HEADERS
from minibroker.pipeline.kafka.sink.columns import check_columns, columns
from minibroker.pipeline.kafka.sink.partitions import FEW, partitions_of

UTC = datetime.UTC


def batch_of(**columns: pa.Array) -> pa.RecordBatch:
    return pa.record_batch(columns)


def rows(batch: pa.RecordBatch, topic: str | None) -> list[tuple[Any, ...]]:
    """Return topic, value, key, partition, timestamp and headers of each row."""
    return list(zip(*columns(batch, topic), strict=True))


HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def test_a_value_is_enough() -> None:
    assert rows(batch_of(value=pa.array([b"a", None])), "orders") == [
        ("orders", b"a", None, -1, 0, None),
        ("orders", None, None, -1, 0, None),
    ]


def test_every_column_has_its_place() -> None:
    headers = pa.array([[{"key": "h", "value": b"x"}, {"key": "h", "value": None}], []])
    times = [datetime.datetime(1970, 1, 1, 0, 0, 1, 999, tzinfo=UTC), None]
    batch = batch_of(
        headers=headers,
        timestamp=pa.array(times, pa.timestamp("us", "UTC")),
        partition=pa.array([3, None], pa.int32()),
        topic=pa.array(["a", "b"]),
        key=pa.array(["k", None]),
        value=pa.array(["vä", "w"]),
        offset=pa.array([1, 2]),
    )

    assert rows(batch, None) == [
        ("a", "vä".encode(), b"k", 3, 1000, [("h", b"x"), ("h", None)]),
        ("b", b"w", None, -1, 0, None),
    ]


def test_the_option_wins_over_the_column() -> None:
    batch = batch_of(value=pa.array([b"a"]), topic=pa.array(["a"]))

    assert rows(batch, "orders")[0][0] == "orders"


def test_large_columns_are_columns() -> None:
    batch = batch_of(
        value=pa.array([b"a"], pa.large_binary()), key=pa.array(["k"], pa.large_string())
    )

    assert rows(batch, "t") == [("t", b"a", b"k", -1, 0, None)]


def test_no_time_is_the_time_of_writing() -> None:
    """-1 ms is what the sources say of records of format v0."""
    batch = batch_of(
        value=pa.array([b"a", b"b"]), timestamp=pa.array([-1000, 5000], pa.timestamp("us"))
    )

    assert [row[4] for row in rows(batch, "t")] == [0, 5]


@pytest.mark.parametrize(
    ("column", "sentence"),
    [
        ({"topic": pa.array([None], pa.string())}, "null in the column 'topic'"),
        ({"timestamp": pa.array([-2000], pa.timestamp("us"))}, "-2 ms in the column 'timestamp'"),
        (
            {"headers": pa.array([[{"key": None, "value": b"x"}]], HEADERS)},
            "a header without a key",
        ),
        (
            {"headers": pa.array([[None]], HEADERS)},
            "a header without a key in the column 'headers'",
        ),
    ],
)
def test_rows_that_cannot_be_written_are_told(column: dict[str, Any], sentence: str) -> None:
    batch = batch_of(value=pa.array([b"a"]), **column)

    with pytest.raises(PipelineError, match=sentence):
        columns(batch, None if "topic" in column else "t")


@pytest.mark.parametrize("schema", [RECORD, RECORD_WITH_HEADERS, ARCHIVE])
def test_rows_of_the_sources_can_be_written(schema: StructType) -> None:
    check_columns(schema, None)


VALUE = {"value": StringType()}
MAP = MapType(StringType(), BinaryType())
PAIRS = ArrayType(StructType([StructField("k", StringType()), StructField("v", BinaryType())]))


@pytest.mark.parametrize(
    ("fields", "topic", "sentence"),
    [
        ({"id": LongType()}, "t", "needs a column 'value' and the frame has id"),
        (VALUE, None, "needs the option 'topic' or a column 'topic'"),
        ({"value": LongType()}, "t", "'value' is of type bigint and .* binary or string: cast"),
        ({**VALUE, "partition": LongType()}, "t", "'partition' is of type bigint .* integer"),
        ({**VALUE, "timestamp": LongType()}, "t", "'timestamp' is of type bigint .* timestamp"),
        (
            {**VALUE, "headers": MAP},
            "t",
            r"'headers' is of type map<string,binary> .* array<struct<key:string,value:binary>>",
        ),
        ({**VALUE, "headers": PAIRS}, "t", "'headers' is of type array"),
    ],
)
def test_a_frame_that_does_not_fit_is_refused(
    fields: dict[str, DataType], topic: str | None, sentence: str
) -> None:
    schema = StructType([StructField(name, kind) for name, kind in fields.items()])

    with pytest.raises(PipelineError, match=sentence):
        check_columns(schema, topic)


@pytest.mark.parametrize("longest", [3, 10, 40, 700])
@pytest.mark.parametrize("count", [FEW - 1, 700])
def test_keys_go_where_java_puts_them(longest: int, count: int) -> None:
    chance = random.Random(longest)
    keys = [
        chance.randbytes(chance.randrange(longest + 1)) if chance.random() < 0.9 else None
        for _ in range(count)
    ]
    expected = [None if key is None else partition_of(key, 7) for key in keys]

    assert partitions_of(pa.array(keys, pa.binary()), 7).to_pylist() == expected
    part = pa.array(keys, pa.large_binary()).slice(5, 40)
    assert partitions_of(part, 7).to_pylist() == expected[5:45]


def test_no_keys_have_no_partitions() -> None:
    assert partitions_of(pa.nulls(2, pa.binary()), 7).to_pylist() == [None, None]

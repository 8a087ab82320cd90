"""Messages as Arrow columns: types, nulls, times, headers, and how much one batch takes."""

from __future__ import annotations

import datetime

from confluent_kafka import Message

from minibroker.pipeline.kafka import schemas
from minibroker.pipeline.kafka.source import reader_columns
from minibroker.pipeline.kafka.source.reader_columns import ColumnBuilder

HEADERS = schemas.arrow_schema(include_headers=True).field("headers").type


def message(offset: int, **fields: object) -> Message:
    return Message(topic="t", partition=2, offset=offset, timestamp=(1, 1_000), **fields)  # type: ignore[arg-type]


def test_a_batch_has_sparks_columns_row_by_row() -> None:
    columns = ColumnBuilder("t", 2, include_headers=True)
    columns.add([message(7, key=b"k", value=b"v", headers=[("a", b"1")])])
    columns.add([message(9, key=None, value=b""), message(12, key=b"", value=None)])

    batch = columns.take()

    assert batch.schema.equals(schemas.arrow_schema(include_headers=True))
    stamp = datetime.datetime(1970, 1, 1, 0, 0, 1, tzinfo=datetime.UTC)
    same = {"topic": "t", "partition": 2, "timestamp": stamp, "timestampType": 0}
    headers = [{"key": "a", "value": b"1"}]
    assert batch.to_pylist() == [
        {"key": b"k", "value": b"v", "offset": 7, "headers": headers, **same},
        {"key": None, "value": b"", "offset": 9, "headers": None, **same},
        {"key": b"", "value": None, "offset": 12, "headers": None, **same},
    ]
    assert columns.rows == 0


def test_a_batch_is_full_by_rows_or_by_bytes() -> None:
    columns = ColumnBuilder("t", 2, include_headers=False)
    columns.add([message(1, value=b"x" * reader_columns.BYTES_MAX)])
    assert columns.is_full
    columns.take()

    columns.add([message(offset, value=b"x") for offset in range(reader_columns.ROWS_MAX)])
    assert columns.is_full
    assert columns.take().num_rows == reader_columns.ROWS_MAX


def test_the_room_of_a_batch_follows_the_size_of_its_records() -> None:
    columns = ColumnBuilder("t", 2, include_headers=False)
    assert columns.room <= reader_columns.MESSAGES_AT_FIRST + 1

    columns.add([message(1, value=b"x" * 10)])
    assert columns.room == reader_columns.ROWS_MAX - 1

    columns.add([message(2, value=b"x" * (reader_columns.BYTES_MAX // 4))])
    assert columns.room <= 4


def test_times_are_microseconds_and_none_is_a_millisecond_before_the_epoch() -> None:
    column = reader_columns.timestamp_column([5, 0, -7], [1, 0, 2])

    assert column.cast("int64").to_pylist() == [5_000, -1_000, -7_000]


def test_a_time_that_spark_cannot_say_becomes_its_last() -> None:
    column = reader_columns.timestamp_column([2**62, -(2**62), 1], [1, 1, 1])

    assert column.cast("int64").to_pylist() == [
        2**63 // 1000 * 1000,
        -(2**63 // 1000 * 1000),
        1_000,
    ]


def test_kinds_of_time_are_kafkas_numbers() -> None:
    columns = ColumnBuilder("t", 0, include_headers=False)
    columns.add(
        [Message(offset=at, timestamp=(kind, 1), value=b"") for at, kind in enumerate((0, 1, 2))]
    )

    assert columns.take().column("timestampType").to_pylist() == [-1, 0, 1]


def test_headers_keep_their_order_repeats_and_nulls() -> None:
    given = [None, [("a", b"1"), ("a", None)], [], [("b", b"")]]

    found = reader_columns.header_column(given, HEADERS).to_pylist()

    assert found == [
        None,
        [{"key": "a", "value": b"1"}, {"key": "a", "value": None}],
        None,
        [{"key": "b", "value": b""}],
    ]


def test_a_batch_without_headers_has_nulls() -> None:
    assert reader_columns.header_column([None, None], HEADERS).to_pylist() == [None, None]

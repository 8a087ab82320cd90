"""Batches that are encoded column by column, read by the broker's own decoder."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
import pytest

from minibroker.kafka.ids import TopicPartition
from minibroker.kafka.records.builder import seal_batch
from minibroker.kafka.records.record import Record, decode_records
from minibroker.pipeline.kafka.sink.encoding import RECORDS_MAX, RowsToSend, encode, encode_headers

if TYPE_CHECKING:
    from minibroker.pipeline.kafka.sink.encoding import EncodedRecords

NOW_MS = 1_700_000_000_000
HEADERS: list[Any] = [None, [("h", b"x")], [("ü" * 40, None), ("", b"")]]


def read(encoded: EncodedRecords) -> list[Record]:
    """Return the records of a batch."""
    batch = seal_batch(
        encoded.payload,
        attributes=0,
        base_offset=0,
        leader_epoch=-1,
        last_delta=encoded.rows - 1,
        timestamps=(encoded.base_time_ms, encoded.max_time_ms),
        producer=(-1, -1, -1),
        count=encoded.rows,
    )
    return decode_records(batch)


def rows(count: int, longest: int, chance: random.Random, kind: pa.DataType) -> RowsToSend:
    """Return rows of two topics with nulls, times and headers of all kinds."""

    def content() -> list[bytes | None]:
        return [
            chance.randbytes(chance.randrange(longest)) if chance.random() < 0.9 else None
            for _ in range(count)
        ]

    return RowsToSend(
        topics=pa.array(chance.choices("ab", k=count)),
        partitions=pa.array(chance.choices(range(5), k=count), pa.int32()),
        keys=pa.array(content(), kind),
        values=pa.array(content(), kind),
        times=pa.array([chance.randrange(10**13) for _ in range(count)], pa.int64()),
        headers=pa.array(map(encode_headers, chance.choices(HEADERS, k=count)), pa.binary()),
    )


def plain(values: list[bytes | None], keys: list[bytes | None] | None = None) -> RowsToSend:
    """Return rows of one partition, written now."""
    return RowsToSend(
        topics="t",
        partitions=pa.array([3] * len(values), pa.int32()),
        keys=None if keys is None else pa.array(keys, pa.binary()),
        values=pa.array(values, pa.binary()),
        times=NOW_MS,
        headers=None,
    )


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary()], ids=str)
@pytest.mark.parametrize("longest", [5, 70, 40_000])
def test_every_record_is_in_a_batch_of_its_partition_in_order(
    longest: int, kind: pa.DataType
) -> None:
    chance = random.Random(longest)
    batch = rows(400, longest, chance, kind)
    columns = [cast("pa.Array", column).to_pylist() for column in batch]
    expected: dict[Any, list[Any]] = {}
    for topic, partition, key, value, time, headers in zip(*columns, strict=True):
        expected.setdefault((topic, partition), []).append((time, key, value, headers))

    counts: dict[Any, list[Any]] = {}
    for encoded in encode(batch, 50_000):
        records = read(encoded)
        assert [record.offset for record in records] == list(range(encoded.rows))
        assert max(record.timestamp for record in records) == encoded.max_time_ms
        assert len(encoded.payload) <= 50_000 or encoded.rows == 1
        counts.setdefault(encoded.place, []).extend(
            (record.timestamp, record.key, record.value, encode_headers(list(record.headers)))
            for record in records
        )

    assert counts == expected


def test_columns_of_one_value_are_written_for_every_record() -> None:
    [encoded] = encode(plain([b"a", None, b"ccc"]), 1_000)
    assert encoded.place == TopicPartition("t", 3)
    assert read(encoded) == [
        Record(0, NOW_MS, None, b"a"),
        Record(1, NOW_MS, None, None),
        Record(2, NOW_MS, None, b"ccc"),
    ]
    [encoded] = encode(plain([b"", b""], [None, b"k"]), 1_000)
    assert [(record.key, record.value) for record in read(encoded)] == [(None, b""), (b"k", b"")]


def test_batches_end_at_their_size_and_their_count() -> None:
    values: list[bytes | None] = [b"x" * 100] * 50
    by_size = list(encode(plain(values), 1_000))
    assert [encoded.rows for encoded in by_size] == [7] * 7 + [1]
    by_count = list(encode(plain(values), 10**6, 20))
    assert [encoded.rows for encoded in by_count] == [20, 20, 10]
    large: list[bytes | None] = [b"x", b"y" * 5_000, b"z"]
    assert [encoded.rows for encoded in encode(plain(large), 1_000)] == [1, 1, 1]
    many: list[bytes | None] = [b""] * (RECORDS_MAX + 1)
    assert [len(read(encoded)) for encoded in encode(plain(many), 10**6)] == [RECORDS_MAX, 1]

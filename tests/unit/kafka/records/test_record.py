"""Records inside batches: ours against aiokafka's and kafka-python's, and malformed ones."""

from __future__ import annotations

import random
import struct
import warnings
from itertools import accumulate, chain, repeat
from typing import Any

import pytest
from aiokafka.record.default_records import DefaultRecordBatch as AiokafkaBatch
from aiokafka.record.default_records import DefaultRecordBatchBuilder as AiokafkaBuilder

from minibroker.kafka.errors import CorruptionError
from minibroker.kafka.records.batch import RECORDS_AT, read_header
from minibroker.kafka.records.builder import build_batch
from minibroker.kafka.records.record import (
    Record,
    count_records,
    decode_records,
    parse_records,
    read_varint,
    size_runs,
    wrap_int64,
)
from tests.support.batches import APPEND_TIME, TIMESTAMP, Item, batch, with_crc

with warnings.catch_warnings():
    # Its import uses a function of importlib.resources that is on its way out.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.record.default_records import DefaultRecordBatch as KafkaPythonBatch
    from kafka.record.default_records import DefaultRecordBatchBuilder as KafkaPythonBuilder

RECORDS = [
    Record(0, 1000, b"key", b"value", (("a", b"1"), ("b", None), ("", b""))),
    Record(1, 900, None, b"x" * 70),
    Record(2, 5000, b"", None),
    Record(3, -1, None, None),
    Record(4, 1000, b"k" * 20_000, b"v" * 3_000_000, ()),
]


def reencode(data: bytes, body: bytes, count: int | None = None) -> bytes:
    """`data` with other bytes for its records, and the CRC and length to match."""
    head = bytearray(data[:RECORDS_AT])
    struct.pack_into(">i", head, 8, RECORDS_AT - 12 + len(body))
    if count is not None:
        struct.pack_into(">i", head, 57, count)
    return with_crc(bytes(head) + body)


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b"\x00", 0),
        (b"\x01", -1),
        (b"\x02", 1),
        (b"\x7e", 63),
        (b"\x80\x01", 64),
        (b"\xff\xff\xff\xff\x0f", -(2**31)),
        (b"\xfe\xff\xff\xff\x0f", 2**31 - 1),
    ],
)
def test_varints(data: bytes, value: int) -> None:
    assert read_varint(b"-" + data + b"-", 1) == (value, 1 + len(data))


def test_varints_of_64_bits() -> None:
    assert read_varint(b"\xff" * 9 + b"\x01", 0, 10) == (-(2**63), 10)
    assert read_varint(b"\xfe" + b"\xff" * 8 + b"\x01", 0, 10) == (2**63 - 1, 10)


@pytest.mark.parametrize("limit", [5, 10])
def test_varints_that_do_not_end(limit: int) -> None:
    with pytest.raises(CorruptionError, match=f"more than {limit} bytes"):
        read_varint(b"\x80" * limit + b"\x00", 0, limit)
    with pytest.raises(IndexError):
        read_varint(b"\x80", 0)


def test_numbers_overflow_as_in_64_bits() -> None:
    assert wrap_int64(2**63) == -(2**63)
    assert wrap_int64(-(2**63) - 1) == 2**63 - 1
    assert wrap_int64(-5) == -5


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_records_come_back_as_they_were_built(codec: str) -> None:
    data = build_batch(RECORDS, codec=codec, base_offset=0)
    assert decode_records(data) == RECORDS
    assert decode_records(memoryview(b"---" + data), 3, header=read_header(data)) == RECORDS


def test_offsets_start_at_the_base_offset() -> None:
    data = build_batch(RECORDS[:3], base_offset=100)
    assert [record.offset for record in decode_records(data)] == [100, 101, 102]


def test_append_time_is_the_time_of_every_record() -> None:
    data = batch(
        Item(b"a"), Item(b"b", timestamp_ms=TIMESTAMP + 5), attributes=APPEND_TIME, timestamp_ms=7
    )
    assert {record.timestamp for record in decode_records(data)} == {TIMESTAMP + 5}


def test_timestamps_may_span_the_whole_range() -> None:
    records = [Record(0, 2**63 - 1, None, b""), Record(1, -(2**63), None, b"")]
    assert decode_records(build_batch(records)) == records


def built_by(builder_class: Any, codec: str) -> bytes:
    """Return a batch of the records, built by a class of aiokafka or kafka-python."""
    builder = builder_class(
        magic=2,
        compression_type=("none", "gzip", "snappy", "lz4", "zstd").index(codec),
        is_transactional=0,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=10_000_000,
    )
    for record in RECORDS:
        builder.append(
            record.offset, record.timestamp, record.key, record.value, list(record.headers)
        )
    return bytes(builder.build())


def read_by(foreign_batch: Any) -> list[Record]:
    """Return the records that the batch of aiokafka or kafka-python reads."""
    assert foreign_batch.validate_crc()
    return [
        Record(record.offset, record.timestamp, record.key, record.value, tuple(record.headers))
        for record in foreign_batch
    ]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_aiokafka_agrees_in_both_directions(codec: str) -> None:
    assert decode_records(built_by(AiokafkaBuilder, codec)) == RECORDS
    assert read_by(AiokafkaBatch(bytes(build_batch(RECORDS, codec=codec)))) == RECORDS


@pytest.mark.parametrize("codec", ["none", "gzip", "lz4"])
def test_kafka_python_agrees_in_both_directions(codec: str) -> None:
    theirs = built_by(KafkaPythonBuilder, codec)
    ours = bytes(build_batch(RECORDS, codec=codec, leader_epoch=0))
    assert decode_records(theirs) == RECORDS
    if codec == "none":
        assert ours == theirs
    assert read_by(KafkaPythonBatch(ours)) == RECORDS


@pytest.mark.parametrize("size", [0, 1, 55, 56, 57, 63, 64, 8000, 8185, 8190, 20_000, 3_000_000])
@pytest.mark.parametrize("count", [1, 3])
def test_the_walk_counts_records_of_every_length(size: int, count: int) -> None:
    data = memoryview(batch(*[b"x" * size] * count))
    count_records(data, RECORDS_AT, len(data), count)
    for wrong in (0, count - 1, count + 1, 2**31 - 1, -1):
        with pytest.raises(CorruptionError, match="records"):
            count_records(data, RECORDS_AT, len(data), wrong)
    with pytest.raises(CorruptionError, match="records"):
        count_records(data, RECORDS_AT, len(data) - 1, count)


def test_the_walk_stops_at_the_end_of_the_batch_not_of_the_buffer() -> None:
    data = batch(b"x", b"y")
    count_records(memoryview(data + data), RECORDS_AT, len(data), 2)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"\x0d" + bytes(9), "declares -7 bytes"),
        (b"\x0a" + bytes(9), "declares 5 bytes"),
        (b"\x80\x80\x80\x80\x80\x00" + bytes(9), "more than 5 bytes"),
        (b"\x89\x01" + bytes(9), "declares -69 bytes"),
        (b"\xfe\x7f" + bytes(9), "beyond its end"),
        (b"\xfe" * 4 + b"\x0f" + bytes(9), "beyond its end"),
        (bytes(6) + b"\xff", "in 7 bytes"),
    ],
)
def test_the_walk_refuses_wrong_lengths(body: bytes, message: str) -> None:
    count = 2 if message == "in 7 bytes" else 1
    with pytest.raises(CorruptionError, match=message):
        count_records(body, 0, len(body), count)


def test_a_batch_that_is_cut_or_of_another_format() -> None:
    data = batch(b"x")
    with pytest.raises(CorruptionError, match=f"has {len(data)} bytes, but only {len(data) - 1}"):
        decode_records(data[:-1])
    with pytest.raises(CorruptionError, match="magic 0, expected 2"):
        decode_records(struct.pack(">qiIbbici", 0, 15, 0, 0, 0, 1, b"k", -1))


def test_a_compressed_batch_may_not_unfold_without_end() -> None:
    data = build_batch([Record(0, 0, None, bytes(100_000))], codec="zstd")
    assert len(data) < 200
    with pytest.raises(CorruptionError, match="more than 50000 bytes"):
        decode_records(data, size_bytes_max=50_000)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "1 records in 0 bytes"),
        (b"\x0c\x00\x00\x00\x01\x01\x00" + b"\x00", "1 bytes are left"),
        (b"\x0e\x00\x00\x00\x01\x01\x00\x00", "its fields take 6"),
        (b"\x10\x00\x00\x00\x01\x01\x00", "declares 8 bytes, 6 are left"),
        (b"\x01" + bytes(8), "declares -1 bytes"),
        (b"\x0c\x00\x00\x00\x08\x01\x00", "field at byte 4 declares 4 bytes"),
        (b"\x0c\x00\x00\x00\x01\x01\x02", "declares 1 headers in 0 bytes"),
        (b"\x0c\x00\x00\x00\x01\x01\x01", "declares -1 headers"),
        (b"\x10\x00\x00\x00\x01\x01\x02\x01\x01", "header without a key"),
        (b"\x0c\x00\x00\x00\x01\x01\x80", "malformed"),
    ],
)
def test_malformed_records(body: bytes, message: str) -> None:
    data = reencode(batch(b"x"), body)
    with pytest.raises(CorruptionError, match=message):
        decode_records(data)


def test_the_key_of_a_header_that_is_no_text() -> None:
    """Kafka takes it, so it may be in a log."""
    [record] = decode_records(reencode(batch(b"x"), b"\x12\0\0\0\x01\x01\x02\x02\xff\x01"))
    assert record.headers == (("\N{REPLACEMENT CHARACTER}", None),)


@pytest.mark.parametrize(
    ("data", "value"), [(b"\xff\xff\xff\xff\x1f", -(2**31)), (b"\x80\x80\x80\x80\x10", 0)]
)
def test_bits_that_a_number_has_no_room_for(data: bytes, value: int) -> None:
    assert read_varint(data, 0) == (value, 5)


def test_a_count_that_lies() -> None:
    body = batch(b"x", b"y")[RECORDS_AT:]
    for count in (-1, 0, 1, 3, 2**31 - 1):
        with pytest.raises(CorruptionError, match="records"):
            decode_records(reencode(batch(b"x"), body, count))


def test_no_records() -> None:
    assert parse_records(b"", read_header(batch())) == []


def starts_by_runs(data: bytes, position: int, end: int, count: int) -> list[int]:
    """Return the starts of records by their sizes."""
    runs = size_runs(data, position, end, count)
    sizes = chain.from_iterable(map(repeat, runs.sizes, runs.counts))
    return list(accumulate(sizes, initial=position))[:-1]


def test_the_starts_of_records_are_where_walking_finds_them() -> None:
    data = bytes(build_batch(RECORDS))
    starts = starts_by_runs(data, RECORDS_AT, len(data), len(RECORDS))
    assert starts[0] == RECORDS_AT
    for index, start in enumerate(starts):
        length, body_at = read_varint(data, start)
        end = starts[index + 1] if index + 1 < len(starts) else len(data)
        assert body_at + length == end


def test_starts_of_records_of_one_length_are_those_of_a_walk() -> None:
    """Lengths in runs and in turns, damaged, cut, with a wrong count, other bytes behind them."""
    chance = random.Random(9)
    for _ in range(3_000):
        data, count = _lengths_and_bodies(chance)
        end = len(data) - chance.choice((0, 0, 1, 5))
        data += chance.randbytes(chance.choice((0, 30)))
        count += chance.choice((0, 0, 0, 1, -1))
        expected = _starts_by_walking(data, end, count)
        if expected is None:
            with pytest.raises(CorruptionError):
                starts_by_runs(data, 0, end, count)
        else:
            assert starts_by_runs(data, 0, end, count) == expected


def _lengths_and_bodies(chance: random.Random) -> tuple[bytes, int]:
    """Return records as their length sees them, and their count."""
    data, count = bytearray(), 0
    for _ in range(chance.randrange(1, 6)):
        length = chance.choice((0, 5, 6, 7, 63, 64, 100, 8191, 8192))
        times = chance.choice((1, 1, 2, 15, 16, 17, 150))
        head = b""
        rest = length << 1
        while rest >= 0x80:
            head += bytes([rest & 0x7F | 0x80])
            rest >>= 7
        data += (head + bytes([rest]) + b"\1" * length) * times
        count += times
    for _ in range(chance.choice((0, 0, 1, 3))):
        data[chance.randrange(len(data))] = chance.randrange(256)
    return bytes(data), count


def _starts_by_walking(data: bytes, end: int, count: int) -> list[int] | None:
    """Return the starts, None where the records do not fill the bytes up to `end`."""
    at, starts = 0, []
    try:
        for _ in range(count):
            starts.append(at)
            length, body_at = read_varint(data, at)
            if length < 6:
                return None
            at = body_at + length
    except (IndexError, CorruptionError):
        return None
    return starts if at == end else None


@pytest.mark.parametrize(
    ("count", "cut", "sentence"),
    [
        (len(RECORDS) + 1, 0, "end at byte"),
        (len(RECORDS) - 1, 0, "end at byte"),
        (len(RECORDS), 1, "end at byte"),
        (-1, 0, "declares -1 records"),
        (1 << 30, 0, "declares 1073741824 records"),
    ],
)
def test_starts_of_records_that_do_not_fill_the_batch_are_refused(
    count: int, cut: int, sentence: str
) -> None:
    data = bytes(build_batch(RECORDS))[: -cut or None]
    with pytest.raises(CorruptionError, match=sentence):
        starts_by_runs(data, RECORDS_AT, len(data), count)

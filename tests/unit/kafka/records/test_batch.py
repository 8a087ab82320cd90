"""The header of a v2 batch: read, walked over, patched in place; what is no header is refused."""

from __future__ import annotations

import struct
import subprocess
import sys

import crc32c as package
import pytest

from minibroker.kafka.errors import CorruptionError
from minibroker.kafka.records import crc, crc_table
from minibroker.kafka.records.batch import (
    APPEND_TIME_FLAG,
    HEADER_BYTES,
    SEQUENCE_MAX,
    add_to_sequence,
    assign,
    batch_size_at,
    compute_crc,
    crc_is_valid,
    iterate_headers,
    read_header,
    set_timestamps,
    subtract_from_sequence,
)
from minibroker.kafka.records.builder import build_batch, write_varint
from minibroker.kafka.records.partitioner import murmur2, partition_of
from minibroker.kafka.records.record import Record, decode_records, read_varint
from tests.support.batches import APPEND_TIME, CONTROL, TIMESTAMP, TRANSACTIONAL, Item, batch


def legacy_message(magic: int, *, offset: int = 7, timestamp: int = 99) -> bytes:
    """One uncompressed message of format 0 or 1, with a key and a null value; CRC zero."""
    body = struct.pack(">Ibb", 0, magic, 0)
    if magic == 1:
        body += struct.pack(">q", timestamp)
    body += struct.pack(">ici", 1, b"k", -1)
    return struct.pack(">qi", offset, len(body)) + body


def with_length(data: bytes, length: int) -> bytes:
    return data[:8] + struct.pack(">i", length) + data[12:]


def test_every_field_of_the_header() -> None:
    data = batch(
        b"one",
        b"two",
        producer_id=77,
        producer_epoch=5,
        sequence=40,
        attributes=TRANSACTIONAL | 3,
        base_offset=1000,
        leader_epoch=9,
    )
    header = read_header(data)
    assert header.base_offset == 1000
    assert header.size_bytes == len(data)
    assert header.leader_epoch == 9
    assert header.magic == 2
    assert header.crc == compute_crc(data, 0, len(data))
    assert header.attributes == TRANSACTIONAL | 3
    assert header.last_offset_delta == 1
    assert (header.base_timestamp, header.max_timestamp) == (TIMESTAMP, TIMESTAMP)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (77, 5, 40)
    assert header.count == 2
    assert (header.last_offset, header.last_sequence, header.codec) == (1001, 41, 3)
    assert header.has_producer_id
    assert header.is_transactional
    assert not header.is_control
    assert not header.is_append_time
    assert "base_offset=1000" in repr(header)


def test_flags_and_missing_producer() -> None:
    header = read_header(batch(b"x", attributes=CONTROL | APPEND_TIME))
    assert header.is_control
    assert header.is_append_time
    assert not header.is_transactional
    assert not header.has_producer_id
    assert header.last_sequence == -1


def test_header_behind_other_bytes() -> None:
    data = b"12345" + batch(b"x", base_offset=3)
    assert read_header(data, 5).base_offset == 3
    assert read_header(memoryview(data)[5:]).base_offset == 3


@pytest.mark.parametrize("magic", [0, 1])
def test_headers_of_formats_0_and_1_are_recognised(magic: int) -> None:
    data = legacy_message(magic)
    header = read_header(data)
    assert header.magic == magic
    assert header.base_offset == header.last_offset == 7
    assert header.size_bytes == len(data)
    assert header.max_timestamp == (99 if magic else -1)
    assert not header.has_producer_id
    assert [header.magic for _, header in iterate_headers(data + data)] == [magic, magic]


@pytest.mark.parametrize("cut", [0, 11, 16, 17, 60])
def test_a_cut_header_is_corrupt(cut: int) -> None:
    with pytest.raises(CorruptionError, match="cut after"):
        read_header(batch(b"x")[:cut])


@pytest.mark.parametrize("magic", [0, 1])
def test_a_cut_header_of_an_old_format_is_corrupt(magic: int) -> None:
    with pytest.raises(CorruptionError, match="cut after"):
        read_header(legacy_message(magic)[:20])


@pytest.mark.parametrize("length", [-(2**31), -1, 0, 13])
def test_lengths_of_no_format(length: int) -> None:
    data = with_length(batch(b"x"), length)
    with pytest.raises(CorruptionError, match="expected at least"):
        read_header(data)
    with pytest.raises(CorruptionError, match=f"length {length}, expected at least 14"):
        batch_size_at(data, 0)


def test_a_v2_batch_smaller_than_its_header() -> None:
    with pytest.raises(CorruptionError, match="60 bytes, expected at least 61"):
        read_header(with_length(batch(b"x"), 48))
    with pytest.raises(CorruptionError, match="length 48, expected at least 49"):
        read_header(with_length(batch(b"x"), 48)[:30])


@pytest.mark.parametrize("magic", [3, -1])
def test_an_unknown_magic(magic: int) -> None:
    data = batch(b"x", magic=magic)
    with pytest.raises(CorruptionError, match=f"has magic {magic}"):
        read_header(data)
    with pytest.raises(CorruptionError, match="has magic"):
        batch_size_at(data, 0)


def test_size_of_a_whole_and_of_a_cut_batch() -> None:
    data = batch(b"x")
    assert batch_size_at(data, 0) == len(data)
    assert batch_size_at(b"abc" + data, 3) == len(data)
    for cut in range(len(data)):
        assert batch_size_at(data[:cut], 0) is None


def test_iteration_stops_quietly_at_a_cut_batch() -> None:
    first, second = batch(b"x"), batch(b"yy", base_offset=1)
    data = first + second
    assert [position for position, _ in iterate_headers(data)] == [0, len(first)]
    for cut in range(len(first), len(data)):
        assert [position for position, _ in iterate_headers(data[:cut])] == [0]


def test_iteration_raises_at_a_broken_batch() -> None:
    first = batch(b"x")
    walk = iterate_headers(first + with_length(first, 3))
    assert next(walk)[0] == 0
    with pytest.raises(CorruptionError, match=f"byte {len(first)} has length 3"):
        next(walk)


def test_assigned_offset_and_epoch_leave_the_crc_valid() -> None:
    data = bytearray(b"--" + batch(b"x"))
    assign(data, 2, 2**62, 17)
    header = read_header(data, 2)
    assert (header.base_offset, header.leader_epoch) == (2**62, 17)
    assert crc_is_valid(data, 2, header.size_bytes)


def test_timestamps_are_set_with_attributes_and_crc() -> None:
    data = memoryview(bytearray(b"--" + batch(b"x", b"y", producer_id=5, sequence=1)))
    set_timestamps(data, 2, APPEND_TIME_FLAG, 123_456)
    header = read_header(data, 2)
    assert header.is_append_time
    assert header.max_timestamp == 123_456
    assert header.base_timestamp == TIMESTAMP
    assert (header.producer_id, header.base_sequence) == (5, 1)
    assert crc_is_valid(data, 2, header.size_bytes)


def test_set_timestamps_writes_attributes_as_given() -> None:
    data = bytearray(batch(b"x", attributes=APPEND_TIME | 2))
    set_timestamps(data, 0, 2, 5)
    header = read_header(data)
    assert (header.attributes, header.max_timestamp) == (2, 5)
    assert crc_is_valid(data, 0, len(data))


def test_every_flipped_byte_behind_the_crc_is_noticed() -> None:
    data = batch(Item(b"value", b"key"))
    for position in range(17, len(data)):
        broken = bytearray(data)
        broken[position] ^= 1
        assert not crc_is_valid(broken, 0, len(data)), position
    assert crc_is_valid(data, 0, len(data))


def test_sequences_wrap() -> None:
    assert add_to_sequence(5, 3) == 8
    assert add_to_sequence(SEQUENCE_MAX, 0) == SEQUENCE_MAX
    assert add_to_sequence(SEQUENCE_MAX, 1) == 0
    assert add_to_sequence(SEQUENCE_MAX - 1, 5) == 3
    assert subtract_from_sequence(8, 3) == 5
    assert subtract_from_sequence(0, 1) == SEQUENCE_MAX
    assert subtract_from_sequence(3, 5) == SEQUENCE_MAX - 1
    assert read_header(batch(b"a", b"b", sequence=SEQUENCE_MAX)).last_sequence == 0


def test_the_header_has_61_bytes() -> None:
    assert len(batch()) == HEADER_BYTES


# Batches built by us, compared with a builder that shares no code with ours.


RECORDS = [Record(5, 1000, b"k", b"v", (("h", None),)), Record(9, 999, None, b"w")]


def test_a_batch_is_what_the_format_says() -> None:
    """Compared with a builder that shares no code with ours."""
    expected = batch(
        Item(b"v", b"k", 1000, ((b"h", None),)),
        Item(b"w", None, 999),
        producer_id=3,
        producer_epoch=2,
        sequence=1,
        base_offset=50,
        leader_epoch=4,
    )
    built = build_batch(
        RECORDS, base_offset=50, producer_id=3, producer_epoch=2, base_sequence=1, leader_epoch=4
    )
    assert built == expected


def test_records_are_numbered_or_keep_their_offsets() -> None:
    numbered = build_batch(RECORDS, base_offset=4)
    assert [record.offset for record in decode_records(numbered)] == [4, 5]
    sparse_batch = build_batch(RECORDS, base_offset=4, keep_offsets=True)
    assert decode_records(sparse_batch) == RECORDS
    assert read_header(sparse_batch).last_offset == 9


@pytest.mark.parametrize("offsets", [(3, 9), (5, 5), (9, 5), (5, 2**31 + 4)])
def test_offsets_that_cannot_be_kept(offsets: tuple[int, int]) -> None:
    records = [Record(offset, 0, None, b"") for offset in offsets]
    with pytest.raises(ValueError, match="does not follow"):
        build_batch(records, base_offset=4, keep_offsets=True)


def test_flags_and_append_time() -> None:
    header = read_header(
        build_batch(RECORDS, codec="lz4", append_time_ms=77, is_transactional=True, is_control=True)
    )
    assert header.codec == 3
    assert header.is_append_time
    assert header.is_transactional
    assert header.is_control
    assert (header.base_timestamp, header.max_timestamp) == (1000, 77)


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_crc_and_size_with_every_codec(codec: str) -> None:
    built = build_batch(RECORDS, codec=codec)
    assert read_header(built).size_bytes == len(built)
    assert crc_is_valid(built, 0, len(built))


def test_records_that_cannot_be_built() -> None:
    with pytest.raises(ValueError, match="at least one record"):
        build_batch([])
    with pytest.raises(ValueError, match="'brotli' is unknown, expected one of none, gzip"):
        build_batch(RECORDS, codec="brotli")


@pytest.mark.parametrize("value", [0, -1, 1, 63, -64, 64, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63)])
def test_varints_read_back(value: int) -> None:
    out = bytearray()
    write_varint(out, value)
    assert read_varint(bytes(out), 0, 10) == (value, len(out))


# CRC-32C, and that its package is not imported as a whole.


def test_check_value_of_the_standard() -> None:
    assert crc.crc32c(b"123456789") == 0xE3069283


@pytest.mark.parametrize("data", [b"", b"x", bytes(range(256)) * 100])
def test_every_kind_of_buffer(data: bytes) -> None:
    expected = package.crc32c(data)
    assert crc.crc32c(data) == expected
    assert crc.crc32c(bytearray(data)) == expected
    assert crc.crc32c(memoryview(data)) == expected


@pytest.mark.parametrize("data", [b"", b"x", b"123456789", bytes(range(256)) * 3])
def test_python_computes_the_same_where_the_package_is_missing(data: bytes) -> None:
    expected = package.crc32c(data)
    assert crc_table.crc32c(data) == expected
    assert crc_table.crc32c(memoryview(bytearray(data))) == expected
    assert crc_table.crc32c(data[5:], crc_table.crc32c(data[:5])) == expected
    assert not crc.IS_SLOW


def test_the_package_itself_is_not_imported() -> None:
    """Its `__init__` reads package metadata, which a start of 120 ms has no room for."""
    code = "import sys, minibroker.kafka.records.crc; print('importlib.metadata' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "False"


def test_the_package_is_imported_where_its_extension_is_not_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert crc._import_package()(b"123456789") == 0xE3069283
    monkeypatch.setattr(crc.PathFinder, "find_spec", lambda *_: None)
    assert crc._load_extension() is None


# Keys go where the Java producer puts them.


@pytest.mark.parametrize(
    ("key", "signed"),
    [  # the values of Kafka's own test of its hash
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_the_hash_is_kafkas(key: bytes, signed: int) -> None:
    assert murmur2(key) == signed & 0xFFFFFFFF


def test_a_key_has_one_partition_and_no_key_the_first() -> None:
    assert partition_of(None, 7) == 0
    assert partition_of(b"abc", 10) == 479470107 % 10
    assert partition_of(b"21", 10) == (-973932308 & 0x7FFFFFFF) % 10

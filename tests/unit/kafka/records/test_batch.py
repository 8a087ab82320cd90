"""The header of a v2 batch: read, walked over, patched in place; what is no header is refused."""

from __future__ import annotations

import struct

import pytest

from minibroker.kafka.errors import CorruptionError
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
    assert [found.magic for _, found in iterate_headers(data + data)] == [magic, magic]


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
    assert [position for position, _ in iterate_headers(data, len(first))] == [len(first)]
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

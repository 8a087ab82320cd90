"""`Writer`: ranges, tags, and what is copied; the encodings are in `test_primitives.py`."""

from __future__ import annotations

import struct

import pytest

from minibroker.kafka.protocol.writer import RECORDS_BY_REFERENCE_BYTES, STRING_BYTES_MAX, Writer


@pytest.mark.parametrize("value", [-1, 1 << 35])
def test_a_varint_out_of_range_is_not_written(value: int) -> None:
    with pytest.raises(ValueError, match="varint"):
        Writer().uvarint(value)


@pytest.mark.parametrize("method", ["string", "compact_string"])
def test_a_string_out_of_range_is_not_written(method: str) -> None:
    getattr(Writer(), method)("x" * STRING_BYTES_MAX)
    with pytest.raises(ValueError, match="32767"):
        getattr(Writer(), method)("x" * (STRING_BYTES_MAX + 1))


def test_numbers_and_uuids_out_of_range_are_not_written() -> None:
    with pytest.raises(struct.error):
        Writer().int16(1 << 15)
    with pytest.raises(ValueError, match="16 bytes"):
        Writer().uuid(b"short")


def test_tagged_fields_are_written_with_tag_and_size() -> None:
    value = Writer()
    value.int16(7)
    writer = Writer()
    writer.tagged_fields([(1, value)])
    assert writer.to_bytes() == b"\x01\x01\x02\x00\x07"


def test_large_records_are_kept_by_reference_and_small_ones_copied() -> None:
    large = memoryview(bytearray(b"L" * RECORDS_BY_REFERENCE_BYTES))
    writer = Writer()
    writer.int8(1)
    writer.records(b"small")
    writer.records(large)
    writer.int8(2)
    assert writer.size == 1 + 4 + 5 + 4 + len(large) + 1
    parts = writer.parts()
    assert len(parts) == 3
    assert parts[1] is large
    assert parts[0] == b"\x01\x00\x00\x00\x05small" + len(large).to_bytes(4, "big")
    assert parts[2] == b"\x02"
    assert writer.parts() is parts


def test_a_frame_has_its_length_in_front() -> None:
    writer = Writer()
    writer.int16(7)
    assert writer.frame_parts() == [b"\x00\x00\x00\x02\x00\x07"]
    assert Writer().frame_parts() == [bytes(4)]

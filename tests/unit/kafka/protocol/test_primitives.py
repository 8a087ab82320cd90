"""The primitive types, one by one: bytes as the protocol guide gives them, and what is refused."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from minibroker.kafka.errors import ProtocolError
from minibroker.kafka.protocol.primitives import Reader, Writer
from minibroker.kafka.protocol.writer import STRING_BYTES_MAX, uvarint_bytes

VALUES: list[tuple[str, Any, bytes]] = [
    ("boolean", True, b"\x01"),
    ("boolean", False, b"\x00"),
    ("int8", -2, b"\xfe"),
    ("int8", 127, b"\x7f"),
    ("int16", -2, b"\xff\xfe"),
    ("uint16", 65534, b"\xff\xfe"),
    ("int32", -2, b"\xff\xff\xff\xfe"),
    ("uint32", 4294967294, b"\xff\xff\xff\xfe"),
    ("int64", -2, b"\xff" * 7 + b"\xfe"),
    ("float64", 1.5, b"\x3f\xf8" + bytes(6)),
    ("uuid", bytes(range(16)), bytes(range(16))),
    ("uvarint", 0, b"\x00"),
    ("uvarint", 127, b"\x7f"),
    ("uvarint", 128, b"\x80\x01"),
    ("uvarint", 300, b"\xac\x02"),
    ("uvarint", (1 << 35) - 1, b"\xff\xff\xff\xff\x7f"),
    ("string", "ąb", b"\x00\x03\xc4\x85b"),
    ("nullable_string", None, b"\xff\xff"),
    ("nullable_string", "", b"\x00\x00"),
    ("compact_string", "ąb", b"\x04\xc4\x85b"),
    ("compact_string", "x" * 127, b"\x80\x01" + b"x" * 127),
    ("compact_nullable_string", None, b"\x00"),
    ("compact_nullable_string", "a", b"\x02a"),
    ("byte_string", b"ab", b"\x00\x00\x00\x02ab"),
    ("nullable_byte_string", None, b"\xff\xff\xff\xff"),
    ("nullable_byte_string", b"a", b"\x00\x00\x00\x01a"),
    ("compact_byte_string", b"ab", b"\x03ab"),
    ("compact_nullable_byte_string", None, b"\x00"),
    ("compact_nullable_byte_string", b"a", b"\x02a"),
    ("records", None, b"\xff\xff\xff\xff"),
    ("records", b"ab", b"\x00\x00\x00\x02ab"),
    ("compact_records", None, b"\x00"),
    ("compact_records", b"ab", b"\x03ab"),
    ("array_count", 3, b"\x00\x00\x00\x03"),
    ("compact_array_count", 3, b"\x04"),
]


@pytest.mark.parametrize(("method", "value", "data"), VALUES)
def test_a_value_is_written_as_the_protocol_says(method: str, value: Any, data: bytes) -> None:
    writer = Writer()
    getattr(writer, method)(value)
    assert writer.to_bytes() == data


@pytest.mark.parametrize(("method", "value", "data"), VALUES)
def test_a_value_is_read_back_and_not_one_byte_more(method: str, value: Any, data: bytes) -> None:
    reader = Reader(b"#" + data + b"rest", 1)
    assert getattr(reader, method)() == value
    assert reader.position == 1 + len(data)


@pytest.mark.parametrize(("method", "value", "data"), VALUES)
def test_a_value_cut_short_is_refused(method: str, value: Any, data: bytes) -> None:
    for length in range(len(data)):
        with pytest.raises(ProtocolError):
            getattr(Reader(data[:length]), method)()


@pytest.mark.parametrize(
    ("method", "data"),
    [
        ("string", b"\xff\xff"),
        ("compact_string", b"\x00"),
        ("byte_string", b"\xff\xff\xff\xff"),
        ("compact_byte_string", b"\x00"),
        ("array_count", b"\xff\xff\xff\xff"),
        ("compact_array_count", b"\x00"),
    ],
)
def test_null_is_refused_where_a_value_is_required(method: str, data: bytes) -> None:
    with pytest.raises(ProtocolError, match="null"):
        getattr(Reader(data), method)()


@pytest.mark.parametrize("method", ["nullable_array_count", "compact_nullable_array_count"])
def test_a_null_array_is_minus_one(method: str) -> None:
    data = b"\x00" if method.startswith("compact") else b"\xff\xff\xff\xff"
    assert getattr(Reader(data), method)() == -1


def test_any_negative_length_is_null_as_in_kafka() -> None:
    assert Reader(b"\x80\x00").nullable_string() is None
    assert Reader(b"\x80\x00\x00\x00").records() is None


@pytest.mark.parametrize(
    ("method", "data"),
    [
        ("array_count", b"\x00\x00\x00\x05abcd"),
        ("nullable_array_count", b"\x7f\xff\xff\xffabcd"),
        ("compact_array_count", b"\x06abcd"),
        ("compact_nullable_array_count", b"\xff\xff\xff\xff\x07abcd"),
    ],
)
def test_more_items_than_bytes_are_refused(method: str, data: bytes) -> None:
    with pytest.raises(ProtocolError, match="items"):
        getattr(Reader(data), method)()


def test_a_varint_of_six_bytes_is_refused() -> None:
    with pytest.raises(ProtocolError, match="5 bytes"):
        Reader(b"\xff\xff\xff\xff\xff\x01").uvarint()


def test_a_compact_string_longer_than_the_protocol_allows_is_refused() -> None:
    data = uvarint_bytes(STRING_BYTES_MAX + 2) + b"x" * (STRING_BYTES_MAX + 1)
    with pytest.raises(ProtocolError):
        Reader(data).compact_string()


def test_text_that_is_not_utf8_is_read_with_replacements() -> None:
    """Java reads it like that; the handler then answers an error instead of a closed connection."""
    assert Reader(b"\x00\x03a\xffb").string() == "a\ufffdb"


def test_text_that_no_answer_could_repeat_is_refused() -> None:
    """A replacement takes three bytes for one."""
    for size_bytes, is_read in ((10_922, True), (10_923, False)):
        reader = Reader(struct.pack(">h", size_bytes) + b"\xff" * size_bytes)
        if is_read:
            assert len(reader.string()) == size_bytes
        else:
            with pytest.raises(ProtocolError, match="not UTF-8"):
                reader.string()


def test_runs_and_arrays_of_numbers() -> None:
    layout = struct.Struct(">ihq")
    reader = Reader(layout.pack(1, 2, 3) + struct.pack(">2i", 4, 5))
    assert reader.fixed(layout) == (1, 2, 3)
    assert reader.numbers(2, "i") == [4, 5]
    with pytest.raises(ProtocolError):
        reader.fixed(layout)
    with pytest.raises(ProtocolError):
        reader.numbers(1, "b")
    writer = Writer()
    writer.numbers([4, 5], "i")
    assert writer.to_bytes() == struct.pack(">2i", 4, 5)


def test_unknown_tagged_fields_are_stepped_over() -> None:
    reader = Reader(b"\x02\x05\x03abc\x80\x01\x00next")
    reader.skip_tagged_fields()
    assert bytes(reader.take(4)) == b"next"
    with pytest.raises(ProtocolError):
        Reader(b"\x01\x05\x04abc").skip_tagged_fields()
    with pytest.raises(ProtocolError):
        Reader(b"").skip_tagged_fields()


def test_a_known_tagged_field_must_have_the_length_it_announced() -> None:
    reader = Reader(b"\x02ab")
    end = reader.tag_end()
    reader.int8()
    with pytest.raises(ProtocolError, match="announced"):
        reader.finish_tag(end)
    reader.int8()
    reader.finish_tag(end)
    with pytest.raises(ProtocolError):
        Reader(b"\x03ab").tag_end()


def test_read_records_are_a_slice_of_the_callers_buffer() -> None:
    buffer = bytearray(b"\x00\x00\x00\x03abc")
    records = Reader(buffer).records()
    assert records is not None
    buffer[4] = ord("X")
    assert records.tobytes() == b"Xbc"


def test_tags_are_counted_before_they_are_skipped() -> None:
    tags = b"\x05\x00" * 200_000
    reader = Reader(b"\xc0\x9a\x0c" + tags)
    with pytest.raises(ProtocolError, match="200000 tagged fields"):
        reader.skip_tagged_fields()
    assert reader.position == 3


def test_a_struct_may_have_some_unknown_tags() -> None:
    reader = Reader(b"\x80\x01" + b"\x05\x00" * 128)
    reader.skip_tagged_fields()
    assert not reader.remaining

"""Message sets of formats 0 and 1: read, patched, written; a second codec judges the bytes."""

from __future__ import annotations

import pytest

from minibroker.kafka.errors import CorruptionError
from minibroker.kafka.records.batch import read_header
from minibroker.kafka.records.compression import CODEC_NAMES
from minibroker.kafka.records.message_set import (
    MalformedSetError,
    UnreadableSetError,
    assign_offset,
    build_message_set,
    crc_is_valid,
    decode_message,
    set_timestamp,
)
from minibroker.kafka.records.record import Record
from tests.support.message_sets import (
    APPEND_TIME,
    GZIP,
    LZ4,
    SNAPPY,
    TIMESTAMP,
    ZSTD,
    Message,
    message,
    parse,
    plain,
    unpack,
    wrapper,
)

VALUES = (b"one", None, b"", b"four " * 30)
CODECS = (GZIP, SNAPPY, LZ4)


def records(*, first: int = 10, magic: int = 1) -> list[Record]:
    return [
        Record(first + n, TIMESTAMP + n if magic else -1, b"k" if n % 2 else None, value)
        for n, value in enumerate(VALUES)
    ]


def test_a_plain_message_of_format_1() -> None:
    data = message(b"value", b"key", offset=7, timestamp=TIMESTAMP)
    header = read_header(data)
    assert (header.base_offset, header.size_bytes, header.magic) == (7, len(data), 1)
    assert decode_message(data) == [Record(7, TIMESTAMP, b"key", b"value")]
    assert crc_is_valid(data, 0, len(data))
    assert not crc_is_valid(message(b"value", wrong_crc=True), 0, len(message(b"value")))


def test_a_plain_message_of_format_0_has_no_time() -> None:
    assert decode_message(message(None, None, magic=0, offset=3)) == [Record(3, -1, None, None)]


@pytest.mark.parametrize("codec", CODECS)
def test_inner_offsets_of_format_0_are_absolute(codec: int) -> None:
    inner = b"".join(message(b"v", magic=0, offset=offset) for offset in (8, 9, 10))
    inner_records = decode_message(wrapper(codec, inner, magic=0, offset=10))
    assert [record.offset for record in inner_records] == [8, 9, 10]
    assert {record.timestamp for record in inner_records} == {-1}


@pytest.mark.parametrize("codec", CODECS)
def test_inner_offsets_of_format_1_are_relative(codec: int) -> None:
    inner_records = decode_message(wrapper(codec, plain(b"a", b"b", b"c"), offset=10))
    assert [record.offset for record in inner_records] == [8, 9, 10]
    assert [record.timestamp - TIMESTAMP for record in inner_records] == [2, 3, 4]


def test_a_wrapper_at_offset_0_begins_at_0() -> None:
    """Some producers number the inner messages and leave the wrapper at 0."""
    inner_records = decode_message(wrapper(GZIP, plain(b"a", b"b")))
    assert [record.offset for record in inner_records] == [0, 1]


def test_a_wrapper_lends_its_append_time() -> None:
    data = wrapper(GZIP, plain(b"a", b"b"), offset=1, timestamp=99, attributes=APPEND_TIME)
    assert {record.timestamp for record in decode_message(data)} == {99}


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (message(None, attributes=GZIP), MalformedSetError),
        (wrapper(GZIP, b""), MalformedSetError),
        (wrapper(ZSTD, plain(b"a")), MalformedSetError),
        (wrapper(GZIP, plain(b"a", magic=0)), MalformedSetError),
        (wrapper(GZIP, wrapper(GZIP, plain(b"a"))), MalformedSetError),
        (wrapper(GZIP, plain(b"a", b"b", b"c"), offset=1), MalformedSetError),
        (message(b"no gzip", attributes=GZIP), UnreadableSetError),
        (message(b"no lz4", attributes=LZ4, magic=0), UnreadableSetError),
        (message(b"short")[:-1], CorruptionError),
        (wrapper(GZIP, message(b"x", wrong_crc=True)), CorruptionError),
        (wrapper(GZIP, bytes(30)), CorruptionError),
    ],
)
def test_malformed_message_sets(data: bytes, error: type[Exception]) -> None:
    with pytest.raises(CorruptionError) as raised:
        decode_message(data, check_inner_crc=True)
    assert type(raised.value) is error


def test_lengths_that_lie() -> None:
    data = bytearray(message(b"value", None))
    for at in (26, 30):
        lying = data[:]
        lying[at : at + 4] = b"\x00\x00\x00\x63"
        with pytest.raises(UnreadableSetError):
            decode_message(lying)


def test_a_bomb_is_not_unfolded() -> None:
    bomb = wrapper(GZIP, message(bytes(1_000_000)))
    with pytest.raises(UnreadableSetError, match="more than 10000 bytes"):
        decode_message(bomb, size_bytes_max=10_000)


@pytest.mark.parametrize("magic", [0, 1])
def test_plain_messages_keep_or_get_offsets(magic: int) -> None:
    own_offsets = parse(bytes(build_message_set(records(magic=magic), magic=magic)))
    assert [m.offset for m in own_offsets] == [10, 11, 12, 13]
    assert [m.value for m in own_offsets] == list(VALUES)
    new_offsets = parse(bytes(build_message_set(records(), magic=magic, base_offset=50)))
    assert [m.offset for m in new_offsets] == [50, 51, 52, 53]
    times = [TIMESTAMP + n for n in range(4)] if magic else [-1] * 4
    assert [m.timestamp for m in new_offsets] == times


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", CODECS)
def test_a_foreign_codec_reads_the_wrappers(codec: int, magic: int) -> None:
    built = bytes(build_message_set(records(), magic=magic, codec=codec))
    [outer] = parse(built)
    assert (outer.offset, outer.key, outer.attributes) == (13, None, codec)
    assert outer.timestamp == (TIMESTAMP + 3 if magic else -1)
    assert outer.value is not None
    inner = parse(unpack(codec, outer.value, magic))
    assert [m.offset for m in inner] == ([0, 1, 2, 3] if magic else [10, 11, 12, 13])
    assert decode_message(built) == records(magic=magic)


def test_append_time_is_in_wrapper_and_inner_messages() -> None:
    [outer] = parse(bytes(build_message_set(records(), magic=1, codec=GZIP, append_time_ms=5)))
    assert (outer.attributes, outer.timestamp) == (GZIP | APPEND_TIME, 5)
    assert outer.value is not None
    inner = parse(unpack(GZIP, outer.value, 1))
    assert {(m.attributes, m.timestamp) for m in inner} == {(APPEND_TIME, 5)}


@pytest.mark.parametrize(
    ("bad_records", "codec"),
    [
        ([], 0),
        (records(), ZSTD),
        (records(), 5),
        ([Record(0, TIMESTAMP, None, b"v", (("h", b"x"),))], 0),
        ([Record(0, -2, None, b"v")], 0),
        ([records()[1], records()[0]], 0),
    ],
)
def test_records_that_the_format_cannot_hold(bad_records: list[Record], codec: int) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        build_message_set(bad_records, magic=1, codec=codec)


def test_patching_in_place() -> None:
    data = bytearray(message(b"first") + wrapper(SNAPPY, plain(b"a", b"b")))
    second = len(message(b"first"))
    assign_offset(data, second, 42)
    set_timestamp(data, second, len(data) - second, 77, is_append_time=True)
    [first, outer] = parse(bytes(data))
    assert first == Message(0, 1, 0, TIMESTAMP, b"k", b"first")
    assert (outer.offset, outer.attributes, outer.timestamp) == (42, SNAPPY | APPEND_TIME, 77)
    set_timestamp(data, second, len(data) - second, 78, is_append_time=False)
    assert parse(bytes(data))[1].attributes == SNAPPY


def test_codec_names_are_the_attribute_bits() -> None:
    assert [CODEC_NAMES[codec] for codec in (GZIP, SNAPPY, LZ4, ZSTD)] == [
        "gzip",
        "snappy",
        "lz4",
        "zstd",
    ]

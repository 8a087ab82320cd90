"""Random bytes in the place of message sets: an error of ours or a value, never another error."""

from __future__ import annotations

import contextlib
import struct
import zlib

from hypothesis import given, settings
from hypothesis import strategies as st

from minibroker.broker.storage.record_checks import AppendRules
from minibroker.kafka.errors import CorruptionError, KafkaError
from minibroker.kafka.records.batch import iterate_headers
from minibroker.kafka.records.builder import build_batch
from minibroker.kafka.records.conversion import down_convert, is_readable_as
from minibroker.kafka.records.legacy_lz4 import to_sound
from minibroker.kafka.records.message_set import decode_message
from minibroker.kafka.records.record import Record
from tests.support.logs import NOW_MS, check_and_number, config
from tests.support.message_sets import GZIP, LZ4, SNAPPY, TIMESTAMP, plain, wrapper

EXAMPLES = 300
SIZE_MAX = 100_000
SEEDS = [
    plain(b"one", None, b"three " * 20, magic=0),
    plain(b"one", None, b"three " * 20),
    *(
        wrapper(codec, plain(b"one", b"two " * 20, magic=magic), magic=magic, offset=1)
        for codec in (GZIP, SNAPPY, LZ4)
        for magic in (0, 1)
    ),
    bytes(build_batch([Record(0, TIMESTAMP, b"k", b"v"), Record(1, TIMESTAMP, None, b"w" * 99)])),
]
RULES = [
    AppendRules(config(message_format_version=version)) for version in ("0.9.0", "0.10.2", "3.0")
]


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """Return a good set with bytes replaced or cut, most often with a first CRC that fits again."""
    data = bytearray(draw(st.sampled_from(SEEDS)))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(data) - 1))
        data[at] = draw(st.integers(0, 255))
    if draw(st.booleans()):
        del data[draw(st.integers(0, len(data))) :]
    if len(data) > 17 and data[16] < 2 and draw(st.integers(0, 3)):
        (size,) = struct.unpack_from(">i", data, 8)
        if 4 < size <= len(data) - 12:
            struct.pack_into(">I", data, 12, zlib.crc32(data[16 : 12 + size]))
    return bytes(data)


ANY = st.binary(max_size=200) | damaged()


@settings(max_examples=EXAMPLES)
@given(ANY, st.sampled_from(RULES))
def test_appending_refuses_or_stores_a_sound_set(data: bytes, rules: AppendRules) -> None:
    try:
        stored, header = check_and_number(memoryview(bytearray(data)), rules, 100, 0, NOW_MS)
    except KafkaError:
        return
    offsets = []
    for position, outer in iterate_headers(stored):
        assert outer.magic == rules.magic
        if outer.magic < 2:
            offsets += decode_message(stored, position, header=outer, check_inner_crc=True)
    if rules.magic < 2:
        assert [record.offset for record in offsets] == list(range(100, header.last_offset + 1))


@settings(max_examples=EXAMPLES)
@given(ANY, st.integers(0, 1), st.integers(0, 3))
def test_conversion_gives_a_bounded_answer(data: bytes, magic: int, offset: int) -> None:
    view = memoryview(data)
    with contextlib.suppress(CorruptionError, KafkaError):
        is_readable_as(view, magic)
        down_convert(view, magic, offset)


@settings(max_examples=EXAMPLES)
@given(ANY)
def test_messages_are_read_or_refused(data: bytes) -> None:
    with contextlib.suppress(CorruptionError):
        for position, header in iterate_headers(data):
            if header.magic < 2:
                decode_message(data, position, header=header, size_bytes_max=SIZE_MAX)


@given(st.binary(max_size=30) | st.binary(max_size=20).map(lambda tail: b"\x04\x22\x4d\x18" + tail))
def test_lz4_headers(data: bytes) -> None:
    with contextlib.suppress(CorruptionError):
        assert len(to_sound(data)) == len(data)

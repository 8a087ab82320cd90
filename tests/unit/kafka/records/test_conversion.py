"""Down-conversion: what an old consumer gets of newer records."""

from __future__ import annotations

import pytest

from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import CorruptionError, KafkaError
from minibroker.kafka.records.batch import read_header
from minibroker.kafka.records.builder import build_batch
from minibroker.kafka.records.conversion import down_convert, is_readable_as, read_records
from minibroker.kafka.records.message_set import build_message_set, decode_message
from minibroker.kafka.records.record import Record
from tests.support.logs import marker_of
from tests.support.message_sets import GZIP, TIMESTAMP, message, parse, plain, wrapper

RECORDS = [
    Record(100, TIMESTAMP, b"k", b"value " * 50, (("lost", b"header"),)),
    Record(101, TIMESTAMP + 90_000, None, b""),
    Record(105, TIMESTAMP - 1, b"", None),
    Record(300, TIMESTAMP, b"key" * 40, b"x" * 20_000),
]


def stored(codec: str = "none", append_time_ms: int | None = None) -> memoryview:
    return memoryview(
        build_batch(
            RECORDS, base_offset=100, codec=codec, keep_offsets=True, append_time_ms=append_time_ms
        )
    )


def rows_of(data: memoryview) -> list[tuple[int, int, bytes | None, bytes | None]]:
    records = []
    position = 0
    while position < len(data):
        header = read_header(data, position)
        records += decode_message(data, position, header=header, check_inner_crc=True)
        position += header.size_bytes
    return [(r.offset, r.timestamp, r.key, r.value) for r in records]


def expected(magic: int, append_time: int | None = None) -> list[object]:
    return [
        (r.offset, (append_time or r.timestamp) if magic else -1, r.key, r.value) for r in RECORDS
    ]


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4"])
@pytest.mark.parametrize("append_time", [None, TIMESTAMP + 7])
def test_records_of_format_2_for_old_consumers(
    codec: str, magic: int, append_time: int | None
) -> None:
    converted = down_convert(stored(codec, append_time), magic, 0)
    assert rows_of(converted) == expected(magic, append_time)
    assert [m.magic for m in parse(bytes(converted))] == [magic] * (4 if codec == "none" else 1)
    flag = 8 if magic and append_time else 0
    assert {m.attributes & 8 for m in parse(bytes(converted))} == {flag}


def test_the_short_way_equals_the_long_one() -> None:
    for magic in (0, 1):
        plain_records = [record._replace(headers=()) for record in RECORDS]
        built = build_message_set(plain_records, magic=magic)
        assert bytes(down_convert(stored(), magic, 0)) == bytes(built)


def test_plain_records_below_the_offset_stay_away() -> None:
    assert [r[0] for r in rows_of(down_convert(stored(), 1, 102))] == [105, 300]
    assert [r[0] for r in rows_of(down_convert(stored("gzip"), 1, 102))] == [100, 101, 105, 300]


def test_batches_in_an_old_format_are_sent_unchanged() -> None:
    old = plain(b"a", b"b") + wrapper(GZIP, plain(b"c", b"d"), offset=3)
    assert is_readable_as(memoryview(old), 1)
    assert not is_readable_as(memoryview(old), 0)
    assert not is_readable_as(memoryview(old + stored().tobytes()), 1)
    assert not is_readable_as(memoryview(old + bytes(stored())[:17]), 1)
    assert is_readable_as(memoryview(old[:-1]), 1)
    assert not is_readable_as(memoryview(bytes(stored())[:1]), 1, unseen_magic=2)
    assert is_readable_as(memoryview(old[:1]), 1, unseen_magic=1)
    assert bytes(down_convert(memoryview(old), 1, 0)) == old
    mixed = down_convert(memoryview(old + bytes(stored())), 1, 0)
    assert bytes(mixed).startswith(old)
    # The last one is cut: more bytes than were fetched are not sent.
    assert [m.offset for m in parse(bytes(mixed))] == [0, 1, 3, 100, 101, 105]


def test_from_format_1_to_0() -> None:
    old = plain(b"a", b"b") + wrapper(GZIP, plain(b"c", b"d"), offset=3)
    converted = down_convert(memoryview(old), 0, 0)
    assert [(offset, value) for offset, _, _, value in rows_of(converted)] == [
        (0, b"a"),
        (1, b"b"),
        (2, b"c"),
        (3, b"d"),
    ]
    assert {m.magic for m in parse(bytes(converted))} == {0}


def test_an_answer_is_bounded_by_the_fetched_bytes() -> None:
    small = [Record(0, TIMESTAMP, None, b"") for _ in range(100)]
    single = bytes(build_batch(small))
    first = len(down_convert(memoryview(single), 1, 0))
    assert first > 3 * len(single)
    converted = down_convert(memoryview(single * 3), 1, 0)
    assert len(converted) == max(3 * len(single), first)
    assert len(down_convert(memoryview(single * 9), 1, 0)) == 9 * len(single)


def test_the_first_batch_is_whole_and_a_cut_one_ends_the_walk() -> None:
    batch = bytes(stored())
    assert rows_of(down_convert(memoryview(batch + batch[:50]), 1, 0)) == expected(1)
    assert bytes(down_convert(memoryview(batch[:-1]), 1, 0)) == b""


def test_control_batches_go_and_leave_a_mark_if_nothing_else_is_there() -> None:
    marker = marker_of(1, timestamp_ms=0)
    converted = down_convert(memoryview(bytes(marker) + bytes(stored())), 1, 0)
    assert rows_of(converted) == expected(1)
    alone = bytes(down_convert(marker, 1, 0))
    assert alone == b"\xff" * 8 + b"\x00\x00\x00\x3d"


def test_zstd_is_an_error_first_and_an_end_later() -> None:
    with pytest.raises(KafkaError) as raised:
        down_convert(stored("zstd"), 1, 0)
    assert raised.value.code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    both = memoryview(bytes(stored()) + bytes(stored("zstd")))
    assert rows_of(down_convert(both, 1, 0)) == expected(1)


def test_records_that_lie() -> None:
    negative_length, fifth_record, long_value = (bytearray(stored()) for _ in range(3))
    negative_length[61] = 0x7F
    fifth_record[60] = 5
    long_value[69] = 0x08
    for broken in (negative_length, fifth_record, long_value):
        with pytest.raises(CorruptionError):
            down_convert(memoryview(broken), 1, 0)


def test_any_format_is_read() -> None:
    assert read_records(stored(), 0, read_header(stored())) == RECORDS
    single = message(b"v", offset=4)
    assert read_records(single, 0, read_header(single)) == [Record(4, TIMESTAMP, b"k", b"v")]

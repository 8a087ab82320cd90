"""Records → message set → records, between all formats, for any records.

A second codec checks the bytes.
"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from minibroker.broker.config.topic import TopicConfig
from minibroker.broker.storage.record_checks import AppendRules
from minibroker.kafka.records.batch import iterate_headers
from minibroker.kafka.records.builder import build_batch
from minibroker.kafka.records.compression import CODEC_NAMES
from minibroker.kafka.records.conversion import down_convert, read_records
from minibroker.kafka.records.message_set import build_message_set, crc_is_valid
from minibroker.kafka.records.record import Record
from tests.support.logs import NOW_MS, check_and_number, config
from tests.support.message_sets import parse, unpack

NULLABLE = st.none() | st.binary(max_size=300)
CODECS = st.integers(0, 3)
MAGICS = st.integers(0, 1)
CONFIGS: dict[int, TopicConfig] = {
    magic: config(message_format_version=version)
    for magic, version in enumerate(("0.8.2", "0.10.0", "0.11.0"))
}


@st.composite
def record_lists(draw: st.DrawFn) -> list[Record]:
    """Return records that old formats can hold, with ascending offsets and gaps."""
    offset = draw(st.integers(0, 2**62))
    records = []
    for _ in range(draw(st.integers(1, 8))):
        timestamp = draw(st.integers(-1, 2**63 - 1))
        records.append(Record(offset, timestamp, draw(NULLABLE), draw(NULLABLE)))
        offset += draw(st.integers(1, 1000))
    return records


def all_records(data: bytes | bytearray | memoryview) -> list[Record]:
    problems: list[Record] = []
    for position, header in iterate_headers(data):
        problems += read_records(bytes(data), position, header)
    return problems


def without_times(records: list[Record]) -> list[Record]:
    return [record._replace(timestamp=-1) for record in records]


@given(record_lists(), MAGICS, CODECS)
def test_message_sets_round_trip(records: list[Record], magic: int, codec: int) -> None:
    built = bytes(build_message_set(records, magic=magic, codec=codec))
    assert all_records(built) == (records if magic else without_times(records))
    for position, header in iterate_headers(built):
        assert crc_is_valid(built, position, header.size_bytes)
    messages = parse(built)
    if codec:
        [outer] = messages
        assert outer.offset == records[-1].offset
        assert outer.value is not None
        messages = parse(unpack(codec, outer.value, magic))
    assert [(m.key, m.value) for m in messages] == [(r.key, r.value) for r in records]


@given(record_lists(), MAGICS, CODECS)
def test_down_conversion_keeps_records(records: list[Record], magic: int, codec: int) -> None:
    batch = build_batch(
        records, base_offset=records[0].offset, codec=CODEC_NAMES[codec], keep_offsets=True
    )
    converted = down_convert(memoryview(batch), magic, 0)
    assert all_records(converted) == (records if magic else without_times(records))
    lower = down_convert(memoryview(bytes(converted)), 0, 0)
    if len(lower) and magic:
        records_kept = all_records(lower)
        assert records_kept == without_times(records)[: len(records_kept)]


@given(record_lists(), MAGICS, CODECS, st.integers(0, 2), st.integers(0, 2**40))
def test_appending_keeps_records(
    records: list[Record], magic: int, codec: int, target: int, next_offset: int
) -> None:
    """With any sent and any stored format: the same records, numbered."""
    message_set = build_message_set(records, magic=magic, codec=codec, base_offset=0)
    rules = AppendRules(CONFIGS[target])
    stored, header = check_and_number(memoryview(message_set), rules, next_offset, 0, NOW_MS)
    stored_records = all_records(stored)
    assert [record.offset for record in stored_records] == [
        next_offset + n for n in range(len(records))
    ]
    has_times = magic == 1 and target > 0
    expected = records if has_times else without_times(records)
    assert [record[1:] for record in stored_records] == [record[1:] for record in expected]
    assert header.magic == target
    assert header.last_offset == stored_records[-1].offset
    assert header.max_timestamp == max(record.timestamp for record in stored_records)

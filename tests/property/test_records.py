"""Records → batch → records, with every codec, for any records at all."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from minibroker.kafka.records.batch import (
    SEQUENCE_MAX,
    add_to_sequence,
    crc_is_valid,
    read_header,
    subtract_from_sequence,
)
from minibroker.kafka.records.builder import build_batch, write_varint
from minibroker.kafka.records.compression import CODEC_NAMES, compress, decompress
from minibroker.kafka.records.record import Record, count_records, decode_records, read_varint

INT64 = st.integers(-(2**63), 2**63 - 1)
CODECS = st.sampled_from(CODEC_NAMES)
NULLABLE = st.none() | st.binary(max_size=300)
HEADERS = st.lists(st.tuples(st.text(max_size=5), NULLABLE), max_size=3).map(tuple)


@st.composite
def record_lists(draw: st.DrawFn) -> list[Record]:
    """Return records with ascending offsets, gaps included."""
    offset = draw(st.integers(0, 2**62))
    records = []
    for _ in range(draw(st.integers(1, 8))):
        records.append(Record(offset, draw(INT64), draw(NULLABLE), draw(NULLABLE), draw(HEADERS)))
        offset += draw(st.integers(1, 1000))
    return records


@given(record_lists(), CODECS)
def test_batches_round_trip(records: list[Record], codec: str) -> None:
    base_offset = records[0].offset
    built = build_batch(records, base_offset=base_offset, codec=codec, keep_offsets=True)
    header = read_header(built)
    assert decode_records(built) == records
    assert crc_is_valid(built, 0, len(built))
    assert header.size_bytes == len(built)
    assert header.last_offset == records[-1].offset
    assert header.max_timestamp == max(-1, *(record.timestamp for record in records))
    if codec == "none":
        count_records(memoryview(built), 61, len(built), len(records))


@given(INT64)
def test_varints_round_trip(value: int) -> None:
    out = bytearray()
    write_varint(out, value)
    assert read_varint(bytes(out), 0, 10) == (value, len(out))


@given(st.integers(0, 4), st.binary(max_size=100_000), st.integers(0, 50))
def test_compression_round_trips_within_its_limit(codec: int, data: bytes, spare: int) -> None:
    assert decompress(codec, compress(codec, data), len(data) + spare) == data


@given(st.integers(0, SEQUENCE_MAX), st.integers(0, SEQUENCE_MAX))
def test_sequences_go_round(sequence: int, step: int) -> None:
    after = add_to_sequence(sequence, step)
    assert 0 <= after <= SEQUENCE_MAX
    assert after == (sequence + step) % 2**31
    assert subtract_from_sequence(after, step) == sequence

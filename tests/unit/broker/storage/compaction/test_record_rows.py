"""The quick walk finds what the full reader finds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minibroker.broker.storage.compaction.record_rows import (
    copy_rows,
    copy_rows_with_deltas,
    fold,
    read_rows,
    unfold,
    varint,
)
from minibroker.kafka.errors import CorruptionError
from minibroker.kafka.records.batch import read_header
from minibroker.kafka.records.builder import build_batch, write_varint
from minibroker.kafka.records.compression import CODEC_NAMES
from minibroker.kafka.records.record import Record, decode_records

TEXTS = st.none() | st.binary(max_size=200)
RECORDS = st.lists(
    st.builds(
        Record,
        st.just(0),
        st.integers(0, 2**42),
        TEXTS,
        TEXTS,
        st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=9)), max_size=2).map(
            tuple
        ),
    ),
    min_size=1,
    max_size=80,
)


@given(records=RECORDS, codec=st.sampled_from(CODEC_NAMES))
def test_rows_tell_what_the_records_are(records: list[Record], codec: str) -> None:
    batch = bytes(build_batch(records, codec=codec, base_offset=7))
    header = read_header(batch)
    body, start, end = unfold(batch, 0, header)
    rows = read_rows(body, start, end, header.count)
    row_fields = [
        (7 + row.offset_delta, header.base_timestamp + row.timestamp_delta, row.key, row.has_value)
        for row in rows
    ]
    expected = decode_records(batch)
    assert row_fields == [(r.offset, r.timestamp, r.key, r.value is not None) for r in expected]
    assert copy_rows(body, rows) == body[start:end]
    deltas = [row.timestamp_delta for row in rows]
    assert copy_rows_with_deltas(body, rows, deltas) == body[start:end]
    assert len(fold(header.codec, body[start:end])) == header.size_bytes - 61


@given(value=st.integers(-(2**63), 2**63 - 1))
def test_varints_are_those_of_the_builder(value: int) -> None:
    expected = bytearray()
    write_varint(expected, value)
    assert varint(value) == expected


@given(records=RECORDS, data=st.data())
def test_damaged_records_are_corruption_and_nothing_else(
    records: list[Record], data: st.DataObject
) -> None:
    batch = bytes(build_batch(records))
    body = bytearray(batch[61:])
    place = data.draw(st.integers(0, len(body) - 1))
    body[place] = data.draw(st.integers(0, 255))
    try:
        rows = read_rows(bytes(body), 0, len(body), len(records))
    except CorruptionError:
        return
    assert all(row.end <= len(body) for row in rows)


def test_a_wrong_count_is_corruption() -> None:
    batch = bytes(build_batch([Record(0, 1, b"a", b"b"), Record(0, 1, b"c", b"d")]))
    for count in (-1, 1, 3, 1 << 31):
        with pytest.raises(CorruptionError):
            read_rows(batch, 61, len(batch), count)


def test_only_the_chosen_records_are_copied() -> None:
    batch = bytes(build_batch([Record(0, n, b"%d" % n, b"v") for n in range(5)]))
    rows = read_rows(batch, 61, len(batch), 5)
    chosen = [rows[0], rows[2], rows[3]]
    assert copy_rows(batch, chosen) == b"".join(batch[row.start : row.end] for row in chosen)

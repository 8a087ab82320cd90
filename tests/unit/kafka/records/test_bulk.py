"""Many records at once, beside the same records read and written one by one."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minibroker.kafka.errors import CorruptionError
from minibroker.kafka.records.batch import RECORDS_AT
from minibroker.kafka.records.builder import build_batch, seal_batch
from minibroker.kafka.records.bulk import encode_records, values_of
from minibroker.kafka.records.record import Record, decode_records

VALUE = st.none() | st.binary(max_size=90) | st.integers(60, 70).map(bytes)
RUNS = st.lists(st.tuples(VALUE, st.integers(1, 90)), min_size=1, max_size=8)
"""Values, and how often each comes in a row."""


def repeated(runs: list[tuple[bytes | None, int]]) -> list[bytes | None]:
    return [value for value, count in runs for _ in range(count)]


def sealed(body: bytes, count: int) -> bytearray:
    return seal_batch(
        body,
        attributes=0,
        base_offset=0,
        leader_epoch=-1,
        last_delta=count - 1,
        timestamps=(7, 7),
        producer=(-1, -1, -1),
        count=count,
    )


@given(RUNS)
@settings(max_examples=150, deadline=None)
def test_values_are_written_as_a_builder_writes_them(runs: list[tuple[bytes | None, int]]) -> None:
    values = repeated(runs)
    records = [Record(at, 7, None, value) for at, value in enumerate(values)]
    assert sealed(encode_records(values), len(values)) == build_batch(records)


@given(st.lists(st.tuples(VALUE, VALUE), min_size=1, max_size=300))
@settings(max_examples=100, deadline=None)
def test_pairs_are_written_as_a_builder_writes_them(
    pairs: list[tuple[bytes | None, bytes | None]],
) -> None:
    keys, values = [key for key, _ in pairs], [value for _, value in pairs]
    records = [Record(at, 7, key, value) for at, (key, value) in enumerate(pairs)]
    assert sealed(encode_records(values, keys), len(pairs)) == build_batch(records)


@given(
    RUNS,
    st.none() | st.binary(max_size=70),
    st.integers(0, 300),
    st.sampled_from([0, 1, 100, 20_000]),
    st.booleans(),
)
@settings(max_examples=200, deadline=None)
def test_values_are_read_as_records_are(
    runs: list[tuple[bytes | None, int]], key: bytes | None, first: int, step: int, headers: bool
) -> None:
    """With keys, times that differ, headers, and an offset in the middle of the batch."""
    records = [
        Record(5 + at, 7 + at * step, key, value, (("h", b"\x00"),) if headers else ())
        for at, value in enumerate(repeated(runs))
    ]
    batch = build_batch(records, base_offset=5)
    body = bytes(batch[RECORDS_AT:])
    expected = [each.value for each in decode_records(batch) if each.offset >= first]
    assert values_of(body, len(records), 5, first) == expected


@given(RUNS, st.data())
@settings(max_examples=200, deadline=None)
def test_damaged_bytes_are_an_error_or_values(
    runs: list[tuple[bytes | None, int]], data: st.DataObject
) -> None:
    values = repeated(runs)
    body = bytearray(encode_records(values))
    at = data.draw(st.integers(0, len(body) - 1))
    body[at] = data.draw(st.integers(0, 255))
    end = data.draw(st.integers(0, len(body)))
    try:
        decoded = values_of(bytes(body[:end]), len(values), 0, 0)
    except CorruptionError:
        return
    assert len(decoded) <= len(values)


@pytest.mark.parametrize("count", [2, 4])
def test_another_count_than_the_records_is_an_error(count: int) -> None:
    with pytest.raises(CorruptionError):
        values_of(encode_records([b"a", b"b", b"c"]), count, 0, 0)


def test_large_values_have_large_sizes() -> None:
    values: list[bytes | None] = [b"x" * 20_000, b"y" * 2_000_000, None]
    batch = sealed(encode_records(values), 3)
    assert [record.value for record in decode_records(batch)] == values
    assert values_of(bytes(batch[RECORDS_AT:]), 3, 0, 0) == values

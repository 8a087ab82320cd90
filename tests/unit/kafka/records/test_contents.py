"""The contents of a batch: every way of reading them follows Kafka's rules."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from minibroker.kafka.errors import CorruptionError
from minibroker.kafka.records import contents
from minibroker.kafka.records.batch import read_header
from minibroker.kafka.records.builder import build_batch
from minibroker.kafka.records.contents import Contents, UnreadableLengthError, read_contents
from minibroker.kafka.records.record import INT64_BYTES_MAX, Record, read_varint

BASE = 1_700_000_000_000
TIMES = st.integers(0, 40) | st.integers(-(2**20), 2**20)


def contents_of(batch: bytes | bytearray, *, is_framed: bool = True) -> Contents:
    header = read_header(batch)
    return read_contents(bytes(batch), 61, header.size_bytes, header, is_framed, len(batch))


@st.composite
def record_lists(draw: st.DrawFn) -> list[Record]:
    """Stretches of records of one layout, as producers send them, with others between."""
    records: list[Record] = []
    for _ in range(draw(st.integers(1, 4))):
        key = draw(st.none() | st.binary(max_size=70))
        value = draw(st.none() | st.binary(max_size=200))
        headers = draw(st.sampled_from([(), (("h", b"1"), ("n", None))]))
        step = draw(st.sampled_from([0, 0, 1, 7]))
        start = BASE + draw(TIMES)
        for index in range(draw(st.sampled_from([1, 3, 20, 90]))):
            offset = records[-1].offset + 1 if records else 0
            offset += draw(st.sampled_from([0] * 200 + [1]))
            records.append(Record(offset, start + index * step, key, value, headers))
    return records


@given(record_lists(), st.booleans())
@example([Record(n, BASE + n // 50, None, b"v" * 100) for n in range(9000)], True)
@example([Record(n, BASE, b"k" if n % 100 else None, b"v" * (n % 2)) for n in range(300)], True)
@example([Record(n, BASE - n, b"k", b"v") for n in range(300)], True)
@example([Record(n, BASE, *((b"k", b"v") if n < 20 else (None, b"vv"))) for n in range(40)], True)
def test_the_facts_are_those_of_the_records(records: list[Record], is_framed: bool) -> None:
    built = build_batch(records, base_offset=0, keep_offsets=True)
    earliest, latest, is_consecutive, has_null_key = contents_of(built, is_framed=is_framed)
    times = [record.timestamp for record in records]
    assert latest == max(times)
    assert earliest <= min(times)
    assert min(times) == times[0] or earliest == min(times)
    assert is_consecutive == ([r.offset for r in records] == list(range(len(records))))
    assert has_null_key == any(record.key is None for record in records)


@given(record_lists(), st.data())
def test_damage_is_found_or_read_alike(records: list[Record], data: st.DataObject) -> None:
    """One byte is another: the quick ways take nothing that Kafka's rules refuse."""
    built = build_batch(records[:60], base_offset=0, keep_offsets=True)
    position = data.draw(st.integers(61, len(built) - 1))
    built[position] = data.draw(st.integers(0, 255))
    expected: object
    try:
        expected = reference(built)
    except (CorruptionError, IndexError):
        with pytest.raises(CorruptionError):
            contents_of(built)
        return
    _, *fields = contents_of(built)
    assert tuple(fields) == expected


def reference(built: bytearray) -> tuple[int, bool, bool]:
    """Largest timestamp, consecutive offsets and null keys, read in the plainest way."""
    header = read_header(built)
    body, at = bytes(built), 61
    latest, is_consecutive, has_null_key = -1, True, False
    for index in range(header.count):
        length, at = read_varint(body, at)
        stop = at + length
        delta, at = read_varint(body, at + 1, INT64_BYTES_MAX)
        offset, at = read_varint(body, at)
        for field in ("key", "value"):
            size, at = read_varint(body, at)
            at += max(size, 0)
            has_null_key |= field == "key" and size < 0
        header_count, at = read_varint(body, at)
        if header_count < 0 or header_count > len(body):
            raise CorruptionError("header count")
        for _ in range(header_count):
            size, at = read_varint(body, at)
            if size < 0:
                raise CorruptionError("header without a key")
            size, at = read_varint(body, at + size)
            at += max(size, 0)
        if at != stop or length < 0:
            raise CorruptionError("length")
        latest = max(latest, header.base_timestamp + delta)
        is_consecutive &= offset == index
    if at != len(body):
        raise CorruptionError("rest")
    return latest, is_consecutive, has_null_key


SIZES = st.sampled_from([None, 0, 1, 30, 63, 64, 200])


@given(SIZES, SIZES, st.integers(-1, 1), st.data())
def test_a_record_of_a_shape_that_was_read_is_read_as_the_first_one(
    key_size: int | None, size: int | None, attempt: int, data: st.DataObject
) -> None:
    key = None if key_size is None else bytes(key_size)
    value = None if size is None else bytes(size)
    built = build_batch([Record(0, BASE, key, value)])
    expected = (BASE, BASE, True, key is None)
    assert contents_of(built) == contents_of(built) == expected
    assert len(contents._shapes) <= contents.SHAPES_MAX
    late = build_batch([Record(0, attempt, key, value)])
    assert contents_of(late) == (attempt, attempt, True, key is None)
    position = data.draw(st.integers(61, len(built) - 1))
    built[position] = data.draw(st.integers(0, 255))
    try:
        damaged = reference(built)
    except (CorruptionError, IndexError):
        with pytest.raises(CorruptionError):
            contents_of(built)
        return
    assert contents_of(built)[1:] == damaged


@given(st.integers(0, 70), st.integers(0, 70), st.integers(0, 2**13))
def test_a_run_is_read_alike_whatever_layout_its_size_had_before(
    key_bytes: int, value_bytes: int, step: int
) -> None:
    """The bytes of key and value together are the same, so a record has the same size."""
    both = b"x" * (key_bytes + value_bytes)
    for key, value in ((both[:key_bytes], both[key_bytes:]), (both, b""), (None, both)):
        built = build_batch([Record(n, BASE + n * step, key, value) for n in range(80)])
        for _ in range(2):
            assert contents_of(built) == (BASE, BASE + 79 * step, True, key is None)


def test_shapes_of_records_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    contents._shapes.clear()
    contents._layouts.clear()
    monkeypatch.setattr(contents, "SHAPES_MAX", 50)
    for size in range(contents.SHAPES_MAX + 10):
        contents_of(build_batch([Record(0, BASE, b"k", b"v" * size)]))
        contents_of(build_batch([Record(n, BASE, b"k", b"v" * size) for n in range(20)]))
    assert len(contents._shapes) == len(contents._layouts) == contents.SHAPES_MAX
    for key in (b"k" * 300, b"kk"):
        contents_of(build_batch([Record(0, BASE, key, b"v")]))
    assert len(contents._shapes) == contents.SHAPES_MAX


def test_an_append_time_is_that_of_every_record() -> None:
    built = build_batch([Record(0, 5, b"k", b"v"), Record(1, 9, b"k", b"v")], append_time_ms=77)
    assert contents_of(built) == (77, 77, True, False)


def test_lengths_of_records_that_stay_compressed_are_not_compared() -> None:
    built = build_batch([Record(0, BASE, b"k", b"v")])
    built[61] += 2
    with pytest.raises(CorruptionError, match="declares 9 bytes, its fields take 8"):
        contents_of(built)
    _, latest, _, _ = contents_of(built, is_framed=False)
    assert latest == BASE


def test_a_length_that_is_no_number() -> None:
    built = build_batch([Record(0, BASE, b"k", b"v")])
    built[61:66] = b"\xff" * 5
    with pytest.raises(UnreadableLengthError, match="record 0"):
        contents_of(built)
    with pytest.raises(CorruptionError) as raised:
        contents_of(built, is_framed=False)
    assert not isinstance(raised.value, UnreadableLengthError)

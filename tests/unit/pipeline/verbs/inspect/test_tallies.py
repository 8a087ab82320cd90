"""Tallies of records are the same, however the records come in batches and tasks."""

from __future__ import annotations

import pickle
from collections import Counter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from minibroker.pipeline.verbs.inspect.batch_tallies import COLUMNS, BatchTally
from minibroker.pipeline.verbs.inspect.facts import CodecFacts, Defect
from minibroker.pipeline.verbs.inspect.keys import (
    COUNTED,
    SMALLEST_MAX,
    FrequentKeys,
    KeyCount,
    keys_of,
)
from minibroker.pipeline.verbs.inspect.tallies import FACTS, Tally, TopicTally, width_of

if TYPE_CHECKING:
    from collections.abc import Sequence


Row = tuple[int, int, int | None, bytes | None, int | None]
"""partition, offset, milliseconds, key, bytes of the value"""
TYPES = (pa.string(), pa.int32(), pa.int64(), pa.int64(), pa.binary(), pa.int32())


def batch(rows: Sequence[Row], topic: str = "t") -> pa.RecordBatch:
    columns = zip(*((topic, *row) for row in rows), strict=True)
    arrays = [pa.array(list(column), kind) for column, kind in zip(columns, TYPES, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, names=list(FACTS))


def tally_of(*rows: Row, size: int = 1000) -> TopicTally:
    tally = Tally()
    for start in range(0, len(rows), size):
        tally.add(batch(rows[start : start + size]))
    return tally.topics["t"]


def test_partitions_are_counted() -> None:
    tally = tally_of(
        (0, 5, 1_000, b"a", 5),
        (0, 7, 2_000, None, 0),
        (1, 0, 9_000, None, None),
        (0, 9, 3_000, b"b", None),
    )
    first, second = tally.partitions[0].facts, tally.partitions[1].facts
    assert (first.records, first.size_bytes, first.first_offset, first.last_offset) == (3, 7, 5, 9)
    assert (first.first_ms, first.last_ms, first.without_key, first.tombstones) == (
        1000,
        3000,
        1,
        1,
    )
    assert (first.keys, tally.key_count()) == (2, 2)
    assert (second.records, second.size_bytes, second.keys) == (1, 0, 0)


def test_there_are_no_more_keys_than_records_with_one() -> None:
    """The estimate of 20,000 keys is too large or too small by some."""
    tally = tally_of(*((0, at, 0, b"%d" % at, 0) for at in range(20_000)), (0, 20_000, 0, None, 0))
    assert tally.partitions[0].keys.estimate() != 20_000
    assert tally.partitions[0].facts.keys <= 20_000


def test_sizes_are_exact_when_small_and_nearly_when_large() -> None:
    sizes = (0, 1, 2, 3, 4, 1023, 1024, 1_000_001)
    tally = tally_of(*((0, n, 0, None, size) for n, size in enumerate(sizes)))
    assert tally.sizes_by_power() == [(-1, 1), (0, 1), (1, 2), (2, 1), (9, 1), (10, 1), (19, 1)]
    assert (tally.smallest, tally.size_at(0.5), tally.largest) == (0, 3, 1_000_001)
    assert 0.999 * 1_000_001 < tally.size_at(0.99) <= 1_000_001
    assert tally.sizes.total() == len(sizes)


@pytest.mark.parametrize(
    ("milliseconds", "late", "most"),
    [
        ((70, 100, 40, 100, 99), 2, 60),
        ((10, 11, 11, 12), 0, 0),
        ((-1, 50, -1, None, 60, 10), 1, 50),
        ((-1, None), 0, 0),
    ],
)
def test_order_is_looked_at_within_a_partition_and_a_record_without_a_time_has_none(
    milliseconds: tuple[int | None, ...], late: int, most: int
) -> None:
    rows = [(0, n, ms, None, 0) for n, ms in enumerate(milliseconds)]
    for size in (1, 2, 100):
        facts = tally_of(*rows, (1, 0, 5, None, 0), size=size).partitions[0].facts
        assert (facts.out_of_order, facts.most_behind_ms) == (late, most)
        times = [ms for ms in milliseconds if ms is not None and ms >= 0]
        assert (facts.first_ms, facts.last_ms) == (
            min(times, default=None),
            max(times, default=None),
        )


@given(st.lists(st.integers(0, 2**62), min_size=1, max_size=40), st.integers(1, 7), st.data())
def test_slices_are_those_of_all_times_however_they_come(
    times: list[int], size: int, data: Any
) -> None:
    """Wide and narrow spans, in batches and in tasks: each slice has its records."""
    in_other = data.draw(st.lists(st.booleans(), min_size=len(times), max_size=len(times)))
    tallies = [Tally(), Tally()]
    for number, tally in enumerate(tallies):
        rows = [
            (number, at, ms, None, 2) for at, ms in enumerate(times) if in_other[at] == bool(number)
        ]
        for start in range(0, len(rows), size):
            tally.add(batch(rows[start : start + size]))
    whole = Tally()
    for tally in tallies:
        tally.settle()
        whole.merge(pickle.loads(pickle.dumps(tally)))
    topic_times = whole.topics["t"].times
    width = width_of(max(times) - min(times))
    exact = Counter(ms // width * width for ms in times)
    assert topic_times.slices(width) == [
        (start, exact[start], 2 * exact[start]) for start in sorted(exact)
    ]
    assert len(exact) <= 62


def test_a_partition_in_two_tasks_is_refused() -> None:
    whole, other = Tally(), Tally()
    for tally in (whole, other):
        tally.add(batch([(3, 0, 0, None, 0)]))
    with pytest.raises(ValueError, match="partition 3 was read in two tasks"):
        whole.merge(other)


@pytest.mark.parametrize(
    ("span_ms", "width_ms"),
    [
        (0, 1),
        (60, 1),
        (61, 2),
        (60_000, 1_000),
        (3_600_000, 60_000),
        (86_400_000, 1_800_000),
        (365 * 86_400_000, 7 * 86_400_000),
        (60 * 365 * 86_400_000 + 1, 2 * 365 * 86_400_000),
        (140 * 365 * 86_400_000, 4 * 365 * 86_400_000),
    ],
)
def test_time_is_cut_into_round_slices(span_ms: int, width_ms: int) -> None:
    assert width_of(span_ms) == width_ms
    assert span_ms / width_of(span_ms) <= 60


# Batches of a broker's files are counted: sequences by epoch, codecs, and torn files.


USUAL: dict[str, Any] = {
    "topic": "t",
    "partition": 0,
    "codec": "none",
    "magic": 2,
    "records": 10,
    "sizeBytes": 100,
    "recordBytes": 200,
    "isControl": False,
    "isAborted": False,
    "producerId": 7,
    "producerEpoch": 0,
    "baseSequence": -1,
}


def tally(*rows: dict[str, Any]) -> BatchTally:
    whole_tally = BatchTally()
    whole = [{**dict.fromkeys(COLUMNS), **USUAL, **row} for row in rows]
    whole_tally.add(pa.RecordBatch.from_pylist(whole))
    return whole_tally


def described_batch(first: int, last: int, **more: Any) -> dict[str, Any]:
    return {"baseSequence": first, "lastSequence": last, "records": last - first + 1, **more}


def producers(batch_tally: BatchTally) -> list[tuple[int, int, int, int]]:
    return [
        (producer.partition, producer.producer_id, producer.missing, producer.repeated)
        for producer in batch_tally.of_topic("t").producers
    ]


def test_sequences_that_go_on_are_sound() -> None:
    end = 2**31 - 1
    batch_tally = tally(
        described_batch(end - 9, end),
        described_batch(0, 9),
        described_batch(0, 0, producerEpoch=1),
        described_batch(10, 19),
        described_batch(500, 509, producerId=8),
        {"isControl": True, "producerId": 9},
        {"producerId": -1},
        {"producerId": None, "baseSequence": None, "magic": 1},
    )
    assert producers(batch_tally) == [(0, 7, 0, 0), (0, 8, 0, 0)]
    assert [producer.epochs for producer in batch_tally.of_topic("t").producers] == [2, 1]


def test_gaps_and_repetitions_are_counted_in_records() -> None:
    """The tally of a task, merged with that of another one."""
    batch_tally = tally(
        described_batch(0, 9),
        described_batch(13, 19),
        described_batch(13, 19),
        described_batch(20, 29),
        described_batch(35, 35),
    )
    batch_tally.merge(pickle.loads(pickle.dumps(tally(described_batch(0, 4, partition=1)))))
    assert producers(batch_tally) == [(0, 7, 8, 7), (1, 7, 0, 0)]


def test_codecs_and_defects() -> None:
    batch_tally = tally(
        described_batch(0, 9, recordBytes=None),
        described_batch(10, 19, codec="zstd", isAborted=True),
        {"isControl": True, "codec": "zstd"},
        {"defect": "cut", "segment": "0.log", "position": 5, "sizeBytes": 7},
    )
    batch_tally.merge(tally(described_batch(0, 9, partition=1, codec="zstd")))
    assert batch_tally.of_topic("t").codecs == (
        CodecFacts("zstd", 2, 2, 20, 200, 400, 10),
        CodecFacts("none", 2, 1, 10, 100, 0, 0),
    )
    assert batch_tally.of_topic("t").defects == (Defect(0, "0.log", 5, 7, "cut"),)
    assert batch_tally.of_topic("other") == ((), (), ())


# Keys are counted in bounded memory: exactly while they are few, within a bound when many.


MANY = 100_000


def pieces(size: int) -> list[range]:
    """Return the numbers below MANY in pieces."""
    return [range(start, start + size) for start in range(0, MANY, size)]


def column(*keys: bytes | None) -> pa.Array:
    return pa.array(keys, pa.binary())


def test_few_keys_are_counted_exactly() -> None:
    count = KeyCount()
    for number in range(3 * SMALLEST_MAX):
        count.add(
            keys_of(column(b"%d" % (number % 1000), None)).hashes
        ) if number % 7 == 0 else None
    assert count.estimate() == 1000


def test_many_keys_are_counted_about_and_a_merge_counts_the_same() -> None:
    whole, parts = KeyCount(), [KeyCount(), KeyCount()]
    for number, some in enumerate(pieces(1000)):
        hashes = keys_of(column(*(b"%d" % key for key in some))).hashes
        whole.add(hashes)
        parts[number % 2].add(hashes)
        parts[(number + 1) % 2].add(hashes.slice(0, 300))
    copy = pickle.loads(pickle.dumps(parts[0]))
    copy.merge(parts[1])
    assert abs(whole.estimate() - MANY) < 0.05 * MANY
    assert copy.estimate() == whole.estimate()


def test_the_most_frequent_of_few_keys_are_exact_with_their_partitions() -> None:
    frequent = FrequentKeys()
    long = b"once" * 30
    frequent.add(keys_of(column(b"everywhere", b"everywhere", b"rare", None)), 0)
    other = FrequentKeys()
    other.add(keys_of(column(b"everywhere", b"everywhere", long, long, long)), 1)
    frequent.merge(other)
    assert frequent.missed == 0
    assert frequent.most_frequent(2) == [(b"everywhere", 10, 4, 0, 1), (long[:64], 120, 3, 1, 1)]


def test_a_count_among_many_keys_is_short_by_no_more_than_is_told() -> None:
    """One record of a hundred has the hot key, the others a key of their own."""
    frequent, other, exact = FrequentKeys(), FrequentKeys(), Counter[bytes]()
    for number, some in enumerate(pieces(5000)):
        keys = [b"hot" if key % 100 == 0 else b"%d" % key for key in some]
        exact.update(keys)
        (frequent, other)[number % 2].add(keys_of(column(*keys)), number % 3)
    other.settle()
    frequent.merge(pickle.loads(pickle.dumps(other)))
    [hot] = frequent.most_frequent(10)
    assert hot.start == b"hot"
    assert hot.records <= exact[b"hot"] <= hot.records + frequent.missed
    assert 0 < frequent.missed <= MANY // COUNTED
    assert (hot.first_partition, hot.last_partition) == (0, 2)

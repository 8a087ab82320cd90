"""Two sides read beside each other differ where their digests say so, and nothing is missed.

The other way is `Digester.add` for all records of each side, which archives take.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from minibroker.pipeline.kafka import schemas
from minibroker.pipeline.offsets import OffsetRange, group_ranges
from minibroker.pipeline.verbs.compare.digests import Digester, RunDigest, by_partition
from minibroker.pipeline.verbs.compare.job import differing
from minibroker.pipeline.verbs.compare.pairs import digest_pair
from minibroker.pipeline.verbs.compare.ranges import TaskRanges, paired
from minibroker.pipeline.verbs.compare.rules import CompareRules

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SEED = 11
BUCKETS = 8
SCHEMA = schemas.arrow_schema(include_headers=True)


class RecordSpec(NamedTuple):
    """One record, without its place."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] | None
    timestamp: int


record_specs = st.builds(
    RecordSpec,
    st.sampled_from([None, b"", b"a", b"b", b"c"]),
    st.sampled_from([None, b"", b"x", b"y"]),
    st.sampled_from([None, (("h", b"1"),), (("h", None), ("h", b"1")), (("h", b"1"), ("h", None))]),
    st.integers(-1, 2),
)
Partition = list[RecordSpec]
Topic = list[Partition]
topic = st.lists(st.lists(record_specs, max_size=16), min_size=1, max_size=3)
edit = st.tuples(
    st.sampled_from(["drop", "twice", "swap", "change", "move"]),
    st.integers(0, 100),
    st.integers(0, 100),
    record_specs,
)
rules = st.builds(
    CompareRules,
    partition=st.booleans(),
    timestamp=st.booleans(),
    headers=st.booleans(),
    order=st.booleans(),
    offset=st.booleans(),
)


def edited(records: Topic, edits: list[tuple[str, int, int, RecordSpec]]) -> Topic:
    """Return a copy of a topic with these differences."""
    partitions = [list(partition) for partition in records]
    for kind, first, second, other in edits:
        partition = partitions[first % len(partitions)]
        if not partition:
            partition.append(other)
            continue
        at, beside = second % len(partition), first % len(partition)
        if kind == "drop":
            del partition[at]
        elif kind == "twice":
            partition.insert(beside, partition[at])
        elif kind == "swap":
            partition[at], partition[beside] = partition[beside], partition[at]
        elif kind == "change":
            partition[at] = other
        else:
            partitions[second % len(partitions)].append(partition.pop(at))
    return partitions


def offsets_of(partition: Partition, gap: int) -> list[int]:
    """Return the offsets of records; markers of transactions are between them."""
    return [at + (at // gap if gap else 0) for at in range(len(partition))]


def read(
    records: Topic, gap: int, sizes: list[int], ranges: Sequence[OffsetRange]
) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a task, with borders at `sizes` in turn."""
    turn = 0
    for span in ranges:
        partition = records[span.partition]
        offsets = offsets_of(partition, gap)
        chosen = [at for at, offset in enumerate(offsets) if span.start <= offset < span.end]
        while chosen:
            size = sizes[turn % len(sizes)]
            turn += 1
            piece, chosen = chosen[:size], chosen[size:]
            yield pa.RecordBatch.from_pylist(
                [
                    {
                        **partition[at]._asdict(),
                        "headers": None
                        if partition[at].headers is None
                        else [{"key": k, "value": v} for k, v in partition[at].headers or ()],
                        "timestamp": partition[at].timestamp * 1000,
                        "topic": "t",
                        "partition": span.partition,
                        "offset": offsets[at],
                        "timestampType": 0,
                    }
                    for at in piece
                ],
                SCHEMA,
            )


def ranges_of(records: Topic, gap: int) -> list[OffsetRange]:
    """Return the range of each partition."""
    return [
        OffsetRange("t", number, 0, max(offsets_of(partition, gap), default=-1) + 1)
        for number, partition in enumerate(records)
    ]


class Side(NamedTuple):
    """How a side stands in its topic."""

    gap: int
    """A marker of a transaction behind so many records; 0: none."""
    sizes: list[int]
    """Records of its batches, in turn."""


side = st.builds(
    Side, st.sampled_from([0, 2, 5]), st.lists(st.integers(1, 5), min_size=1, max_size=4)
)


def digests(
    topics: Sequence[Topic], sides: Sequence[Side], counted: CompareRules, tasks: int
) -> list[dict[int, RunDigest]]:
    """Return partition → digest of each side, read in tasks; `tasks` 0: each side by itself."""
    spans = [ranges_of(*pair) for pair in zip(topics, [part.gap for part in sides], strict=True)]
    work = [TaskRanges(spans[0], ()), TaskRanges((), spans[1])]
    if tasks:
        work = paired(*spans, lambda whole: group_ranges(whole, groups_max=tasks))
    values: tuple[list[RunDigest], list[RunDigest]] = ([], [])
    for task in work:
        batches = [read(topics[number], *sides[number], task[number]) for number in (0, 1)]
        digesters = [Digester(number, counted, SEED, BUCKETS) for number in (0, 1)]
        digest_pair(batches, digesters, ("key", *counted.columns))
        for number in (0, 1):
            values[number].extend(digesters[number].runs())
    return [by_partition(runs) for runs in values]


@given(topic, st.lists(edit, max_size=3), st.tuples(side, side), rules, st.integers(1, 4))
def test_sides_differ_beside_each_other_where_their_digests_differ(
    of_a: Topic,
    edits: list[tuple[str, int, int, RecordSpec]],
    sides: tuple[Side, Side],
    counted: CompareRules,
    tasks: int,
) -> None:
    """More may: the order of two keys, a piece that is the same between them."""
    topics = (of_a, edited(of_a, edits))
    alone, beside = (digests(topics, sides, counted, number) for number in (0, tasks))
    assert [facts(runs) for runs in alone] == [facts(runs) for runs in beside]
    alone_differs, beside_differs = (differing(*runs, counted) for runs in (alone, beside))
    assert all(
        set(beside_differs.get(place, ())) >= set(buckets)
        for place, buckets in alone_differs.items()
    )
    is_aligned = sides[0].gap == sides[1].gap or (tasks == 1 and not counted.offset)
    if topics[0] == topics[1] and is_aligned:
        assert not any(run.buckets for runs in beside for run in runs.values())


def facts(runs: dict[int, RunDigest]) -> dict[int, tuple[Any, ...]]:
    """Return what a person sees of each partition."""
    return {
        number: (run.topic, *run[3:7], run.records, run.is_ordered) for number, run in runs.items()
    }

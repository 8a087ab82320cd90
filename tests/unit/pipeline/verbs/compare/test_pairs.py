"""Records of two sides in pieces: those that are the same are counted, the others are hashed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from minibroker.pipeline.verbs.compare.digests import Digester, RunDigest, by_partition
from minibroker.pipeline.verbs.compare.job import differing
from minibroker.pipeline.verbs.compare.pairs import digest_pair
from minibroker.pipeline.verbs.compare.rules import CompareRules

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

RULES = CompareRules(headers=False)
Batch = tuple[int, str]
"""Partition, and a letter for each record: its key is the lower one, its value is the letter."""


def batches(*sides: Batch) -> Iterator[pa.RecordBatch]:
    offset = 0
    for partition, letters in sides:
        size = len(letters)
        yield pa.RecordBatch.from_pydict(
            {
                "key": pa.array([letter.lower().encode() for letter in letters], pa.binary()),
                "value": pa.array([letter.encode() for letter in letters], pa.binary()),
                "topic": pa.array(["t"] * size),
                "partition": pa.array([partition] * size, pa.int32()),
                "offset": pa.array(range(offset, offset + size), pa.int64()),
                "timestamp": pa.array([1000] * size, pa.timestamp("us", "UTC")),
            }
        )
        offset += size


def compared(a: Sequence[Batch], b: Sequence[Batch]) -> list[dict[int, RunDigest]]:
    digesters = [Digester(side, RULES, 3, 8) for side in (0, 1)]
    digest_pair([batches(*a), batches(*b)], digesters, ("key", *RULES.columns))
    return [by_partition(digester.runs()) for digester in digesters]


def test_borders_of_batches_do_not_count() -> None:
    differences = compared([(0, "abcA"), (0, "b"), (2, "a")], [(0, "a"), (0, "bcAb"), (2, "a")])
    assert [
        (run.same, run.records, run.buckets) for side in differences for run in side.values()
    ] == [
        (5, 5, {}),
        (1, 1, {}),
    ] * 2
    assert [(run.first_offset, run.last_offset) for run in differences[1].values()] == [
        (0, 4),
        (5, 5),
    ]
    assert differing(*differences, RULES) == {}
    assert compared([], []) == [{}, {}]


def test_a_piece_that_differs_is_hashed_and_the_next_one_is_not() -> None:
    of_a, of_b = compared([(0, "ab"), (0, "ab"), (0, "ab")], [(0, "ab"), (0, "aB"), (0, "ab")])
    assert [(side[0].same, side[0].records) for side in (of_a, of_b)] == [(4, 6), (4, 6)]
    assert len(differing(of_a, of_b, RULES)[0]) == 1


def test_a_partition_of_one_side_is_hashed() -> None:
    of_a, of_b = compared([(0, "ab"), (1, "ab"), (3, "ab")], [(1, "ab"), (1, "c"), (2, "ab")])
    lines = [
        {number: (run.same, run.records) for number, run in side.items()} for side in (of_a, of_b)
    ]
    assert lines == [{0: (0, 2), 1: (2, 2), 3: (0, 2)}, {1: (2, 3), 2: (0, 2)}]
    assert differing(of_a, of_b, RULES).keys() == {0, 1, 2, 3}


def test_a_record_behind_a_piece_that_is_the_same_is_not_one_before_it() -> None:
    """The records of `a` are in another order, and each piece that differs has as many of each."""
    of_a, of_b = compared([(0, "a"), (0, "A"), (0, "b")], [(0, "b"), (0, "A"), (0, "a")])
    assert [side[0].same for side in (of_a, of_b)] == [1, 1]
    assert differing(of_a, of_b, RULES)[0]

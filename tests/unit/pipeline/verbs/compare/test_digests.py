"""Digests: those of parts make that of the whole, and each difference changes them."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

from minibroker.pipeline.verbs.compare.digests import (
    BucketDigest,
    Digester,
    RunDigest,
    bucket_of,
    buckets_for,
    by_partition,
    pack,
    total,
    unpack,
)
from minibroker.pipeline.verbs.compare.hashes import hashes
from minibroker.pipeline.verbs.compare.rules import CompareRules

SEED = 3
BUCKETS = 8
COUNT = 200


def batch(numbers: list[int], *, first: int = 0, partition: int = 0) -> pa.RecordBatch:
    """Return records with the values `numbers`, at offsets with gaps."""
    size = len(numbers)
    return pa.RecordBatch.from_pydict(
        {
            "key": pa.array([b"%d" % (number % 7) for number in numbers], pa.binary()),
            "value": pa.array([b"%d" % number for number in numbers], pa.binary()),
            "topic": pa.array(["t"] * size),
            "partition": pa.array([partition] * size, pa.int32()),
            "offset": pa.array([first + 2 * index for index in range(size)], pa.int64()),
            "timestamp": pa.array(
                [1_000_000 + 1000 * n for n in numbers], pa.timestamp("us", "UTC")
            ),
        }
    )


RULES = CompareRules(headers=False)


def digest(*batches: pa.RecordBatch) -> list[RunDigest]:
    digester = Digester(0, RULES, SEED, BUCKETS)
    for part in batches:
        digester.add(part)
    return digester.runs()


def test_a_digest_is_what_its_description_says() -> None:
    records = batch(list(range(COUNT)))
    found = hashes(records, RULES, SEED)
    (run,) = digest(records)
    wanted: dict[int, list[int]] = {}
    for bucket, number in zip(
        bucket_of(found, BUCKETS).to_pylist(), found.first.to_pylist(), strict=True
    ):
        wanted.setdefault(bucket, []).append(number)
    base = 0x5851F42D4C957F2D
    assert {
        number: (part.records, part.sums[0], part.order[0]) for number, part in run.buckets.items()
    } == {
        number: (
            len(some),
            sum(some) % 2**64,
            sum(part * pow(base, place, 2**64) for place, part in enumerate(some)) % 2**64,
        )
        for number, some in wanted.items()
    }
    assert (run.records, run.first_offset, run.last_offset) == (COUNT, 0, 2 * COUNT - 2)
    assert (run.first_ms, run.last_ms, run.is_ordered) == (1000, 1000 + COUNT - 1, True)


@pytest.mark.parametrize("cut", [1, 77, COUNT - 1])
def test_borders_of_batches_and_tasks_do_not_count(cut: int) -> None:
    records = batch(list(range(COUNT)))
    (whole,) = digest(records)
    assert digest(records.slice(0, cut), records.slice(cut)) == [whole]
    parts = [*digest(records.slice(cut)), *digest(records.slice(0, cut))]
    assert by_partition(parts) == {0: whole}


def test_order_and_duplicates_are_seen() -> None:
    numbers = list(range(COUNT))
    (whole,) = digest(batch(numbers))
    (swapped,) = digest(batch([7, *numbers[1:7], 0, *numbers[8:]]))
    assert total([whole])[next(iter(whole.buckets))].records
    assert {n: b.sums for n, b in swapped.buckets.items()} == {
        n: b.sums for n, b in whole.buckets.items()
    }
    differ = [n for n, bucket in whole.buckets.items() if bucket != swapped.buckets[n]]
    assert len(differ) == 1, "0 and 7 have one key"
    (twice,) = digest(batch([*numbers[:-7], *numbers[:7]]))
    assert {n: b.sums for n, b in twice.buckets.items()} != {
        n: b.sums for n, b in whole.buckets.items()
    }


def test_offsets_that_go_back_have_no_known_order() -> None:
    later, earlier = batch([1, 2], first=10), batch([3, 4])
    (run,) = digest(later, earlier)
    assert not run.is_ordered
    assert (run.first_offset, run.last_offset) == (0, 12)
    assert by_partition([*digest(later), *digest(earlier)])[0].is_ordered


def test_partitions_of_one_batch_are_told_apart() -> None:
    mixed = pa.Table.from_batches([batch([1, 2]), batch([3], partition=5), batch([4])])
    runs = digest(mixed.combine_chunks().to_batches()[0])
    assert {run.partition: run.records for run in runs} == {0: 3, 5: 1}


def test_digests_travel_as_bytes() -> None:
    dice = random.Random(1)
    buckets = {
        number: BucketDigest(
            number + 1,
            (dice.getrandbits(64), dice.getrandbits(64)),
            (dice.getrandbits(64), dice.getrandbits(64)),
        )
        for number in range(BUCKETS)
    }
    assert unpack(pack(buckets)) == buckets


@pytest.mark.parametrize(
    ("partitions", "buckets"), [(0, 64), (1, 64), (1000, 64), (2000, 32), (10_000, 8)]
)
def test_many_partitions_have_fewer_buckets(partitions: int, buckets: int) -> None:
    assert buckets_for(partitions) == buckets


def test_nothing_is_no_run() -> None:
    empty: Any = batch([])
    assert digest(empty) == []

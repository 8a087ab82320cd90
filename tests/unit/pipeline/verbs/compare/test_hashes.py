"""Hashes of records: every column that counts changes them, and no other."""

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
from minibroker.pipeline.verbs.compare.hashes import as_int64, hashes
from minibroker.pipeline.verbs.compare.rules import CompareRules

SEED = 7
EVERYTHING = CompareRules()
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
ROWS: list[dict[str, Any]] = [
    {"key": b"a", "value": b"one", "timestamp": 1, "headers": [("h", b"x"), ("i", None)]},
    {"key": b"a", "value": b"two", "timestamp": 2, "headers": None},
    {"key": None, "value": b"", "timestamp": 2, "headers": []},
    {"key": b"", "value": None, "timestamp": -1000, "headers": [("i", b""), ("i", b"")]},
]


def batch(rows: list[dict[str, Any]]) -> pa.RecordBatch:
    """Return records of partition 3 from offset 10 on."""
    columns = {
        "key": pa.array([row["key"] for row in rows], pa.binary()),
        "value": pa.array([row["value"] for row in rows], pa.binary()),
        "topic": pa.array(["t"] * len(rows)),
        "partition": pa.array([3] * len(rows), pa.int32()),
        "offset": pa.array([row.get("offset", 10) for row in rows], pa.int64()),
        "timestamp": pa.array([row["timestamp"] for row in rows], pa.timestamp("us", "UTC")),
        "headers": pa.array(
            [
                None
                if row["headers"] is None
                else [{"key": key, "value": value} for key, value in row["headers"]]
                for row in rows
            ],
            HEADERS,
        ),
    }
    return pa.RecordBatch.from_pydict(columns)


def both(
    row: dict[str, Any], rules: CompareRules = EVERYTHING, seed: int = SEED
) -> tuple[int, int]:
    record_hashes = hashes(batch([row]), rules, seed)
    return record_hashes.first[0].as_py(), record_hashes.second[0].as_py()


def test_a_record_has_the_same_hash_in_any_batch() -> None:
    record_hashes = hashes(batch(ROWS), CompareRules(), SEED)
    for index, row in enumerate(ROWS):
        assert (record_hashes.first[index].as_py(), record_hashes.second[index].as_py()) == both(
            row
        )
    assert len({both(row) for row in ROWS}) == len(ROWS)
    sliced = hashes(batch([*ROWS, *ROWS]).slice(2, 4), CompareRules(), SEED)
    assert sliced.first.to_pylist() == [
        *record_hashes.first.to_pylist()[2:],
        *record_hashes.first.to_pylist()[:2],
    ]


@pytest.mark.parametrize(
    "change",
    [
        {"key": b"b"},
        {"key": None},
        {"key": b""},
        {"value": b"one "},
        {"value": None},
        {"timestamp": 1001},
        {"headers": [("h", b"x")]},
        {"headers": [("i", None), ("h", b"x")]},
        {"headers": [("h", b"x"), ("i", b"")]},
        {"headers": [("hx", b""), ("i", None)]},
        {"headers": None},
    ],
)
def test_every_column_counts(change: dict[str, Any]) -> None:
    first_hashes, after = both(ROWS[0]), both({**ROWS[0], **change})
    assert first_hashes[0] != after[0]
    assert first_hashes[1] != after[1]


def test_key_and_value_are_no_pair_of_numbers_to_add() -> None:
    """Values that change places between two records give other sums."""
    rows = [{**ROWS[0], "key": key, "value": value} for key, value in ((b"a", b"1"), (b"b", b"2"))]
    swapped = [{**rows[0], "value": b"2"}, {**rows[1], "value": b"1"}]
    sums = [sum(both(row)[0] for row in some) % 2**64 for some in (rows, swapped)]
    assert sums[0] != sums[1]


def test_ignored_columns_do_not_count() -> None:
    changed = {**ROWS[0], "timestamp": 99, "offset": 11}
    without = CompareRules(timestamp=False)
    assert both(ROWS[0], without) == both(changed, without)
    assert both(ROWS[0], CompareRules(offset=True)) != both(
        {**ROWS[0], "offset": 11}, CompareRules(offset=True)
    )
    without = CompareRules(headers=False)
    assert both(ROWS[0], without) == both({**ROWS[0], "headers": None}, without)
    assert both({**ROWS[1], "headers": []}) == both(ROWS[1]), "no headers are no headers"


def test_a_seed_changes_all_hashes() -> None:
    assert both(ROWS[0], seed=8) != both(ROWS[0])


def test_records_of_a_key_are_a_sequence() -> None:
    """Without a key it is the partition, or nothing if partitions do not count."""
    rows = [*ROWS, {**ROWS[2], "value": b"x"}]
    sequence = hashes(batch(rows), CompareRules(), SEED).sequence.to_pylist()
    assert sequence[0] == sequence[1] != sequence[2] == sequence[4] != sequence[3]
    anywhere = hashes(batch(rows), CompareRules(partition=False), SEED).sequence.to_pylist()
    assert anywhere[0] == sequence[0]
    assert len(set(anywhere)) == 4
    assert as_int64([pa.array([2**64 - 1], pa.uint64())])[0].to_pylist() == [-1]


# Digests: those of parts make that of the whole, and each difference changes them.


DIGESTS_SEED = 3
BUCKETS = 8
COUNT = 200


def digests_batch(numbers: list[int], *, first: int = 0, partition: int = 0) -> pa.RecordBatch:
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
    digester = Digester(0, RULES, DIGESTS_SEED, BUCKETS)
    for part in batches:
        digester.add(part)
    return digester.runs()


def test_a_digest_is_what_its_description_says() -> None:
    records = digests_batch(list(range(COUNT)))
    digests = hashes(records, RULES, DIGESTS_SEED)
    (run,) = digest(records)
    expected: dict[int, list[int]] = {}
    for bucket, number in zip(
        bucket_of(digests, BUCKETS).to_pylist(), digests.first.to_pylist(), strict=True
    ):
        expected.setdefault(bucket, []).append(number)
    base = 0x5851F42D4C957F2D
    assert {
        number: (part.records, part.sums[0], part.order[0]) for number, part in run.buckets.items()
    } == {
        number: (
            len(some),
            sum(some) % 2**64,
            sum(part * pow(base, place, 2**64) for place, part in enumerate(some)) % 2**64,
        )
        for number, some in expected.items()
    }
    assert (run.records, run.first_offset, run.last_offset) == (COUNT, 0, 2 * COUNT - 2)
    assert (run.first_ms, run.last_ms, run.is_ordered) == (1000, 1000 + COUNT - 1, True)


@pytest.mark.parametrize("cut", [1, 77, COUNT - 1])
def test_borders_of_batches_and_tasks_do_not_count(cut: int) -> None:
    records = digests_batch(list(range(COUNT)))
    (whole,) = digest(records)
    assert digest(records.slice(0, cut), records.slice(cut)) == [whole]
    parts = [*digest(records.slice(cut)), *digest(records.slice(0, cut))]
    assert by_partition(parts) == {0: whole}


def test_order_and_duplicates_are_seen() -> None:
    numbers = list(range(COUNT))
    (whole,) = digest(digests_batch(numbers))
    (swapped,) = digest(digests_batch([7, *numbers[1:7], 0, *numbers[8:]]))
    assert total([whole])[next(iter(whole.buckets))].records
    assert {number: bucket.sums for number, bucket in swapped.buckets.items()} == {
        n: b.sums for n, b in whole.buckets.items()
    }
    differ = [n for n, bucket in whole.buckets.items() if bucket != swapped.buckets[n]]
    assert len(differ) == 1, "0 and 7 have one key"
    (twice,) = digest(digests_batch([*numbers[:-7], *numbers[:7]]))
    assert {number: bucket.sums for number, bucket in twice.buckets.items()} != {
        n: b.sums for n, b in whole.buckets.items()
    }


def test_offsets_that_go_back_have_no_known_order() -> None:
    later, earlier = digests_batch([1, 2], first=10), digests_batch([3, 4])
    (run,) = digest(later, earlier)
    assert not run.is_ordered
    assert (run.first_offset, run.last_offset) == (0, 12)
    assert by_partition([*digest(later), *digest(earlier)])[0].is_ordered


def test_partitions_of_one_batch_are_told_apart() -> None:
    mixed = pa.Table.from_batches(
        [digests_batch([1, 2]), digests_batch([3], partition=5), digests_batch([4])]
    )
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
    empty: Any = digests_batch([])
    assert digest(empty) == []

"""Hashes of records: every column that counts changes them, and no other."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

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
    found = hashes(batch([row]), rules, seed)
    return found.first[0].as_py(), found.second[0].as_py()


def test_a_record_has_the_same_hash_in_any_batch() -> None:
    found = hashes(batch(ROWS), CompareRules(), SEED)
    for index, row in enumerate(ROWS):
        assert (found.first[index].as_py(), found.second[index].as_py()) == both(row)
    assert len({both(row) for row in ROWS}) == len(ROWS)
    sliced = hashes(batch([*ROWS, *ROWS]).slice(2, 4), CompareRules(), SEED)
    assert sliced.first.to_pylist() == [*found.first.to_pylist()[2:], *found.first.to_pylist()[:2]]


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
    before, after = both(ROWS[0]), both({**ROWS[0], **change})
    assert before[0] != after[0]
    assert before[1] != after[1]


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
    here = hashes(batch(rows), CompareRules(), SEED).sequence.to_pylist()
    assert here[0] == here[1] != here[2] == here[4] != here[3]
    anywhere = hashes(batch(rows), CompareRules(partition=False), SEED).sequence.to_pylist()
    assert anywhere[0] == here[0]
    assert len(set(anywhere)) == 4
    assert as_int64([pa.array([2**64 - 1], pa.uint64())])[0].to_pylist() == [-1]

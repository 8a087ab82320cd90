"""Sums and the verdict of a comparison follow from its partitions."""

from __future__ import annotations

import json

from minibroker.pipeline.verbs.compare.facts import (
    PARTITIONS_MAX,
    Comparison,
    Example,
    PartitionComparison,
    SideFacts,
)

FACTS = SideFacts(10, 0, 9, 1000, 2000)


def comparison(
    *partitions: PartitionComparison,
    ignored: tuple[str, ...] = (),
    examples: tuple[Example, ...] = (),
) -> Comparison:
    return Comparison("a", "b", ignored, partitions, {}, examples, 1.5)


def test_records_are_equal_that_are_neither_missing_nor_changed() -> None:
    part = PartitionComparison(0, FACTS, FACTS, missing=1, only=2, changed=3, out_of_order=4)
    found = comparison(part, PartitionComparison(1, FACTS, SideFacts()))
    assert part.equal == 6
    assert found.total("equal") == 16
    assert (found.records("a"), found.records("b")) == (20, 10)
    assert not found.is_same


def test_partitions_that_one_side_has_count_unless_they_are_ignored() -> None:
    parts = (PartitionComparison(0, FACTS, FACTS), PartitionComparison(1, SideFacts(), None))
    assert comparison(*parts).has_other_partitions
    assert not comparison(*parts).is_same
    assert comparison(*parts, ignored=("partition",)).is_same


def test_json_has_everything_of_few_partitions() -> None:
    found = comparison(
        PartitionComparison(0, FACTS, None), examples=(Example("only", None, (0, 3), "k"),)
    )
    told = json.loads(json.dumps(found.as_json()))
    assert told["same"] is False
    assert told["partitions"][0]["a"]["last_offset"] == 9
    assert told["partitions"][0]["b"] is None
    assert told["partition_count"] == 1
    assert told["examples"] == [{"kind": "only", "a": None, "b": [0, 3], "key": "k", "fields": []}]


def test_json_of_many_partitions_has_those_that_differ() -> None:
    same = [PartitionComparison(number, FACTS, FACTS) for number in range(PARTITIONS_MAX)]
    assert len(comparison(*same).as_json()["partitions"]) == PARTITIONS_MAX
    many = (
        *same,
        PartitionComparison(97, FACTS, FACTS, only=1),
        PartitionComparison(98, SideFacts(), None),
    )
    told = comparison(*many).as_json()
    assert [part["partition"] for part in told["partitions"]] == [97, 98]
    assert told["partition_count"] == len(many)
    told = comparison(*many, ignored=("partition",)).as_json()
    assert [part["partition"] for part in told["partitions"]] == [97]

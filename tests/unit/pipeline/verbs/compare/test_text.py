"""The text about a comparison, for a person at a terminal."""

from __future__ import annotations

from minibroker.pipeline.verbs.compare.facts import (
    PARTITIONS_MAX,
    Comparison,
    Example,
    PartitionComparison,
    SideFacts,
)
from minibroker.pipeline.verbs.compare.text import shown_partitions, text

FACTS = SideFacts(10, 0, 9, 1000, 2000)


def found(*partitions: PartitionComparison, ignored: tuple[str, ...] = ()) -> Comparison:
    return Comparison("orders", "copy", ignored, partitions, {}, (), 2.0)


def test_the_same() -> None:
    told = text(found(PartitionComparison(0, FACTS, FACTS), ignored=("timestamp", "order")))
    assert "The same: both have 10 records, apart from timestamp and order" in told
    assert "20 records in 2.0 s, 10 records/s" in told


def test_different_with_examples_and_hints() -> None:
    part = PartitionComparison(0, FACTS, FACTS, missing=1, changed=2, out_of_order=1)
    differs = Comparison(
        "orders",
        "copy",
        (),
        (part, PartitionComparison(1, SideFacts(), None)),
        {"timestamp": 2},
        (
            Example("changed", (0, 3), (0, 4), "key", ("timestamp",)),
            Example("missing", (0, 5), None, None),
        ),
        1.0,
    )
    told = text(differs)
    assert "Different: 1 missing in B, 2 changed, 1 out of order." in told
    assert "--ignore partition compares records" in told
    assert "Only the timestamp differs in them: --ignore timestamp leaves it out." in told
    lines = told.splitlines()
    assert next(line for line in lines if "no partition" in line).split()[:3] == ["1", "0", "-"]
    assert any(line.split() == ["changed", "0@3", "0@4", "key", "timestamp"] for line in lines)
    assert any(line.split() == ["missing", "in", "B", "0@5", "-", "no", "key"] for line in lines)
    assert lines.index("Examples, as partition@offset:") < lines.index(
        "  difference    in A  in B  key     differs in"
    )
    assert max(map(len, lines)) <= 100, "a terminal of usual width"


def test_of_many_partitions_those_that_differ_are_shown() -> None:
    same = [PartitionComparison(number, FACTS, FACTS) for number in range(PARTITIONS_MAX + 1)]
    many = found(*same, PartitionComparison(99, FACTS, FACTS, only=1))
    assert [part.partition for part in shown_partitions(many)] == [99]
    assert len(shown_partitions(found(*same))) == PARTITIONS_MAX
    assert f"  partitions not shown: {PARTITIONS_MAX + 1} the same\n" in text(many)
    assert "  partitions not shown: 1 the same\n" in text(found(*same))
    differ = [part._replace(only=1) for part in same]
    assert "  partitions not shown: 1 different, in the JSON\n" in text(found(*differ))


def test_a_wide_table_leaves_out_the_offsets() -> None:
    large = SideFacts(20_000_000, 0, 19_999_999, 1000, 2000)
    told = text(found(PartitionComparison(0, large, large)))
    assert "offsets are in the JSON and on the page" in told
    assert max(map(len, told.splitlines())) <= 100
    assert "offsets A  offsets B" in text(found(PartitionComparison(0, FACTS, FACTS)))

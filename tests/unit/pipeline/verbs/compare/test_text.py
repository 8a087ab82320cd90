"""The text about a comparison, for a person at a terminal."""

from __future__ import annotations

import json

from minibroker.pipeline.verbs.compare.facts import (
    PARTITIONS_MAX,
    Comparison,
    Example,
    PartitionComparison,
    SideFacts,
)
from minibroker.pipeline.verbs.compare.page import page
from minibroker.pipeline.verbs.compare.text import shown_partitions, text

FACTS = SideFacts(10, 0, 9, 1000, 2000)


def comparison_with(*partitions: PartitionComparison, ignored: tuple[str, ...] = ()) -> Comparison:
    return Comparison("orders", "copy", ignored, partitions, {}, (), 2.0)


def test_the_same() -> None:
    shown_text = text(
        comparison_with(PartitionComparison(0, FACTS, FACTS), ignored=("timestamp", "order"))
    )
    assert "The same: both have 10 records, apart from timestamp and order" in shown_text
    assert "20 records in 2.0 s, 10 records/s" in shown_text


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
    shown_text = text(differs)
    assert "Different: 1 missing in B, 2 changed, 1 out of order." in shown_text
    assert "--ignore partition compares records" in shown_text
    assert "Only the timestamp differs in them: --ignore timestamp leaves it out." in shown_text
    lines = shown_text.splitlines()
    assert next(line for line in lines if "no partition" in line).split()[:3] == ["1", "0", "-"]
    assert any(line.split() == ["changed", "0@3", "0@4", "key", "timestamp"] for line in lines)
    assert any(line.split() == ["missing", "in", "B", "0@5", "-", "no", "key"] for line in lines)
    assert lines.index("Examples, as partition@offset:") < lines.index(
        "  difference    in A  in B  key     differs in"
    )
    assert max(map(len, lines)) <= 100, "a terminal of usual width"


def test_of_many_partitions_those_that_differ_are_shown() -> None:
    same = [PartitionComparison(number, FACTS, FACTS) for number in range(PARTITIONS_MAX + 1)]
    many = comparison_with(*same, PartitionComparison(99, FACTS, FACTS, only=1))
    assert [part.partition for part in shown_partitions(many)] == [99]
    assert len(shown_partitions(comparison_with(*same))) == PARTITIONS_MAX
    assert f"  partitions not shown: {PARTITIONS_MAX + 1} the same\n" in text(many)
    assert "  partitions not shown: 1 the same\n" in text(comparison_with(*same))
    differ = [part._replace(only=1) for part in same]
    assert "  partitions not shown: 1 different, in the JSON\n" in text(comparison_with(*differ))


def test_a_wide_table_leaves_out_the_offsets() -> None:
    large = SideFacts(20_000_000, 0, 19_999_999, 1000, 2000)
    shown_text = text(comparison_with(PartitionComparison(0, large, large)))
    assert "offsets are in the JSON and on the page" in shown_text
    assert max(map(len, shown_text.splitlines())) <= 100
    assert "offsets A  offsets B" in text(comparison_with(PartitionComparison(0, FACTS, FACTS)))


# The page of a comparison: it has the numbers, and nothing of the records is markup in it.


PAGE_FACTS = SideFacts(1234, 0, 1233, 1_700_000_000_000, 1_700_000_001_000)


def test_the_page_has_the_numbers_and_escapes_keys() -> None:
    comparison_of_sides = Comparison(
        "orders@<here>",
        "copy",
        ("timestamp",),
        (PartitionComparison(0, PAGE_FACTS, PAGE_FACTS, changed=3),),
        {"value": 3},
        (Example("changed", (0, 1), (0, 2), "<script>", ("value",)),),
        1.0,
    )
    html = page(comparison_of_sides)
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    assert "orders@&lt;here&gt;" in html
    assert "Timestamp did not count." in html
    assert '<li class="warn">Different: 3 changed.</li>' in html
    assert "2023-11-14 22:13:20 to 22:13:21" in html
    assert "1,231" in html
    assert "<dt>Missing in B</dt>" in html
    assert '<td>0@1</td><td>0@2</td><td class="words">&lt;script&gt;</td>' in html
    assert "Examples, as partition@offset" in html


def test_times_of_two_days_have_both_days() -> None:
    over_night = SideFacts(2, 0, 1, 1_700_000_000_000, 1_700_086_400_000)
    comparison_of_sides = Comparison(
        "a", "b", (), (PartitionComparison(0, over_night, None),), {}, (), 1.0
    )
    assert "2023-11-14 22:13:20 to 2023-11-15 22:13:20" in page(comparison_of_sides)


def test_equal_sides_have_no_warning() -> None:
    comparison_of_sides = Comparison(
        "a", "b", (), (PartitionComparison(0, PAGE_FACTS, PAGE_FACTS),), {}, (), 1.0
    )
    assert 'class="warn"' not in page(comparison_of_sides)
    assert "<li>The same: both have 1,234 records.</li>" in page(comparison_of_sides)


# Sums and the verdict of a comparison follow from its partitions.


def comparison(
    *partitions: PartitionComparison,
    ignored: tuple[str, ...] = (),
    examples: tuple[Example, ...] = (),
) -> Comparison:
    return Comparison("a", "b", ignored, partitions, {}, examples, 1.5)


def test_records_are_equal_that_are_neither_missing_nor_changed() -> None:
    part = PartitionComparison(0, FACTS, FACTS, missing=1, only=2, changed=3, out_of_order=4)
    comparison_of_sides = comparison(part, PartitionComparison(1, FACTS, SideFacts()))
    assert part.equal == 6
    assert comparison_of_sides.total("equal") == 16
    assert (comparison_of_sides.records("a"), comparison_of_sides.records("b")) == (20, 10)
    assert not comparison_of_sides.is_same


def test_partitions_that_one_side_has_count_unless_they_are_ignored() -> None:
    parts = (PartitionComparison(0, FACTS, FACTS), PartitionComparison(1, SideFacts(), None))
    assert comparison(*parts).has_other_partitions
    assert not comparison(*parts).is_same
    assert comparison(*parts, ignored=("partition",)).is_same


def test_json_has_everything_of_few_partitions() -> None:
    comparison_of_sides = comparison(
        PartitionComparison(0, FACTS, None), examples=(Example("only", None, (0, 3), "k"),)
    )
    report = json.loads(json.dumps(comparison_of_sides.as_json()))
    assert report["same"] is False
    assert report["partitions"][0]["a"]["last_offset"] == 9
    assert report["partitions"][0]["b"] is None
    assert report["partition_count"] == 1
    assert report["examples"] == [
        {"kind": "only", "a": None, "b": [0, 3], "key": "k", "fields": []}
    ]


def test_json_of_many_partitions_has_those_that_differ() -> None:
    same = [PartitionComparison(number, FACTS, FACTS) for number in range(PARTITIONS_MAX)]
    assert len(comparison(*same).as_json()["partitions"]) == PARTITIONS_MAX
    many = (
        *same,
        PartitionComparison(97, FACTS, FACTS, only=1),
        PartitionComparison(98, SideFacts(), None),
    )
    report = comparison(*many).as_json()
    assert [part["partition"] for part in report["partitions"]] == [97, 98]
    assert report["partition_count"] == len(many)
    report = comparison(*many, ignored=("partition",)).as_json()
    assert [part["partition"] for part in report["partitions"]] == [97]

"""The page of a comparison: it has the numbers, and nothing of the records is markup in it."""

from __future__ import annotations

from minibroker.pipeline.verbs.compare.facts import (
    Comparison,
    Example,
    PartitionComparison,
    SideFacts,
)
from minibroker.pipeline.verbs.compare.page import page

FACTS = SideFacts(1234, 0, 1233, 1_700_000_000_000, 1_700_000_001_000)


def test_the_page_has_the_numbers_and_escapes_keys() -> None:
    found = Comparison(
        "orders@<here>",
        "copy",
        ("timestamp",),
        (PartitionComparison(0, FACTS, FACTS, changed=3),),
        {"value": 3},
        (Example("changed", (0, 1), (0, 2), "<script>", ("value",)),),
        1.0,
    )
    told = page(found)
    assert "<script>" not in told
    assert "&lt;script&gt;" in told
    assert "orders@&lt;here&gt;" in told
    assert "Timestamp did not count." in told
    assert '<li class="warn">Different: 3 changed.</li>' in told
    assert "2023-11-14 22:13:20 to 22:13:21" in told
    assert "1,231" in told
    assert "<dt>Missing in B</dt>" in told
    assert '<td>0@1</td><td>0@2</td><td class="words">&lt;script&gt;</td>' in told
    assert "Examples, as partition@offset" in told


def test_times_of_two_days_have_both_days() -> None:
    over_night = SideFacts(2, 0, 1, 1_700_000_000_000, 1_700_086_400_000)
    found = Comparison("a", "b", (), (PartitionComparison(0, over_night, None),), {}, (), 1.0)
    assert "2023-11-14 22:13:20 to 2023-11-15 22:13:20" in page(found)


def test_equal_sides_have_no_warning() -> None:
    found = Comparison("a", "b", (), (PartitionComparison(0, FACTS, FACTS),), {}, (), 1.0)
    assert 'class="warn"' not in page(found)
    assert "<li>The same: both have 1,234 records.</li>" in page(found)

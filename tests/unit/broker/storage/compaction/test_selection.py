"""The part of a log to compact next, the time for it, and groups of segments to merge."""

from __future__ import annotations

from typing import NamedTuple

from minibroker.broker.storage.compaction.selection import (
    Candidate,
    GroupFacts,
    LogFacts,
    candidate_of,
    group_segments,
)

NOW_MS = 1_000_000
NEVER_MS = 2**63 - 1


class Fake(NamedTuple):
    base_offset: int
    size_bytes: int = 100
    max_timestamp: int = 0
    first_timestamp: int = -1


def facts(*segments: Fake, end: int = 1000, **fields: object) -> LogFacts:
    values: dict[str, object] = {
        "segments": segments,
        "log_start_offset": segments[0].base_offset,
        "log_end_offset": end,
        "stable_end": end,
        "checkpoint": None,
        "min_lag_ms": 0,
        "max_lag_ms": NEVER_MS,
        "min_dirty_ratio": 0.5,
    }
    return LogFacts(**{**values, **fields})  # type: ignore[arg-type]


def of(*segments: Fake, **fields: object) -> Candidate:
    return candidate_of(facts(*segments, **fields), NOW_MS)  # type: ignore[arg-type]


def test_everything_but_the_active_segment_is_dirty_at_first() -> None:
    selection = of(Fake(0), Fake(100), Fake(200))
    assert (selection.first_dirty_offset, selection.end_offset) == (0, 200)
    assert (selection.clean_bytes, selection.dirty_bytes) == (0, 200)
    assert selection.dirty_ratio == 1.0


def test_compacted_segments_are_clean() -> None:
    selection = of(Fake(0, 300), Fake(100), Fake(200), checkpoint=100)
    assert (selection.first_dirty_offset, selection.end_offset) == (100, 200)
    assert selection.dirty_ratio == 0.25
    assert not selection.is_worth_it(0.25)
    assert selection.is_worth_it(0.24)


def test_a_log_that_is_clean_is_not_worth_a_round() -> None:
    selection = of(Fake(0), Fake(100), checkpoint=100)
    assert selection.dirty_bytes == 0
    assert not selection.is_worth_it(0.0)
    assert not of(Fake(0, 0)).is_worth_it(0.0)


def test_a_segment_that_was_compacted_in_part_counts_twice() -> None:
    """As in Kafka, both passes read its bytes."""
    selection = of(Fake(0), Fake(100), Fake(200), checkpoint=150)
    assert (selection.clean_bytes, selection.dirty_bytes) == (200, 100)


def test_an_undecided_transaction_ends_the_dirty_part() -> None:
    selection = of(Fake(0), Fake(100), Fake(200), Fake(300), stable_end=250)
    assert selection.end_offset == 200
    assert of(Fake(0), Fake(100), Fake(200), stable_end=50).dirty_bytes == 0


def test_young_records_end_the_dirty_part() -> None:
    old, young = NOW_MS - 10_000, NOW_MS - 9_999
    segments = (Fake(0, 100, old), Fake(100, 100, young), Fake(200, 100, old), Fake(300))
    assert of(*segments, min_lag_ms=10_000).end_offset == 100
    assert of(*segments, min_lag_ms=9_000).end_offset == 300
    assert of(*segments, min_lag_ms=10_000, checkpoint=150).dirty_bytes == 0


def test_a_checkpoint_that_does_not_fit_counts_as_none() -> None:
    beyond = of(Fake(0), Fake(100), end=150, checkpoint=151)
    assert (beyond.first_dirty_offset, beyond.is_reset) == (0, True)
    below = of(Fake(50), Fake(100), end=150, checkpoint=20)
    assert (below.first_dirty_offset, below.is_reset) == (50, True)
    assert not of(Fake(0), Fake(100), end=150, checkpoint=150).is_reset


def test_old_dirty_records_are_due_whatever_the_ratio() -> None:
    segments = (Fake(0, 900), Fake(100, 100, 0, NOW_MS - 5000), Fake(200))
    late = of(*segments, checkpoint=100, max_lag_ms=4000)
    assert late.delay_ms == 1000
    assert late.is_worth_it(0.5)
    in_time = of(*segments, checkpoint=100, max_lag_ms=5000)
    assert in_time.delay_ms == 0
    assert not in_time.is_worth_it(0.5)


def test_records_without_a_time_and_clean_ones_are_never_due() -> None:
    assert of(Fake(0), Fake(100), max_lag_ms=1).delay_ms == 0
    clean = of(Fake(0, 900, 0, 5), Fake(100, 100), checkpoint=100, max_lag_ms=1)
    assert clean.delay_ms == 0


def group(*segments: GroupFacts, end: int = 1000, count_max: int = 100) -> list[list[int]]:
    groups = group_segments(
        segments,
        end_offset=end,
        segment_bytes=1000,
        index_bytes=80,
        offset_span_max=10_000,
        count_max=count_max,
    )
    return [[facts.base_offset for facts in group] for group in groups]


def test_segments_are_grouped_up_to_the_size_of_one() -> None:
    sizes = [400, 400, 300, 600, 1200, 10]
    segments = [GroupFacts(10 * place, size, 0, 0) for place, size in enumerate(sizes)]
    assert group(*segments) == [[0, 10], [20, 30], [40], [50]]


def test_indexes_bound_a_group() -> None:
    assert group(GroupFacts(0, 1, 50, 0), GroupFacts(10, 1, 40, 0)) == [[0], [10]]
    assert group(GroupFacts(0, 1, 0, 50), GroupFacts(10, 1, 0, 40)) == [[0], [10]]
    assert group(GroupFacts(0, 1, 40, 40), GroupFacts(10, 1, 40, 40)) == [[0, 10]]


def test_offsets_of_a_group_fit_into_a_segment() -> None:
    first, second, third = (GroupFacts(base, 1, 0, 0) for base in (0, 10_000, 10_001))
    assert group(first, second, third, end=10_002) == [[0, 10_000], [10_001]]
    assert group(first, second, end=10_001) == [[0, 10_000]]
    assert group(first, second, end=10_002) == [[0], [10_000]]
    assert group(first, GroupFacts(10_000, 0, 0, 0), end=90_000) == [[0, 10_000]]


def test_not_too_many_at_once() -> None:
    segments = [GroupFacts(base, 1, 0, 0) for base in range(5)]
    assert group(*segments, count_max=2) == [[0, 1], [2, 3], [4]]


def test_no_segment_makes_no_group() -> None:
    assert group() == []

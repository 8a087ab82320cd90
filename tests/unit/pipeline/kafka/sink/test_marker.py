"""The marker of a task: what it holds, and what it says about a repeated micro-batch."""

from __future__ import annotations

import pytest

from minibroker.kafka.ids import TopicPartition
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.kafka.sink.delivered_places import RANGES_MAX, Delivered, DeliveredPlaces
from minibroker.pipeline.kafka.sink.digest import Contents
from minibroker.pipeline.kafka.sink.marker import (
    Marker,
    Position,
    check_begun,
    check_no_task_is_gone,
    check_same_rows,
    check_same_tasks,
    is_marker_group,
    is_written,
    marker_after,
    marker_before,
    parse_marker,
    tasks_changed,
)

CONTENTS = Contents(17, "0a" * 16, "00000000000000ff")
POSITION = Position("prefix", "query", "run", batch=7, task=2, tasks=4)


def test_names_are_of_the_query_and_the_task() -> None:
    assert POSITION.name == "prefix-query-2"
    assert POSITION.name_of(11) == "prefix-query-11"


def test_a_marker_group_is_known_by_the_prefix_that_nobody_chose() -> None:
    assert is_marker_group(POSITION._replace(prefix="minibroker-sink").name)
    assert not is_marker_group(POSITION.name)
    assert not is_marker_group("minibroker-sinking")


def test_a_marker_survives_its_committed_form() -> None:
    marker = marker_after(POSITION, "orders")._replace(contents=CONTENTS)

    assert parse_marker("orders", marker.next_batch, marker.metadata) == marker
    assert marker == Marker("orders", 8, CONTENTS, "run", 4)


@pytest.mark.parametrize("metadata", [None, "", "of somebody else", "[1]", '{"rows": "x"}'])
def test_foreign_metadata_says_nothing(metadata: str | None) -> None:
    assert parse_marker("orders", 8, metadata) == Marker("orders", 8, Contents(0), "", 0)


@pytest.mark.parametrize(("next_batch", "written"), [(0, False), (6, False), (7, False), (8, True)])
def test_a_batch_is_written_when_the_next_one_is_expected(next_batch: int, written: bool) -> None:
    assert is_written(Marker("orders", next_batch, Contents(5), "run", 4), POSITION) is written


def test_nothing_is_written_without_a_marker() -> None:
    assert not is_written(None, POSITION)
    assert not is_written(marker_before(POSITION, "orders"), POSITION)


def test_a_checkpoint_older_than_the_topic_is_refused() -> None:
    with pytest.raises(PipelineError, match=r"'orders' has micro-batch 8 already.*older"):
        is_written(Marker("orders", 9, Contents(5), "run", 4), POSITION)


def test_a_checkpoint_has_begun_what_the_topic_has() -> None:
    """The newest begun batch may be written, or its tasks may have an earlier marker."""
    marker = Marker("orders", 8, Contents(5), "run", 4)
    check_begun(marker, "query", 7)
    check_begun(marker, "query", 8)
    with pytest.raises(PipelineError, match=r"'orders' has micro-batch 7 of query query, which"):
        check_begun(marker, "query", 6)


@pytest.mark.parametrize(
    ("then", "now", "changed"), [(4, 4, False), (4, 2, True), (0, 2, False), (4, 0, False)]
)
def test_the_number_of_tasks_counts_where_it_is_known(then: int, now: int, changed: bool) -> None:
    marker = Marker("orders", 7, Contents(5), "run", then)

    assert tasks_changed(marker, POSITION._replace(tasks=now)) is changed


def test_a_batch_begun_with_other_tasks_is_refused() -> None:
    position = POSITION._replace(tasks=2, task=0)
    first_marker = Marker("orders", 7, Contents(5), "run", 4)
    check_same_tasks({0: first_marker, 1: first_marker, 3: first_marker}, position)

    with pytest.raises(PipelineError, match="begun with 4 tasks, of which task 3 has written"):
        check_same_tasks({0: first_marker, 3: first_marker._replace(next_batch=8)}, position)


def test_a_batch_that_another_task_of_this_number_wrote_is_fine() -> None:
    check_same_tasks({1: Marker("orders", 8, Contents(5), "run", 4)}, POSITION)


def test_a_repeated_task_has_its_rows() -> None:
    marker = Marker("orders", 8, Contents(5), "run", 4)
    check_same_rows(marker, POSITION, Contents(5, "0a", "ff"))  # an older version counted only

    with pytest.raises(PipelineError, match="wrote 5 rows before and is now repeated with 6"):
        check_same_rows(marker, POSITION, Contents(6))


def test_a_repeated_task_with_other_rows_is_refused() -> None:
    marker = Marker("orders", 8, CONTENTS, "run", 4)
    check_same_rows(marker, POSITION, CONTENTS)
    check_same_rows(marker, POSITION, CONTENTS._replace(ordered="0b"))  # in another order

    with pytest.raises(PipelineError, match=r"wrote 17 rows before and is now .* 17 other ones"):
        check_same_rows(marker, POSITION, CONTENTS._replace(ordered="0b", row_sum="fe"))


def test_rows_of_a_task_that_is_gone_are_told() -> None:
    check_no_task_is_gone(None, POSITION)
    check_no_task_is_gone(Marker("orders", 7, Contents(5), "run", 0), POSITION)

    with pytest.raises(PipelineError, match=r"task 2 wrote 5 rows, and was repeated with 2"):
        check_no_task_is_gone(Marker("orders", 8, Contents(5), "run", 0), POSITION)


METADATA_MAX = 4096


def test_a_range_is_from_its_first_batch_to_its_last() -> None:
    places = DeliveredPlaces([TopicPartition("copy", 0), TopicPartition("copy", 3)])
    places.note_batch(TopicPartition("copy", 3), 105, 1)
    places.note_batch(TopicPartition("copy", 3), 100, 5)
    assert places.places == [Delivered(), Delivered(6, 100, 105)]


def test_a_batch_at_an_unknown_offset_makes_its_range_unknown() -> None:
    places = DeliveredPlaces([TopicPartition("copy", 0)])
    for first in (7, -1, 9):
        places.note_batch(TopicPartition("copy", 0), first, 2)
    assert places.places == [Delivered(6, -1, -1)]


def test_places_travel_in_the_marker() -> None:
    places = DeliveredPlaces([TopicPartition("copy", number) for number in range(RANGES_MAX)])
    places.places = [
        Delivered(499_999, 10**9 + number, 10**9 + number) for number in range(RANGES_MAX)
    ]
    marker = Marker("copy", 1, Contents(1, "0" * 32, "0" * 16), "r" * 36, 0, places.text())
    assert len(marker.metadata) < METADATA_MAX
    again = DeliveredPlaces([TopicPartition("copy", number) for number in range(RANGES_MAX)])
    again.read(parse_marker("copy", 1, marker.metadata).places)
    assert again.places == places.places
    again.read("")
    assert again.places == places.places

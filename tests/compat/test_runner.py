"""The differential runner itself: what it masks, what it compares, what a known difference is."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.compat.dialogue import Dialogue, flatten
from tests.compat.known_differences import Difference


@pytest.fixture
def talk() -> Dialogue:
    """A dialogue that never connects."""
    return Dialogue("127.0.0.1", 1, scenario="s", api="produce", version=3)


def noted(talk: Dialogue, value: Any) -> Any:
    """`value` as the transcript keeps it."""
    talk.note("step", value)
    return talk.transcript.pop()[1]


def test_ids_become_the_order_of_their_appearance(talk: Dialogue) -> None:
    first, second = {"topic_id": b"a" * 16}, {"topic_id": b"b" * 16}
    assert noted(talk, [first, second, first]) == [
        {"topic_id": "topic_id #1"},
        {"topic_id": "topic_id #2"},
        {"topic_id": "topic_id #1"},
    ]


def test_the_id_that_means_none_stays(talk: Dialogue) -> None:
    none = {"producer_id": -1, "session_id": 0}
    assert noted(talk, none) == none
    assert noted(talk, {"topic_id": bytes(16)}) == {"topic_id": "00" * 16}


def test_words_are_masked_but_null_and_empty_stay(talk: Dialogue) -> None:
    messages = [{"error_message": text} for text in ("no such topic", "", None)]
    assert noted(talk, messages) == [{"error_message": text} for text in ("text", "", None)]


def test_this_hour_is_masked_and_other_times_are_not(talk: Dialogue) -> None:
    now = int(time.time() * 1000)
    times = [{"log_append_time_ms": value} for value in (now, 1_700_000_000_000, -1)]
    assert [one["log_append_time_ms"] for one in noted(talk, times)] == [
        "now",
        1_700_000_000_000,
        -1,
    ]


def test_kafkas_hash_order_is_sorted_away(talk: Dialogue) -> None:
    value = {"partition_responses": [{"index": 1}, {"index": 0}]}
    assert noted(talk, value) == {"partition_responses": [{"index": 0}, {"index": 1}]}


def test_every_leaf_has_a_path() -> None:
    flat = flatten([("one", {"a": [{"b": 1}], "c": None}), ("two", 3)])
    assert flat == {
        "one": "asked",
        "one.a.length": 1,
        "one.a[0].b:": 1,
        "one.c:": None,
        "two": "asked",
        "two:": 3,
    }


def test_two_steps_of_one_name_are_refused() -> None:
    with pytest.raises(AssertionError, match="two steps"):
        flatten([("one", 1), ("one", 2)])


def test_a_known_difference_covers_its_path_only() -> None:
    line = Difference("s", "step.topics[0].*:", "because")
    assert line.covers("step.topics[0].error_code:")
    assert not line.covers("step.topics[1].error_code:")
    assert not line.covers("other.topics[0].error_code:")

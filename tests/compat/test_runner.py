"""The differential runner itself: masks, comparisons, known differences."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.compat.dialogue import Dialogue, flatten
from tests.compat.verdict import ABSENT, Difference, Lacking, complaints_about


@pytest.fixture
def talk() -> Dialogue:
    """Return a dialogue that never connects."""
    return Dialogue("127.0.0.1", 1, scenario="s", api="produce", version=3)


def transcript_of(talk: Dialogue, value: Any) -> Any:
    """Return `value` as the transcript keeps it."""
    talk.note("step", value)
    return talk.transcript.pop()[1]


def test_ids_become_the_order_of_their_appearance(talk: Dialogue) -> None:
    first, second = {"topic_id": b"a" * 16}, {"topic_id": b"b" * 16}
    assert transcript_of(talk, [first, second, first]) == [
        {"topic_id": "topic_id #1"},
        {"topic_id": "topic_id #2"},
        {"topic_id": "topic_id #1"},
    ]


def test_the_id_that_means_none_stays(talk: Dialogue) -> None:
    none = {"producer_id": -1, "session_id": 0}
    assert transcript_of(talk, none) == none
    assert transcript_of(talk, {"topic_id": bytes(16)}) == {"topic_id": "00" * 16}


def test_words_are_masked_but_null_and_empty_stay(talk: Dialogue) -> None:
    messages = [{"error_message": text} for text in ("no such topic", "", None)]
    assert transcript_of(talk, messages) == [{"error_message": text} for text in ("text", "", None)]


def test_this_hour_is_masked_and_other_times_are_not(talk: Dialogue) -> None:
    now = int(time.time() * 1000)
    times = [{"log_append_time_ms": value} for value in (now, 1_700_000_000_000, -1)]
    assert [entry["log_append_time_ms"] for entry in transcript_of(talk, times)] == [
        "now",
        1_700_000_000_000,
        -1,
    ]


def test_kafkas_hash_order_is_sorted_away(talk: Dialogue) -> None:
    value = {"partition_responses": [{"index": 1}, {"index": 0}]}
    assert transcript_of(talk, value) == {"partition_responses": [{"index": 0}, {"index": 1}]}


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


PLACE = "step.topics[0].error_code:"


def answers(ours: Any, kafka_39: Any, kafka_44: Any) -> dict[str, dict[str, Any]]:
    """Return three answers that may differ at one place, beside one where they agree."""
    values = {"minibroker": ours, "3.9.1": kafka_39, "4.4.0": kafka_44}
    return {broker: {"step": "asked", PLACE: value} for broker, value in values.items()}


def test_equal_answers_need_no_line() -> None:
    assert complaints_about(answers(0, 0, 0), []) == []


def test_an_answer_unlike_one_kafka_needs_a_line() -> None:
    assert len(complaints_about(answers(0, 0, 42), [])) == 1


def test_a_line_states_every_value() -> None:
    line = Difference("s", (PLACE,), "because", ours=0, kafka_44=42)
    assert complaints_about(answers(0, 0, 42), [line]) == []
    assert len(complaints_about(answers(3, 0, 42), [line])) == 1
    assert len(complaints_about(answers(0, 0, 3), [line])) == 1
    assert len(complaints_about(answers(0, 3, 42), [line])) == 1


def test_a_kafka_that_is_not_asked_has_no_say() -> None:
    line = Difference("s", (PLACE,), "because", ours=0, kafka_39=7, kafka_44=42)
    remaining = answers(0, None, 42)
    del remaining["3.9.1"]
    assert complaints_about(remaining, [line]) == []


def test_a_difference_that_is_gone_is_a_complaint() -> None:
    line = Difference("s", (PLACE, "step.gone:"), "because", ours=0, kafka_44=42)
    (complaint,) = complaints_about(answers(0, 0, 42), [line])
    assert complaint.startswith("step.gone:")


def test_a_place_has_one_line() -> None:
    line = Difference("s", (PLACE,), "because", ours=0, kafka_44=42)
    assert len(complaints_about(answers(0, 0, 42), [line, line])) == 1


def test_a_struct_that_one_kafka_lacks() -> None:
    line = Lacking("s", ("step.topics[0]",), "because", lacked_by="4.4.0", followed="3.9.1")
    assert complaints_about(answers(5, 5, ABSENT), [line]) == []
    assert len(complaints_about(answers(6, 5, ABSENT), [line])) == 1
    assert len(complaints_about(answers(5, 5, 6), [line])) == 1
    assert len(complaints_about(answers(5, 5, 5), [line])) == 1

"""Patterns: what is one, and that none takes long. When they are looked up: tests/scenario."""

from __future__ import annotations

import pytest

from minibroker.broker.groups.consumer.regexes import compile_regex, match_topics, permitted_topics
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError


@pytest.mark.parametrize(
    ("regex", "why"),
    [
        ("[", "missing closing ]"),
        ("(a", "missing closing )"),
        ("*a", "missing argument to repetition operator"),
        ("a**", "invalid nested repetition operator"),
        ("a{2,1}", "invalid repeat count"),
        ("(?=a)", "invalid or unsupported Perl syntax"),
        (r"(a)\1", "invalid escape sequence"),
        ("[b-a]", "invalid character class range"),
        ("(?P<n!>a)", "invalid named capture"),
        ("\\", "trailing backslash at end of expression"),
    ],
)
def test_a_malformed_pattern_is_refused_in_kafkas_words(regex: str, why: str) -> None:
    with pytest.raises(KafkaError) as raised:
        compile_regex(regex)
    assert raised.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert raised.value.detail == (
        f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {why}."
    )


def test_a_pattern_matches_from_end_to_end() -> None:
    names = ["logs", "logs-1", "my-logs"]
    assert match_topics(["logs", "logs.*", "(?i)LOGS-\\d"], names) == {
        "logs": {"logs"},
        "logs.*": {"logs", "logs-1"},
        "(?i)LOGS-\\d": {"logs-1"},
    }


def test_a_pattern_that_was_stored_and_is_none_matches_nothing() -> None:
    assert match_topics(["["], ["a"]) == {"[": frozenset()}


def test_a_topic_that_may_not_be_described_is_left_out_and_asked_about_once() -> None:
    matched = {"a.*": frozenset({"a", "ab"}), ".*b": frozenset({"ab", "b"})}
    asked: list[str] = []

    def may_describe(name: str) -> bool:
        asked.append(name)
        return name != "ab"

    assert permitted_topics(matched, may_describe) == {"a.*": {"a"}, ".*b": {"b"}}
    assert asked == ["a", "ab", "b"]
    assert permitted_topics(matched, None) == matched


def test_hostile_patterns_cost_no_time() -> None:
    """Each of them keeps Python's re busy for longer than anybody waits."""
    names = ["a" * 240 + "!"] * 50
    hostile = ["(a+)+", "(a|a)*b", "(a*)*b", "(.*a){12}b"]
    assert match_topics(hostile, names) == dict.fromkeys(hostile, frozenset())


def test_a_pattern_too_large_to_compile_is_refused() -> None:
    with pytest.raises(KafkaError) as raised:
        compile_regex("(" * 8 + "x{900}" + "){900}" * 8)
    assert raised.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION

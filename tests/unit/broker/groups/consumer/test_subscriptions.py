"""Counts of subscriptions by name and by pattern."""

from __future__ import annotations

import sys

import pytest

from minibroker.broker.cluster.image import BrokerInfo, MetadataImage
from minibroker.broker.groups.consumer.regexes import compile_regex, match_topics, permitted_topics
from minibroker.broker.groups.consumer.subscriptions import Subscriptions
from minibroker.broker.groups.consumer.topics import NO_HASH
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError
from tests.support.group_topics import ID, image_with, topic, topics_of


def subscriptions(*names: str, matches: str = "") -> Subscriptions:
    """Each of `names` is one member's, letters are topics."""
    new_subscriptions = Subscriptions()
    for name in names:
        new_subscriptions.add_names(name)
    new_subscriptions.add_matches(matches)
    return new_subscriptions


def test_a_topic_counts_as_long_as_a_member_wants_it() -> None:
    both = subscriptions("ab", "b", matches="bc")
    assert sorted(both) == ["a", "b", "c"]
    both.drop_names("ab")
    assert sorted(both) == ["b", "c"]
    assert "a" not in both
    both.drop_matches("bc")
    both.drop_names("b")
    assert list(both) == []


def test_a_copy_is_another_thing() -> None:
    original = subscriptions("a")
    original.copy().add_names("b")
    assert "b" not in original


def test_names_are_alike_when_every_member_has_every_topic() -> None:
    assert subscriptions().is_homogeneous({}, 2)
    assert subscriptions("ab", "ab").is_homogeneous({}, 2)
    assert not subscriptions("ab", "a").is_homogeneous({}, 2)


def test_patterns_are_alike_when_everybody_has_the_only_one() -> None:
    assert subscriptions(matches="ab").is_homogeneous({"x": 2}, 2)
    assert not subscriptions(matches="ab").is_homogeneous({"x": 1, "y": 1}, 2)
    assert not subscriptions("a", matches="ab").is_homogeneous({"x": 2}, 2)
    assert not subscriptions(matches="aab").is_homogeneous({"x": 2, "y": 1}, 2)


# Topics by name and id, and the hash of their layout; beside Kafka's in tests/compat.


def test_topics_are_found_both_ways() -> None:
    topics = topics_of(image_with(topic(3)))
    assert (topics.id_of("t"), topics.name_of(ID), topics.partition_count(ID)) == (ID, "t", 3)
    assert topics.ids_of(["t", "u"]) == {ID}
    assert (topics.id_of("u"), topics.name_of(bytes(16)), topics.names()) == (None, None, ["t"])


def test_hash_is_kafkas_number() -> None:
    """Computed by Kafka 4.4.0's Utils.computeGroupHash for one topic of one partition."""
    assert topics_of(image_with(topic())).hash_of(["t", "not there"]) == 9071989324415409264
    assert topics_of(image_with(topic())).hash_of(["not there"]) == NO_HASH


def test_hash_changes_with_partitions_and_racks() -> None:
    image = image_with(topic())
    topics = topics_of(image)
    hashes = {topics.hash_of(["t"])}
    image.topics["t"] = topic(2)
    hashes.add(topics.hash_of(["t"]))
    image.brokers[0] = BrokerInfo(0, (), "rack")
    image.topics["t"] = topic(2)
    hashes.add(topics.hash_of(["t"]))
    assert len(hashes) == 3


def test_new_topics_make_older_patterns_stale_even_within_a_millisecond() -> None:
    topics = topics_of(MetadataImage())
    versions = [topics.new_topics_version]
    for _ in range(3):
        topics.note_created()
        versions.append(topics.new_topics_version)
    assert versions == [1000, 1001, 1002, 1003]
    version = topics.version
    topics.note_changed()
    assert topics.version == version + 1
    assert topics.new_topics_version == 1003


def test_without_its_library_the_hash_is_another_one_that_tells_layouts_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "xxhash", None)
    value = topics_of(image_with(topic())).hash_of(["t"])
    assert value not in (NO_HASH, 9071989324415409264)
    assert -(1 << 63) <= value < 1 << 63
    assert topics_of(image_with(topic())).hash_of(["t"]) == value
    assert topics_of(image_with(topic(3))).hash_of(["t"]) != value


# Patterns: what is one, and that none takes long. When they are looked up: tests/scenario.


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
    topics_by_regex = {"a.*": frozenset({"a", "ab"}), ".*b": frozenset({"ab", "b"})}
    questions: list[str] = []

    def may_describe(name: str) -> bool:
        questions.append(name)
        return name != "ab"

    assert permitted_topics(topics_by_regex, may_describe) == {"a.*": {"a"}, ".*b": {"b"}}
    assert questions == ["a", "ab", "b"]
    assert permitted_topics(topics_by_regex, None) == topics_by_regex


def test_hostile_patterns_cost_no_time() -> None:
    """Each of them keeps Python's re busy for longer than anybody waits."""
    names = ["a" * 240 + "!"] * 50
    hostile = ["(a+)+", "(a|a)*b", "(a*)*b", "(.*a){12}b"]
    assert match_topics(hostile, names) == dict.fromkeys(hostile, frozenset())


def test_a_pattern_too_large_to_compile_is_refused() -> None:
    with pytest.raises(KafkaError) as raised:
        compile_regex("(" * 8 + "x{900}" + "){900}" * 8)
    assert raised.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION

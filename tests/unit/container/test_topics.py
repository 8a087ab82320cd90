"""KAFKA_CREATE_TOPICS."""

from __future__ import annotations

import pytest

from minibroker.broker.config.options import TopicToCreate
from minibroker.container.topics import parse_topics
from minibroker.kafka.errors import ConfigError


def test_the_form_of_other_images() -> None:
    assert parse_topics("orders:6:1,users:3:1:compact, audit:1:1:delete") == [
        TopicToCreate("orders", 6, {}, 1),
        TopicToCreate("users", 3, {"cleanup.policy": "compact"}, 1),
        TopicToCreate("audit", 1, {"cleanup.policy": "delete"}, 1),
    ]


def test_the_form_of_the_flag() -> None:
    assert parse_topics("a, b:2, c:cleanup.policy=compact, d:3:segment.ms=6:retention.ms=7") == [
        TopicToCreate("a", -1, {}),
        TopicToCreate("b", 2, {}),
        TopicToCreate("c", -1, {"cleanup.policy": "compact"}),
        TopicToCreate("d", 3, {"segment.ms": "6", "retention.ms": "7"}),
    ]


def test_lines_of_a_compose_file() -> None:
    assert [topic.name for topic in parse_topics("\n  a:1:1,\n  b:1:1,\n")] == ["a", "b"]
    assert parse_topics("") == []


def test_two_policies_want_another_separator() -> None:
    (topic,) = parse_topics("users:3:1:compact,delete;", ";")
    assert topic.configs == {"cleanup.policy": "compact,delete"}
    with pytest.raises(ConfigError, match="KAFKA_CREATE_TOPICS_SEPARATOR"):
        parse_topics("users:3:1:compact,delete")


def test_more_replicas_are_for_several_brokers() -> None:
    assert [topic.replicas for topic in parse_topics("b:1:1,a:1:3,c:1:2:compact,d:1")] == [
        1,
        3,
        2,
        0,
    ]


@pytest.mark.parametrize(
    "entry",
    ["a:0:1", "a:1:0", "a:x:1", ":1:1", "a:1:1:compact:more", "a:²:1", "a:x", ":2", "a:-1:1"],
)
def test_an_unreadable_part_is_named(entry: str) -> None:
    with pytest.raises(ConfigError, match="KAFKA_CREATE_TOPICS") as raised:
        parse_topics(f"good:1:1,{entry}")
    assert entry in str(raised.value)

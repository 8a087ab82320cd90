"""A copy gets the settings that the source's topic has of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from minibroker.client.configs import OF_TOPIC, OwnSetting
from minibroker.pipeline.kafka import preflight
from minibroker.pipeline.kafka.cluster import Kafka
from minibroker.pipeline.kafka.preflight import ClusterTopics
from minibroker.pipeline.verbs.copy.targets import LEFT_OUT, CopyTargets, copied_settings, too_few

if TYPE_CHECKING:
    import pytest


def test_settings_of_the_topic_are_copied_and_no_others() -> None:
    of_kafka, of_broker = 5, 4
    entries = [
        OwnSetting("retention.ms", "-1", OF_TOPIC),
        OwnSetting("cleanup.policy", "compact", OF_TOPIC),
        OwnSetting("segment.bytes", "1", of_kafka),
        OwnSetting("max.message.bytes", "2", of_broker),
        *(OwnSetting(name, "x", OF_TOPIC) for name in LEFT_OUT),
    ]
    assert copied_settings(entries) == {"retention.ms": "-1", "cleanup.policy": "compact"}


def test_a_small_target_is_named_with_its_numbers() -> None:
    sentence = too_few("orders", 4, "copy", 2)
    assert "'copy' has 2 partitions and 'orders' has 4" in sentence
    assert "--by-key" in sentence


def test_a_topic_that_is_gone_meanwhile_is_left_to_its_reader(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers: list[dict[str, int]] = [{"orders": 1}, {"copy": 1}, {"another": 1}]

    def ask(*_: Any) -> ClusterTopics:
        return ClusterTopics("cluster", answers.pop(0))

    monkeypatch.setattr(preflight, "ask", ask)
    targets = CopyTargets(Kafka("x:1"), Kafka("y:1"), None, keeps_partitions=True)
    for _ in range(2):
        targets.ensure({"orders": "copy"})
    assert answers == []

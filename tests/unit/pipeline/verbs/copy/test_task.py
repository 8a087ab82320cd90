"""A copy: its tasks follow from its ranges alone, its topics have the settings of the source."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

from minibroker.client.configs import OF_TOPIC, OwnSetting
from minibroker.pipeline.kafka import preflight
from minibroker.pipeline.kafka.cluster import Kafka
from minibroker.pipeline.kafka.preflight import ClusterTopics
from minibroker.pipeline.kafka.sink.delivered_places import RANGES_MAX
from minibroker.pipeline.offsets import OffsetRange
from minibroker.pipeline.verbs.copy.targets import LEFT_OUT, CopyTargets, copied_settings, too_few
from minibroker.pipeline.verbs.copy.task import (
    COPIED,
    WRITERS_MAX,
    CopyBatch,
    CopyReader,
    CopySource,
    groups_of,
    whole_ranges,
)

if TYPE_CHECKING:
    import pytest


def test_ranges_that_were_cut_are_whole_again() -> None:
    ranges = [
        OffsetRange("b", 0, 5, 9),
        OffsetRange("a", 1, 10, 20),
        OffsetRange("b", 0, 0, 5),
        OffsetRange("a", 2, 3, 3),
    ]
    assert whole_ranges(ranges) == [OffsetRange("a", 1, 10, 20), OffsetRange("b", 0, 0, 9)]


def test_a_partition_has_one_task_and_tasks_are_even() -> None:
    dice = random.Random(1)
    ranges = [OffsetRange("t", number, 0, dice.randint(1, 1000)) for number in range(200)]
    groups = groups_of(ranges)
    assert len(groups) == WRITERS_MAX
    assert sorted(span for group in groups for span in group) == sorted(ranges)
    loads = [sum(span.size for span in group) for group in groups]
    assert max(loads) < 1.1 * min(loads)
    assert groups_of(list(reversed(ranges))) == groups, "the order of the rows does not count"


def test_very_many_ranges_have_more_tasks() -> None:
    groups = groups_of([OffsetRange("t", number, 0, 1) for number in range(10_000)])
    assert len(groups) == 10_000 // RANGES_MAX
    assert max(map(len, groups)) == RANGES_MAX


def test_the_source_has_a_partition_for_each_task() -> None:
    batch = CopyBatch({}, {}, {"a": "b"}, True, "q", "r", 3, [[("a", 0, 1, 2)], [("a", 1, 1, 5)]])
    source = CopySource({"batch": json.dumps(batch)})
    assert source.schema() == COPIED
    reader = source.reader(COPIED)
    assert isinstance(reader, CopyReader)
    assert [partition.value for partition in reader.partitions()] == [
        (0, [["a", 0, 1, 2]]),
        (1, [["a", 1, 1, 5]]),
    ]


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

"""Topics of the command line: made once, and named with the reason where they cannot be made."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.broker.app import Broker
from minibroker.broker.config.broker import BrokerConfig
from minibroker.broker.config.topic_option import TopicToCreate
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import ConfigError, KafkaError
from tests.support.in_process import InProcessBroker

if TYPE_CHECKING:
    from pathlib import Path


def config(directory: Path, **settings: str) -> BrokerConfig:
    properties = {key.replace("_", "."): value for key, value in settings.items()}
    listeners = "PLAINTEXT://127.0.0.1:0"
    return BrokerConfig({"listeners": listeners, "log.dirs": str(directory), **properties})


async def test_topics_of_the_command_line_are_made_once(tmp_path: Path) -> None:
    topics = (TopicToCreate("a", 3, {"retention.ms": "1000"}), TopicToCreate("b", -1, {}))
    for _ in range(2):
        async with InProcessBroker(tmp_path, topics=topics) as running:
            image = running.broker.cluster.image
            assert {name: len(topic.partitions) for name, topic in image.topics.items()} == {
                "a": 3,
                "b": 1,
            }
            assert running.partitions.get("a", 0).log.config.retention_ms == 1000


@pytest.mark.parametrize(
    "topic",
    [
        TopicToCreate("a b", 1, {}),
        TopicToCreate("a", 0, {}),
        TopicToCreate("a", 2**31 - 1, {}),
        TopicToCreate("a", 1, {"retention.ms": "soon"}),
        TopicToCreate("a", 1, {"no.such.key": "1"}),
    ],
)
async def test_a_topic_that_cannot_be_made_fails_the_start(
    tmp_path: Path, topic: TopicToCreate
) -> None:
    broker = Broker(config(tmp_path / "data"))
    with pytest.raises(ConfigError):
        await broker.start([topic])
    async with InProcessBroker(tmp_path) as running:
        assert not running.broker.cluster.image.topics


async def test_a_topic_that_is_not_made_in_time_is_named_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def too_late(*_: object, **__: object) -> None:
        raise KafkaError(ErrorCode.REQUEST_TIMED_OUT)

    broker = Broker(config(tmp_path / "data"))
    monkeypatch.setattr(type(broker.cluster), "create_topic", too_late)
    with pytest.raises(ConfigError, match=r"^--topic a:1: REQUEST_TIMED_OUT$"):
        await broker.start([TopicToCreate("a", 1, {})])


async def test_a_topic_with_too_many_partitions_is_refused_with_the_limit(tmp_path: Path) -> None:
    broker = Broker(config(tmp_path / "data"))
    expected = r"^--topic a:20000: Excessively large .* Expected at most 9998 partitions\.$"
    with pytest.raises(ConfigError, match=expected):
        await broker.start([TopicToCreate("a", 20_000, {"segment.ms": "1000000"})])

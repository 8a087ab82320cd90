"""DeleteTopics: by name, by id, what is refused, every version."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from tests.support.in_process import InProcessBroker

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.in_process import RawClient

VERSIONS = range(7)


def naming(version: int, *names: str, timeout_ms: int = 10_000) -> DeleteTopicsRequest:
    if version >= 6:
        topics = [DeleteTopicState(name=name) for name in names]
        return DeleteTopicsRequest(topics=topics, timeout_ms=timeout_ms)
    return DeleteTopicsRequest(topic_names=list(names), timeout_ms=timeout_ms)


async def codes(client: RawClient, request: Any, version: int) -> list[str]:
    answer = await client.call(request, version)
    return [ErrorCode(result.error_code).name for result in answer.responses]


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_topic_is_gone_when_the_answer_comes(
    running: InProcessBroker, client: RawClient, version: int
) -> None:
    assert await codes(client, naming(version, "t"), version) == ["NONE"]
    assert running.partitions.find("t", 0) is None
    assert "t" not in running.broker.cluster.image.topics
    assert await codes(client, naming(version, "t"), version) == ["UNKNOWN_TOPIC_OR_PARTITION"]


async def test_topics_of_a_request_stand_for_themselves(
    running: InProcessBroker, client: RawClient
) -> None:
    await running.create_topic("u")
    names = await codes(client, naming(5, "t", "nowhere", "u"), 5)
    assert sorted(names) == ["NONE", "NONE", "UNKNOWN_TOPIC_OR_PARTITION"]


@pytest.mark.parametrize(
    ("version", "expected"), [(0, "INVALID_REQUEST"), (3, "TOPIC_DELETION_DISABLED")]
)
async def test_deletion_may_be_switched_off(tmp_path: Path, version: int, expected: str) -> None:
    settings = {"delete.topic.enable": "false"}
    async with InProcessBroker(tmp_path, settings) as running, await running.connect() as client:
        await running.create_topic("t")
        assert await codes(client, naming(version, "t"), version) == [expected]
        running.partitions.get("t", 0)


async def test_no_time_is_a_time_out_though_the_topic_goes(
    running: InProcessBroker, client: RawClient
) -> None:
    assert await codes(client, naming(5, "t", timeout_ms=0), 5) == ["REQUEST_TIMED_OUT"]
    assert "t" not in running.broker.cluster.image.topics

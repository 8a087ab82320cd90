"""Topics of a Metadata answer kept as bytes: reused while true, built anew after a change."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.broker.cluster.image import BrokerInfo, Endpoint
from minibroker.broker.handlers import metadata
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic

if TYPE_CHECKING:
    from tests.support.in_process import InProcessBroker, RawClient


def about(*names: str, **more: Any) -> MetadataRequest:
    return MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in names], **more)


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Names and versions of the topics whose bytes were built."""
    builds: list[tuple[str, int]] = []
    encode = metadata.EncodedTopic.__init__

    def note(self: Any, topic: Any, version: int, brokers: Any) -> None:
        builds.append((topic.name, version))
        encode(self, topic, version, brokers)

    monkeypatch.setattr(metadata.EncodedTopic, "__init__", note)
    return builds


async def test_bytes_are_built_once_for_each_version(
    client: RawClient, built: list[tuple[str, int]]
) -> None:
    first = await client.call(about("t"), 9)
    assert await client.call(MetadataRequest(topics=None), 9) == first
    assert built == [("t", 9)]
    await client.call(about("t"), 12)
    await client.call(about("t"), 9)
    assert built == [("t", 9), ("t", 12)]


async def test_only_a_changed_topic_is_built_again(
    running: InProcessBroker, client: RawClient, built: list[tuple[str, int]]
) -> None:
    await running.create_topic("other")
    await client.call(about("t", "other"), 9)
    built.clear()
    await running.broker.cluster.topics.add_partitions("t", 3)
    answer = await client.call(about("t", "other"), 9)
    assert [len(topic.partitions) for topic in answer.topics] == [3, 1]
    assert built == [("t", 9)]


async def test_a_change_of_the_brokers_is_seen(running: InProcessBroker, client: RawClient) -> None:
    old_answer = await client.call(about("t"), 9)
    assert old_answer.topics[0].partitions[0].leader_id == 0
    elsewhere = BrokerInfo(0, (Endpoint("OTHER", "127.0.0.1", 1),))
    await running.broker.cluster._updater.apply_brokers({0: elsewhere})
    after = await client.call(about("t"), 9)
    (leaderless, _) = after.topics[0].partitions
    assert leaderless.error_code == ErrorCode.LISTENER_NOT_FOUND
    assert leaderless.leader_id == -1


async def test_operations_are_told_to_those_who_ask(client: RawClient) -> None:
    asking = about("t", include_topic_authorized_operations=True)
    answers = [await client.call(request, 9) for request in (asking, about("t"), asking)]
    have_operations = [
        answer.topics[0].topic_authorized_operations != -(2**31) for answer in answers
    ]
    assert have_operations == [True, False, True]


async def test_bytes_go_with_their_topic(running: InProcessBroker, client: RawClient) -> None:
    await client.call(MetadataRequest(topics=None), 9)
    gc.collect()
    old_count = len(metadata._encoded)
    for index in range(10):
        await running.create_topic(f"short-lived-{index}")
        await client.call(MetadataRequest(topics=None), 9)
        await running.broker.cluster.delete_topic(f"short-lived-{index}")
    gc.collect()
    assert len(metadata._encoded) == old_count

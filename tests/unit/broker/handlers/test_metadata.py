"""Metadata: automatic creation and its limits; DescribeTopicPartitions: all pages together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from minibroker.kafka.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.support.in_process import TIMEOUT_S, InProcessBroker

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.in_process import RawClient


VERSIONS = range(14)


def request_for(*names: str, create: bool = True, **more: Any) -> MetadataRequest:
    return MetadataRequest(
        topics=[MetadataRequestTopic(name=name) for name in names],
        allow_auto_topic_creation=create,
        **more,
    )


async def test_the_rack_is_told(tmp_path: Any) -> None:
    async with (
        InProcessBroker(tmp_path, {"broker.rack": "r1"}) as running,
        await running.connect() as client,
    ):
        for version in (1, 9):
            answer = await client.call(request_for(), version)
            assert answer.brokers[0].rack == "r1"


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_missing_topic_is_made_if_the_request_lets_it(
    running: InProcessBroker, client: RawClient, version: int
) -> None:
    if version >= 4:
        answer = await client.call(request_for("new", create=False), version)
        assert answer.topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert "new" not in running.broker.cluster.image.topics
    answer = await client.call(request_for("new", create=True), version)
    assert answer.topics[0].error_code == 0
    assert [part.leader_id for part in answer.topics[0].partitions] == [0]
    running.partitions.get("new", 0)


@pytest.mark.parametrize("version", [0, 4, 13])
async def test_a_broker_that_is_not_the_controller_does_not_wait_for_topics(
    deposed: InProcessBroker, client: RawClient, version: int
) -> None:
    """It answers while it cannot write yet; then it writes all of them."""
    cluster = deposed.broker.cluster
    names = [f"new-{number}" for number in range(3)]
    async with cluster._context.lock:
        answer = await client.call(request_for("t", *names), version)
        codes = {topic.name: topic.error_code for topic in answer.topics}
        assert codes == {"t": 0, **dict.fromkeys(names, ErrorCode.LEADER_NOT_AVAILABLE)}
    for name in names:
        await cluster._updater.wait_for_topic(name, lambda topic: topic is not None, TIMEOUT_S)
    answer = await client.call(request_for(*names), version)
    assert {partition.error_code for topic in answer.topics for partition in topic.partitions} == {
        ErrorCode.LEADER_NOT_AVAILABLE
    }


@pytest.mark.parametrize("version", [0, 3, 4, 9, 12])
async def test_no_topic_is_made_if_the_broker_does_not(tmp_path: Any, version: int) -> None:
    settings = {"auto.create.topics.enable": "false"}
    async with InProcessBroker(tmp_path, settings) as running, await running.connect() as client:
        answer = await client.call(request_for("new", create=True), version)
        assert answer.topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert not running.broker.cluster.image.topics


async def test_the_offsets_topic_is_made_as_kafka_makes_it(
    running: InProcessBroker, client: RawClient
) -> None:
    answer = await client.call(request_for("__consumer_offsets", create=True), 9)
    (topic,) = answer.topics
    assert topic.is_internal
    assert len(topic.partitions) == 50
    config = running.broker.cluster.config_of("topics", "__consumer_offsets")
    assert config["cleanup.policy"] == "compact"


@pytest.mark.parametrize("names", [("a",), ("a", "b", "c d")])
async def test_auto_creation_keeps_to_the_limits_of_one_request(
    tmp_path: Path, names: tuple[str, ...], caplog: pytest.LogCaptureFixture
) -> None:
    """Two valid names are 12,000 partitions, one alone is within the limits."""
    settings = {"num.partitions": "6000" if len(names) > 1 else "2147483647"}
    async with InProcessBroker(tmp_path, settings) as running, await running.connect() as client:
        answer = await client.call(request_for(*names, create=True), 9)
        codes = {topic.name: topic.error_code for topic in answer.topics}
        assert {codes[name] for name in names[:2]} == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        assert not running.broker.cluster.image.topics
    assert "Excessively large number of partitions per request." in caplog.text


async def test_a_request_creates_no_more_topics_than_one_operation_may(
    running: InProcessBroker, client: RawClient
) -> None:
    names = [f"n{index}" for index in range(5_001)]
    answer = await client.call(request_for(*names, create=True), 9)
    assert {topic.error_code for topic in answer.topics} == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert set(running.broker.cluster.image.topics) == {"t"}


async def test_a_topic_that_cannot_be_created_is_an_error_and_a_line_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A Metadata answer has no room for a reason, and clients retry in silence."""
    settings = {"default.replication.factor": "3"}
    async with InProcessBroker(tmp_path, settings) as running, await running.connect() as client:
        (topic,) = (await client.call(request_for("new"), 9)).topics
    assert topic.error_code == ErrorCode.INVALID_REPLICATION_FACTOR
    (record,) = [record for record in caplog.records if "new is not created" in record.getMessage()]
    assert "Replication factor: 3 larger than available brokers: 1." in record.getMessage()


def asking(
    *names: str, cursor: tuple[str, int] | None = None, limit: int = 2000
) -> DescribeTopicPartitionsRequest:
    place = Cursor(topic_name=cursor[0], partition_index=cursor[1]) if cursor else None
    return DescribeTopicPartitionsRequest(
        topics=[TopicRequest(name=name) for name in names],
        response_partition_limit=limit,
        cursor=place,
    )


def indexes_by_name(answer: Any) -> list[tuple[str, list[int]]]:
    return [
        (topic.name, [part.partition_index for part in topic.partitions]) for topic in answer.topics
    ]


@pytest.fixture
async def topics(running: InProcessBroker) -> None:
    """Beside `t` with two partitions: `a` with three, `z` with one."""
    await running.create_topic("z")
    await running.create_topic("a", 3)


@pytest.mark.usefixtures("topics")
@pytest.mark.parametrize("limit", [1, 2, 3, 4, 5, 6])
async def test_pages_join_to_the_whole(client: RawClient, limit: int) -> None:
    places: list[tuple[str, int]] = []
    cursor = None
    for _ in range(7):
        answer = await client.call(asking(cursor=cursor, limit=limit), 0)
        page = [(name, index) for name, indexes in indexes_by_name(answer) for index in indexes]
        assert len(page) <= limit
        places += page
        if answer.next_cursor is None:
            break
        cursor = (answer.next_cursor.topic_name, answer.next_cursor.partition_index)
    assert places == [("a", 0), ("a", 1), ("a", 2), ("t", 0), ("t", 1), ("z", 0)]

"""CreateTopics: defaults, assignments, configurations, what is refused, every version."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import CoordinationError
from minibroker.kafka.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from tests.support.record_requests import id_of
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from tests.support.in_process import InProcessBroker, RawClient

VERSIONS = range(8)


def topic(
    name: str = "new",
    partitions: int = 1,
    replicas: int = 1,
    *,
    assignment: dict[int, list[int]] | None = None,
    configs: dict[str, str | None] | None = None,
) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replicas,
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=brokers)
            for index, brokers in (assignment or {}).items()
        ],
        configs=[
            CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()
        ],
    )


async def create(client: RawClient, *topics: CreatableTopic, version: int = 5, **more: Any) -> Any:
    request = CreateTopicsRequest(topics=list(topics), timeout_ms=10_000, **more)
    return (await client.call(request, version)).topics


async def code(client: RawClient, new_topic: CreatableTopic, version: int = 5) -> ErrorCode:
    (result,) = await create(client, new_topic, version=version)
    return ErrorCode(result.error_code)


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_topic_is_there_when_the_answer_comes(
    running: InProcessBroker, client: RawClient, version: int
) -> None:
    (result,) = await create(client, topic("new", 3), version=version)
    assert (result.name, result.error_code) == ("new", 0)
    for index in range(3):
        running.partitions.get("new", index)
    if version >= 5:
        assert (result.num_partitions, result.replication_factor) == (3, 1)
        entries = {entry.name: entry for entry in result.configs}
        assert entries["retention.ms"].value == "604800000"
    if version >= 7:
        assert result.topic_id == id_of(running, "new")


async def test_configurations_are_kept_and_told(
    running: InProcessBroker, client: RawClient
) -> None:
    (result,) = await create(client, topic(configs={"retention.ms": "1000"}))
    (entry,) = [entry for entry in result.configs if entry.name == "retention.ms"]
    assert entry.value == "1000"
    assert running.broker.cluster.config_of("topics", "new") == {"retention.ms": "1000"}
    assert running.partitions.get("new", 0).log.config.retention_ms == 1000


async def test_the_topic_of_metadata_is_nobodys(client: RawClient) -> None:
    assert await code(client, topic("__cluster_metadata")) == ErrorCode.INVALID_REQUEST


async def test_no_time_is_a_time_out_though_the_topic_is_made(
    running: InProcessBroker, client: RawClient
) -> None:
    answer = await client.call(CreateTopicsRequest(topics=[topic()], timeout_ms=0), 5)
    assert answer.topics[0].error_code == ErrorCode.REQUEST_TIMED_OUT
    assert "new" in running.broker.cluster.image.topics


async def test_a_topic_without_a_leader_is_a_time_out_and_stays(
    running: InProcessBroker, client: RawClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    controller = running.broker.cluster._controller
    monkeypatch.setattr(type(controller), "stopping_brokers", {running.broker.config.broker_id})
    answer = await client.call(CreateTopicsRequest(topics=[topic()], timeout_ms=1), 5)
    assert answer.topics[0].error_code == ErrorCode.REQUEST_TIMED_OUT
    assert "new" in running.broker.cluster.image.topics


async def test_a_creation_waits_for_another_change_of_the_cluster(
    running: InProcessBroker, client: RawClient
) -> None:
    lock = running.broker.cluster._context.lock
    async with lock:
        creation = asyncio.ensure_future(create(client, topic(), topic("other")))
        await eventually(lambda: bool(lock._waiters))
        assert "new" not in running.broker.cluster.image.topics
    assert [result.error_code for result in await creation] == [0, 0]
    assert running.broker.cluster.image.topics.keys() >= {"new", "other"}


async def test_a_tree_that_is_away_is_a_retriable_error(
    running: InProcessBroker, client: RawClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: Any, **__: Any) -> None:
        raise CoordinationError("the tree is away")

    monkeypatch.setattr(type(running.broker.cluster.topics), "create", away)
    error_code = await code(client, topic())
    assert error_code == ErrorCode.REQUEST_TIMED_OUT
    assert error_code.retriable


@pytest.mark.parametrize("version", VERSIONS)
async def test_too_many_partitions_are_refused_and_nothing_is_made(
    running: InProcessBroker, client: RawClient, version: int
) -> None:
    """One frame of 60 bytes asked for 2^30 partitions, and the broker made them one by one."""
    topics = [topic("small"), topic("big", 2**30)]
    results = await create(client, *topics, version=version)
    assert {result.error_code for result in results} == {ErrorCode.POLICY_VIOLATION}
    if version >= 1:
        assert results[0].error_message == "Excessively large number of partitions per request."
    assert set(running.broker.cluster.image.topics) == {"t"}

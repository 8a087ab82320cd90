"""LeaderAndIsr over the wire: roles, results and fencing, in every version."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from minibroker.broker.partitions.role import NO_EPOCH, Follower
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.ids import TopicPartition
from minibroker.kafka.protocol.messages.leader_and_isr import (
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)
from tests.unit.broker.handlers.control_requests import EPOCH, Controlled

if TYPE_CHECKING:
    from collections.abc import Collection

    from minibroker.broker.cluster.requests import SentTopic
    from tests.support.in_process import InProcessBroker, RawClient

VERSIONS = range(8)
NEWEST = 7


@pytest.fixture
def controlled(running: InProcessBroker) -> Controlled:
    return Controlled(running)


def request_of(
    controlled: Controlled,
    version: int,
    leader_epoch: int = 3,
    *,
    leader: int = 0,
    index: int = 0,
    replicas: tuple[int, ...] = (0, 1),
    **more: Any,
) -> LeaderAndIsrRequest:
    """Return a request about one partition of `t`."""
    state = LeaderAndIsrPartitionState(
        partition_index=index,
        controller_epoch=EPOCH,
        leader=leader,
        leader_epoch=leader_epoch,
        isr=[*replicas],
        partition_epoch=9,
        replicas=[*replicas],
        topic_name="t" if version < 2 else "",
    )
    request = LeaderAndIsrRequest(controller_id=1, controller_epoch=EPOCH)
    if version < 2:
        request.ungrouped_partition_states = [state]
    else:
        request.broker_epoch = controlled.broker_epoch
        topic_id = controlled.topic.topic_id if version >= 5 else bytes(16)
        request.topic_states = [
            LeaderAndIsrTopicState(topic_name="t", topic_id=topic_id, partition_states=[state])
        ]
    for name, value in more.items():
        setattr(request, name, value)
    return request


def results_of(response: Any, version: int) -> tuple[int, list[int]]:
    """Return the code at the top and those of the partitions."""
    errors = response.partition_errors
    if version >= 5:
        errors = [error for topic in response.topics for error in topic.partition_errors]
    return response.error_code, [error.error_code for error in errors]


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_leader_becomes_a_follower_once(
    controlled: Controlled, client: RawClient, version: int
) -> None:
    request = request_of(controlled, version, leader=1)
    answer = await client.call(request, version)
    assert results_of(answer, version) == (0, [0])
    partition = controlled.partitions.replica("t", 0)
    assert partition is not None
    assert (partition.is_leader, partition.leader_epoch) == (False, 3)
    again = await client.call(request, version)
    assert results_of(again, version) == (0, [ErrorCode.STALE_CONTROLLER_EPOCH])


async def test_a_state_that_the_tree_brought_is_taken_once_too(
    controlled: Controlled, client: RawClient
) -> None:
    leader_epoch = controlled.topic.partitions[0].leader_epoch
    request = request_of(controlled, NEWEST, leader_epoch, replicas=(0,))
    codes = [results_of(await client.call(request, NEWEST), NEWEST)[1] for _ in range(2)]
    assert codes == [[0], [ErrorCode.STALE_CONTROLLER_EPOCH]]
    older = request_of(controlled, NEWEST, leader_epoch - 1, replicas=(0,))
    answer = await client.call(older, NEWEST)
    assert results_of(answer, NEWEST)[1] == [ErrorCode.STALE_CONTROLLER_EPOCH]


async def test_a_partition_of_other_brokers_is_unknown_here(
    controlled: Controlled, client: RawClient
) -> None:
    answer = await client.call(request_of(controlled, NEWEST, leader=1, replicas=(1, 2)), NEWEST)
    assert results_of(answer, NEWEST) == (0, [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION])
    assert controlled.partitions.find("t", 0) is not None


async def test_another_topic_id_is_inconsistent(controlled: Controlled, client: RawClient) -> None:
    request = request_of(controlled, NEWEST)
    request.topic_states[0].topic_id = b"another topic id"
    answer = await client.call(request, NEWEST)
    assert results_of(answer, NEWEST) == (0, [ErrorCode.INCONSISTENT_TOPIC_ID])
    assert answer.topics[0].topic_id == b"another topic id"


async def test_a_replica_of_an_offline_directory_is_a_storage_error(
    controlled: Controlled, client: RawClient
) -> None:
    controlled.partitions.take_offline([TopicPartition("t", 0)])
    answer = await client.call(request_of(controlled, NEWEST), NEWEST)
    assert results_of(answer, NEWEST) == (0, [ErrorCode.KAFKA_STORAGE_ERROR])


@pytest.mark.parametrize("version", [2, 4, 5, 7])
async def test_stale_epochs_are_refused_as_a_whole(
    controlled: Controlled, client: RawClient, version: int
) -> None:
    stale = request_of(controlled, version, broker_epoch=controlled.broker_epoch - 1)
    answer = await client.call(stale, version)
    code = ErrorCode.STALE_BROKER_EPOCH
    assert results_of(answer, version) == (code, [code])
    await client.call(request_of(controlled, version), version)
    deposed = request_of(controlled, version, 4, controller_epoch=EPOCH - 1)
    answer = await client.call(deposed, version)
    code = ErrorCode.STALE_CONTROLLER_EPOCH
    assert results_of(answer, version) == (code, [code])


@pytest.mark.parametrize("is_made_again", [True, False], ids=["another topic", "a later epoch"])
async def test_a_request_that_waited_leaves_alone_what_came_meanwhile(
    running: InProcessBroker,
    controlled: Controlled,
    client: RawClient,
    monkeypatch: pytest.MonkeyPatch,
    is_made_again: bool,
) -> None:
    """Another controller makes the topic again, or stops the replica in a later epoch. The next
    topic's own request, of an earlier epoch, is a new one.
    """
    take_states = controlled.cluster.requests.take_states

    async def take_slowly(topics: Collection[SentTopic]) -> None:
        await take_states(topics)
        if is_made_again:
            await controlled.cluster.delete_topic("t")
            await running.create_topic("t", 2)
            return
        partition = controlled.partitions.replica("t", 0)
        assert partition is not None
        partition.take_role(Follower(6, 10, leader=1))
        controlled.partitions.stop_fetching(partition)

    monkeypatch.setattr(controlled.cluster.requests, "take_states", take_slowly)
    request = request_of(controlled, NEWEST, 5, replicas=(0,))
    answer = await client.call(request, NEWEST)
    code = ErrorCode.STALE_CONTROLLER_EPOCH
    if is_made_again:
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert results_of(answer, NEWEST) == (0, [code])
    replica = controlled.partitions.replica("t", 0)
    assert replica is not None
    assert replica.requested_epoch == NO_EPOCH
    assert replica.is_stopped is not is_made_again


async def test_a_stopped_replica_follows_again(controlled: Controlled, client: RawClient) -> None:
    await client.call(request_of(controlled, NEWEST, leader=1), NEWEST)
    partition = controlled.partitions.replica("t", 0)
    assert partition is not None
    controlled.partitions.stop_fetching(partition)
    assert partition.role.leader == -1  # type: ignore[union-attr]
    await client.call(request_of(controlled, NEWEST, 4, leader=1), NEWEST)
    assert partition.role.leader == 1  # type: ignore[union-attr]

"""StopReplica over the wire: replicas stop, logs go, in every version."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from minibroker.broker.cluster import paths
from minibroker.broker.cluster.tree import Create
from minibroker.broker.partitions import leaving_logs
from minibroker.broker.partitions.manager import PartitionManager
from minibroker.broker.partitions.role import Follower
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.ids import TopicPartition
from minibroker.kafka.protocol.messages.stop_replica import (
    StopReplicaPartitionState,
    StopReplicaPartitionV0,
    StopReplicaRequest,
    StopReplicaTopicState,
    StopReplicaTopicV1,
)
from tests.unit.broker.handlers.control_requests import EPOCH, Controlled

if TYPE_CHECKING:
    from tests.support.in_process import InProcessBroker, RawClient

NEWEST = 4


@pytest.fixture
def controlled(running: InProcessBroker) -> Controlled:
    return Controlled(running)


def request_of(
    controlled: Controlled,
    version: int,
    *,
    deletes: bool,
    leader_epoch: int = -1,
    index: int = 0,
    **more: Any,
) -> StopReplicaRequest:
    """Return a request about one partition of `t`."""
    request = StopReplicaRequest(controller_id=1, controller_epoch=EPOCH)
    if version >= 1:
        request.broker_epoch = controlled.broker_epoch
    if version < 3:
        request.delete_partitions = deletes
    if version == 0:
        request.ungrouped_partitions = [
            StopReplicaPartitionV0(topic_name="t", partition_index=index)
        ]
    elif version < 3:
        request.topics = [StopReplicaTopicV1(name="t", partition_indexes=[index])]
    else:
        state = StopReplicaPartitionState(
            partition_index=index, leader_epoch=leader_epoch, delete_partition=deletes
        )
        request.topic_states = [StopReplicaTopicState(topic_name="t", partition_states=[state])]
    for name, value in more.items():
        setattr(request, name, value)
    return request


def codes_of(response: Any) -> list[int]:
    assert all(error.topic_name == "t" for error in response.partition_errors)
    return [error.error_code for error in response.partition_errors]


@pytest.mark.parametrize("version", range(5))
async def test_a_log_is_deleted_and_nothing_is_left_to_delete(
    controlled: Controlled, client: RawClient, version: int
) -> None:
    for _ in range(2):
        answer = await client.call(request_of(controlled, version, deletes=True), version)
        assert (answer.error_code, codes_of(answer)) == (0, [0])
        assert controlled.partitions.replica("t", 0) is None
        assert controlled.logs() == ["t-1"]


@pytest.mark.parametrize("deletes", [True, False])
async def test_a_late_request_spares_the_next_topic_of_that_name(
    controlled: Controlled, client: RawClient, deletes: bool
) -> None:
    late = request_of(controlled, NEWEST, deletes=deletes, leader_epoch=-2)
    assert codes_of(await client.call(late, NEWEST)) == [ErrorCode.FENCED_LEADER_EPOCH]
    partition = controlled.partitions.replica("t", 0)
    assert partition is not None
    assert not partition.is_stopped


@pytest.mark.parametrize("leader_epoch", [-2, 5], ids=["topics that go", "replicas that move"])
async def test_a_topic_is_looked_at_again_behind_the_deletion_of_another(
    running: InProcessBroker,
    controlled: Controlled,
    client: RawClient,
    monkeypatch: pytest.MonkeyPatch,
    leader_epoch: int,
) -> None:
    """Its disk takes long. Meanwhile another controller completes the deletion of `t`, whose name
    another topic gets, or gives the replica back to this broker.
    """
    await running.create_topic("a")
    delete_replicas = PartitionManager.delete_replicas
    partition = controlled.partitions.get("t", 0)

    async def delete_slowly(self: PartitionManager, topic: str, *arguments: Any) -> Any:
        errors = await delete_replicas(self, topic, *arguments)
        if topic != "a":
            return errors
        if leader_epoch == 5:
            partition.take_role(Follower(6, 10, leader=1))
        else:
            await controlled.cluster.delete_topic("t")
            await running.create_topic("t", 2)
        return errors

    monkeypatch.setattr(PartitionManager, "delete_replicas", delete_slowly)
    if leader_epoch == 5:
        partition.take_role(Follower(5, 9, leader=1))
    else:
        await controlled.cluster.tree.multi(
            [Create(paths.delete_topic("a")), Create(paths.delete_topic("t"))]
        )
    request = request_of(controlled, NEWEST, deletes=True, leader_epoch=leader_epoch)
    state = StopReplicaPartitionState(partition_index=0, leader_epoch=-2, delete_partition=True)
    if leader_epoch == 5:
        state.leader_epoch = -1
    first = StopReplicaTopicState(topic_name="a", partition_states=[state])
    request.topic_states.insert(0, first)
    answer = await client.call(request, NEWEST)
    codes = [(error.topic_name, error.error_code) for error in answer.partition_errors]
    assert codes == [("a", 0), ("t", ErrorCode.FENCED_LEADER_EPOCH)]
    replica = controlled.partitions.replica("t", 0)
    assert replica is not None
    assert replica.topic_id == controlled.topic.topic_id
    assert replica.has_log


async def test_a_replica_that_comes_back_before_its_turn_is_fenced(
    controlled: Controlled, client: RawClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log of another partition is deleted first, and a slice is over behind it."""
    partition = controlled.partitions.get("t", 1)

    class Slice:
        is_over = True

        async def pause(self) -> None:
            partition.take_role(Follower(6, 10, leader=1))

    monkeypatch.setattr(leaving_logs, "TimeSlice", Slice)
    request = request_of(controlled, NEWEST, deletes=True)
    state = StopReplicaPartitionState(partition_index=1, leader_epoch=5, delete_partition=True)
    request.topic_states[0].partition_states.append(state)
    answer = await client.call(request, NEWEST)
    assert codes_of(answer) == [0, ErrorCode.FENCED_LEADER_EPOCH]
    assert controlled.partitions.replica("t", 1) is partition
    assert controlled.logs() == ["t-1"]


async def test_a_topic_with_a_mark_is_deleted(controlled: Controlled, client: RawClient) -> None:
    tree = controlled.cluster.tree
    await tree.multi([Create(paths.delete_topic("t"))])
    request = request_of(controlled, NEWEST, deletes=True, leader_epoch=-2)
    assert codes_of(await client.call(request, NEWEST)) == [0]
    assert controlled.partitions.replica("t", 0) is None


async def test_a_follower_that_stops_keeps_its_log(
    controlled: Controlled, client: RawClient
) -> None:
    answer = await client.call(request_of(controlled, NEWEST, deletes=False), NEWEST)
    assert codes_of(answer) == [0]
    partition = controlled.partitions.replica("t", 0)
    assert partition is not None
    assert partition.is_leader  # Kafka stops the fetcher only
    partition.take_role(Follower(5, 9, leader=1))
    answer = await client.call(
        request_of(controlled, NEWEST, deletes=False, leader_epoch=5), NEWEST
    )
    assert codes_of(answer) == [0]
    assert partition.role == Follower(5, 9, leader=-1)
    assert controlled.logs() == ["t-0", "t-1"]


async def test_an_older_leader_epoch_is_fenced(controlled: Controlled, client: RawClient) -> None:
    partition = controlled.partitions.replica("t", 0)
    assert partition is not None
    partition.take_role(Follower(5, 9, leader=1))
    answer = await client.call(request_of(controlled, NEWEST, deletes=True, leader_epoch=4), NEWEST)
    assert codes_of(answer) == [ErrorCode.FENCED_LEADER_EPOCH]
    assert controlled.partitions.replica("t", 0) is partition
    answer = await client.call(request_of(controlled, NEWEST, deletes=True, leader_epoch=5), NEWEST)
    assert codes_of(answer) == [0]


async def test_a_replica_of_an_offline_directory_is_a_storage_error(
    controlled: Controlled, client: RawClient
) -> None:
    controlled.partitions.take_offline([TopicPartition("t", 0)])
    answer = await client.call(request_of(controlled, NEWEST, deletes=True), NEWEST)
    assert codes_of(answer) == [ErrorCode.KAFKA_STORAGE_ERROR]


async def test_a_partition_that_is_not_here_is_stopped_already(
    controlled: Controlled, client: RawClient
) -> None:
    for deletes in (False, True):
        answer = await client.call(
            request_of(controlled, NEWEST, deletes=deletes, index=77), NEWEST
        )
        assert codes_of(answer) == [0]


async def test_stale_epochs_are_refused_as_a_whole(
    controlled: Controlled, client: RawClient
) -> None:
    stale = request_of(controlled, NEWEST, deletes=True, broker_epoch=controlled.broker_epoch - 1)
    answer = await client.call(stale, NEWEST)
    assert (answer.error_code, codes_of(answer)) == (ErrorCode.STALE_BROKER_EPOCH, [])
    await client.call(request_of(controlled, NEWEST, deletes=True, index=77), NEWEST)
    deposed = request_of(controlled, NEWEST, deletes=True, controller_epoch=EPOCH - 1)
    answer = await client.call(deposed, NEWEST)
    assert (answer.error_code, codes_of(answer)) == (ErrorCode.STALE_CONTROLLER_EPOCH, [])
    assert controlled.logs() == ["t-0", "t-1"]

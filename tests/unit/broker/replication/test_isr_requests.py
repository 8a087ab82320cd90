"""AlterPartition as a leader sends it: versions, batches, and what each answer means."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.broker.cluster import paths
from minibroker.broker.cluster.codecs import PartitionState, encode_state
from minibroker.broker.cluster.controller import new_topic_id
from minibroker.broker.cluster.image import TopicImage
from minibroker.broker.cluster.shared import SharedTree
from minibroker.broker.cluster.tree import Set
from minibroker.broker.replication.isr import IsrProposal
from minibroker.broker.replication.isr_requests import IsrRequests
from minibroker.clock import SystemClock
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import CoordinationError, KafkaError
from minibroker.kafka.ids import ZERO_TOPIC_ID, TopicId, TopicPartition
from minibroker.kafka.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    ResponsePartitionData,
    ResponseTopicData,
)
from tests.support.cluster import Recorder, add_broker, new_cluster, stop_following
from tests.support.message_bytes import copy_of
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from minibroker.broker.cluster.cluster import Cluster


class Peers:
    """The controller's side of a `PeerClient`: `results` is one list of results a request."""

    def __init__(self, newest: int = 3) -> None:
        self.newest = newest
        self.requests: list[tuple[int, int, AlterPartitionRequest]] = []
        self.error_code = 0
        self.codes: dict[int, ErrorCode] = {}
        """Partition → its error."""
        self.left_out: set[int] = set()
        self.failure: Exception | None = None
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def call_built(
        self, broker_id: int, _class: Any, build: Any, _response: Any, *, newest: int | None
    ) -> AlterPartitionResponse:
        """Answer as Kafka: with the new ISR and the next partition epoch."""
        version = self.newest if newest is None else min(newest, self.newest)
        request = read_back(build(version), version)
        self.requests.append((broker_id, version, request))
        await self.may_answer.wait()
        if self.failure is not None:
            raise self.failure
        return AlterPartitionResponse(
            error_code=self.error_code,
            topics=[] if self.error_code else [self._answer(topic) for topic in request.topics],
        )

    def _answer(self, topic: Any) -> ResponseTopicData:
        return ResponseTopicData(
            topic_name=topic.topic_name,
            topic_id=topic.topic_id,
            partitions=[
                ResponsePartitionData(
                    partition_index=data.partition_index,
                    error_code=int(self.codes.get(data.partition_index, ErrorCode.NONE)),
                    leader_id=0,
                    leader_epoch=data.leader_epoch,
                    isr=data.new_isr or [state.broker_id for state in data.new_isr_with_epochs],
                    partition_epoch=data.partition_epoch + 1,
                )
                for data in topic.partitions
                if data.partition_index not in self.left_out
            ],
        )


def read_back(request: AlterPartitionRequest, version: int) -> AlterPartitionRequest:
    """Return the request as the controller reads it."""
    return copy_of(request, version)


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    """Brokers 0 and 1 with the topic `t` of two partitions that broker 0 leads."""
    tree = SharedTree(tmp_path / "metadata.db", SystemClock()).session()
    started = new_cluster(tree, Recorder())
    await started.start()
    await stop_following(started)
    await add_broker(started, tree, 1)
    await started.create_topic("t", assignment={0: [0, 1], 1: [0, 1]})
    yield started
    await started.close()


def change_of(cluster: Cluster, index: int = 0, *, has_id: bool = True) -> IsrProposal:
    """Return the wish to have broker 0 alone in the ISR."""
    topic = cluster.image.topics["t"]
    state = topic.partitions[index]
    return IsrProposal(
        TopicPartition("t", index),
        topic.topic_id if has_id else TopicId(ZERO_TOPIC_ID),
        state.leader_epoch,
        state.partition_epoch,
        {0: 77},
    )


def isr_of(cluster: Cluster, index: int = 0) -> list[int]:
    return cluster.image.topics["t"].partitions[index].isr


def requests_to(cluster: Cluster, peers: Peers) -> IsrRequests:
    return IsrRequests(cluster, peers)  # type: ignore[arg-type]


@pytest.mark.parametrize("version", range(4))
async def test_the_answer_of_the_controller_is_the_new_state(
    cluster: Cluster, version: int
) -> None:
    peers = Peers(version)
    first_epoch = cluster.image.topics["t"].partitions[0].partition_epoch
    assert await requests_to(cluster, peers).change(change_of(cluster))
    assert isr_of(cluster) == [0]
    assert cluster.image.topics["t"].partitions[0].partition_epoch == first_epoch + 1
    ((broker_id, sent_version, request),) = peers.requests
    assert (broker_id, sent_version) == (cluster.image.controller_id, version)
    assert (request.broker_id, request.broker_epoch) == (0, cluster.this_broker.epoch)
    (topic,) = request.topics
    (data,) = topic.partitions
    if version >= 3:
        assert [(s.broker_id, s.broker_epoch) for s in data.new_isr_with_epochs] == [(0, 77)]
    else:
        assert data.new_isr == [0]
    topic_id = cluster.image.topics["t"].topic_id
    assert (topic.topic_name, topic.topic_id) == (
        ("t", ZERO_TOPIC_ID) if version < 2 else ("", topic_id)
    )


async def test_a_topic_without_an_id_goes_by_its_name(cluster: Cluster) -> None:
    peers = Peers()
    assert await requests_to(cluster, peers).change(change_of(cluster, has_id=False))
    assert peers.requests[0][1] == 1
    assert isr_of(cluster) == [0]


async def test_changes_that_come_meanwhile_go_together(cluster: Cluster) -> None:
    peers = Peers()
    requests = requests_to(cluster, peers)
    peers.may_answer.clear()
    first = asyncio.create_task(requests.change(change_of(cluster, 0)))
    await eventually(lambda: bool(peers.requests))
    others = [asyncio.create_task(requests.change(change_of(cluster, index))) for index in (0, 1)]
    peers.may_answer.set()
    assert await first
    assert await asyncio.gather(*others) == [True, True]
    assert [len(request.topics[0].partitions) for _, _, request in peers.requests] == [1, 2]


@pytest.mark.parametrize("code", [ErrorCode.INELIGIBLE_REPLICA, ErrorCode.OPERATION_NOT_ATTEMPTED])
async def test_a_refused_change_was_not_made(cluster: Cluster, code: ErrorCode) -> None:
    peers = Peers()
    peers.codes[0] = code
    assert not await requests_to(cluster, peers).change(change_of(cluster))
    assert isr_of(cluster) == [0, 1]


@pytest.mark.parametrize("code", [ErrorCode.INVALID_UPDATE_VERSION, ErrorCode.FENCED_LEADER_EPOCH])
async def test_the_state_that_the_controller_has_is_seen_first(
    cluster: Cluster, code: ErrorCode
) -> None:
    """Until the tree shows it, the change may have been made."""
    peers = Peers()
    peers.codes[0] = code
    requests = requests_to(cluster, peers)
    change = change_of(cluster)
    with pytest.raises(CoordinationError, match=code.name):
        await requests.change(change)
    state = PartitionState(1, change.leader_epoch + 1, [1], 1)
    path = paths.partition_state("t", 0)
    await cluster.tree.multi([Set(path, encode_state(state), -1)])
    assert not await requests.change(change)
    assert isr_of(cluster) == [1]


async def test_a_change_without_a_result_may_have_been_made(cluster: Cluster) -> None:
    peers = Peers()
    requests = requests_to(cluster, peers)
    peers.failure = ConnectionError("gone")
    with pytest.raises(CoordinationError, match="gone"):
        await requests.change(change_of(cluster))
    peers.failure, peers.error_code = None, int(ErrorCode.STALE_BROKER_EPOCH)
    with pytest.raises(CoordinationError, match="STALE_BROKER_EPOCH"):
        await requests.change(change_of(cluster))
    peers.error_code, peers.left_out = 0, {0}
    with pytest.raises(CoordinationError, match="leaves it out"):
        await requests.change(change_of(cluster))
    peers.left_out = set()
    peers.codes[0] = ErrorCode.UNKNOWN_SERVER_ERROR
    with pytest.raises(CoordinationError, match="UNKNOWN_SERVER_ERROR"):
        await requests.change(change_of(cluster))
    assert isr_of(cluster) == [0, 1]


async def test_a_controller_that_was_replaced_is_not_waited_for(cluster: Cluster) -> None:
    peers = Peers()
    peers.may_answer.clear()
    requests = requests_to(cluster, peers)
    task = asyncio.create_task(requests.change(change_of(cluster)))
    await eventually(lambda: len(peers.requests) == 1)
    cluster._updater.apply_controller(1, cluster.image.controller_epoch + 1)
    with pytest.raises(CoordinationError, match="another controller"):
        await task
    peers.may_answer.set()
    assert await requests.change(change_of(cluster))
    assert [broker_id for broker_id, _, _ in peers.requests] == [0, 1]


async def make_again(cluster: Cluster) -> None:
    """Let another topic have the name and the first states, as after a deletion."""
    topic = cluster.image.topics["t"]
    cluster._updater.withdraw_topic("t")
    await cluster._updater.apply_topic(TopicImage("t", new_topic_id(), topic.partitions))


async def test_a_late_answer_is_for_no_other_topic_of_the_name(cluster: Cluster) -> None:
    peers = Peers()
    peers.may_answer.clear()
    task = asyncio.create_task(requests_to(cluster, peers).change(change_of(cluster)))
    await eventually(lambda: len(peers.requests) == 1)
    await make_again(cluster)
    new_state = cluster.image.topics["t"].partitions[0]
    peers.may_answer.set()
    await task
    assert cluster.image.topics["t"].partitions[0] is new_state


async def test_a_change_gives_way_to_that_of_another_topic_of_the_name(cluster: Cluster) -> None:
    peers = Peers()
    peers.may_answer.clear()
    requests = requests_to(cluster, peers)
    first_change = asyncio.create_task(requests.change(change_of(cluster, 1)))
    await eventually(lambda: len(peers.requests) == 1)
    old_change = asyncio.create_task(requests.change(change_of(cluster)))
    await eventually(lambda: bool(requests._unsent))
    await make_again(cluster)
    new_change = asyncio.create_task(requests.change(change_of(cluster)))
    await eventually(old_change.done)
    assert isinstance(old_change.exception(), CoordinationError)
    peers.may_answer.set()
    await first_change
    assert await new_change


async def test_a_controller_without_alter_partition_says_so(cluster: Cluster) -> None:
    peers = Peers()
    peers.failure = KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    with pytest.raises(KafkaError):
        await requests_to(cluster, peers).change(change_of(cluster))

"""The outbox of one broker: order, coalescing, retries."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.cluster.image import MetadataImage, PartitionImage, TopicImage
from minibroker.broker.config.inter_broker import InterBrokerProtocol
from minibroker.broker.replication.control_requests import PARTITIONS_MAX, Address, Stop
from minibroker.broker.replication.outbox import FAULT_DELAY_S, RETRY_DELAY_S, Outbox
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError
from minibroker.kafka.ids import TopicId, TopicPartition
from minibroker.kafka.protocol.messages.leader_and_isr import (
    LeaderAndIsrPartitionError,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicError,
)
from minibroker.kafka.protocol.messages.stop_replica import (
    StopReplicaPartitionError,
    StopReplicaResponse,
)
from tests.support.images import partition_image
from tests.support.waiting import eventually
from tests.unit.broker.replication.peers_of_kafka import METADATA, ROLES, STOPS, RecordedPeers

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

BROKER = 2
NEWEST = InterBrokerProtocol(3, 9)
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
TOPIC_ID = TopicId(b"i" * 16)


def partition(leader_epoch: int = 0) -> PartitionImage:
    return partition_image(leader=1, leader_epoch=leader_epoch, replicas=[1, BROKER], isr=[1])


class Sending:
    """An outbox to broker 2, its peers, and the image that it reads."""

    def __init__(self, protocol: InterBrokerProtocol = NEWEST) -> None:
        self.image = MetadataImage()
        self.set_topic(2)
        self.peers = RecordedPeers()
        self.pauses: list[float] = []
        self.offline: list[tuple[int, list[TopicPartition]]] = []
        self.outbox = Outbox(
            BROKER,
            Address(1, 9, 77),
            peers=self.peers,  # type: ignore[arg-type]
            image=lambda: self.image,
            stopping_brokers=set,
            listener="PLAINTEXT",
            protocol=protocol,
            on_offline=lambda broker_id, names: self.offline.append((broker_id, names)),
            sleep=self._sleep,
        )

    def set_topic(self, partitions: int, leader_epoch: int = 0) -> None:
        topic = TopicImage("t", TOPIC_ID, [partition(leader_epoch) for _ in range(partitions)])
        self.image.topics["t"] = topic
        self.image.topic_by_id[TOPIC_ID] = topic

    async def _sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)

    async def until_sent(self, count: int) -> list[tuple[int, list[tuple[str, int]]]]:
        """Return the next requests, once there are as many."""
        await eventually(lambda: len(self.peers.requests) >= count)
        return self.peers.take()


@pytest.fixture
async def sending() -> AsyncIterator[Sending]:
    new_sending = Sending()
    yield new_sending
    await new_sending.outbox.close()


async def test_roles_go_before_metadata_and_stops_go_last(sending: Sending) -> None:
    sending.outbox.stop(T1, Stop(4, deletes=False))
    sending.outbox.tell_metadata(T0)
    sending.outbox.tell_role(T0, is_new=True)
    assert await sending.until_sent(3) == [
        (ROLES, [("t", 0)]),
        (METADATA, [("t", 0)]),
        (STOPS, [("t", 1)]),
    ]


async def test_nothing_is_newer_than_the_inter_broker_protocol() -> None:
    sending = Sending(InterBrokerProtocol(3, 2))
    sending.outbox.stop(T1, Stop(4, deletes=False))
    sending.outbox.tell_metadata(T0)
    sending.outbox.tell_role(T0, is_new=True)
    await sending.until_sent(3)
    assert sending.peers.newest == [(ROLES, 6), (METADATA, 7), (STOPS, 3)]
    await sending.outbox.close()


async def test_a_broker_that_came_hears_of_the_brokers_first(sending: Sending) -> None:
    sending.outbox.greet()
    sending.outbox.tell_role(T0, is_new=False)
    sending.outbox.tell_metadata(T0)
    assert await sending.until_sent(2) == [(METADATA, [("t", 0)]), (ROLES, [("t", 0)])]
    sending.outbox.greet()
    assert await sending.until_sent(1) == [(METADATA, [])]


async def test_new_partitions_go_before_the_roles_of_others(sending: Sending) -> None:
    """A coordinator takes a partition that it has never heard of for a deleted one, and leaves its
    transactions open there. So it hears of it before it leads another one.
    """
    sending.outbox.tell_metadata(T1)
    sending.outbox.tell_role(T1, is_new=False)
    sending.outbox.tell_metadata(T0, is_new=True)
    sending.outbox.tell_role(T0, is_new=True)
    sending.outbox.tell_metadata(T0)
    sending.outbox.tell_role(T0, is_new=False)
    assert await sending.until_sent(4) == [
        (ROLES, [("t", 0)]),
        (METADATA, [("t", 0)]),
        (ROLES, [("t", 1)]),
        (METADATA, [("t", 1)]),
    ]


async def test_decisions_on_a_partition_are_one_and_the_last_counts(sending: Sending) -> None:
    sending.peers.hold = asyncio.Event()
    sending.outbox.tell_metadata(T1)
    await eventually(lambda: bool(sending.peers.requests))
    for leader_epoch in (1, 2, 3):
        sending.set_topic(2, leader_epoch)
        sending.outbox.tell_role(T0, is_new=leader_epoch == 1)
        sending.outbox.tell_metadata(T0)
    sending.peers.hold.set()
    await eventually(lambda: len(sending.peers.requests) == 3)
    roles = sending.peers.requests[1][1].topic_states[0].partition_states
    assert [(state.leader_epoch, state.is_new) for state in roles] == [(3, True)]
    assert [key for key, _ in sending.peers.take()] == [METADATA, ROLES, METADATA]


async def test_a_replica_that_ends_and_begins_again_does_so_in_this_order(sending: Sending) -> None:
    sending.peers.hold = asyncio.Event()
    sending.outbox.tell_metadata(T1)
    await eventually(lambda: bool(sending.peers.requests))
    sending.outbox.stop(T0, Stop(4, deletes=True))
    sending.outbox.stop(T0, Stop(5, deletes=False))
    sending.outbox.tell_role(T0, is_new=True)
    sending.peers.hold.set()
    await eventually(lambda: len(sending.peers.requests) == 3)
    (state,) = sending.peers.requests[1][1].topic_states[0].partition_states
    assert (state.leader_epoch, state.delete_partition) == (5, True)
    assert [key for key, _ in sending.peers.take()] == [METADATA, STOPS, ROLES]


async def test_a_topic_that_is_made_again_is_told_behind_the_end_of_the_earlier_one(
    sending: Sending,
) -> None:
    """The broker did not answer, and a topic that had a replica there went without it. The end of
    that replica would take the log of the next topic.
    """
    sending.peers.hold = asyncio.Event()
    sending.outbox.tell_role(T0, is_new=True)
    await eventually(lambda: bool(sending.peers.requests))
    sending.outbox.tell_role(T0, is_new=False)
    sending.outbox.tell_metadata(T0)
    sending.outbox.stop(T0, Stop(4, deletes=True))
    moved = partition(4)
    moved.replicas = [1]
    sending.outbox.delete(TopicImage("t", TOPIC_ID, [moved]))
    sending.set_topic(1)
    sending.outbox.tell_metadata(T0, is_new=True)
    sending.outbox.tell_role(T0, is_new=True)
    sending.peers.errors = [ConnectionError("late")]
    sending.peers.hold.set()
    assert await sending.until_sent(6) == [
        (ROLES, [("t", 0)]),
        (METADATA, []),
        (STOPS, [("t", 0)]),
        (METADATA, [("t", 0)]),
        (ROLES, [("t", 0)]),
        (METADATA, [("t", 0)]),
    ]


async def test_a_request_is_sent_until_the_broker_answers(sending: Sending) -> None:
    sending.peers.errors = [ConnectionError("away"), TimeoutError("late")]
    sending.outbox.tell_role(T0, is_new=False)
    assert await sending.until_sent(3) == [(ROLES, [("t", 0)])] * 3
    assert sending.pauses == [RETRY_DELAY_S] * 2


async def test_a_refusal_is_final(sending: Sending) -> None:
    """The broker knows a newer controller, or has been started again; or it is too old."""
    sending.peers.answers = [LeaderAndIsrResponse(error_code=ErrorCode.STALE_CONTROLLER_EPOCH)]
    sending.outbox.tell_role(T0, is_new=False)
    sending.outbox.tell_metadata(T0)
    assert await sending.until_sent(2) == [(ROLES, [("t", 0)]), (METADATA, [("t", 0)])]
    sending.peers.errors = [KafkaError(ErrorCode.UNSUPPORTED_VERSION)]
    sending.outbox.tell_role(T0, is_new=False)
    assert await sending.until_sent(1) == [(ROLES, [("t", 0)])]
    assert sending.pauses == []


async def test_a_broker_that_cannot_read_the_tree_is_told_again(sending: Sending) -> None:
    sending.peers.answers = [LeaderAndIsrResponse(error_code=ErrorCode.REQUEST_TIMED_OUT)]
    sending.outbox.tell_role(T0, is_new=False)
    assert await sending.until_sent(2) == [(ROLES, [("t", 0)])] * 2
    assert sending.pauses == [RETRY_DELAY_S]


async def test_many_partitions_go_in_several_requests(sending: Sending) -> None:
    sending.set_topic(PARTITIONS_MAX + 1)
    for index in range(PARTITIONS_MAX + 1):
        sending.outbox.tell_role(TopicPartition("t", index), is_new=False)
    sizes = [len(names) for _, names in await sending.until_sent(2)]
    assert sizes == [PARTITIONS_MAX, 1]


async def test_replicas_on_a_failed_disk_are_reported(sending: Sending) -> None:
    def error(index: int, code: ErrorCode) -> LeaderAndIsrPartitionError:
        return LeaderAndIsrPartitionError(partition_index=index, error_code=code)

    errors = [error(0, ErrorCode.NONE), error(1, ErrorCode.KAFKA_STORAGE_ERROR)]
    topic = LeaderAndIsrTopicError(topic_id=TOPIC_ID, partition_errors=errors)
    sending.peers.answers = [LeaderAndIsrResponse(topics=[topic])]
    sending.outbox.tell_role(T0, is_new=False)
    await eventually(lambda: bool(sending.offline))
    assert sending.offline == [(BROKER, [T1])]


@pytest.mark.parametrize(("code", "is_done"), [(0, True), (ErrorCode.KAFKA_STORAGE_ERROR, False)])
async def test_a_deletion_is_done_when_the_broker_did_it(
    sending: Sending, code: int, is_done: bool
) -> None:
    errors = [StopReplicaPartitionError(topic_name="t", partition_index=0, error_code=code)]
    sending.peers.hold = asyncio.Event()
    future = sending.outbox.delete(sending.image.topics["t"])
    await eventually(lambda: len(sending.peers.requests) == 1)
    del sending.image.topics["t"]
    sending.peers.hold = None
    sending.peers.requests.clear()
    sending.outbox.greet()
    await sending.outbox.close()
    assert future.cancelled()
    again = Sending()
    again.peers.answers = [StopReplicaResponse(), StopReplicaResponse(partition_errors=errors)]
    assert await again.outbox.delete(again.image.topics["t"]) is is_done
    assert again.peers.take() == [(METADATA, [("t", 0), ("t", 1)]), (STOPS, [("t", 0), ("t", 1)])]
    await again.outbox.close()


async def test_a_parcel_that_a_bug_stopped_is_sent_again_before_the_next(sending: Sending) -> None:
    sending.peers.errors = [RuntimeError("a bug")]
    sending.outbox.tell_metadata(T0)
    sending.outbox.delete(sending.image.topics["t"])
    parcels = await sending.until_sent(4)
    assert [key for key, _ in parcels] == [METADATA, METADATA, METADATA, STOPS]
    assert sending.pauses == [FAULT_DELAY_S]

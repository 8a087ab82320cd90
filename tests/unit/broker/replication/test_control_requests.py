"""Requests of a controller, made from the image."""

from __future__ import annotations

import pytest

from minibroker.broker.cluster.codecs import RECOVERING
from minibroker.broker.cluster.image import (
    BrokerInfo,
    Endpoint,
    MetadataImage,
    PartitionImage,
    TopicImage,
)
from minibroker.broker.replication.control_requests import (
    DURING_DELETE,
    LEADER_AND_ISR_FROM,
    STOP_REPLICA_FROM,
    UPDATE_METADATA_FROM,
    Address,
    Stop,
    deletion,
    leader_and_isr,
    stop_replica,
    update_metadata,
)
from minibroker.kafka.ids import ZERO_TOPIC_ID, TopicId, TopicPartition
from minibroker.kafka.protocol.primitives import Writer
from tests.support.images import partition_image
from tests.support.message_bytes import copy_of

ADDRESS = Address(controller_id=1, controller_epoch=9, broker_epoch=77)
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
TOPIC_ID = TopicId(b"i" * 16)


def partition(partition_epoch: int = 3) -> PartitionImage:
    return partition_image(
        leader=1,
        leader_epoch=5,
        replicas=[1, 2, 3],
        isr=[1, 2],
        adding=[3],
        offline=[3],
        controller_epoch=8,
        partition_epoch=partition_epoch,
    )


@pytest.fixture
def image() -> MetadataImage:
    """Brokers 1 and 2, a topic with two partitions, of which the second has no state yet."""
    new_image = MetadataImage()
    new_image.brokers = {
        broker_id: BrokerInfo(
            broker_id, (Endpoint("PLAINTEXT", "host", 9090 + broker_id),), rack=f"r{broker_id}"
        )
        for broker_id in (1, 2)
    }
    topic = TopicImage("t", TOPIC_ID, [partition(), partition(-1)])
    new_image.topics["t"] = topic
    new_image.topic_by_id[TOPIC_ID] = topic
    return new_image


@pytest.mark.parametrize("version", range(LEADER_AND_ISR_FROM, 8))
def test_roles(image: MetadataImage, version: int) -> None:
    roles = {T0: True, T1: False, TopicPartition("t", 7): False, TopicPartition("gone", 0): False}
    request = leader_and_isr(image, ADDRESS, roles, "PLAINTEXT")
    assert request is not None
    copy = copy_of(request, version)
    assert (copy.controller_id, copy.controller_epoch, copy.broker_epoch) == ADDRESS
    (topic,) = copy.topic_states
    assert (topic.topic_name, topic.topic_id) == ("t", TOPIC_ID)
    (state,) = topic.partition_states
    assert (state.partition_index, state.leader, state.leader_epoch) == (0, 1, 5)
    assert (state.controller_epoch, state.partition_epoch, state.is_new) == (8, 3, True)
    assert (state.isr, state.replicas, state.adding_replicas) == ([1, 2], [1, 2, 3], [3])
    (leader,) = copy.live_leaders
    assert (leader.broker_id, leader.host_name, leader.port) == (1, "host", 9091)


def test_a_recovering_leader_is_named_only_where_the_protocol_can(image: MetadataImage) -> None:
    image.topics["t"].partitions[0].leader_recovery_state = RECOVERING
    for marks_recovery, oldest in ((True, 6), (False, LEADER_AND_ISR_FROM)):
        request = leader_and_isr(
            image, ADDRESS, {T0: False}, "PLAINTEXT", marks_recovery=marks_recovery
        )
        assert request is not None
        request.write(Writer(), oldest)
        (topic,) = request.topic_states
        assert topic.partition_states[0].leader_recovery_state == int(marks_recovery)


def test_nothing_is_said_of_partitions_that_are_gone(image: MetadataImage) -> None:
    assert leader_and_isr(image, ADDRESS, {T1: False}, "PLAINTEXT") is None
    image.topics["t"] = TopicImage("t", ZERO_TOPIC_ID, [partition()])
    assert leader_and_isr(image, ADDRESS, {T0: False}, "PLAINTEXT") is None


@pytest.mark.parametrize("version", range(UPDATE_METADATA_FROM, 9))
def test_metadata(image: MetadataImage, version: int) -> None:
    request = update_metadata(image, ADDRESS, [T0], stopping_brokers={2})
    copy = copy_of(request, version)
    assert (copy.controller_id, copy.controller_epoch, copy.broker_epoch) == ADDRESS
    (state,) = copy.topic_states[0].partition_states
    assert (state.leader, state.leader_epoch, state.zk_version) == (1, 5, 3)
    # Broker 3 is away, and broker 2 shuts down.
    assert state.offline_replicas == [2, 3]
    assert [(broker.id, broker.rack) for broker in copy.live_brokers] == [(1, "r1"), (2, "r2")]
    (endpoint,) = copy.live_brokers[0].endpoints
    assert (endpoint.host, endpoint.port, endpoint.listener) == ("host", 9091, "PLAINTEXT")
    assert endpoint.security_protocol == 0


def test_metadata_of_a_topic_that_goes(image: MetadataImage) -> None:
    for indexes in ([0, 1], [1]):
        request = deletion(image, ADDRESS, image.topics["t"], indexes)
        states = request.topic_states[0].partition_states
        assert [(state.partition_index, state.leader, state.leader_epoch) for state in states] == [
            (index, DURING_DELETE, DURING_DELETE) for index in indexes
        ]


@pytest.mark.parametrize("version", range(STOP_REPLICA_FROM, 5))
def test_stops(version: int) -> None:
    request = stop_replica(ADDRESS, {T0: Stop(5, deletes=True), T1: Stop(6, deletes=False)})
    copy = copy_of(request, version)
    assert (copy.controller_id, copy.controller_epoch, copy.broker_epoch) == ADDRESS
    (topic,) = copy.topic_states
    assert [
        (state.partition_index, state.leader_epoch, state.delete_partition)
        for state in topic.partition_states
    ] == [(0, 5, True), (1, 6, False)]

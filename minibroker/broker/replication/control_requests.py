"""The requests of a controller to other brokers, made from the image. Pure.

`outbox` sends them. A request names some partitions only, so that making it takes no longer than a
millisecond of the loop; Kafka's brokers take any number of requests.

Source: Kafka AbstractControllerBrokerRequestBatch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.kafka.ids import ZERO_TOPIC_ID
from minibroker.kafka.protocol.messages.leader_and_isr import (
    LeaderAndIsrLiveLeader,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)
from minibroker.kafka.protocol.messages.stop_replica import (
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaTopicState,
)
from minibroker.kafka.protocol.messages.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from minibroker.broker.cluster.image import MetadataImage, PartitionImage, TopicImage
    from minibroker.kafka.ids import TopicPartition

PARTITIONS_MAX: Final = 100
"""Partitions of one request."""
DURING_DELETE: Final = -2
"""Leader, and leader epoch, of a partition whose topic is being deleted."""
LEADER_AND_ISR_FROM: Final = 5
UPDATE_METADATA_FROM: Final = 7
STOP_REPLICA_FROM: Final = 3
"""The versions of inter-broker protocol 2.8, the oldest that is sent. The newest are those of the
cluster's protocol (`config/inter_broker.py`)."""
_PLAINTEXT: Final = 0
_SECURITY_PROTOCOLS: Final = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}


class Address(NamedTuple):
    """The epochs that each request to one broker carries."""

    controller_id: int
    controller_epoch: int
    broker_epoch: int


class Stop(NamedTuple):
    """The end of a replica on a broker."""

    leader_epoch: int
    """DURING_DELETE where the topic is deleted."""
    deletes: bool
    """True if the log goes too."""


def leader_and_isr(
    image: MetadataImage,
    address: Address,
    roles: Mapping[TopicPartition, bool],
    listener: str,
    *,
    marks_recovery: bool = True,
) -> LeaderAndIsrRequest | None:
    """Return the roles that partitions have now; None where none of them is there any more.

    `roles`: partition → whether the broker's replica is new. `listener`: the one between brokers.
    `marks_recovery`: False for versions that cannot say that a leader is recovering.
    """
    topics: list[LeaderAndIsrTopicState] = []
    leaders: set[int] = set()
    for topic, indexes in _by_topic(image, roles):
        states = []
        for name, partition in indexes:
            leaders.add(partition.leader)
            states.append(
                LeaderAndIsrPartitionState(
                    partition_index=name.partition,
                    controller_epoch=partition.controller_epoch,
                    leader=partition.leader,
                    leader_epoch=partition.leader_epoch,
                    isr=partition.isr,
                    partition_epoch=partition.partition_epoch,
                    replicas=partition.replicas,
                    adding_replicas=partition.adding,
                    removing_replicas=partition.removing,
                    is_new=roles[name],
                    leader_recovery_state=partition.leader_recovery_state * marks_recovery,
                )
            )
        topics.append(
            LeaderAndIsrTopicState(
                topic_name=topic.name, topic_id=topic.topic_id, partition_states=states
            )
        )
    if not topics:
        return None
    return LeaderAndIsrRequest(
        controller_id=address.controller_id,
        controller_epoch=address.controller_epoch,
        broker_epoch=address.broker_epoch,
        topic_states=topics,
        live_leaders=[
            LeaderAndIsrLiveLeader(broker_id=broker.id, host_name=endpoint.host, port=endpoint.port)
            for broker in image.brokers.values()
            if broker.id in leaders and (endpoint := broker.endpoint(listener)) is not None
        ],
    )


def update_metadata(
    image: MetadataImage,
    address: Address,
    names: Iterable[TopicPartition],
    *,
    stopping_brokers: Collection[int] = (),
) -> UpdateMetadataRequest:
    """Return the brokers, and the state of these partitions now.

    `stopping_brokers`: brokers that shut down; they are sent as offline replicas.
    """
    topics = [
        _topic_state(
            topic, [(name.partition, partition) for name, partition in partitions], stopping_brokers
        )
        for topic, partitions in _by_topic(image, names)
    ]
    return _with_brokers(image, address, topics)


def deletion(
    image: MetadataImage, address: Address, topic: TopicImage, indexes: Iterable[int]
) -> UpdateMetadataRequest:
    """Return the brokers, and these partitions of a topic as going."""
    state = _topic_state(topic, [(index, topic.partitions[index]) for index in indexes], ())
    for partition in state.partition_states:
        partition.leader = partition.leader_epoch = DURING_DELETE
    return _with_brokers(image, address, [state])


def _with_brokers(
    image: MetadataImage, address: Address, topics: list[UpdateMetadataTopicState]
) -> UpdateMetadataRequest:
    return UpdateMetadataRequest(
        controller_id=address.controller_id,
        controller_epoch=address.controller_epoch,
        broker_epoch=address.broker_epoch,
        topic_states=topics,
        live_brokers=[
            UpdateMetadataBroker(
                id=broker.id,
                endpoints=[
                    UpdateMetadataEndpoint(
                        port=endpoint.port,
                        host=endpoint.host,
                        listener=endpoint.listener,
                        security_protocol=_SECURITY_PROTOCOLS.get(
                            endpoint.security_protocol, _PLAINTEXT
                        ),
                    )
                    for endpoint in broker.endpoints
                ],
                rack=broker.rack,
            )
            for broker in image.brokers.values()
        ],
    )


def _topic_state(
    topic: TopicImage,
    partitions: list[tuple[int, PartitionImage]],
    stopping_brokers: Collection[int],
) -> UpdateMetadataTopicState:
    return UpdateMetadataTopicState(
        topic_name=topic.name,
        topic_id=topic.topic_id,
        partition_states=[
            UpdateMetadataPartitionState(
                partition_index=index,
                controller_epoch=partition.controller_epoch,
                leader=partition.leader,
                leader_epoch=partition.leader_epoch,
                isr=partition.isr,
                zk_version=partition.partition_epoch,
                replicas=partition.replicas,
                offline_replicas=[
                    broker_id
                    for broker_id in partition.replicas
                    if broker_id in partition.offline or broker_id in stopping_brokers
                ],
            )
            for index, partition in partitions
        ],
    )


def stop_replica(address: Address, stops: Mapping[TopicPartition, Stop]) -> StopReplicaRequest:
    """Return the end of these replicas."""
    topics: dict[str, StopReplicaTopicState] = {}
    for name, stop in stops.items():
        topic = topics.setdefault(name.topic, StopReplicaTopicState(topic_name=name.topic))
        topic.partition_states.append(
            StopReplicaPartitionState(
                partition_index=name.partition,
                leader_epoch=stop.leader_epoch,
                delete_partition=stop.deletes,
            )
        )
    return StopReplicaRequest(
        controller_id=address.controller_id,
        controller_epoch=address.controller_epoch,
        broker_epoch=address.broker_epoch,
        topic_states=list(topics.values()),
    )


def _by_topic(
    image: MetadataImage, names: Iterable[TopicPartition]
) -> Iterator[tuple[TopicImage, list[tuple[TopicPartition, PartitionImage]]]]:
    """Yield the topics of these partitions, with the partitions that exist and have a state."""
    names_of_topic: dict[str, list[TopicPartition]] = {}
    for name in names:
        names_of_topic.setdefault(name.topic, []).append(name)
    for topic_name, topic_names in names_of_topic.items():
        topic = image.topics.get(topic_name)
        if topic is None or topic.topic_id == ZERO_TOPIC_ID:
            continue
        partitions = [
            (name, partition)
            for name in topic_names
            if name.partition < len(topic.partitions)
            and (partition := topic.partitions[name.partition]).partition_epoch >= 0
        ]
        if partitions:
            yield topic, partitions

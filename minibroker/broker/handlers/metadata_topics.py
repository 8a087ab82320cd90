"""Known topics of a Metadata answer, kept as bytes; part of `handlers/metadata`.

A topic's part of the answer changes only with the topic or with the registered brokers. Both are
values of the image, which are replaced and never changed. So the bytes are built once per topic
value, version and listener, and are sent until the image has another value. An answer about a
thousand topics then costs a thousand look-ups.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

from minibroker.broker.handlers.common.encoded_struct import EncodedStruct
from minibroker.broker.handlers.common.leaders import visible_leader
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.protocol.messages.metadata import (
    MetadataResponsePartition,
    MetadataResponseTopic,
)

if TYPE_CHECKING:
    from minibroker.broker.cluster.image import BrokerInfo, PartitionImage, TopicImage
    from minibroker.broker.handlers.common.context import RequestContext

    Brokers = dict[int, BrokerInfo]
    Key = tuple[int, str, int | None]
    """Version, name of the client's listener, operations that the client may do, if it asks."""


class EncodedTopic(EncodedStruct):
    """One topic of a Metadata answer as bytes; constant after construction.
    It stands in `MetadataResponse.topics` in place of a `MetadataResponseTopic`.
    """

    __slots__ = ("brokers",)

    def __init__(self, topic: MetadataResponseTopic, version: int, brokers: Brokers) -> None:
        code = next((part.error_code for part in topic.partitions if part.error_code), 0)
        super().__init__(topic, version, code)
        self.brokers = brokers
        """The registered brokers at the time of encoding."""


_encoded: Final[WeakKeyDictionary[TopicImage, dict[Key, EncodedTopic]]] = WeakKeyDictionary()
"""An entry lives as long as its topic value, so the images of this process bound the size."""


def encoded_topic(
    context: RequestContext, topic: TopicImage, *, operations: int | None
) -> EncodedTopic:
    """Return the topic as bytes of the request's version, for the client's listener.
    `operations`: the topic's authorized operations, None if nobody asks for them (KIP-430).
    """
    brokers = context.services.cluster.image.brokers
    by_key = _encoded.get(topic)
    if by_key is None:
        by_key = _encoded[topic] = {}
    key = context.version, context.listener.name, operations
    encoded = by_key.get(key)
    if encoded is None or encoded.brokers is not brokers:
        described = _describe(context, topic)
        if operations is not None:
            described.topic_authorized_operations = operations
        encoded = by_key[key] = EncodedTopic(described, context.version, brokers)
    return encoded


def _describe(context: RequestContext, topic: TopicImage) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=[
            _describe_partition(context, index, state)
            for index, state in enumerate(topic.partitions)
        ],
    )


def _describe_partition(
    context: RequestContext, index: int, state: PartitionImage
) -> MetadataResponsePartition:
    brokers = context.services.cluster.image.brokers
    code, leader_id = visible_leader(context, state)
    if code == ErrorCode.LISTENER_NOT_FOUND and context.version < 6:
        code = ErrorCode.LEADER_NOT_AVAILABLE
    replicas, isr = state.replicas, state.isr
    if context.version == 0:
        # Version 0 lists no dead brokers, so a dead replica is left out, with an error code.
        replicas = [replica for replica in replicas if replica in brokers]
        isr = [replica for replica in isr if replica in brokers]
        if code == ErrorCode.NONE and len(replicas) < len(state.replicas):
            code = ErrorCode.REPLICA_NOT_AVAILABLE
    return MetadataResponsePartition(
        error_code=int(code),
        partition_index=index,
        leader_id=leader_id,
        leader_epoch=state.leader_epoch,
        replica_nodes=replicas,
        isr_nodes=isr,
        offline_replicas=state.offline,
    )

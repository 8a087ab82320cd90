"""The batches of a Produce request: received, and checked before any of them is appended.

`produce` asks here first. Each batch's header is read once, and goes with it to the log. Most
batches are plain and small, and the log checks them with the append. All others are checked here;
a check that would hold the loop is done beside it (`partitions.checking`). So between the
verification of a transaction and its appends nothing runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from minibroker.broker.handlers.appends.routes import FIRST_WITH_TOPIC_IDS
from minibroker.broker.partitions.checking import AnyBatch, ReceivedBatch
from minibroker.broker.security.acls import Operation, ResourceType
from minibroker.broker.slices import gather
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError
from minibroker.kafka.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from minibroker.kafka.records.batch import read_produced_header
from minibroker.kafka.records.produce_rules import (
    FIRST_VERSION_OF_V2,
    is_nothing,
    is_transactional,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from minibroker.broker.handlers.common.context import RequestContext
    from minibroker.broker.partitions.cold_reads import ColdError
    from minibroker.broker.slices import Steps

    Refusals = dict[tuple[str, int], KafkaError]
    """Topic and partition → the error of a transactional batch that may not be appended."""


class ReceivedTopic(NamedTuple):
    """One topic of a Produce request."""

    name: str | None
    """None where the request has only an id, and no topic has it."""
    data: TopicProduceData
    batches: list[tuple[PartitionProduceData, AnyBatch | None]]
    """In the order of the request; None where the records are null."""
    is_authorized: bool = True
    """False if the client may not write to the topic; then no batch is here."""


def receive_batches(context: RequestContext, request: ProduceRequest) -> Steps[list[ReceivedTopic]]:
    """Return the topics of a request with their batches, each with its header. Of a partition that
    the request names twice, it keeps the last batch.
    """
    request.topic_data = yield from _without_repetitions(request.topic_data)
    partitions = context.services.partitions
    topics = []
    for topic in request.topic_data:
        name = _topic_name(context, topic)
        batches: list[tuple[PartitionProduceData, AnyBatch | None]] = []
        for data in topic.partition_data:
            yield
            batch: AnyBatch | None = None
            records = data.records
            if records is not None:
                assert isinstance(records, memoryview)
                partition = None if name is None else partitions.find(name, data.index)
                batch = ReceivedBatch(partition, records, read_produced_header(records))
            batches.append((data, batch))
        topics.append(ReceivedTopic(name, topic, batches))
    return topics


def check_batches(context: RequestContext, topics: list[ReceivedTopic]) -> Steps[list[AnyBatch]]:
    """Check the small batches, and return those that are to be checked beside the loop."""
    version = context.version
    now_ms = context.services.clock.now_ms()
    large = []
    for topic in topics:
        for _, batch in topic.batches:
            if (
                batch is not None
                and (version >= FIRST_VERSION_OF_V2 or not is_nothing(batch.records))
                and batch.check(now_ms)
            ):
                large.append(batch)
            yield
    return large


def cold_producers(topics: list[ReceivedTopic]) -> Steps[list[ColdError]]:
    """Return the work to be done before the appends: producers that are on the disk only."""
    loads = []
    for batch in _batches_of(topics):
        cold = None if batch is None else batch.cold_producers
        if cold is not None:
            loads.append(cold)
        yield
    return loads


def _batches_of(topics: list[ReceivedTopic]) -> Iterator[AnyBatch | None]:
    for topic in topics:
        for _, batch in topic.batches:
            yield batch


def _without_repetitions(topics: list[TopicProduceData]) -> Steps[list[TopicProduceData]]:
    """Return `topics` with one entry of a topic and the last batch of a partition.

    Source: Kafka KafkaApis.handleProduceRequest, which has a map of partitions.
    """
    partitions_by_topic: dict[tuple[str, bytes], dict[int, PartitionProduceData]] = {}
    count = 0
    for topic in topics:
        partitions = partitions_by_topic.setdefault((topic.name, topic.topic_id), {})
        partitions.update((data.index, data) for data in topic.partition_data)
        count += len(topic.partition_data)
        yield
    if (
        len(partitions_by_topic) == len(topics)
        and sum(map(len, partitions_by_topic.values())) == count
    ):
        return topics
    return [
        TopicProduceData(name=name, topic_id=topic_id, partition_data=list(partitions.values()))
        for (name, topic_id), partitions in partitions_by_topic.items()
    ]


def _topic_name(context: RequestContext, topic: TopicProduceData) -> str | None:
    """Return the name of a topic in the request; None where the request has an unknown id."""
    if context.version < FIRST_WITH_TOPIC_IDS:
        return topic.name
    image_topic = context.services.cluster.image.topic_by_id.get(topic.topic_id)
    return image_topic.name if image_topic is not None else None


def without_forbidden(
    context: RequestContext, request: ProduceRequest, topics: list[ReceivedTopic]
) -> Steps[list[ReceivedTopic]]:
    """Return the topics; one that the client may not write to has lost its batches, unread.

    Raises KafkaError(TRANSACTIONAL_ID_AUTHORIZATION_FAILED) if some records are transactional and
    the client may not write with the id, or names none.
    """
    if (yield from has_transactional(topics)):
        name = request.transactional_id
        if name is None or not context.authorize(
            Operation.WRITE, ResourceType.TRANSACTIONAL_ID, name
        ):
            raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    return (yield from gather(_if_allowed(context, topic) for topic in topics))


def _if_allowed(context: RequestContext, topic: ReceivedTopic) -> ReceivedTopic:
    """Return the topic, without batches if the client may not write to it. An unknown id stays."""
    if topic.name is None:
        return topic
    if context.authorize(Operation.WRITE, ResourceType.TOPIC, topic.name):
        return topic
    batches: list[tuple[PartitionProduceData, AnyBatch | None]] = [
        (data, None) for data, _ in topic.batches
    ]
    return ReceivedTopic(topic.name, topic.data, batches, is_authorized=False)


def has_transactional(topics: list[ReceivedTopic]) -> Steps[bool]:
    """Return whether some records are transactional: those need a transactional id (KafkaApis)."""
    for batch in _batches_of(topics):
        if batch is not None and is_transactional(batch.records, batch.header):
            return True
        yield
    return False

"""Produce and Fetch requests to an `InProcessBroker`, for one topic, and parts of their answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from minibroker.kafka.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
)
from minibroker.kafka.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from minibroker.kafka.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from minibroker.kafka.records.batch import iterate_headers
from tests.support.in_process import batch_of

if TYPE_CHECKING:
    from tests.support.in_process import InProcessBroker, RawClient


def produce(
    records: Any,
    *,
    topic: str = "t",
    topic_id: bytes = bytes(16),
    index: int = 0,
    acks: int = -1,
    transactional_id: str | None = None,
) -> ProduceRequest:
    """Return Produce of `records` for one partition."""
    data = PartitionProduceData(index=index, records=records)
    topic_data = TopicProduceData(name=topic, topic_id=topic_id, partition_data=[data])
    return ProduceRequest(
        transactional_id=transactional_id, acks=acks, timeout_ms=1000, topic_data=[topic_data]
    )


async def result(client: RawClient, request: ProduceRequest, version: int = 9) -> Any:
    """Send it and return the answer for its only partition."""
    (topic,) = (await client.call(request, version)).responses
    (partition,) = topic.partition_responses
    return partition


def id_of(running: InProcessBroker, topic: str = "t") -> bytes:
    """Return the id of a topic; zeros where there is none."""
    topic_image = running.broker.cluster.image.topics.get(topic)
    return bytes(16) if topic_image is None else topic_image.topic_id


def stored(running: InProcessBroker, topic: str = "t", index: int = 0) -> bytes:
    """Return the batches of a partition, up to 1 MiB of them."""
    partition = running.partitions.get(topic, index)
    return bytes(partition.read(0, 1 << 20, isolation_level=0).records)


def part(
    index: int = 0, offset: int = 0, *, max_bytes: int = 1 << 20, **more: int
) -> FetchPartition:
    """Return what Fetch asks of one partition."""
    return FetchPartition(
        partition=index, fetch_offset=offset, partition_max_bytes=max_bytes, **more
    )


def asking(
    *parts: FetchPartition,
    topic: str = "t",
    topic_id: bytes = bytes(16),
    max_wait_ms: int = 0,
    min_bytes: int = 1,
    max_bytes: int = 1 << 20,
    session: tuple[int, int] = (0, -1),
    isolation_level: int = 0,
    forget: tuple[int, ...] = (),
) -> FetchRequest:
    """Return Fetch of these partitions; without them, of those that the session has."""
    topics = [FetchTopic(topic=topic, topic_id=topic_id, partitions=list(parts))]
    forgotten = [ForgottenTopic(topic=topic, topic_id=topic_id, partitions=list(forget))]
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        isolation_level=isolation_level,
        session_id=session[0],
        session_epoch=session[1],
        topics=topics if parts else [],
        forgotten_topics_data=forgotten if forget else [],
    )


async def fill(client: RawClient, *values: bytes, index: int = 0) -> None:
    """Write one batch per value to topic `t`."""
    for value in values:
        (topic,) = (await client.call(produce(batch_of(value), index=index), 9)).responses
        assert topic.partition_responses[0].error_code == 0


def offsets_in(records: Any) -> list[int]:
    """Return the base offsets of the batches."""
    return [header.base_offset for _, header in iterate_headers(records)]


def first(answer: Any) -> Any:
    """Return the first partition of a Fetch answer."""
    return answer.responses[0].partitions[0]


def parts_of_answer(answer: Any) -> dict[int, tuple[int, int, int]]:
    """Return by partition: error, high watermark, bytes of records."""
    return {
        partition.partition_index: (
            partition.error_code,
            partition.high_watermark,
            len(partition.records or b""),
        )
        for topic in answer.responses
        for partition in topic.partitions
    }


async def earliest(client: RawClient) -> int:
    """Return where partition 0 of topic `t` starts, as ListOffsets says."""
    partition = ListOffsetsPartition(partition_index=0, timestamp=-2)
    topic = ListOffsetsTopic(name="t", partitions=[partition])
    answer = await client.call(ListOffsetsRequest(replica_id=-1, topics=[topic]), 7)
    return int(answer.topics[0].partitions[0].offset)


def produce_values(topic: str, *values: bytes, acks: int = -1, index: int = 0) -> ProduceRequest:
    """Return Produce of one batch of these values."""
    return produce(batch_of(*values), topic=topic, index=index, acks=acks)


def fetch_from(
    topic: str, offset: int = 0, *, max_wait_ms: int = 0, min_bytes: int = 1
) -> FetchRequest:
    """Return Fetch of partition 0 from `offset` on, of up to 50 MB, without a session."""
    return asking(
        part(offset=offset, max_bytes=50_000_000),
        topic=topic,
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=50_000_000,
    )

"""The answer to a Fetch without its records, for a text that is made later.

Records in an answer are parts of files that are mapped into memory, and may not stay open. A text
about them needs the header of each batch, so the summary is made at once, and the rest is copied.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from minibroker.kafka.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from minibroker.trace.batches import summary_of
from minibroker.trace.subject import ITEMS_MAX

if TYPE_CHECKING:
    from collections.abc import Sequence


def without_records(answer: Any) -> FetchResponse | None:
    """Return a copy of a short answer to a Fetch; None for another one."""
    if not isinstance(answer, FetchResponse):
        return None
    topics: Sequence[Any] = answer.responses
    if len(topics) > ITEMS_MAX:
        return None
    copies = []
    for topic in topics:
        if not isinstance(topic, FetchableTopicResponse) or len(topic.partitions) > ITEMS_MAX:
            return None
        partitions = []
        for partition in topic.partitions:
            if not isinstance(partition, PartitionData):
                return None
            partitions.append(_summarized(partition))
        copies.append(
            FetchableTopicResponse(
                topic=topic.topic, topic_id=topic.topic_id, partitions=partitions
            )
        )
    return FetchResponse(error_code=answer.error_code, responses=copies)


def _summarized(partition: PartitionData) -> PartitionData:
    copy = PartitionData(
        partition_index=partition.partition_index,
        error_code=partition.error_code,
        high_watermark=partition.high_watermark,
    )
    if partition.records:
        summary: Any = summary_of(partition.records)
        copy.records = summary
    return copy

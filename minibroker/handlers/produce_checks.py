"""The batches of a Produce request that are checked before any of them is appended.

`produce` asks here first. Most batches are plain and small, and the log checks them with the
append. All others are looked at here; what would hold the loop is checked beside it
(`partitions.checking`). So between the verification of a transaction and its appends nothing runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.partitions.checking import Checks
from minibroker.records.produce_rules import FIRST_VERSION_OF_V2, is_nothing

if TYPE_CHECKING:
    from minibroker.handlers.context import RequestContext
    from minibroker.protocol.messages.produce import ProduceRequest, TopicProduceData

_FIRST_WITH_TOPIC_IDS = 13


def look_at_batches(context: RequestContext, request: ProduceRequest) -> Checks:
    """Check what is quick; `Checks.rest` does the others."""
    services = context.services
    partitions = services.partitions
    checks = Checks()
    for topic in request.topic_data:
        name = topic_name(context, topic)
        for data in topic.partition_data:
            partition = partitions.find(name, data.index)
            records = data.records
            if partition is None or records is None:
                continue
            if context.version < FIRST_VERSION_OF_V2 and is_nothing(records):
                continue
            assert isinstance(records, memoryview)
            checks.look(partition, records, services.clock.now_ms())
    return checks


def topic_name(context: RequestContext, topic: TopicProduceData) -> str:
    """The name of a topic in the request, which may have its id only; empty where that is
    unknown."""
    if context.version < _FIRST_WITH_TOPIC_IDS:
        return topic.name
    known = context.services.cluster.image.topic_by_id.get(topic.topic_id)
    return known.name if known is not None else ""

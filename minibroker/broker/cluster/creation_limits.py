"""Limits on how much one request may create: Kafka 4.4's, for every source of topics.

A frame of 60 bytes can ask for 2^31 partitions. Each is a directory and some kilobytes of memory,
so the count is checked before anything is planned: by the handlers for a whole request, by `topics`
for everything else (the command line, a container's topics, internal topics, the test fixture).

Kafka 4.4 has two limits. The first is on partitions. The second is on records that one operation
adds to its metadata log: a topic, each of its configs and each of its partitions is one record.
So one CreateTopics makes 9,999 partitions, and one CreatePartitions makes 10,000.

Source: Kafka ReplicationControlManager, QuorumController, EventHandlerExceptionInfo; the limit of
CreatePartitions was asked of 4.4.0 on the wire.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError

if TYPE_CHECKING:
    from collections.abc import Sized

PARTITIONS_MAX: Final = 10_000
"""Partitions that one request may create."""
RECORDS_MAX: Final = 10_000
"""Topics, configs and partitions together that one request may create."""


def check_new_partitions(count: int) -> None:
    """Raise KafkaError POLICY_VIOLATION if one request creates topics with more partitions."""
    if count > PARTITIONS_MAX:
        raise KafkaError(
            ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request."
        )


def check_added_partitions(count: int) -> None:
    """Raise KafkaError POLICY_VIOLATION if one request adds more partitions to topics."""
    if count > PARTITIONS_MAX:
        raise KafkaError(
            ErrorCode.POLICY_VIOLATION,
            "Excessively large number of additional partitions per request.",
        )


def check_records(count: int) -> None:
    """Raise KafkaError POLICY_VIOLATION if one request creates more records of metadata."""
    if count > RECORDS_MAX:
        raise KafkaError(
            ErrorCode.POLICY_VIOLATION, "Unable to perform excessively large batch operation."
        )


def records_of_topic(partition_count: int, configs: Sized) -> int:
    """Return how many records of metadata a new topic is in Kafka 4.4."""
    return 1 + len(configs) + partition_count

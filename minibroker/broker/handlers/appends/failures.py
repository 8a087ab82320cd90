"""The part of a Produce answer about an append that was refused.

Source: Kafka KafkaApis.handleProduceRequest, ReplicaManager.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from minibroker.broker.handlers.common.leaders import LeaderHints
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
)
from minibroker.kafka.records.produce_rules import InvalidRecordsError, NotVerifiedError

if TYPE_CHECKING:
    from minibroker.broker.handlers.common.context import RequestContext
    from minibroker.kafka.errors import KafkaError
    from minibroker.kafka.protocol.messages.produce import (
        PartitionProduceResponse,
        ProduceResponse,
    )

# Kafka's ReplicaManager fills the log start offset only for errors that it did not expect.
_WITHOUT_LOG_START: Final = frozenset(
    (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.INVALID_REQUIRED_ACKS,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
    )
)


def fail(
    context: RequestContext,
    response: ProduceResponse,
    topic: str | None,
    result: PartitionProduceResponse,
    error: KafkaError,
) -> None:
    """Put Kafka's answer to a refused append into `result`, with record errors and a message where
    Kafka gives them. Put the partition's leader into `response` where the version has a place.
    `topic` is None where the request has an unknown id.

    `result.log_start_offset` is set already where the log itself refused.
    """
    result.error_code = int(error.code)
    result.base_offset = -1
    if isinstance(error, NotVerifiedError):
        result.error_message = error.detail
    elif isinstance(error, InvalidRecordsError):
        result.error_message = error.detail
        result.record_errors = [
            BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=message)
            for index, message in error.record_errors
        ]
    elif error.code == ErrorCode.CORRUPT_MESSAGE and result.log_start_offset < 0:
        result.error_message = error.detail  # refused before the log was looked at
    if error.code in _WITHOUT_LOG_START:
        result.log_start_offset = -1
    has_hint = context.version >= 10 and error.code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    if has_hint and topic is not None:
        hints = LeaderHints(context, response.node_endpoints, (LeaderIdAndEpoch, NodeEndpoint))
        result.current_leader = hints.of(topic, result.index)

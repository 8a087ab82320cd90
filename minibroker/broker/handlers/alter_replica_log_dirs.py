"""AlterReplicaLogDirs: key 34, versions 0-2.

Behaviour: each partition is answered at once and moves to the named log directory in the
background. Clients use it meanwhile (KIP-113). A partition that is named for two directories moves
to the last of them.

Versions:
- 1: a client over its quota is answered first and paused after
- 2: flexible

Differs from Kafka: nothing known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import answer_error
from minibroker.kafka.ids import TopicPartition
from minibroker.kafka.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)

if TYPE_CHECKING:
    from minibroker.broker.handlers.common.context import RequestContext
    from minibroker.broker.slices import Steps


def handle(
    context: RequestContext, request: AlterReplicaLogDirsRequest
) -> Steps[AlterReplicaLogDirsResponse]:
    """Begin the moves; return one error code per partition."""
    codes = {}
    destinations = yield from _destinations(request)
    for name, path in destinations.items():
        yield
        code = ErrorCode.NONE
        try:
            context.services.log_moves.alter(name, path)
        except Exception as error:
            code = answer_error(error, f"moving {name}").code
        codes[name] = code
    return (yield from _answer_in_steps(codes))


def _destinations(request: AlterReplicaLogDirsRequest) -> Steps[dict[TopicPartition, str]]:
    destinations = {}
    for directory in request.dirs:
        for topic in directory.topics:
            for index in topic.partitions:
                destinations[TopicPartition(topic.name, index)] = directory.path
                yield
    return destinations


def _answer_in_steps(
    codes: dict[TopicPartition, ErrorCode],
) -> Steps[AlterReplicaLogDirsResponse]:
    topics: dict[str, AlterReplicaLogDirTopicResult] = {}
    for (topic, index), code in codes.items():
        if topic not in topics:
            topics[topic] = AlterReplicaLogDirTopicResult(topic_name=topic)
        topics[topic].partitions.append(
            AlterReplicaLogDirPartitionResult(partition_index=index, error_code=int(code))
        )
        yield
    return AlterReplicaLogDirsResponse(results=list(topics.values()))

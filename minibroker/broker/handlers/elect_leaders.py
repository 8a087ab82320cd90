"""ElectLeaders: key 43, versions 0-2.

Behaviour: makes the preferred (first) replica the leader of a partition. An unclean election makes
any live replica the leader of a partition that has none. Each partition gets its own result. If the
request asks for all partitions, the answer leaves out those that needed no election.

Versions:
- 1: kind of election, error of the whole request
- 2: flexible

Source: KIP-183, KIP-460.

Differs from Kafka: an unknown kind of election is INVALID_REQUEST, as in Kafka 4. The time-out is
not used, because a new leader is elected before the answer leaves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from minibroker.broker.slices import TimeSlice
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError, as_answer
from minibroker.kafka.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from minibroker.kafka.protocol.refusals import refusal

if TYPE_CHECKING:
    from collections.abc import Collection

    from minibroker.broker.handlers.common.context import RequestContext

_PREFERRED, _UNCLEAN = 0, 1
_KINDS: Final = (_PREFERRED, _UNCLEAN)


async def handle(context: RequestContext, request: ElectLeadersRequest) -> ElectLeadersResponse:
    """Return one result per partition, topic by topic."""
    kind = request.election_type if context.version >= 1 else _PREFERRED
    if kind not in _KINDS:
        detail = f"Unknown election type {kind}"
        refused: ElectLeadersResponse = refusal(
            request, context.version, ErrorCode.INVALID_REQUEST, detail
        )
        return refused
    response = ElectLeadersResponse()
    turn = TimeSlice()
    for name, indexes in _partitions_of(context, request).items():
        results = []
        for index in indexes:
            result = await _elect(context, name, index, unclean=kind == _UNCLEAN)
            is_answered = result.error_code != ErrorCode.ELECTION_NOT_NEEDED
            if is_answered or request.topic_partitions is not None:
                results.append(result)
            if turn.is_over:
                await turn.pause()
        if results:
            response.replica_election_results.append(
                ReplicaElectionResult(topic=name, partition_result=results)
            )
    return response


def _partitions_of(
    context: RequestContext, request: ElectLeadersRequest
) -> dict[str, Collection[int]]:
    """Return topic → partitions, each once, in the order of the request."""
    if request.topic_partitions is None:
        topics = context.services.cluster.image.topics.values()
        return {topic.name: range(len(topic.partitions)) for topic in topics}
    indexes_by_topic: dict[str, dict[int, None]] = {}
    for topic in request.topic_partitions:
        indexes_by_topic.setdefault(topic.topic, {}).update(dict.fromkeys(topic.partitions))
    return dict(indexes_by_topic)


async def _elect(
    context: RequestContext, name: str, index: int, *, unclean: bool
) -> PartitionResult:
    cluster = context.services.cluster
    result = PartitionResult(partition_id=index, error_message=None)
    try:
        if not cluster.is_controller:
            raise KafkaError(ErrorCode.NOT_CONTROLLER)
        await cluster.leadership.elect(name, index, unclean=unclean)
    except Exception as error:
        result.error_code, result.error_message = as_answer(
            error, f"electing a leader of {name}-{index}"
        )
    return result

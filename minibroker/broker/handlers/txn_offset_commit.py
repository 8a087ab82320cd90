"""TxnOffsetCommit: key 28, versions 0-6.

Behaviour: offsets that a producer commits as part of its transaction. They stand in the group's
partition of `__consumer_offsets` as the producer's transactional batch and count when the marker
comes.

Versions:
- 1: no difference
- 2: leader epochs
- 3: flexible, and the group says whether the producer still belongs to it (KIP-447)
- 4: TRANSACTION_ABORTABLE
- 5: the broker adds the partition to the transaction (KIP-890)
- 6: topic ids (KIP-1319)

Differs from Kafka: nothing known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from minibroker.broker.handlers.commits.offsets import accept, when_replicated, write
from minibroker.broker.handlers.commits.partitions import (
    TopicAnswers,
    known_partitions,
)
from minibroker.broker.handlers.common.permissions import Allowed
from minibroker.broker.handlers.common.transaction_verification import Protocol, Question, verify
from minibroker.broker.partitions.journal_partition import coordinator_error
from minibroker.broker.security.acls import Operation
from minibroker.broker.slices import run_with_pauses
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError
from minibroker.kafka.ids import NO_SEQUENCE, TopicPartition
from minibroker.kafka.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from minibroker.broker.groups.group import CommitPartitionValidator
    from minibroker.broker.groups.shard import GroupShard
    from minibroker.broker.handlers.commits.offsets import Accepted
    from minibroker.broker.handlers.commits.partitions import KnownTopic
    from minibroker.broker.handlers.common.context import RequestContext
    from minibroker.broker.handlers.common.transaction_verification import Codes
    from minibroker.broker.slices import Steps

_FIRST_WITH_LOADING: Final = 2
_FIRST_ABORTABLE: Final = 4
_FIRST_ADDING: Final = 5
_FIRST_WITH_TOPIC_IDS: Final = 6
_CLASSES: Final = (TxnOffsetCommitResponseTopic, TxnOffsetCommitResponsePartition)


def handle(
    context: RequestContext, request: TxnOffsetCommitRequest
) -> Steps[TxnOffsetCommitResponse | Awaitable[TxnOffsetCommitResponse]]:
    """Stage what exists as a part of the producer's transaction; an awaitable where its coordinator
    is another broker."""
    response = TxnOffsetCommitResponse()
    has_ids = context.version >= _FIRST_WITH_TOPIC_IDS
    answers = TopicAnswers(response.topics, _CLASSES, has_ids=has_ids)
    image = context.services.cluster.image
    may_read = Allowed(context, Operation.READ)
    topics = yield from known_partitions(
        image, request.topics, answers, has_ids=has_ids, may_read=may_read
    )
    if not topics:
        return response
    try:
        shard = context.services.groups.shard(request.group_id)
        question = _question(context, request, shard)
    except KafkaError as error:
        yield from answers.add_known(topics, _code_for(context.version, error.code))
        return response
    # Before the coordinator is asked: nothing may come between its answer and the write.
    accepted = yield from _accept(context, request, topics, shard)

    def finish(
        refused: Codes,
    ) -> Steps[TxnOffsetCommitResponse | Awaitable[TxnOffsetCommitResponse]]:
        try:
            for code in refused.values():
                raise KafkaError(coordinator_error(code))
            waiting = yield from _commit(context, request, accepted, topics, answers)
        except KafkaError as error:
            yield from answers.add_known(topics, _code_for(context.version, error.code))
            return response
        return when_replicated(waiting, response)

    refused = verify(context.services, question)
    if isinstance(refused, dict):
        return (yield from finish(refused))
    return _when_verified(refused, finish)


async def _when_verified(
    refused: Awaitable[Codes],
    finish: Callable[[Codes], Steps[TxnOffsetCommitResponse | Awaitable[TxnOffsetCommitResponse]]],
) -> TxnOffsetCommitResponse:
    answer = await run_with_pauses(finish(await refused))
    return answer if isinstance(answer, TxnOffsetCommitResponse) else await answer


def _code_for(version: int, code: ErrorCode) -> ErrorCode:
    """`code` in the words of a version: clients of 0 and 1 crash when something is loading."""
    if code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and version < _FIRST_WITH_LOADING:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    if code == ErrorCode.STALE_MEMBER_EPOCH and version < _FIRST_WITH_TOPIC_IDS:
        return ErrorCode.ILLEGAL_GENERATION
    return code


def _accept(
    context: RequestContext,
    request: TxnOffsetCommitRequest,
    topics: list[KnownTopic],
    shard: GroupShard,
) -> Steps[Accepted | KafkaError]:
    """Return the offsets that the group accepts, or its error: the coordinator's comes first."""
    services = context.services
    try:
        _check_member(context.version, request, shard)
        return (
            yield from accept(
                shard,
                request.group_id,
                topics,
                units_max=services.config.offset_metadata_max_bytes,
                now_ms=services.clock.now_ms(),
                has_ids=context.version >= _FIRST_WITH_TOPIC_IDS,
                has_times=False,
                producer_id=request.producer_id,
                producer_epoch=request.producer_epoch,
            )
        )
    except KafkaError as error:
        return error


def _commit(
    context: RequestContext,
    request: TxnOffsetCommitRequest,
    accepted: Accepted | KafkaError,
    topics: list[KnownTopic],
    answers: TopicAnswers,
) -> Steps[Awaitable[None] | None]:
    """Write the offsets in the first step; return what the answer waits for. Raises KafkaError
    before anything is done.
    """
    shard = context.services.groups.shard(request.group_id)
    validator = _check_member(context.version, request, shard)
    if isinstance(accepted, KafkaError):
        raise accepted
    return (
        yield from write(
            shard,
            request.group_id,
            accepted,
            topics,
            answers,
            validator=validator,
            producer_id=request.producer_id,
        )
    )


def _question(
    context: RequestContext, request: TxnOffsetCommitRequest, shard: GroupShard
) -> Question:
    """Return the question whether the group's partition is part of the producer's transaction."""
    protocol = Protocol.OLD
    if context.version >= _FIRST_ADDING:
        protocol = Protocol.ADDING
    elif context.version >= _FIRST_ABORTABLE:
        protocol = Protocol.VERIFIED
    name = TopicPartition(context.services.groups.journal.topic, shard.index)
    return Question(
        request.transactional_id,
        request.producer_id,
        request.producer_epoch,
        {name: NO_SEQUENCE},
        protocol,
        {},
    )


def _check_member(
    version: int, request: TxnOffsetCommitRequest, shard: GroupShard
) -> CommitPartitionValidator | None:
    """Check whether the group, which may not exist yet, accepts the request. Raises KafkaError."""
    generation = request.generation_id_or_member_epoch
    group = shard.groups.get(request.group_id)
    if group is not None:
        return group.validate_offset_commit(
            request.member_id,
            request.group_instance_id,
            generation,
            is_transactional=True,
            version=version,
        )
    if generation < 0:
        return None
    if version >= _FIRST_WITH_TOPIC_IDS:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND)
    raise KafkaError(ErrorCode.ILLEGAL_GENERATION)

"""OffsetCommit: key 8, versions 0-10.

Behaviour: a group's offsets become records of `__consumer_offsets`, and are answered once they are
written. The group decides who may commit: its members in their generation, and anybody without a
member id while the group is empty.
A consumer that assigns itself its partitions and has the id of a live group is refused, and the log
says who it is.

Versions:
- 0: keeps offsets in the tree, under /consumers
- 1: generation and member, a commit time per partition
- 2-4: an explicit retention
- 6: leader epochs
- 7: static members
- 8: flexible
- 9: member epochs (KIP-848)
- 10: topic ids

Differs from Kafka: nothing known.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from minibroker.broker.cluster.consumer_offsets import set_offset
from minibroker.broker.groups.classic.group import ClassicGroup
from minibroker.broker.groups.offsets import NO_EXPIRY
from minibroker.broker.handlers.commits.offsets import accept, when_replicated, write
from minibroker.broker.handlers.commits.partitions import (
    TopicAnswers,
    is_too_long,
    known_partitions,
)
from minibroker.broker.handlers.common.permissions import Allowed
from minibroker.broker.security.acls import Operation
from minibroker.broker.slices import TimeSlice
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import CoordinationError, KafkaError
from minibroker.kafka.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from minibroker.kafka.records.record import wrap_int64

if TYPE_CHECKING:
    from collections.abc import Awaitable, Sequence

    from minibroker.broker.groups.group import CommitPartitionValidator
    from minibroker.broker.groups.shard import GroupShard
    from minibroker.broker.handlers.commits.partitions import KnownTopic
    from minibroker.broker.handlers.common.context import RequestContext
    from minibroker.broker.slices import Steps

logger = logging.getLogger(__name__)

_FIRST_IN_LOG: Final = 1
_FIRST_WITH_TOPIC_IDS: Final = 10
_FIRST_WITH_GROUP_NOT_FOUND: Final = 9
_NOT_SET: Final = -1
_CLASSES: Final = (OffsetCommitResponseTopic, OffsetCommitResponsePartition)


def handle(
    context: RequestContext, request: OffsetCommitRequest
) -> Steps[OffsetCommitResponse | Awaitable[OffsetCommitResponse]]:
    """Commit what exists; version 0 waits for the tree."""
    response = OffsetCommitResponse()
    has_ids = context.version >= _FIRST_WITH_TOPIC_IDS
    answers = TopicAnswers(response.topics, _CLASSES, has_ids=has_ids)
    image = context.services.cluster.image
    may_read = Allowed(context, Operation.READ)
    topics = yield from known_partitions(
        image, request.topics, answers, has_ids=has_ids, may_read=may_read
    )
    if not topics:
        return response
    if context.version < _FIRST_IN_LOG:
        return _commit_to_tree(context, request.group_id, topics, answers, response)
    try:
        waiting = yield from _commit(context, request, topics, answers)
    except KafkaError as error:
        _log_refusal(context, request, error)
        yield from answers.add_known(topics, error.code)
        return response
    return when_replicated(waiting, response)


def _commit(
    context: RequestContext,
    request: OffsetCommitRequest,
    topics: list[KnownTopic],
    answers: TopicAnswers,
) -> Steps[Awaitable[None] | None]:
    """Write the offsets and add the answers; return what they wait for. Raises KafkaError before
    anything is done.
    """
    services = context.services
    shard = services.groups.shard(request.group_id, may_be_empty=True)
    validator = check_member(context, request, shard)
    now_ms = services.clock.now_ms()
    expire_ms = NO_EXPIRY
    if request.retention_time_ms != _NOT_SET:
        expire_ms = wrap_int64(now_ms + request.retention_time_ms)
    accepted = yield from accept(
        shard,
        request.group_id,
        topics,
        units_max=services.config.offset_metadata_max_bytes,
        now_ms=now_ms,
        expire_ms=expire_ms,
        has_ids=context.version >= _FIRST_WITH_TOPIC_IDS,
        has_times=True,
    )
    if len(accepted.codes) > 1:  # others had the loop
        shard = services.groups.shard(request.group_id, may_be_empty=True)
        validator = check_member(context, request, shard)
    return (
        yield from write(shard, request.group_id, accepted, topics, answers, validator=validator)
    )


def check_member(
    context: RequestContext, request: OffsetCommitRequest, shard: GroupShard
) -> CommitPartitionValidator | None:
    """Check whether the group accepts the request; an accepted member counts as alive.

    Raises KafkaError.
    """
    group_id = request.group_id
    group = shard.groups.get(group_id)
    if group is not None:
        validator = group.validate_offset_commit(
            request.member_id,
            request.group_instance_id,
            request.generation_id_or_member_epoch,
            is_transactional=False,
            version=context.version,
        )
        if request.member_id and isinstance(group, ClassicGroup):
            context.services.groups.classic.keep_alive(shard, group, request.member_id)
        return validator
    if request.generation_id_or_member_epoch >= 0:
        if context.version >= _FIRST_WITH_GROUP_NOT_FOUND:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"group {group_id} does not exist")
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION, f"group {group_id} does not exist")
    return None


def _log_refusal(context: RequestContext, request: OffsetCommitRequest, error: KafkaError) -> None:
    """Log a refusal. A stranger's commit is somebody's mistake; the others are part of any
    rebalance.
    """
    is_stranger = error.code == ErrorCode.UNKNOWN_MEMBER_ID and not request.member_id
    logger.log(
        logging.WARNING if is_stranger else logging.DEBUG,
        "refused offsets for group %s from %s (client id %s, member id %r, generation %d): %s",
        request.group_id,
        context.client_address,
        context.client_id,
        request.member_id,
        request.generation_id_or_member_epoch,
        error,
    )


async def _commit_to_tree(
    context: RequestContext,
    group_id: str,
    topics: Sequence[KnownTopic],
    answers: TopicAnswers,
    response: OffsetCommitResponse,
) -> OffsetCommitResponse:
    """Version 0: one node per partition; no group is asked."""
    services = context.services
    units_max = services.config.offset_metadata_max_bytes
    turn = TimeSlice()
    for topic, partitions in topics:
        for partition in partitions:
            if turn.is_over:
                await turn.pause()
            index = partition.partition_index
            code = ErrorCode.NONE
            if is_too_long(partition.committed_metadata, units_max):
                code = ErrorCode.OFFSET_METADATA_TOO_LARGE
            else:
                try:
                    await set_offset(
                        services.cluster.tree,
                        group_id,
                        topic.name,
                        index,
                        partition.committed_offset,
                    )
                except (CoordinationError, ValueError) as error:
                    logger.warning("cannot commit an offset of group %s: %s", group_id, error)
                    code = ErrorCode.UNKNOWN_SERVER_ERROR
            answers.add(topic.name, topic.topic_id, index, code)
    return response

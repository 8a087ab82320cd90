"""OffsetFetch: key 9, versions 0-10.

Behaviour: what groups have committed; -1 and no error for what nobody committed, an unknown group
included. Offsets of an open transaction do not show, and a client that wants stable offsets is told
to ask again (KIP-447).

Versions:
- 0: offsets in the tree, under /consumers
- 2: all topics of the group, an error for the group as a whole
- 3: throttle time
- 5: leader epochs
- 6: flexible
- 7: stable offsets
- 8: several groups (KIP-709)
- 9: member epochs (KIP-848)
- 10: topic ids

Differs from Kafka: nothing known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from minibroker.broker.cluster.consumer_offsets import get_offset
from minibroker.broker.handlers.common.permissions import Allowed, Need
from minibroker.broker.security.acls import Operation, ResourceType
from minibroker.broker.slices import TimeSlice, gather, run_with_pauses
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import CoordinationError, KafkaError
from minibroker.kafka.ids import may_be_same_topic
from minibroker.kafka.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from minibroker.broker.cluster.image import MetadataImage
    from minibroker.broker.groups.group import Group
    from minibroker.broker.groups.offsets import CommittedOffset, OffsetStore
    from minibroker.broker.handlers.common.context import RequestContext
    from minibroker.broker.slices import Steps

_FIRST_IN_LOG: Final = 1
_FIRST_WITH_GROUP_ERROR: Final = 2
_FIRST_BATCHED: Final = 8
_FIRST_WITH_TOPIC_IDS: Final = 10
_NO_OFFSET: Final = -1


def handle(
    context: RequestContext, request: OffsetFetchRequest
) -> Steps[OffsetFetchResponse | Awaitable[OffsetFetchResponse]]:
    """Answer from memory; version 0 waits for the tree."""
    if context.version < _FIRST_IN_LOG:
        return _fetch_from_tree(context, request)
    if context.version >= _FIRST_BATCHED:
        response = OffsetFetchResponse()
        for group in request.groups:
            response.groups.append((yield from _fetch(context, group, request.require_stable)))
        return response
    group_request = OffsetFetchRequestGroup(group_id=request.group_id, topics=None)
    if request.topics is not None:
        group_request.topics = yield from gather(
            OffsetFetchRequestTopics(name=topic.name, partition_indexes=topic.partition_indexes)
            for topic in request.topics
        )
    answer = yield from _fetch(context, group_request, request.require_stable)
    return (yield from _unbatched(answer))


def _unbatched(group: OffsetFetchResponseGroup) -> Steps[OffsetFetchResponse]:
    """Return the answer of versions 1-7, which are about one group."""
    response = OffsetFetchResponse(error_code=group.error_code)
    for topic in group.topics:
        partitions = yield from gather(
            OffsetFetchResponsePartition(
                partition_index=partition.partition_index,
                committed_offset=partition.committed_offset,
                committed_leader_epoch=partition.committed_leader_epoch,
                metadata=partition.metadata,
                error_code=partition.error_code,
            )
            for partition in topic.partitions
        )
        response.topics.append(OffsetFetchResponseTopic(name=topic.name, partitions=partitions))
        yield
    return response


def _fetch(
    context: RequestContext, group_request: OffsetFetchRequestGroup, require_stable: bool
) -> Steps[OffsetFetchResponseGroup]:
    """Return the offsets of one group."""
    group_id = group_request.group_id
    yield
    try:
        if not context.authorize(Operation.DESCRIBE, ResourceType.GROUP, group_id):
            raise KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
        shard = context.services.groups.shard(group_id, may_be_empty=True)
        is_known = _check_reader(shard.groups.get(group_id), group_request)
    except KafkaError as error:
        return (yield from _group_error(group_request, context.version, error.code))
    answer = OffsetFetchResponseGroup(group_id=group_id)
    has_ids = context.version >= _FIRST_WITH_TOPIC_IDS
    image = context.services.cluster.image
    if group_request.topics is None:
        if is_known:
            visible = Allowed(context, Operation.DESCRIBE, is_filter=True)
            answer.topics = yield from _all_topics(
                shard.offsets,
                group_id,
                image,
                require_stable=require_stable,
                has_ids=has_ids,
                visible=visible,
            )
        return answer
    may_describe = Allowed(context, Operation.DESCRIBE)
    unknown = []
    for topic in group_request.topics:
        yield
        name = topic.name
        if has_ids:
            image_topic = image.topic_by_id.get(topic.topic_id)
            if image_topic is None:
                unknown.append((yield from _topic_error(topic, ErrorCode.UNKNOWN_TOPIC_ID)))
                continue
            name = image_topic.name
        if name not in may_describe:
            refused = yield from _topic_error(topic, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            refused.name = name
            unknown.append(refused)
            continue
        entry = OffsetFetchResponseTopics(name=name)
        if has_ids:
            entry.topic_id = topic.topic_id
        for index in topic.partition_indexes:
            yield
            committed = shard.offsets.visible(group_id, name, index) if is_known else None
            if committed is not None and not _is_of(committed, topic.topic_id):
                committed = None
            is_unstable = require_stable and shard.offsets.has_pending(group_id, name, index)
            entry.partitions.append(_partition(index, committed, is_unstable=is_unstable))
        answer.topics.append(entry)
    answer.topics += unknown
    return answer


def _check_reader(group: Group | None, group_request: OffsetFetchRequestGroup) -> bool:
    """Return whether the group exists.

    Raises KafkaError if this member may not read its offsets.
    """
    if group is None:
        return False
    try:
        group.validate_offset_fetch(group_request.member_id, group_request.member_epoch)
    except KafkaError as error:
        if error.code == ErrorCode.GROUP_ID_NOT_FOUND:
            return False
        raise
    return True


def _is_of(committed: CommittedOffset, topic_id: bytes) -> bool:
    """Return whether the offset belongs to the requested topic, as far as both have an id."""
    return may_be_same_topic(committed.topic_id, topic_id)


def _all_topics(
    offsets: OffsetStore,
    group_id: str,
    image: MetadataImage,
    *,
    require_stable: bool,
    has_ids: bool,
    visible: Allowed,
) -> Steps[list[OffsetFetchResponseTopics]]:
    """Return everything that the group committed, of topics in `visible`; by id without the topics
    that have none any more.
    """
    topics = []
    for name, partitions in list(offsets.of_group(group_id).items()):
        entry = OffsetFetchResponseTopics(name=name)
        if has_ids:
            image_topic = image.topics.get(name)
            if image_topic is None:
                continue
            entry.topic_id = image_topic.topic_id
        for index in list(partitions):
            yield
            committed = offsets.visible(group_id, name, index)
            if committed is None:
                continue
            is_unstable = require_stable and offsets.has_pending(group_id, name, index)
            entry.partitions.append(_partition(index, committed, is_unstable=is_unstable))
        if entry.partitions and name in visible:
            topics.append(entry)
    return topics


def _partition(
    index: int, committed: CommittedOffset | None, *, is_unstable: bool = False
) -> OffsetFetchResponsePartitions:
    if is_unstable:
        return _error_partition(index, ErrorCode.UNSTABLE_OFFSET_COMMIT)
    if committed is None:
        return _error_partition(index, ErrorCode.NONE)
    return OffsetFetchResponsePartitions(
        partition_index=index,
        committed_offset=committed.offset,
        committed_leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
    )


def _error_partition(index: int, code: ErrorCode) -> OffsetFetchResponsePartitions:
    return OffsetFetchResponsePartitions(
        partition_index=index,
        committed_offset=_NO_OFFSET,
        committed_leader_epoch=-1,
        metadata="",
        error_code=int(code),
    )


def _topic_error(
    topic: OffsetFetchRequestTopics, code: ErrorCode
) -> Steps[OffsetFetchResponseTopics]:
    partitions = yield from gather(
        _error_partition(index, code) for index in topic.partition_indexes
    )
    return OffsetFetchResponseTopics(
        name=topic.name, topic_id=topic.topic_id, partitions=partitions
    )


def _group_error(
    group_request: OffsetFetchRequestGroup, version: int, code: ErrorCode
) -> Steps[OffsetFetchResponseGroup]:
    """Return the code for the group, or before version 2 for each partition."""
    if version >= _FIRST_WITH_GROUP_ERROR:
        return OffsetFetchResponseGroup(group_id=group_request.group_id, error_code=int(code))
    topics = []
    for topic in group_request.topics or ():
        topics.append((yield from _topic_error(topic, code)))
        yield
    return OffsetFetchResponseGroup(group_id=group_request.group_id, topics=topics)


async def _fetch_from_tree(
    context: RequestContext, request: OffsetFetchRequest
) -> OffsetFetchResponse:
    """Version 0: partitions without an offset, or that do not exist, are unknown."""
    Need(Operation.DESCRIBE, ResourceType.GROUP, "group_id").check(context, request)
    cluster = context.services.cluster
    response = OffsetFetchResponse()
    may_describe = Allowed(context, Operation.DESCRIBE)
    turn = TimeSlice()
    topics = await run_with_pauses(
        may_describe.refused_last(request.topics or (), lambda topic: topic.name)
    )
    for topic in topics:
        image_topic = cluster.image.topics.get(topic.name)
        count = 0 if image_topic is None else len(image_topic.partitions)
        entry = OffsetFetchResponseTopic(name=topic.name)
        for index in topic.partition_indexes:
            if turn.is_over:
                await turn.pause()
            offset, code = None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            if topic.name not in may_describe:
                code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            elif 0 <= index < count:
                try:
                    offset = await get_offset(cluster.tree, request.group_id, topic.name, index)
                except (CoordinationError, ValueError):
                    code = ErrorCode.UNKNOWN_SERVER_ERROR
            entry.partitions.append(
                OffsetFetchResponsePartition(
                    partition_index=index,
                    committed_offset=_NO_OFFSET if offset is None else offset,
                    metadata="",
                    error_code=int(code if offset is None else ErrorCode.NONE),
                )
            )
        response.topics.append(entry)
    return response

"""OffsetDelete: key 47, version 0.

Behaviour: forgets what a group committed for some partitions, pending offsets of transactions
included (KIP-496). A group with members keeps what they read now.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from minibroker.broker.groups.records import encode_offset_key
from minibroker.broker.groups.shard import DELETED_AT_ONCE
from minibroker.broker.handlers.commits.partitions import TopicAnswers, known_partitions
from minibroker.broker.handlers.common.permissions import Allowed
from minibroker.broker.handlers.common.visible_answers import when_visible
from minibroker.broker.security.acls import Operation
from minibroker.broker.slices import gather
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError
from minibroker.kafka.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from minibroker.broker.cluster.image import TopicImage
    from minibroker.broker.groups.group import GroupRecord
    from minibroker.broker.groups.shard import GroupShard
    from minibroker.broker.handlers.common.context import RequestContext
    from minibroker.broker.slices import Steps

_CLASSES: Final = (OffsetDeleteResponseTopic, OffsetDeleteResponsePartition)


def handle(
    context: RequestContext, request: OffsetDeleteRequest
) -> Steps[OffsetDeleteResponse | Awaitable[OffsetDeleteResponse]]:
    """Delete what exists; a group that refuses is an error at the top and nothing else. Where it
    refuses while others have the loop, a part is deleted already.
    """
    response = OffsetDeleteResponse()
    answers = TopicAnswers(response.topics, _CLASSES, has_ids=False)
    image = context.services.cluster.image
    may_read = Allowed(context, Operation.READ)
    topics = yield from known_partitions(
        image, request.topics, answers, has_ids=False, may_read=may_read
    )
    places = yield from gather(
        (topic, partition.partition_index)
        for topic, partitions in topics
        for partition in partitions
    )
    shard = context.services.groups.shard(request.group_id)
    waiting = None
    for start in range(0, len(places) or 1, DELETED_AT_ONCE):
        shard.check_served()
        _delete(shard, request.group_id, places[start : start + DELETED_AT_ONCE], answers)
        waiting = shard.visible()
        yield
    return when_visible(waiting, response, lambda code: OffsetDeleteResponse(error_code=int(code)))


def _delete(
    shard: GroupShard, group_id: str, places: list[tuple[TopicImage, int]], answers: TopicAnswers
) -> None:
    """Delete what a group committed for these partitions, and answer them, in one step: between the
    question and the write a member may join and commit. Raises KafkaError.
    """
    group = shard.groups.get(group_id)
    if group is None:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
    group.validate_offset_delete()
    tombstones: list[GroupRecord] = []
    for topic, index in places:
        name = topic.name
        is_read = group.is_subscribed_to(name)
        code = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if is_read else ErrorCode.NONE
        answers.add(name, topic.topic_id, index, code)
        if not is_read and (
            shard.offsets.get(group_id, name, index) is not None
            or shard.offsets.has_pending(group_id, name, index)
        ):
            tombstones.append((encode_offset_key(group_id, name, index), None))
    if tombstones:
        shard.write(tombstones)

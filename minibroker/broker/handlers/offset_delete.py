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

    from minibroker.broker.groups.group import GroupRecord
    from minibroker.broker.handlers.common.context import RequestContext
    from minibroker.broker.slices import Steps

_CLASSES: Final = (OffsetDeleteResponseTopic, OffsetDeleteResponsePartition)


def handle(
    context: RequestContext, request: OffsetDeleteRequest
) -> Steps[OffsetDeleteResponse | Awaitable[OffsetDeleteResponse]]:
    """Delete what exists; a group that refuses is an error at the top and nothing else."""
    group_id = request.group_id
    response = OffsetDeleteResponse()
    answers = TopicAnswers(response.topics, _CLASSES, has_ids=False)
    image = context.services.cluster.image
    may_read = Allowed(context, Operation.READ)
    topics = yield from known_partitions(
        image, request.topics, answers, has_ids=False, may_read=may_read
    )
    shard = context.services.groups.shard(group_id)
    group = shard.groups.get(group_id)
    if group is None:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
    group.validate_offset_delete()
    tombstones: list[GroupRecord] = []
    for topic, partitions in topics:
        name = topic.name
        is_read = group.is_subscribed_to(name)
        code = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if is_read else ErrorCode.NONE
        for partition in partitions:
            yield
            index = partition.partition_index
            answers.add(name, topic.topic_id, index, code)
            if not is_read and (
                shard.offsets.get(group_id, name, index) is not None
                or shard.offsets.has_pending(group_id, name, index)
            ):
                tombstones.append((encode_offset_key(group_id, name, index), None))
    for start in range(0, len(tombstones), DELETED_AT_ONCE):
        yield
        shard.check_served()  # others may have had the loop
        shard.write(tombstones[start : start + DELETED_AT_ONCE])
    return when_visible(  # in the step of the last write
        shard.visible(),
        response,
        lambda code: OffsetDeleteResponse(error_code=int(code)),
    )

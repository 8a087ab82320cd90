"""ConsumerGroupDescribe: key 69, versions 0-1.

Behaviour: epochs, members, what they have and what they shall have, of groups of the consumer
protocol (KIP-848). A group that is not there, or is of another kind, is GROUP_ID_NOT_FOUND.

Versions:
- 1: tells members of the classic protocol from the others (KIP-1099)

Differs from Kafka: groups are answered in the order asked; 4.x sorts them by partition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.broker.groups.consumer.group import ConsumerGroup
from minibroker.broker.groups.consumer.member import without_epochs
from minibroker.broker.groups.consumer.membership import assignors_of
from minibroker.broker.handlers.common.authorized_operations import operations_of
from minibroker.broker.handlers.common.group_members import serves_consumer_protocol
from minibroker.broker.handlers.common.permissions import Allowed
from minibroker.broker.security.acls import Operation, ResourceType
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError
from minibroker.kafka.protocol.messages.consumer_group_describe import (
    Assignment,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    Member,
    TopicPartitions,
)
from minibroker.kafka.protocol.refusals import refusal

if TYPE_CHECKING:
    from minibroker.broker.groups.consumer.assignor import Assignment as Partitions
    from minibroker.broker.groups.consumer.member import Member as GroupMember
    from minibroker.broker.groups.consumer.topics import ImageTopics
    from minibroker.broker.handlers.common.context import RequestContext
    from minibroker.broker.slices import Steps
    from minibroker.kafka.protocol.messages.consumer_group_describe import (
        ConsumerGroupDescribeRequest,
    )

CLASSIC_MEMBER, CONSUMER_MEMBER = 0, 1


def handle(
    context: RequestContext, request: ConsumerGroupDescribeRequest
) -> Steps[ConsumerGroupDescribeResponse]:
    """Return one entry for each group of the request, in its order."""
    if not serves_consumer_protocol(context):
        answer: ConsumerGroupDescribeResponse = refusal(
            request, context.version, ErrorCode.UNSUPPORTED_VERSION, None
        )
        return answer
    may_describe = Allowed(context, Operation.DESCRIBE, ResourceType.GROUP)
    visible = Allowed(context, Operation.DESCRIBE)
    code = int(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    refused: list[DescribedGroup] = []
    described: list[DescribedGroup] = []
    for group_id in request.group_ids:
        yield
        if group_id not in may_describe:
            refused.append(DescribedGroup(group_id=group_id, error_code=code))
            continue
        group = _describe(context, group_id)
        if request.include_authorized_operations and not group.error_code:
            group.authorized_operations = operations_of(context, ResourceType.GROUP, group_id)
        described.append(_if_visible(group, visible))
    return ConsumerGroupDescribeResponse(groups=refused + described)


def _if_visible(group: DescribedGroup, visible: Allowed) -> DescribedGroup:
    """Return the group, or an error for a group with a topic that the client may not describe."""
    names = {
        partitions.topic_name
        for member in group.members
        for assignment in (member.assignment, member.target_assignment)
        for partitions in assignment.topic_partitions
    }
    if all(name in visible for name in names):
        return group
    return DescribedGroup(
        group_id=group.group_id,
        error_code=int(ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        error_message="The group has topics that the client may not describe.",
    )


def _describe(context: RequestContext, group_id: str) -> DescribedGroup:
    groups = context.services.groups
    try:
        group = groups.shard(group_id).groups.get(group_id)
        if group is None:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        if not isinstance(group, ConsumerGroup):
            raise KafkaError(
                ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group."
            )
    except KafkaError as error:
        has_message = error.code is ErrorCode.GROUP_ID_NOT_FOUND
        return DescribedGroup(
            group_id=group_id,
            error_code=int(error.code),
            error_message=error.detail if has_message else None,
        )
    topics = groups.consumer.topics
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state_name,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=group.preferred_assignor(assignors_of(groups.config)[0]),
        members=[
            _member(member, group.target_of(member.member_id), topics)
            for member in group.members.values()
        ],
    )


def _member(member: GroupMember, target: Partitions, topics: ImageTopics) -> Member:
    # What it has to give up is its own until it has done so.
    owned: dict[bytes, list[int]] = {
        topic_id: list(partitions)
        for topic_id, partitions in without_epochs(member.assigned).items()
    }
    for topic_id, partitions in without_epochs(member.revoking).items():
        owned.setdefault(topic_id, []).extend(partitions)
    return Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topic_names),
        subscribed_topic_regex=member.topic_regex,
        assignment=_assignment(owned, topics),
        target_assignment=_assignment(
            {topic_id: list(partitions) for topic_id, partitions in target.items()}, topics
        ),
        member_type=CLASSIC_MEMBER if member.is_classic else CONSUMER_MEMBER,
    )


def _assignment(partitions_of: dict[bytes, list[int]], topics: ImageTopics) -> Assignment:
    """Topics that are gone are left out."""
    topics_with_names = [
        (topic_id, name, partitions)
        for topic_id, partitions in partitions_of.items()
        if (name := topics.name_of(topic_id)) is not None
    ]
    return Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic_id, topic_name=name, partitions=partitions)
            for topic_id, name, partitions in topics_with_names
        ]
    )

"""Groups with their members, and what each of them reads.

    a group ─ConsumerGroupDescribe─► one of KIP-848 ─┐
            └─DescribeGroups──────► a classic one ───┴─► GroupDetails

A classic group may have members that are no consumers (Connect, Schema Registry): then nobody but
they can read their assignment, and it is shown as empty.

Errors and deadlines are those of `groups`.

Source: Kafka KafkaAdminClient, DescribeConsumerGroupsHandler, DeleteConsumerGroupsHandler; KIP-848.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from minibroker.client.answer_parts import part_of
from minibroker.client.dialogue import BrokerRefusedError
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError, ProtocolError
from minibroker.kafka.ids import TopicPartition
from minibroker.kafka.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from minibroker.kafka.protocol.messages.delete_groups import (
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from minibroker.kafka.protocol.messages.describe_groups import (
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from minibroker.kafka.protocol.stored.consumer_protocol_assignment import (
    ConsumerProtocolAssignment,
)

if TYPE_CHECKING:
    from minibroker.client.coordinators import CoordinatorClient

DESCRIBE_VERSIONS: Final = (0, 6)
CONSUMER_DESCRIBE_VERSIONS: Final = (0, 1)
DELETE_VERSIONS: Final = (0, 2)
DEAD: Final = "Dead"
"""The state of a group that does not exist."""
MISSING: Final = frozenset({ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.INVALID_GROUP_ID})
"""Errors for a group that does not exist, or cannot."""
NOT_OF_KIP_848: Final = MISSING | {ErrorCode.UNSUPPORTED_VERSION}
CLASSIC: Final = "classic"
CONSUMER: Final = "consumer"
STABLE: Final = "Stable"


class DetailedMember(NamedTuple):
    """A member of a group."""

    member_id: str
    client_id: str
    host: str
    instance_id: str | None
    """`group.instance.id` of a static member, None for a dynamic one."""
    partitions: tuple[TopicPartition, ...]
    """The partitions that it has now, sorted."""
    is_settled: bool
    """It has no partition to get or to give up; a classic member of a stable group is."""


class GroupDetails(NamedTuple):
    """A group and its members."""

    name: str
    state: str
    """One of Kafka's names; `groups.DEAD`: there is no such group."""
    protocol: str
    """`CLASSIC` or `CONSUMER`."""
    assignor: str
    """Empty: nobody has assigned anything yet."""
    members: tuple[DetailedMember, ...]

    @property
    def is_stable(self) -> bool:
        """Return whether every member has the partitions that it is to have."""
        return self.state == STABLE and all(member.is_settled for member in self.members)


def group_details(group: CoordinatorClient, deadline: float) -> GroupDetails:
    """Return a group with its members; one that does not exist is dead and has none.

    Raises KafkaError, OSError, ProtocolError, ConfigError.
    """
    try:
        part = _ask(
            group,
            ConsumerGroupDescribeRequest(group_ids=[group.name]),
            ConsumerGroupDescribeResponse,
            CONSUMER_DESCRIBE_VERSIONS,
            deadline,
        )
    except BrokerRefusedError:  # if it is the login, the next call raises it, too
        return _classic_details(group, deadline)
    except KafkaError as error:
        if error.code in NOT_OF_KIP_848:
            return _classic_details(group, deadline)
        raise
    members = tuple(_consumer_member(member) for member in part.members)
    return GroupDetails(group.name, part.group_state, CONSUMER, part.assignor_name, members)


def delete_group(group: CoordinatorClient, deadline: float) -> None:
    """Delete a group with its offsets; Kafka refuses one that has members (NON_EMPTY_GROUP).

    Raises KafkaError, OSError, ProtocolError, ConfigError.
    """

    def code_of(answer: DeleteGroupsResponse) -> int:
        return int(part_of({each.group_id: each for each in answer.results}, group.name).error_code)

    request = DeleteGroupsRequest(groups_names=[group.name])
    group.ask(request, DeleteGroupsResponse, DELETE_VERSIONS, deadline, code_of)


def _classic_details(group: CoordinatorClient, deadline: float) -> GroupDetails:
    request = DescribeGroupsRequest(groups=[group.name])
    try:
        part = _ask(group, request, DescribeGroupsResponse, DESCRIBE_VERSIONS, deadline)
    except KafkaError as error:
        if error.code in MISSING:
            return GroupDetails(group.name, DEAD, CLASSIC, "", ())
        raise
    members = tuple(
        DetailedMember(
            member.member_id,
            member.client_id,
            member.client_host,
            member.group_instance_id,
            _assigned(member.member_assignment),
            is_settled=part.group_state == STABLE,
        )
        for member in part.members
    )
    return GroupDetails(group.name, part.group_state, CLASSIC, part.protocol_data, members)


def _consumer_member(member: Any) -> DetailedMember:
    has = _partitions_of(member.assignment)
    return DetailedMember(
        member.member_id,
        member.client_id,
        member.client_host,
        member.instance_id,
        has,
        is_settled=has == _partitions_of(member.target_assignment),
    )


def _partitions_of(assignment: Any) -> tuple[TopicPartition, ...]:
    return tuple(
        sorted(
            TopicPartition(topic.topic_name, partition)
            for topic in assignment.topic_partitions
            for partition in topic.partitions
        )
    )


def _assigned(data: bytes) -> tuple[TopicPartition, ...]:
    """Return the partitions of a classic member, none if it has a protocol of its own."""
    if not data:
        return ()
    try:
        assignment = ConsumerProtocolAssignment.from_client(data)
    except ProtocolError:
        return ()
    return tuple(
        sorted(
            TopicPartition(topic.topic, partition)
            for topic in assignment.assigned_partitions
            for partition in topic.partitions
        )
    )


def _ask(
    group: CoordinatorClient,
    request: DescribeGroupsRequest | ConsumerGroupDescribeRequest,
    response: Any,
    versions: tuple[int, int],
    deadline: float,
) -> Any:
    """Return the part of the group in the answer to `request`."""

    def part(answer: Any) -> Any:
        return part_of({part.group_id: part for part in answer.groups}, group.name)

    answer = group.ask(
        request, response, versions, deadline, lambda answer: int(part(answer).error_code)
    )
    return part(answer)

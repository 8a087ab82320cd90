"""Members and lag of groups, in a form for tests. Used by the `Inspector`, on the loop."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from minibroker.broker.groups.classic.group import ClassicGroup
from minibroker.broker.groups.consumer.embedded_protocol import read_assignment
from minibroker.broker.groups.consumer.group import ConsumerGroup
from minibroker.broker.groups.consumer.member import without_epochs
from minibroker.kafka.errors import ProtocolError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from minibroker.broker.groups.consumer.topics import ImageTopics
    from minibroker.broker.groups.group import Group


class GroupMember(NamedTuple):
    """One member of a group of either protocol."""

    member_id: str
    client_id: str
    instance_id: str | None
    """`group.instance.id` of a static member, None for a dynamic one."""
    partitions: tuple[tuple[str, int], ...]
    """(topic, partition) that the member has now, sorted.

    Empty if the members use a protocol of their own.
    """


def members_of(group: Group, topics: ImageTopics) -> list[GroupMember]:
    """Return the members in the order in which they joined."""
    if isinstance(group, ClassicGroup):
        return [
            GroupMember(
                member.member_id,
                member.client_id,
                member.instance_id,
                _with_names(_read(member.assignment, topics), topics),
            )
            for member in group.members.values()
        ]
    assert isinstance(group, ConsumerGroup)
    return [
        GroupMember(
            member.member_id,
            member.client_id,
            member.instance_id,
            _with_names(without_epochs(member.assigned), topics),
        )
        for member in group.members.values()
    ]


def _read(assignment: bytes, topics: ImageTopics) -> Mapping[bytes, Sequence[int]]:
    try:
        return read_assignment(assignment, topics)[0] if assignment else {}
    except ProtocolError:  # Connect, Schema Registry: a protocol of their own
        return {}


def _with_names(
    partitions_of: Mapping[bytes, Sequence[int]], topics: ImageTopics
) -> tuple[tuple[str, int], ...]:
    pairs = (
        (name, partition)
        for topic_id, partitions in partitions_of.items()
        if (name := topics.name_of(topic_id)) is not None
        for partition in partitions
    )
    return tuple(sorted(pairs))

"""A classic group and its record in `__consumer_offsets`, both ways.

Source: Kafka 4.4, GroupCoordinatorRecordHelpers.newGroupMetadataRecord and
GroupMetadataManager.replay(GroupMetadataKey, …).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from minibroker.broker.groups.classic.group import ClassicGroup, State
from minibroker.broker.groups.classic.member import Member
from minibroker.kafka.protocol.stored.group_metadata import GroupMetadataValue, MemberMetadata

if TYPE_CHECKING:
    from collections.abc import Mapping, MutableMapping

    from minibroker.broker.groups.group import Group


VERSION_WITH_INSTANCE_IDS: Final = 3
"""The first version of a value that says which members are static."""
_VERSIONS_SINCE: Final = ((2, 3, 0, 3), (2, 1, 0, 2), (0, 10, 1, 1))
"""A release of Kafka, and the version of values that its brokers can read."""


def value_version_for(inter_broker_protocol: str) -> int:
    """Return the version of new values that brokers of `inter.broker.protocol.version` can read.

    Source: Kafka 3.9, GroupMetadataManager.groupMetadataValue.
    """
    release = tuple(int(number) for number in re.findall(r"\d+", inter_broker_protocol)[:3])
    for *since, version in _VERSIONS_SINCE:
        if release >= tuple(since[: len(release)]):
            return version
    return 0


def value_of(group: ClassicGroup, assignments: Mapping[str, bytes]) -> GroupMetadataValue:
    """Return the group as it is stored, with these shares (member id → bytes)."""
    return GroupMetadataValue(
        protocol_type=group.protocol_type or "",
        generation=group.generation_id,
        protocol=group.protocol_name,
        leader=group.leader_id,
        current_state_timestamp=group.state_timestamp_ms,
        members=[
            MemberMetadata(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout=member.rebalance_timeout_ms,
                session_timeout=member.session_timeout_ms,
                subscription=member.metadata_of(group.protocol_name),
                assignment=assignments.get(member.member_id, b""),
            )
            for member in group.members.values()
        ],
    )


def group_of(group_id: str, value: GroupMetadataValue) -> ClassicGroup:
    """Return the group that was stored: Stable if it has members, else Empty. Nobody waits in it.

    A member brings only the protocol that its generation chose; with its next join it names all.
    """
    group = ClassicGroup(
        group_id,
        value.current_state_timestamp,
        state=State.STABLE if value.members else State.EMPTY,
        generation_id=value.generation,
        protocol_type=value.protocol_type or None,
        protocol_name=value.protocol,
        leader_id=value.leader,
    )
    for member_value in value.members:
        has_own_timeout = member_value.rebalance_timeout != -1
        member = Member(
            member_value.member_id,
            instance_id=member_value.group_instance_id,
            client_id=member_value.client_id,
            client_host=member_value.client_host,
            rebalance_timeout_ms=(
                member_value.rebalance_timeout if has_own_timeout else member_value.session_timeout
            ),
            session_timeout_ms=member_value.session_timeout,
            protocols=((value.protocol or "", member_value.subscription),),
            assignment=member_value.assignment,
        )
        group.add(member, value.protocol_type)
    group.learn_topics()
    return group


def replay(groups: MutableMapping[str, Group], _kind: int, key: Any, value: Any) -> None:
    """Do what a record of a classic group says: it is so, or it is gone."""
    if value is None:
        groups.pop(key.group, None)
    else:
        groups[key.group] = group_of(key.group, value)

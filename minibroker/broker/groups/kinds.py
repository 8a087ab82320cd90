"""The kinds of groups: one entry each says what the coordinator has to know of it.

The coordinator, its shards and the records of `__consumer_offsets` look here and know no kind by
themselves. A kind's modules are loaded when the first record or member of it is met. To add a kind:
a subclass of `Group`, a module with `replay`, one with `make_members`, and its entry in `KINDS`.
"""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from minibroker.broker.groups.group import CLASSIC, CONSUMER

if TYPE_CHECKING:
    from collections.abc import Callable, MutableMapping

    from minibroker.broker.groups.group import Group

    Replay = Callable[[MutableMapping[str, Group], int, Any, Any], None]
    """(groups, kind of the record, key, value or None): applies one record."""

GROUP_METADATA: Final = 2
CONSUMER_GROUP_METADATA: Final = 3
CONSUMER_GROUP_PARTITION_METADATA: Final = 4
CONSUMER_GROUP_MEMBER_METADATA: Final = 5
CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA: Final = 6
CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER: Final = 7
CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT: Final = 8
CONSUMER_GROUP_REGULAR_EXPRESSION: Final = 16
"""Kinds of records: the int16 that a key begins with."""


class GroupKind(NamedTuple):
    """One kind of groups."""

    name: str
    """`Group.type_name`, and the word of `group.coordinator.rebalance.protocols`."""
    records: dict[int, str]
    """Kind of a record → stem of its two generated classes."""
    replay_module: str
    """Has `replay`, a `Replay`."""
    members_module: str
    """Has `make_members(Surroundings) -> Members`."""

    @property
    def replay(self) -> Replay:
        """Do what one record of this kind says; loads the module."""
        replay: Replay = import_module(self.replay_module).replay
        return replay


KINDS: Final = {
    kind.name: kind
    for kind in (
        GroupKind(
            CLASSIC,
            {GROUP_METADATA: "GroupMetadata"},
            "minibroker.broker.groups.classic.group_value",
            "minibroker.broker.groups.classic.membership",
        ),
        GroupKind(
            CONSUMER,
            {
                CONSUMER_GROUP_METADATA: "ConsumerGroupMetadata",
                CONSUMER_GROUP_PARTITION_METADATA: "ConsumerGroupPartitionMetadata",
                CONSUMER_GROUP_MEMBER_METADATA: "ConsumerGroupMemberMetadata",
                CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA: "ConsumerGroupTargetAssignmentMetadata",
                CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER: "ConsumerGroupTargetAssignmentMember",
                CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT: "ConsumerGroupCurrentMemberAssignment",
                CONSUMER_GROUP_REGULAR_EXPRESSION: "ConsumerGroupRegularExpression",
            },
            "minibroker.broker.groups.consumer.replay",
            "minibroker.broker.groups.consumer.membership",
        ),
    )
}
"""By name."""


@lru_cache
def replay_of(record_kind: int) -> Replay | None:
    """Return what does a record of this kind, None for a kind that no group here has."""
    for kind in KINDS.values():
        if record_kind in kind.records:
            return kind.replay
    return None


@lru_cache
def classes_of(record_kind: int) -> tuple[Any, Any] | None:
    """Return the generated classes of key and value, None for a kind that no group here has."""
    for kind in KINDS.values():
        stem = kind.records.get(record_kind)
        if stem is not None:
            words = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in stem)
            module = import_module(f"minibroker.kafka.protocol.stored.{words[1:]}")
            return getattr(module, f"{stem}Key"), getattr(module, f"{stem}Value")
    return None

"""One member of a consumer group: what it told about itself, and how far it has come.

A member is a value: a step makes another one, a record of it is written, and replaying the record
puts it into the group. `assigned` is what it may read; `revoking` is what it has been asked to give
up and still owns. Both map topic id → partition → the epoch at which the member got it.

    STABLE                  it has its target of its epoch
    UNREVOKED_PARTITIONS    it has to give up partitions before it gets to the next epoch
    UNRELEASED_PARTITIONS   it is at the target's epoch, and others still hold some of its share

Source: Kafka 4.4, ConsumerGroupMember, MemberState; KIP-848.
"""

from __future__ import annotations

from enum import IntEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from minibroker.broker.groups.consumer.assignor import Assignment

    OwnedPartitions = Mapping[bytes, Mapping[int, int]]
    """Topic id → partition → epoch at which the member got it. Never changed."""

JOIN_EPOCH: Final = 0
LEAVE_EPOCH: Final = -1
STATIC_LEAVE_EPOCH: Final = -2
"""A static member leaves for a while: nobody else gets its partitions before its session ends."""


class MemberState(IntEnum):
    """As the record says it."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2
    UNKNOWN = 127
    """Stored by a broker newer than this one."""

    @classmethod
    def _missing_(cls, value: object) -> MemberState:
        return cls.UNKNOWN


class ClassicFacts(NamedTuple):
    """Facts of a member that speaks the classic protocol (JoinGroup, SyncGroup)."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]
    """(assignor, subscription for it), the one it likes best first; at least one."""


NOTHING_OWNED: Final[OwnedPartitions] = MappingProxyType({})


class Member(NamedTuple):
    """See the module. Equal members need no new record."""

    member_id: str
    member_epoch: int = JOIN_EPOCH
    previous_member_epoch: int = -1
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    client_id: str = ""
    client_host: str = ""
    topic_names: frozenset[str] = frozenset()
    topic_regex: str | None = ""
    """RE2 pattern; empty or None: none."""
    assignor_name: str | None = None
    assigned: OwnedPartitions = NOTHING_OWNED
    revoking: OwnedPartitions = NOTHING_OWNED
    classic: ClassicFacts | None = None
    """None: the member speaks the consumer protocol."""

    @property
    def is_classic(self) -> bool:
        """Return whether the member sends JoinGroup, SyncGroup and Heartbeat. Its generation is its
        epoch then.
        """
        return self.classic is not None

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        """Return whether the member has what the target assignment of this epoch gives it."""
        return self.state is MemberState.STABLE and self.member_epoch == assignment_epoch

    def at_epoch(self, member_epoch: int) -> Member:
        """Return the same member in another epoch; the one so far is the previous one then."""
        return self._replace(member_epoch=member_epoch, previous_member_epoch=self.member_epoch)


def with_epoch(assignment: Assignment, epoch: int) -> OwnedPartitions:
    """Return the partitions of an assignment, each as got at `epoch`."""
    return {
        topic_id: dict.fromkeys(partitions, epoch) for topic_id, partitions in assignment.items()
    }


def without_epochs(owned: OwnedPartitions) -> Assignment:
    """Return the partitions alone, ascending."""
    return {topic_id: tuple(sorted(partitions)) for topic_id, partitions in owned.items()}


def holds_only(reported: Mapping[bytes, list[int]] | None, owned: OwnedPartitions) -> bool:
    """Return whether the client reports no partition but those; None: it did not say."""
    if reported is None:
        return False
    return all(
        topic_id in owned and all(partition in owned[topic_id] for partition in partitions)
        for topic_id, partitions in reported.items()
    )

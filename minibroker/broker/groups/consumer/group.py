"""The state of one consumer group: members, epochs, target assignment, who holds which partition.

    Empty ──a member joins──► Assigning ──target computed──► Reconciling ──all have theirs──► Stable
      ▲                          ▲                               │                              │
      └──── the last one left    └───── a member comes, goes or changes, topics change ─────────┘

Three epochs: the group's grows with every change; the assignment's follows when a target was
computed for it; a member's follows when it has what the target gives it. Only `replay.py` changes
this state, from new and from old records alike.

Source: Kafka 4.4, ModernGroup, ConsumerGroup; KIP-848.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, ClassVar, Final

from minibroker.broker.groups.consumer.assignor import NOTHING
from minibroker.broker.groups.consumer.java_order import timeline_order
from minibroker.broker.groups.consumer.records import group_tombstones
from minibroker.broker.groups.consumer.subscriptions import Subscriptions, discount
from minibroker.broker.groups.group import CLASSIC, CONSUMER, Group
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from minibroker.broker.groups.consumer.assignor import Assignment
    from minibroker.broker.groups.consumer.member import Member, OwnedPartitions
    from minibroker.broker.groups.consumer.subscriptions import ResolvedRegex
    from minibroker.broker.groups.group import CommitPartitionValidator, GroupRecord

PROTOCOL_TYPE: Final = "consumer"
FIRST_EPOCH: Final = 1
"""Epoch of a new group, before its first member bumps it."""
NOT_HELD: Final = -1
EPOCH_COMMIT_VERSION: Final = 9
"""OffsetCommit from which a member of the consumer protocol may commit."""


class ConsumerGroup(Group):
    """One group whose members the coordinator assigns. Belongs to the loop's thread."""

    __slots__ = (
        "assignment_epoch",
        "assignment_timestamp_ms",
        "assignor_counts",
        "checked_topics_version",
        "epoch",
        "has_partition_metadata_record",
        "is_resolving",
        "members",
        "metadata_hash",
        "owners",
        "partition_epochs",
        "protocol_counts",
        "regex_counts",
        "resolved_regexes",
        "static_members",
        "subscriptions",
        "target",
    )

    type_name: ClassVar[str] = CONSUMER

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id)
        self.epoch = FIRST_EPOCH
        self.metadata_hash = 0
        """Hash of the subscribed topics' layout, see `topics.py`."""
        self.assignment_epoch = 0
        """Epoch of the target; -1 once the group is being deleted."""
        self.assignment_timestamp_ms = 0
        """When the target was computed, wall clock; 0: not known, or there is none."""
        self.members: dict[str, Member] = {}
        self.static_members: dict[str, str] = {}
        """Instance id → member id."""
        self.target: dict[str, Assignment] = {}
        """Member id → what it shall have."""
        self.owners: dict[bytes, dict[int, str]] = {}
        """Topic id → partition → whose target it is."""
        self.partition_epochs: dict[bytes, dict[int, int]] = {}
        """Topic id → partition → epoch of the member that holds it; nobody: no entry."""
        self.subscriptions = Subscriptions()
        self.regex_counts: Counter[str] = Counter()
        """Pattern → members that subscribe with it."""
        self.resolved_regexes: dict[str, ResolvedRegex] = {}
        self.assignor_counts: Counter[str] = Counter()
        self.protocol_counts: Counter[str] = Counter()
        """Classic assignor → members of the classic protocol that know it."""
        self.has_partition_metadata_record = False
        """A record of Kafka 4.0 is left, which the next epoch removes."""
        self.checked_topics_version = 0
        """`Topics.version` for which `metadata_hash` was last compared; not stored."""
        self.is_resolving = False
        """Its patterns are being looked at; not stored."""

    @property
    def serving_kind(self) -> str:
        """With members it looks after those of the classic protocol itself (the migration of
        KIP-848); without it becomes classic when somebody joins."""
        return CONSUMER if self.members else CLASSIC

    def __str__(self) -> str:
        return (
            f"group {self.group_id} ({self.state_name}, epoch {self.epoch},"
            f" {len(self.members)} members)"
        )

    # Answers that every kind of group gives.

    @property
    def protocol_type(self) -> str | None:
        return PROTOCOL_TYPE

    @property
    def state_name(self) -> str:
        if not self.members:
            return "Empty"
        if self.epoch > self.assignment_epoch:
            return "Assigning"
        if all(member.is_reconciled_to(self.assignment_epoch) for member in self.members.values()):
            return "Stable"
        return "Reconciling"

    @property
    def is_empty(self) -> bool:
        return not self.members

    @property
    def member_count(self) -> int:
        return len(self.members)

    def is_subscribed_to(self, topic: str) -> bool:
        return topic in self.subscriptions

    def validate_offset_commit(
        self,
        member_id: str,
        instance_id: str | None,
        generation_or_epoch: int,
        *,
        is_transactional: bool,
        version: int,
    ) -> CommitPartitionValidator | None:
        epoch = generation_or_epoch
        if epoch < 0 and not self.members:
            return None  # an admin client, or a consumer that assigns itself its partitions
        if is_transactional and epoch == -1 and not member_id and instance_id is None:
            return None  # a producer that did not say whose offsets it commits
        if not member_id:
            raise KafkaError(
                ErrorCode.UNKNOWN_MEMBER_ID,
                f"{self} has members that subscribed; a consumer that uses assign() must not"
                " commit under the same group.id",
            )
        member = self.member(member_id)
        if not is_transactional and not member.is_classic and version < EPOCH_COMMIT_VERSION:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                "OffsetCommit version 9 or above must be used by members using the consumer group"
                " protocol",
            )
        if epoch == member.member_epoch:
            return None
        if epoch > member.member_epoch:
            raise KafkaError(
                _stale_code(member),
                f"commit of member {member_id} at epoch {epoch}: {self} knows it at"
                f" {member.member_epoch}",
            )

        def validate_partition(topic: str, topic_id: bytes, partition: int) -> None:
            held_since = member.assigned.get(topic_id, {}).get(partition)
            if held_since is None:
                held_since = member.revoking.get(topic_id, {}).get(partition)
            if held_since is None or epoch < held_since:
                raise KafkaError(
                    _stale_code(member),
                    f"commit of {topic}-{partition} by member {member_id} at epoch {epoch}:"
                    f" it holds it since {held_since}",
                )

        return validate_partition

    def validate_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        if member_id is None and member_epoch < 0:
            return
        member = self.member(member_id or "")
        if member_epoch != member.member_epoch:
            raise KafkaError(
                _stale_code(member),
                f"fetch of member {member_id} at epoch {member_epoch}: {self} knows it at"
                f" {member.member_epoch}",
            )

    def validate_offset_delete(self) -> None:
        """Always allowed: topics that are read are the caller's to leave out."""

    def validate_delete(self) -> None:
        if self.members:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)

    def tombstones(self) -> list[GroupRecord]:
        return group_tombstones(self.group_id, self.members, self.resolved_regexes)

    def expiration_base_ms(self, commit_timestamp_ms: int) -> int | None:
        return commit_timestamp_ms

    # Questions of the steps.

    def member(self, member_id: str) -> Member:
        """Raises KafkaError UNKNOWN_MEMBER_ID."""
        member = self.members.get(member_id)
        if member is None:
            raise KafkaError(
                ErrorCode.UNKNOWN_MEMBER_ID,
                f"Member {member_id} is not a member of group {self.group_id}.",
            )
        return member

    def static_member(self, instance_id: str | None) -> Member | None:
        """Return the member that is this instance now."""
        if instance_id is None or instance_id not in self.static_members:
            return None
        return self.members[self.static_members[instance_id]]

    def target_of(self, member_id: str, instance_id: str | None = None) -> Assignment:
        """Return the target of a member; a static one inherits that of the member it replaces."""
        if instance_id is not None:
            member_id = self.static_members.get(instance_id, "")
        return self.target.get(member_id, NOTHING)

    def partition_epoch(self, topic_id: bytes, partition: int) -> int:
        """Epoch of the member that holds it, NOT_HELD if nobody does."""
        return self.partition_epochs.get(topic_id, {}).get(partition, NOT_HELD)

    @property
    def classic_member_count(self) -> int:
        """Return how many members speak the classic protocol."""
        return sum(member.is_classic for member in self.members.values())

    def supports_protocols(self, protocol_type: str, names: Iterable[str]) -> bool:
        """Return whether a classic member that knows these assignors may join."""
        if protocol_type != PROTOCOL_TYPE:
            return False
        if not self.members:
            return any(True for _ in names)
        count = self.classic_member_count
        return any(self.protocol_counts[name] == count for name in names)

    def preferred_assignor(
        self, default: str, departing_member: Member | None = None, new_member: Member | None = None
    ) -> str:
        """Return the assignor that most members ask for after a replacement of a member.

        `new_member` takes the place of `departing_member`; either may be None.

        Of two with as many votes it is always the same one: the first of a walk through Kafka's
        table of votes. Kafka 4.4 walks that table for what the group has, and a copy of another
        kind for what it will have, in which the vote that was counted last comes first. So there
        every heartbeat of a member that asks for `range` makes a new epoch. 4.3 did not do that,
        and minibroker does not.
        """
        counts = self.assignor_counts.copy()
        if departing_member is not None and departing_member.assignor_name is not None:
            discount(counts, [departing_member.assignor_name])
        if new_member is not None and new_member.assignor_name is not None:
            counts[new_member.assignor_name] += 1
        names = timeline_order(list(counts))
        return max(names, key=counts.__getitem__, default=default)

    def is_waiting_for_others(self, member: Member) -> bool:
        """Return whether another member holds a partition that this one lacks of its target."""
        return any(
            partition not in member.assigned.get(topic_id, ())
            and self.partition_epoch(topic_id, partition) != NOT_HELD
            for topic_id, partitions in self.target_of(member.member_id).items()
            for partition in partitions
        )

    # Changes: `replay.py` only.

    def put_member(self, member: Member) -> None:
        """Add or replace a member and everything that is counted of it."""
        old = self.members.get(member.member_id)
        if old is not None:
            self._discount(old)
        self.members[member.member_id] = member
        self.subscriptions.add_names(member.topic_names)
        if member.topic_regex:
            self.regex_counts[member.topic_regex] += 1
        if member.assignor_name is not None:
            self.assignor_counts[member.assignor_name] += 1
        if member.classic is not None:
            self.protocol_counts.update(name for name, _ in member.classic.protocols)
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id
        self._hold(member.assigned, member.member_epoch)
        self._hold(member.revoking, member.member_epoch)

    def remove_member(self, member_id: str) -> None:
        """Forget a member; its target has its own record."""
        member = self.members.pop(member_id, None)
        if member is not None:
            self._discount(member)

    def _discount(self, member: Member) -> None:
        self.subscriptions.drop_names(member.topic_names)
        if member.topic_regex:
            discount(self.regex_counts, [member.topic_regex])
        if member.assignor_name is not None:
            discount(self.assignor_counts, [member.assignor_name])
        if member.classic is not None:
            discount(self.protocol_counts, [name for name, _ in member.classic.protocols])
        if (
            member.instance_id is not None
            and self.static_members.get(member.instance_id) == member.member_id
        ):
            del self.static_members[member.instance_id]
        self._release(member.assigned, member.member_epoch)
        self._release(member.revoking, member.member_epoch)

    def _hold(self, owned: OwnedPartitions, epoch: int) -> None:
        for topic_id, partitions in owned.items():
            epochs = self.partition_epochs.setdefault(topic_id, {})
            for partition in partitions:
                # While a log is replayed an older owner may still be there: the newer epoch counts.
                epochs[partition] = max(epoch, epochs.get(partition, epoch))

    def _release(self, owned: OwnedPartitions, epoch: int) -> None:
        for topic_id, partitions in owned.items():
            epochs = self.partition_epochs.get(topic_id, {})
            for partition in partitions:
                if epochs.get(partition) == epoch:
                    del epochs[partition]
            if not epochs:
                self.partition_epochs.pop(topic_id, None)

    def put_target(self, member_id: str, assignment: Assignment | None) -> None:
        """Set what a member shall have; None: it is forgotten."""
        old = self.target.get(member_id, NOTHING)
        for topic_id, partitions in old.items():
            owners = self.owners.get(topic_id, {})
            for partition in partitions:
                # The new owner's record may have come first.
                if owners.get(partition) == member_id:
                    del owners[partition]
            if not owners:
                self.owners.pop(topic_id, None)
        if assignment is None:
            self.target.pop(member_id, None)
            return
        self.target[member_id] = assignment
        for topic_id, partitions in assignment.items():
            owners = self.owners.setdefault(topic_id, {})
            owners.update(dict.fromkeys(partitions, member_id))

    def put_regex(self, regex: str, resolution: ResolvedRegex | None) -> None:
        """Set what a pattern matches; None: it is forgotten."""
        old = self.resolved_regexes.pop(regex, None)
        if old is not None:
            self.subscriptions.drop_matches(old.topics)
        if resolution is not None:
            self.resolved_regexes[regex] = resolution
            self.subscriptions.add_matches(resolution.topics)

    def topics_of(self, member: Member) -> frozenset[str]:
        """Return everything that a member subscribes to; a pattern not yet resolved matches
        nothing.
        """
        resolution = self.resolved_regexes.get(member.topic_regex) if member.topic_regex else None
        return member.topic_names | resolution.topics if resolution else member.topic_names


def _stale_code(member: Member) -> ErrorCode:
    if member.is_classic:
        return ErrorCode.ILLEGAL_GENERATION
    return ErrorCode.STALE_MEMBER_EPOCH

"""The base of `ClassicGroup` and `ConsumerGroup`: the operations that all kinds of groups have.

A group lives in the `GroupShard` of its `__consumer_offsets` partition (`shard.groups`, by id). The
offset APIs, ListGroups and DeleteGroups meet it only through this class; membership is the kind's
own matter (`classic/`, `consumer/`). A group that only stores offsets is a classic group in state
Empty without a protocol type, as in Kafka.

Source: Kafka 4.4, org.apache.kafka.coordinator.group.Group.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Callable

    GroupRecord = tuple[bytes, bytes | None]
    """One record of `__consumer_offsets`: key and value as stored; value None is a tombstone."""

    CommitPartitionValidator = Callable[[str, bytes, int], None]
    """(topic, topic id, partition): raises KafkaError where this member may not commit."""

CLASSIC = "classic"
CONSUMER = "consumer"


class Group:
    """Base class; every method is the kind's to define. Belongs to the loop's thread."""

    __slots__ = ("group_id",)

    type_name: ClassVar[str]
    """A name of `kinds.KINDS`, as ListGroups shows it."""

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id

    @property
    def serving_kind(self) -> str:
        """Return the kind that answers JoinGroup, SyncGroup, Heartbeat and LeaveGroup for this
        group.
        """
        raise NotImplementedError

    @property
    def protocol_type(self) -> str | None:
        """`consumer` for consumers, `connect` for Connect, …; None while nobody ever joined."""
        raise NotImplementedError

    @property
    def state_name(self) -> str:
        """Kafka's name of the state: Empty, PreparingRebalance, Stable, Assigning, …"""
        raise NotImplementedError

    @property
    def is_empty(self) -> bool:
        """Return whether the group is in state Empty: it has no member."""
        raise NotImplementedError

    @property
    def member_count(self) -> int:
        """Return the number of members, those with a member id but no join yet not counted."""
        raise NotImplementedError

    def is_subscribed_to(self, topic: str) -> bool:
        """Return whether its members read `topic` now.

        Then the offsets of the topic neither expire nor are deleted.
        A group that uses the consumer protocol but cannot be understood counts as subscribed to
        everything, any other group as subscribed to nothing.
        """
        raise NotImplementedError

    def validate_offset_commit(
        self,
        member_id: str,
        instance_id: str | None,
        generation_or_epoch: int,
        *,
        is_transactional: bool,
        version: int,
    ) -> CommitPartitionValidator | None:
        """Accept or refuse a commit. Return a validator for each partition, None: all are accepted.

        `generation_or_epoch` is -1 and `member_id` "" for a consumer that manages its partitions
        itself. Raises KafkaError: UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION, FENCED_INSTANCE_ID,
        REBALANCE_IN_PROGRESS, STALE_MEMBER_EPOCH, COORDINATOR_NOT_AVAILABLE.
        """
        raise NotImplementedError

    def validate_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Raises KafkaError when this member may not read the offsets (v9+; None: nobody's)."""
        raise NotImplementedError

    def validate_offset_delete(self) -> None:
        """Raises KafkaError when no offset of the group may be deleted (NON_EMPTY_GROUP)."""
        raise NotImplementedError

    def validate_delete(self) -> None:
        """Raises KafkaError when the group may not be deleted (NON_EMPTY_GROUP)."""
        raise NotImplementedError

    def tombstones(self) -> list[GroupRecord]:
        """Return the records that delete the group itself; its offsets have their own."""
        raise NotImplementedError

    def expiration_base_ms(self, commit_timestamp_ms: int) -> int | None:
        """Return from when `offsets.retention.minutes` count for an offset committed at this time.

        None: offsets of this group do not expire now. Topics that the group is subscribed to are
        the caller's to leave out. Source: KIP-211, ClassicGroup.offsetExpirationCondition.
        """
        raise NotImplementedError

    def is_in_state(self, states: frozenset[str]) -> bool:
        """Return whether a filter of ListGroups, all lower case, names the state."""
        return self.state_name.lower() in states

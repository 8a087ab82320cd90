"""The role of this broker for one partition: leader, follower or offline. Pure, no clock, no I/O.

Theory of operation. A role is one immutable value. A step takes the role and an event and gives the
next role, or None where the event is refused and the role stays. `PartitionManager` makes the steps
as the metadata image and the disks change; `Partition.role` holds the value.

    Offline (NOT_OPENED, LOG_FAILED) ──come_back──► Follower of nobody
    Follower, Leader ──become_leader, become_follower──► Leader, Follower
    any ──go_offline──► Offline

A partition begins offline, because no log is open yet. A log that could not be opened is tried
again with the next event. A partition in a directory that failed stays offline until the next
start.

Events come in the order of their epochs, and an older one is refused: an image that was read late
must not bring an old leader back. A leader epoch counts leaders. A partition epoch counts changes
of the state below one leader epoch (of the in-sync replicas, say), -1 where none is known.

The in-sync replicas of a leader are itself alone, until a follower proves that it has the log
(`replica_progress`). The view of the metadata is kept apart, in `metadata_isr`.

Source: Kafka Partition.makeLeader, Partition.makeFollower, ReplicaManager.becomeLeaderOrFollower,
HostedPartition.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.broker.cluster.image import NO_LEADER

if TYPE_CHECKING:
    from collections.abc import Sequence

NO_EPOCH: Final = -1
"""No epoch of a leader, or of a partition, is known."""


class OfflineReason(Enum):
    """Why there is no log to serve."""

    NOT_OPENED = "not opened"
    LOG_FAILED = "its log cannot be made or opened"
    DIRECTORY_FAILED = "its log directory failed"
    DELETED = "its log is deleted; nobody finds the partition any more"
    MISSING = "its topic is not in the metadata; its log is kept, and nobody finds the partition"


class Leader(NamedTuple):
    """This broker takes appends and serves clients."""

    epoch: int
    partition_epoch: int
    start_offset: int
    """Log end offset when the epoch began: a follower in sync has at least this."""
    replicas: Sequence[int]
    """Brokers that are to have the partition, this one included; shared with the image."""
    metadata_isr: Sequence[int]
    """In-sync replicas as the metadata have them; shared with the image."""


class Follower(NamedTuple):
    """Another broker leads, or nobody does; this one has a log."""

    epoch: int
    partition_epoch: int
    leader: int
    """Broker id, NO_LEADER when there is none."""


class Offline(NamedTuple):
    """Nothing is served; the epochs are those of the last role."""

    epoch: int
    partition_epoch: int
    reason: OfflineReason


Role = Leader | Follower | Offline

INITIAL: Final = Offline(NO_EPOCH, NO_EPOCH, OfflineReason.NOT_OPENED)


def become_leader(
    role: Role,
    epoch: int,
    partition_epoch: int,
    *,
    end_offset: int,
    replicas: Sequence[int],
    metadata_isr: Sequence[int],
) -> Leader | None:
    """Return the role of the leader in `epoch`, whose log ends at `end_offset`.

    In an epoch that it leads already it began where it began, only the replicas are new. None for
    an event that is older than the role, and while the partition is offline.
    """
    if isinstance(role, Offline) or is_stale(role, epoch, partition_epoch):
        return None
    start_offset = end_offset
    if isinstance(role, Leader) and role.epoch == epoch:
        start_offset = role.start_offset
    return Leader(epoch, partition_epoch, start_offset, replicas, metadata_isr)


def become_follower(role: Role, epoch: int, partition_epoch: int, leader: int) -> Follower | None:
    """Return the role of a follower of `leader` (NO_LEADER: of nobody).

    None for an event that is older than the role, and while the partition is offline.
    """
    if isinstance(role, Offline) or is_stale(role, epoch, partition_epoch):
        return None
    return Follower(epoch, partition_epoch, leader)


def go_offline(role: Role, reason: OfflineReason) -> Offline:
    """Return the role of a partition whose log or directory failed; a failed directory stays so."""
    if isinstance(role, Offline) and role.reason is OfflineReason.DIRECTORY_FAILED:
        return role
    return Offline(role.epoch, role.partition_epoch, reason)


def come_back(role: Role) -> Follower | None:
    """Return the role of a partition whose log is open now: it follows nobody yet.

    None where it is not offline, or where its directory failed.
    """
    if not isinstance(role, Offline) or role.reason is OfflineReason.DIRECTORY_FAILED:
        return None
    return Follower(role.epoch, role.partition_epoch, NO_LEADER)


def is_stale(role: Role, epoch: int, partition_epoch: int) -> bool:
    """Return whether an event with these epochs is older than the role."""
    if epoch != role.epoch:
        return epoch < role.epoch
    return NO_EPOCH < partition_epoch < role.partition_epoch

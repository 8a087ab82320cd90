"""How far the replicas of a partition are, as its leader knows it. Pure: the time is passed in.

A follower tells where its log ends by the offset from which it fetches. From that come the high
watermark (what every replica in sync has) and who is in sync. It tells where its log starts, too:
from that comes the low watermark. All values are immutable, a step gives the next one. Offsets are
exclusive ends, times are milliseconds of the broker's clock.

    fetched ──► ReplicaProgress ──► high_watermark, low_watermark, may_join, out_of_sync

Source: Kafka Replica.updateFetchStateOrThrow, Replica.resetReplicaState,
Partition.maybeIncrementLeaderHW, Partition.effectiveMinIsr, Partition.isFollowerInSync,
Partition.getOutOfSyncReplicas.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.kafka.ids import NO_BROKER_EPOCH

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

UNKNOWN_OFFSET: Final = -1


class ReplicaProgress(NamedTuple):
    """The leader's knowledge of one follower."""

    log_end_offset: int = UNKNOWN_OFFSET
    log_start_offset: int = UNKNOWN_OFFSET
    leader_end_offset: int = UNKNOWN_OFFSET
    """The end of the leader's log at the last fetch."""
    fetch_ms: int = 0
    """When the last fetch came, 0: none in this epoch."""
    caught_up_ms: int = 0
    """The latest time at which it had everything that the leader had then, 0: never."""
    broker_epoch: int = NO_BROKER_EPOCH
    """The registration of the broker that told the offsets; NO_BROKER_EPOCH: not known."""


def progress_at_beginning(now_ms: int, *, in_isr: bool) -> ReplicaProgress:
    """Return the progress of a follower when an epoch of the leader begins, or when the follower
    was started again.

    Followers in the ISR get the whole lag time to show themselves; others count as behind, so that
    they do not hold the high watermark. No offset is known.
    """
    return ReplicaProgress(caught_up_ms=now_ms if in_isr else 0)


def is_of_former_process(progress: ReplicaProgress, broker_epoch: int) -> bool:
    """Return whether the follower told its offsets before its registration with `broker_epoch`.

    A registration that is older than the offsets is news that this broker gets late.
    """
    return NO_BROKER_EPOCH < progress.broker_epoch < broker_epoch


def fetched(
    progress: ReplicaProgress,
    now_ms: int,
    *,
    offset: int,
    log_start_offset: int,
    leader_end_offset: int,
    broker_epoch: int = NO_BROKER_EPOCH,
) -> ReplicaProgress:
    """Return the progress of a follower that fetches from `offset` now.

    It is caught up now if nothing is left to fetch. If it asks for what was new at its last fetch,
    it was caught up then: under a steady load a follower is always a little behind.
    """
    caught_up_ms = progress.caught_up_ms
    if offset >= leader_end_offset:
        caught_up_ms = max(caught_up_ms, now_ms)
    elif offset >= progress.leader_end_offset:
        caught_up_ms = max(caught_up_ms, progress.fetch_ms)
    return ReplicaProgress(
        offset,
        log_start_offset,
        max(leader_end_offset, progress.leader_end_offset),
        now_ms,
        caught_up_ms,
        broker_epoch,
    )


def was_at_end(progress: ReplicaProgress, at_ms: int) -> ReplicaProgress:
    """Return the progress of a follower that asked for the end of the log again at `at_ms`.

    Nothing that it said before the epoch, or before it was started again, counts.
    """
    if progress.log_end_offset == UNKNOWN_OFFSET:
        return progress
    return progress._replace(
        fetch_ms=max(progress.fetch_ms, at_ms), caught_up_ms=max(progress.caught_up_ms, at_ms)
    )


def is_caught_up(
    progress: ReplicaProgress, leader_end_offset: int, now_ms: int, lag_ms_max: int
) -> bool:
    """Return whether a follower has all of the log, or had it at most `lag_ms_max` ms ago.

    `lag_ms_max`: `replica.lag.time.max.ms`.
    """
    if progress.log_end_offset == leader_end_offset:
        return True
    return now_ms - progress.caught_up_ms <= lag_ms_max


def _is_alive(_broker_id: int) -> bool:
    return True


def high_watermark(
    current: int,
    leader_end_offset: int,
    *,
    followers: Mapping[int, ReplicaProgress],
    isr: Collection[int],
    joining: Collection[int] = (),
    isr_size_min: int,
    now_ms: int,
    lag_ms_max: int,
    is_alive: Callable[[int], bool] = _is_alive,
) -> int:
    """Return the high watermark of a leader: the smallest end in the ISR, never below `current`.

    `isr`: as the metadata have it. `joining`: followers that were asked into it and are not
    confirmed; their ends count. A follower outside of the ISR that is alive and caught up counts,
    too: it is about to join, and could not if the high watermark went ahead of it. With fewer than
    `isr_size_min` replicas in `isr` (see `isr_size_min_of`) it stays where it is: one that is not
    confirmed may never be, and the next leader may then be without the records.
    """
    if len(isr) < isr_size_min:
        return current
    lowest = leader_end_offset
    for broker_id, progress in followers.items():
        if progress.log_end_offset < lowest and (
            broker_id in isr
            or broker_id in joining
            or (
                is_alive(broker_id)
                and is_caught_up(progress, leader_end_offset, now_ms, lag_ms_max)
            )
        ):
            lowest = progress.log_end_offset
    return max(current, lowest)


def low_watermark(
    leader_start_offset: int,
    *,
    followers: Mapping[int, ReplicaProgress],
    is_alive: Callable[[int], bool],
) -> int:
    """Return the lowest log start offset of all replicas whose brokers are alive.

    UNKNOWN_OFFSET while one of them has not fetched from this leader. Source: Kafka
    Partition.lowWatermarkIfLeader.
    """
    lowest = leader_start_offset
    for broker_id, progress in followers.items():
        if progress.log_start_offset < lowest and is_alive(broker_id):
            lowest = progress.log_start_offset
    return lowest


def isr_size_min_of(min_insync_replicas: int, replica_count: int) -> int:
    """Return how many replicas have to be in sync: never more than the partition has."""
    return min(min_insync_replicas, replica_count)


def may_join(
    progress: ReplicaProgress, leader_high_watermark: int, epoch_start_offset: int
) -> bool:
    """Return whether a follower may be taken into the ISR.

    It has everything that is committed, and has reached this leader's epoch: between the high
    watermark and the epoch's start may be records that the previous leader committed.
    """
    return progress.log_end_offset >= max(leader_high_watermark, epoch_start_offset)


def out_of_sync(
    leader_id: int,
    *,
    followers: Mapping[int, ReplicaProgress],
    isr: Collection[int],
    leader_end_offset: int,
    now_ms: int,
    lag_ms_max: int,
) -> set[int]:
    """Return the members of the ISR that have to leave it; one that is not known has to."""
    return {
        broker_id
        for broker_id in isr
        if broker_id != leader_id
        and not (
            broker_id in followers
            and is_caught_up(followers[broker_id], leader_end_offset, now_ms, lag_ms_max)
        )
    }

"""The rules by which a follower cuts its log to what its leader has. Pure: no I/O, no clock.

A follower sends with each fetch the epoch of its last record. Where the leader's log parts from
that, the leader answers with the largest epoch up to it that it knows, and where that epoch ends
there (the diverging epoch, KIP-595). The follower cuts its log and asks again, until both agree.

Where the leader has deleted all that the follower has, the two may differ there, and the epochs do
not say so any more. The follower begins anew. Kafka keeps such records below the start of the log,
and a crash that brings an older start back would show them.

Source: Kafka AbstractFetcherThread (getOffsetTruncationState, fetchOffsetAndTruncate);
KIP-101, KIP-279.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from minibroker.broker.storage.epochs import LeaderEpochs

UNKNOWN: Final = -1


def diverged_at(
    epochs: LeaderEpochs,
    log_end_offset: int,
    high_watermark: int,
    *,
    leader_epoch: int,
    leader_end_offset: int,
) -> int:
    """Return the offset to cut a follower's log to, after its leader named where they part.

    `epochs`: of the follower's log. `leader_epoch`: the largest epoch up to the follower's last one
    that the leader knows, -1 for none; `leader_end_offset`: where it ends on the leader, -1 where
    that is not known.
    """
    if leader_end_offset == UNKNOWN:
        # The leader knows none of the follower's epochs: what is committed is the same on both.
        return min(high_watermark, log_end_offset)
    if leader_epoch == UNKNOWN:
        return min(leader_end_offset, log_end_offset)
    epoch, end_offset = epochs.end_offset_for(leader_epoch, log_end_offset)
    if end_offset == UNKNOWN:
        return min(leader_end_offset, log_end_offset)
    if epoch != leader_epoch:
        # The follower has not got this epoch: cut to the one below, and ask again from there.
        return min(end_offset, log_end_offset)
    return min(end_offset, leader_end_offset, log_end_offset)


def may_differ(
    epochs: LeaderEpochs,
    log_start_offset: int,
    log_end_offset: int,
    *,
    leader_epoch: int,
    leader_start_offset: int,
) -> bool:
    """Return whether nothing shows that a follower's log agrees with its leader's, which has
    deleted all that the follower has.

    A record of the leader's own epoch, `leader_epoch`, would show it. Older epochs that end where
    the leader's log starts do not: the leader knows no longer where they ended. Logs of message
    formats without epochs tell nothing either way.
    """
    is_all_deleted = log_start_offset < log_end_offset <= leader_start_offset
    return is_all_deleted and 0 <= epochs.latest_epoch < leader_epoch


class Restart(NamedTuple):
    """The place at which a follower goes on, after its offset was out of its leader's range."""

    offset: int
    is_cut: bool
    """Cut the log to `offset`."""
    begins_anew: bool
    """Remove everything, begin the log at `offset`."""


def out_of_range(log_end_offset: int, leader_start_offset: int, leader_end_offset: int) -> Restart:
    """Return where to go on, given the ends of the leader's log.

    The leader's log ends before the follower's after an unclean election: the follower cuts its
    log. It starts behind the follower's end where the leader has deleted what the follower misses:
    the follower begins anew there.
    """
    if leader_end_offset < log_end_offset:
        return Restart(leader_end_offset, is_cut=True, begins_anew=False)
    if leader_start_offset > log_end_offset:
        return Restart(leader_start_offset, is_cut=False, begins_anew=True)
    return Restart(log_end_offset, is_cut=False, begins_anew=False)

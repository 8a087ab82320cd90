"""One partition as it was when its leader was asked for more of it: a part of a Fetch request."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from minibroker.broker.partitions.role import Follower
from minibroker.kafka.protocol.messages.fetch import FetchPartition

if TYPE_CHECKING:
    from minibroker.broker.partitions.partition import Partition


class Asked(NamedTuple):
    """Equal where the leader needs not be told again."""

    partition: Partition
    topic_id: bytes
    leader_epoch: int
    offset: int
    """End of its log: what came since then makes the answer worthless."""
    last_epoch: int
    """Leader epoch of its last record, -1 where it has none."""
    log_start_offset: int

    @property
    def is_as_before(self) -> bool:
        """Return whether the answer still fits: the same role, the same end of the log."""
        role = self.partition.role
        return (
            isinstance(role, Follower)
            and role.epoch == self.leader_epoch
            and self.partition.log_end_offset == self.offset
        )

    def to_message(self, index: int, bytes_max: int) -> FetchPartition:
        """Return the part of the request; at most `bytes_max` bytes are wanted."""
        return FetchPartition(
            partition=index,
            current_leader_epoch=self.leader_epoch,
            fetch_offset=self.offset,
            last_fetched_epoch=self.last_epoch,
            log_start_offset=self.log_start_offset,
            partition_max_bytes=bytes_max,
        )


def asked_of(partition: Partition, role: Follower) -> Asked:
    """Return how a follower asks for what it misses."""
    return Asked(
        partition,
        partition.topic_id,
        role.epoch,
        partition.log_end_offset,
        partition.log.epochs.history.latest_epoch,
        partition.log_start_offset,
    )

"""The fetch session that a leader keeps for this broker (KIP-227), as the follower knows it. Pure.

The leader remembers the positions, so a request names only the partitions that changed since.

    request: new or changed positions, removals ──► leader ──► answer: on_answer, on_lost

| before the answer                   | after it                                           |
|-------------------------------------|----------------------------------------------------|
| full, answer with a session id      | incremental, epoch 1                               |
| full, answer without an id          | full: the leader has no room for a session         |
| incremental, answer with an id      | incremental, the next epoch                        |
| incremental, answer without an id   | full: the leader ended the session                 |
| FETCH_SESSION_ID_NOT_FOUND          | full, with no session to end                       |
| another error, or no answer at all  | full, which also ends the session that there may be |

Source: KIP-227; Kafka FetchSessionHandler, FetchMetadata.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.broker.partitions.fetch_session import INITIAL_EPOCH, NO_SESSION, next_epoch
from minibroker.broker.partitions.role import Follower
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.protocol.messages.fetch import FetchPartition

if TYPE_CHECKING:
    from collections.abc import Iterable

    from minibroker.broker.partitions.partition import Partition
    from minibroker.kafka.ids import TopicPartition


class FollowerPosition(NamedTuple):
    """A partition as it was when its leader was asked for more: a part of a Fetch request.

    The leader needs no new request for an equal position.
    """

    partition: Partition
    topic_id: bytes
    leader_epoch: int
    offset: int
    """End of its log; an append since then makes the answer worthless."""
    last_epoch: int
    """Leader epoch of its last record, -1 where it has none."""
    log_start_offset: int

    @property
    def is_unchanged(self) -> bool:
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


def position_of(partition: Partition, role: Follower) -> FollowerPosition:
    """Return the position from which a follower fetches now."""
    return FollowerPosition(
        partition,
        partition.topic_id,
        role.epoch,
        partition.log_end_offset,
        partition.log.epochs.history.latest_epoch,
        partition.log_start_offset,
    )


SESSION_ERRORS: Final = frozenset(
    (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH)
)
"""After these the same is asked again at once, in a full request."""


class LeaderSession:
    """Owned by the loop, as part of a fetcher."""

    __slots__ = ("epoch", "has_room", "id", "positions", "removals")

    def __init__(self) -> None:
        self.id = NO_SESSION
        self.epoch = INITIAL_EPOCH
        self.positions: dict[TopicPartition, FollowerPosition] = {}
        """The partitions as the leader knows them, once it has the request under way."""
        self.removals: dict[tuple[bytes, TopicPartition], None] = {}
        """Topic id and name of the partitions that the next request removes, in this order."""
        self.has_room = True
        """False: the leader's last answer to a full request gave no session."""

    @property
    def is_full(self) -> bool:
        """Return whether the next request has to name every partition."""
        return self.epoch == INITIAL_EPOCH

    @property
    def has_a_request(self) -> bool:
        """Return whether there is a partition to ask for, or to remove."""
        return bool(self.positions) or (bool(self.removals) and not self.is_full)

    def tell(self, name: TopicPartition, position: FollowerPosition) -> bool:
        """Ask for a partition from now on; return whether the next request has to name it."""
        old_position = self.positions.get(name)
        if old_position == position:
            return False
        if old_position is not None and old_position.topic_id != position.topic_id:
            self.forget(name)
        self.positions[name] = position
        self.removals.pop((position.topic_id, name), None)
        return True

    def forget(self, name: TopicPartition) -> None:
        """Remove a partition from the session; do nothing where it is not in."""
        position = self.positions.pop(name, None)
        if position is not None:
            self.removals[position.topic_id, name] = None

    def take_removals(self) -> list[tuple[bytes, TopicPartition]]:
        """Return topic id and name of the partitions that the request removes; a full request
        removes none.
        """
        removals, self.removals = self.removals, {}
        return [] if self.is_full else list(removals)

    def on_answer(self, session_id: int) -> bool:
        """Take note of an answer without a top-level error; return whether the leader still knows
        the positions.
        """
        was_full = self.is_full
        self.id = session_id
        if session_id != NO_SESSION:
            self.epoch = next_epoch(self.epoch)
            self.has_room = True
            return True
        if was_full:
            self.has_room = False
        self._begin_anew()
        return False

    def on_lost(self, code: ErrorCode | None = None) -> Iterable[TopicPartition]:
        """Take note of a top-level error, or of a request without an answer (None). Return the
        partitions that were asked for.
        """
        positions = self.positions
        if code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
            self.id = NO_SESSION
        self._begin_anew()
        return positions

    def _begin_anew(self) -> None:
        """Name everything in the next request; one with an id also ends that session."""
        self.epoch = INITIAL_EPOCH
        self.positions = {}
        self.removals = {}

"""The fetch session that a leader keeps for this broker (KIP-227), as the follower knows it. Pure.

The leader remembers what was asked, so a request names only the partitions that changed since.

    request: told (new or changed), forgotten ──► leader ──► answer: on_answer, on_lost

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

from typing import TYPE_CHECKING, Final

from minibroker.broker.partitions.fetch_session import INITIAL_EPOCH, NO_SESSION, next_epoch
from minibroker.kafka.error_codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterable

    from minibroker.broker.replication.asked import Asked
    from minibroker.kafka.ids import TopicPartition

SESSION_ERRORS: Final = frozenset(
    (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH)
)
"""After these the same is asked again at once, in a full request."""


class LeaderSession:
    """Owned by the loop, as part of a fetcher."""

    __slots__ = ("asked", "epoch", "forgotten", "has_room", "id")

    def __init__(self) -> None:
        self.id = NO_SESSION
        self.epoch = INITIAL_EPOCH
        self.asked: dict[TopicPartition, Asked] = {}
        """The partitions as the leader knows them, once the request under way is there."""
        self.forgotten: dict[tuple[bytes, TopicPartition], None] = {}
        """Topic id and name of what the next request takes back, in this order."""
        self.has_room = True
        """False: the leader's last answer to a full request gave no session."""

    @property
    def is_full(self) -> bool:
        """Return whether the next request has to name every partition."""
        return self.epoch == INITIAL_EPOCH

    @property
    def has_a_request(self) -> bool:
        """Return whether there is anything to ask for, or to take back."""
        return bool(self.asked) or (bool(self.forgotten) and not self.is_full)

    def tell(self, name: TopicPartition, asked: Asked) -> bool:
        """Ask for a partition from now on; return whether the next request has to name it."""
        before = self.asked.get(name)
        if before == asked:
            return False
        if before is not None and before.topic_id != asked.topic_id:
            self.forget(name)
        self.asked[name] = asked
        self.forgotten.pop((asked.topic_id, name), None)
        return True

    def forget(self, name: TopicPartition) -> None:
        """Ask for a partition no more; do nothing where it was not asked for."""
        asked = self.asked.pop(name, None)
        if asked is not None:
            self.forgotten[asked.topic_id, name] = None

    def take_forgotten(self) -> list[tuple[bytes, TopicPartition]]:
        """Return topic id and name of what the request that leaves now takes back; a full one
        begins with nothing.
        """
        forgotten, self.forgotten = self.forgotten, {}
        return [] if self.is_full else list(forgotten)

    def on_answer(self, session_id: int) -> bool:
        """Take note of an answer without a top-level error; return whether the leader still knows
        what was asked.
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
        asked = self.asked
        if code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
            self.id = NO_SESSION
        self._begin_anew()
        return asked

    def _begin_anew(self) -> None:
        """Name everything in the next request; one with an id also ends that session."""
        self.epoch = INITIAL_EPOCH
        self.asked = {}
        self.forgotten = {}

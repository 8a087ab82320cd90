"""What goes into a step of a classic group and what comes out of it: values, nothing is done here.

A step is a function of `joining`, `syncing`, `sessions` or `rebalance`. It is given the group, what
happened and a `Step`; it changes the group and leaves in the step what has to be done: answers,
timers, a record to store. `membership.py` does it. So the whole state machine runs without a
socket, a clock or a log, and its transcripts can be read (tests/scenario).
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.error_codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from minibroker.protocol.stored.group_metadata import GroupMetadataValue

    Protocols = tuple[tuple[str, bytes], ...]
    """What a member can do: (name, metadata), the one it likes best first."""

NEW_MEMBER_JOIN_TIMEOUT_MS: Final = 5 * 60 * 1000
"""So long a new member may wait in its first join; Kafka's classicGroupNewMemberJoinTimeoutMs."""
UNKNOWN_MEMBER_ID: Final = ""
NO_GENERATION: Final = -1
NO_LEADER: Final = ""


class Settings(NamedTuple):
    """The keys of the broker's configuration that the steps go by."""

    initial_rebalance_delay_ms: int
    max_size: int
    min_session_timeout_ms: int
    max_session_timeout_ms: int


class Join(NamedTuple):
    """A JoinGroup request; the bytes of its protocols are kept, so they are no views."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    protocol_type: str
    protocols: Protocols
    session_timeout_ms: int
    rebalance_timeout_ms: int
    is_member_id_required: bool = False
    """v4+: a new dynamic member gets its id first and joins again with it."""
    may_skip_assignment: bool = False
    """v9+: a static leader that came back is told that it leads (KIP-814)."""
    reason: str = ""
    """v8+: why the client joins, for the log (KIP-800)."""


class JoinAnswer(NamedTuple):
    """What one member is told at the end of the join phase, or at once when it is refused."""

    error: ErrorCode
    member_id: str
    generation_id: int = NO_GENERATION
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader_id: str | None = NO_LEADER
    skip_assignment: bool = False
    members: tuple[tuple[str, str | None, bytes], ...] = ()
    """For the leader: (member id, instance id, metadata of the chosen protocol) of everybody."""


class Sync(NamedTuple):
    """A SyncGroup request; only the leader's has assignments, member id → bytes."""

    member_id: str
    instance_id: str | None
    generation_id: int
    protocol_type: str | None
    protocol_name: str | None
    assignments: Mapping[str, bytes]


class SyncAnswer(NamedTuple):
    """A member's share of the assignment, or why there is none."""

    error: ErrorCode
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""


if TYPE_CHECKING:
    JoinWaiter = Callable[[JoinAnswer], None]
    SyncWaiter = Callable[[SyncAnswer], None]
    StoreDone = Callable[["Step", ErrorCode | None], None]


class TimerKind(Enum):
    """What a group waits for; a session is one member's, the others are the group's."""

    SESSION = "session"
    JOIN = "join"
    SYNC = "sync"


class AnswerJoin(NamedTuple):
    """Give a waiting member its answer."""

    waiter: JoinWaiter
    answer: JoinAnswer


class AnswerSync(NamedTuple):
    """Give a waiting member its share."""

    waiter: SyncWaiter
    answer: SyncAnswer


class StartTimer(NamedTuple):
    """Call the step of this kind in `delay_ms`; one that runs already is moved."""

    kind: TimerKind
    member_id: str
    """Empty for the timers of the group."""
    delay_ms: int


class StopTimer(NamedTuple):
    """Forget this timer if it runs."""

    kind: TimerKind
    member_id: str


class Store(NamedTuple):
    """Append this state of the group, then make the step `done` (None: it is written)."""

    value: GroupMetadataValue
    done: StoreDone


if TYPE_CHECKING:
    Effect = AnswerJoin | AnswerSync | StartTimer | StopTimer | Store


class Step:
    """One step under way: what it may look at, and what it wants done, in order."""

    __slots__ = ("effects", "new_member_id", "now_ms", "settings")

    def __init__(
        self, now_ms: int, settings: Settings, new_member_id: Callable[[str], str]
    ) -> None:
        self.now_ms = now_ms
        """Wall clock, milliseconds since the epoch."""
        self.settings = settings
        self.new_member_id = new_member_id
        """From the client's id, or its instance id, to an id that nobody has."""
        self.effects: list[Effect] = []

    def answer_join(self, waiter: JoinWaiter, answer: JoinAnswer) -> None:
        """Answer a JoinGroup request."""
        self.effects.append(AnswerJoin(waiter, answer))

    def answer_sync(self, waiter: SyncWaiter, answer: SyncAnswer) -> None:
        """Answer a SyncGroup request."""
        self.effects.append(AnswerSync(waiter, answer))

    def start_timer(self, kind: TimerKind, delay_ms: int, member_id: str = "") -> None:
        """Start a timer, or move it if it runs."""
        self.effects.append(StartTimer(kind, member_id, delay_ms))

    def stop_timer(self, kind: TimerKind, member_id: str = "") -> None:
        """Stop a timer."""
        self.effects.append(StopTimer(kind, member_id))

    def store(self, value: GroupMetadataValue, done: StoreDone) -> None:
        """Append a record; the last effect of a step."""
        self.effects.append(Store(value, done))

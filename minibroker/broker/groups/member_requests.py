"""Requests of members that speak the classic protocol, and their answers, as values.

Handlers make them of JoinGroup, SyncGroup and LeaveGroup. The managers of members (`members`) take
them, for groups of any kind: a consumer group may have members of the classic protocol too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from minibroker.kafka.error_codes import ErrorCode
    from minibroker.kafka.errors import KafkaError

    Protocols = tuple[tuple[str, bytes], ...]
    """The protocols of a member: (name, metadata), the one it likes best first."""
    MayDescribe = Callable[[str], bool]
    """Tells whether the client of a request may describe a topic."""
    JoinWaiter = Callable[["JoinAnswer"], None]
    SyncWaiter = Callable[["SyncAnswer"], None]
    LeaveWaiter = Callable[["list[ErrorCode] | KafkaError"], None]
    """Gets one code per entry, or the error for which none of them left."""

UNKNOWN_MEMBER_ID: Final = ""
NO_GENERATION: Final = -1
NO_LEADER: Final = ""


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
    """v8+: the client's reason to join, for the log (KIP-800)."""
    may_describe: MayDescribe | None = None
    """For patterns of others in the group, which its join may have looked up; None: everything."""


class JoinAnswer(NamedTuple):
    """The answer to one member: at the end of the join phase, or at once when it is refused."""

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
    """A member's share of the assignment, or the error that it gets instead."""

    error: ErrorCode
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""


class Departure(NamedTuple):
    """One entry of a LeaveGroup request."""

    member_id: str
    """Empty when an admin client removes a static member by its name."""
    instance_id: str | None
    reason: str = ""

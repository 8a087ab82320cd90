"""One member of a classic group. Source: Kafka 4.4, ClassicGroupMember."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

    from minibroker.broker.groups.member_requests import JoinWaiter, Protocols, SyncWaiter


class Member:
    """Plain state; `ClassicGroup` keeps its counts in step with it."""

    __slots__ = (
        "assignment",
        "client_host",
        "client_id",
        "instance_id",
        "is_new",
        "join_waiter",
        "member_id",
        "protocols",
        "rebalance_timeout_ms",
        "session_timeout_ms",
        "sync_waiter",
    )

    def __init__(
        self,
        member_id: str,
        *,
        instance_id: str | None,
        client_id: str,
        client_host: str,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        protocols: Protocols,
        assignment: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.instance_id = instance_id
        """`group.instance.id` of a static member (KIP-345), None for a dynamic one."""
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.session_timeout_ms = session_timeout_ms
        self.protocols = protocols
        self.assignment = assignment
        self.join_waiter: JoinWaiter | None = None
        """Called at the end of the join phase; the connection may be gone by then."""
        self.sync_waiter: SyncWaiter | None = None
        self.is_new = False
        """In its first join: it does not know its id yet and cannot send heartbeats."""

    def __repr__(self) -> str:
        static = f", {self.instance_id}" if self.instance_id is not None else ""
        return f"{self.member_id}{static} (client {self.client_id!r} at {self.client_host})"

    @property
    def names(self) -> frozenset[str]:
        """Return the protocols that the member can do; one that is named twice counts once."""
        return frozenset(name for name, _ in self.protocols)

    @property
    def is_alive_without_heartbeat(self) -> bool:
        """Return whether the member waits for the broker, not the broker for the member; new
        members may leave unseen, so they do expire.
        """
        return not self.is_new and (self.join_waiter is not None or self.sync_waiter is not None)

    def metadata_of(self, protocol_name: str | None) -> bytes:
        """Return its metadata for this protocol, empty bytes if it does not support it."""
        for name, metadata in self.protocols:
            if name == protocol_name:
                return metadata
        return b""

    def vote(self, candidates: Collection[str]) -> str:
        """Return the candidate that the member likes best; every candidate is one that it can
        do.
        """
        return next(name for name, _ in self.protocols if name in candidates)

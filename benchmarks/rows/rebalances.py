"""Row `rebalances`: many groups form at once; what that costs the broker.

Every member has a connection of its own and does what a consumer does: join, share out or take its
share, and send heartbeats, by which it learns that it has to join again. A group is settled when
all of its members have a share of one generation.
"""

import selectors
import struct
import time
from typing import NamedTuple

from benchmarks import wire
from benchmarks.rows.groups import make_topic, wait_for_coordinator
from benchmarks.rows.session import RowError, Session

MEMBERS = 5
_JOIN_GROUP, _HEARTBEAT, _SYNC_GROUP = 11, 12, 14
_TIMEOUT_MS = 30_000
_HEARTBEAT_S = 0.1
_PATIENCE_S = 60.0
_AGAIN = frozenset((22, 25, 27))
"""ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID, REBALANCE_IN_PROGRESS: join again."""
_SIZE = struct.Struct(">i")


def measure(session: Session) -> None:
    """All groups of the plan at once; one more group goes first, to warm up."""
    if not session.has_groups:
        session.results.note(session.broker, "rebalances", "not to be had: it has no groups")
        return
    connection = wire.Connection(session.port)
    try:
        make_topic(connection)
        wait_for_coordinator(connection, "bench-warm")
    finally:
        connection.close()
    for number in range(session.plan.repeats + 1):
        groups = [
            f"bench-many-{number}-{group}" for group in range(session.plan.rebalancing_groups)
        ]
        waiting = connect(session.port, groups)
        cpu_before, begun_at = session.child.cpu_seconds(), time.perf_counter()
        settle(waiting)
        if number:
            session.add("rebalances", (time.perf_counter() - begun_at) * 1000)
            session.add("rebalances_cpu", (session.child.cpu_seconds() - cpu_before) * 1000)


class Joined(NamedTuple):
    """The fields of a JoinGroup v2 answer."""

    error: int
    generation: int
    is_leader: bool
    member_id: bytes
    members: list[bytes]


def connect(port: int, groups: list[str]) -> dict[str, list["Member"]]:
    """Return the members of each group, connected: whoever is answered has been let in."""
    waiting: dict[str, list[Member]] = {}
    for group in groups:
        waiting[group] = [Member(port, group) for _ in range(MEMBERS)]
        for member in waiting[group]:
            wire.api_versions(member.connection)
    return waiting


def settle(waiting: dict[str, list["Member"]]) -> None:
    """Let every group form, then go away. Raises RowError when one does not settle in time."""
    selector = selectors.DefaultSelector()
    members = [member for own in waiting.values() for member in own]
    try:
        for member in members:
            selector.register(member.connection.socket, selectors.EVENT_READ, member)
        for member in members:
            member.join()
        deadline = time.perf_counter() + _PATIENCE_S
        while waiting:
            now = time.perf_counter()
            if now > deadline:
                raise RowError(f"{len(waiting)} groups did not settle in {_PATIENCE_S:g} s")
            for key, _ in selector.select(_HEARTBEAT_S / 4):
                key.data.on_readable()
            for group in [group for group, own in waiting.items() if _is_settled(own)]:
                del waiting[group]
            for own in waiting.values():
                for member in own:
                    member.heartbeat_if_due(now)
    finally:
        for member in members:
            member.connection.close()
        selector.close()


def _is_settled(members: list["Member"]) -> bool:
    generation = members[0].shared_generation
    return generation > 0 and all(
        member.shared_generation == generation and member.member_count in (0, MEMBERS)
        for member in members
    )


class Member:
    """One consumer of one group."""

    def __init__(self, port: int, group: str) -> None:
        self.connection = wire.Connection(port)
        self.shared_generation = -1
        """Generation of its share, -1 while it joins."""
        self.member_count = 0
        """Number of members in the leader's answer; 0 for the others."""
        self._group = wire.string(group)
        self._member_id = b""
        self._generation = -1
        self._api_key = 0
        """The key of the request on its way, 0: none."""
        self._next_heartbeat_s = 0.0
        self._received = bytearray()

    def join(self) -> None:
        """Join, with its id if it has one."""
        self.shared_generation = -1
        body = self._group + struct.pack(">ii", _TIMEOUT_MS, _TIMEOUT_MS) + self._id()
        body += wire.string("consumer") + struct.pack(">i", 1) + wire.string("range")
        self._ask(_JOIN_GROUP, 2, body + struct.pack(">i", 0))

    def heartbeat_if_due(self, now_s: float) -> None:
        """Say that a member with its share lives."""
        if self.shared_generation > 0 and not self._api_key and now_s >= self._next_heartbeat_s:
            self._next_heartbeat_s = now_s + _HEARTBEAT_S
            self._ask(_HEARTBEAT, 1, self._group + self._state())

    def on_readable(self) -> None:
        """Take what came; go on when the answer is whole."""
        got = self.connection.socket.recv(1 << 16)
        if not got:
            raise RowError("the broker closed the connection")
        self._received += got
        if len(self._received) < 4:
            return
        (size_bytes,) = _SIZE.unpack_from(self._received)
        if len(self._received) < size_bytes + 4:
            return
        body = bytes(self._received[8:])
        self._received.clear()
        api_key, self._api_key = self._api_key, 0
        if api_key == _JOIN_GROUP:
            self._on_joined(parse_join(body))
        else:
            self._on_answer(api_key, struct.unpack_from(">h", body, 4)[0])

    def _on_joined(self, answer: Joined) -> None:
        if answer.error in _AGAIN:
            self._member_id = b""
            self.join()
            return
        if answer.error:
            raise RowError(f"JoinGroup answered error {answer.error}")
        self._member_id, self._generation = answer.member_id, answer.generation
        self.member_count = len(answer.members) if answer.is_leader else 0
        shares = b"".join(
            _bytes16(member) + struct.pack(">i", 1) + b"x" for member in answer.members
        )
        count = struct.pack(">i", len(answer.members))
        self._ask(_SYNC_GROUP, 1, self._group + self._state() + count + shares)

    def _on_answer(self, api_key: int, error: int) -> None:
        if error in _AGAIN:
            self.join()
        elif error:
            raise RowError(f"API {api_key} answered error {error}")
        else:
            self.shared_generation = self._generation

    def _ask(self, api_key: int, version: int, body: bytes) -> None:
        self._api_key = api_key
        self.connection.socket.sendall(wire.frame(api_key, version, body))

    def _id(self) -> bytes:
        return _bytes16(self._member_id)

    def _state(self) -> bytes:
        return struct.pack(">i", self._generation) + self._id()


def parse_join(body: bytes) -> Joined:
    """Return a JoinGroup v2 answer: throttle time, error, generation, protocol, leader, id,
    members.
    """
    error, generation = struct.unpack_from(">hi", body, 4)
    _, position = _text(body, 10)
    leader, position = _text(body, position)
    member_id, position = _text(body, position)
    (count,) = _SIZE.unpack_from(body, position)
    position += 4
    members = []
    for _ in range(count):
        member, position = _text(body, position)
        (metadata_bytes,) = _SIZE.unpack_from(body, position)
        position += 4 + metadata_bytes
        members.append(member)
    return Joined(error, generation, leader == member_id, member_id, members)


def _text(body: bytes, position: int) -> tuple[bytes, int]:
    (size_bytes,) = struct.unpack_from(">h", body, position)
    end = position + 2 + size_bytes
    return body[position + 2 : end], end


def _bytes16(data: bytes) -> bytes:
    return struct.pack(">h", len(data)) + data

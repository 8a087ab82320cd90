"""Rows `offsets` and `offsets_start`: what committing costs, and starting with much committed.

The client commits one partition's offset a request, as consumers do, without being a member. As in
`raw`, the frames are built before the clock starts and the answers, which have one size, are
checked when it has stopped.
"""

import contextlib
import struct
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from benchmarks import wire
from benchmarks.metrics import IN_FLIGHT
from benchmarks.peers import START_PATIENCE_S, Peer
from benchmarks.results import Results
from benchmarks.rows.session import RowError, Session
from tests.support.processes import free_port

TOPIC = "bench-offsets"
PARTITIONS = 100
STORED_GROUPS = 1_000
_FIND_COORDINATOR, _OFFSET_COMMIT, _OFFSET_FETCH = 10, 8, 9
_RING = 4096
_READ_BYTES = 1 << 16
_CORRELATION_POSITION = 8
_PATIENCE_S = 60.0
_NO_MEMBER = struct.pack(">ihh", -1, 0, -1)
"""Generation, member id, instance id of a consumer that assigns itself its partitions."""


def measure(session: Session) -> None:
    """OffsetCommit at every depth over one connection, and what it costs the broker."""
    if not session.has_groups:
        session.results.note(session.broker, "offsets", "not to be had: it has no groups")
        return
    connection = wire.Connection(session.port)
    try:
        make_topic(connection)
        wait_for_coordinator(connection, "bench-committer")
        client = CommitClient(connection, "bench-committer")
        client.run(max(IN_FLIGHT), session.plan.warm_up_s)
        for _ in range(session.plan.repeats):
            for in_flight in IN_FLIGHT:
                cpu_before = session.child.cpu_seconds()
                count, elapsed_s = client.run(in_flight, session.plan.raw_s)
                cpu_s = session.child.cpu_seconds() - cpu_before
                session.add(f"offsets_{in_flight}", count / elapsed_s)
                session.add(f"offsets_cpu_{in_flight}", cpu_s / count * 1e6)
    finally:
        connection.close()


def measure_start(peer: Peer, scratch: Path, results: Results) -> None:
    """Start a broker that has 100,000 committed offsets, until every group's can be fetched."""
    directory = Path(tempfile.mkdtemp(dir=scratch, prefix=f"{peer.name}-offsets-"))
    port = free_port()
    peer.prepare(directory, port)
    child = peer.launch(directory, port)
    try:
        wire.wait_for_metadata(port, timeout_s=START_PATIENCE_S, check=child.check)
        if not wire.has_groups(port):
            results.note(peer.name, "offsets_start", "not to be had: it has no groups")
            return
        _store(port)
    finally:
        child.stop()
    child = peer.launch(directory, port)
    try:
        wire.wait_for_metadata(port, timeout_s=START_PATIENCE_S, check=child.check)
        answered_at = _wait_for_offsets(port)
    finally:
        child.kill()
    results.add(peer.name, "offsets_start", answered_at - child.started_at)


class CommitClient:
    """Sends one and the same commit again and again, each time under another correlation id."""

    def __init__(self, connection: wire.Connection, group_id: str) -> None:
        self._socket = connection.socket
        template = bytearray(commit_frame(group_id, range(1)))
        self._frame_bytes = len(template)
        ring = bytearray()
        for correlation_id in range(_RING):
            struct.pack_into(">i", template, _CORRELATION_POSITION, correlation_id)
            ring += template
        self._frames = memoryview(ring + ring[: max(IN_FLIGHT) * self._frame_bytes])
        self._answer = connection.ask(bytes(template))
        if any(codes_of(self._answer)):
            raise RowError(f"OffsetCommit answered errors {codes_of(self._answer)}")
        self._answer_bytes = len(self._answer) + 8

    def run(self, in_flight: int, duration_s: float) -> tuple[int, float]:
        """Keep `in_flight` commits on their way; how many, in how long. RowError when refused."""
        begun_at = time.perf_counter()
        deadline = begun_at + duration_s
        answers = bytearray()
        count = answered = 0
        self._send(0, in_flight)
        count = in_flight
        while answered < count:
            got = self._socket.recv(_READ_BYTES)
            if not got:
                raise RowError("the broker closed the connection")
            answers += got
            fresh = len(answers) // self._answer_bytes - answered
            answered += fresh
            if fresh and time.perf_counter() < deadline:
                self._send(count, fresh)
                count += fresh
        elapsed_s = time.perf_counter() - begun_at
        for number in range(answered):
            start = number * self._answer_bytes + 8
            if answers[start : start + len(self._answer)] != self._answer:
                raise RowError(f"commit {number} was answered {answers[start:][:64].hex()}")
        return answered, elapsed_s

    def _send(self, first: int, count: int) -> None:
        start = first % _RING * self._frame_bytes
        self._socket.sendall(self._frames[start : start + count * self._frame_bytes])


def commit_frame(group_id: str, partitions: range) -> bytes:
    """OffsetCommit v7 of offset 5 for each partition of the topic."""
    entries = b"".join(struct.pack(">iqih", partition, 5, -1, 0) for partition in partitions)
    topic = wire.string(TOPIC) + struct.pack(">i", len(partitions)) + entries
    body = wire.string(group_id) + _NO_MEMBER + struct.pack(">i", 1) + topic
    return wire.frame(_OFFSET_COMMIT, 7, body)


def codes_of(answer: bytes) -> list[int]:
    """Return the error code of each partition of an OffsetCommit v7 answer for the topic."""
    position = 4 + 4 + 2 + len(TOPIC) + 4
    return [code for _, code in struct.iter_unpack(">ih", answer[position:])]


def make_topic(connection: wire.Connection) -> None:
    """Create the topic, unless an earlier repeat did."""
    with contextlib.suppress(wire.WireError):
        wire.create_topic(connection, TOPIC, PARTITIONS)


def wait_for_coordinator(connection: wire.Connection, group_id: str) -> None:
    """Ask for the coordinator, then commit until it takes it."""
    _until_zero(
        lambda: struct.unpack_from(
            ">h", connection.ask(wire.frame(_FIND_COORDINATOR, 0, wire.string(group_id)))
        )[0],
        f"a coordinator of {group_id}",
    )
    request = commit_frame(group_id, range(PARTITIONS))
    _until_zero(lambda: max(codes_of(connection.ask(request))), f"commits of {group_id}")


def _store(port: int) -> None:
    connection = wire.Connection(port)
    try:
        make_topic(connection)
        for number in range(STORED_GROUPS):
            wait_for_coordinator(connection, _group(number))
    finally:
        connection.close()


def _wait_for_offsets(port: int) -> float:
    """Fetch an offset of every group; the `time.perf_counter` when the last was there."""
    connection = wire.Connection(port)
    first = struct.pack(">i", 1) + wire.string(TOPIC) + struct.pack(">ii", 1, 0)
    try:
        for number in range(STORED_GROUPS):
            request = wire.frame(_OFFSET_FETCH, 5, wire.string(_group(number)) + first)
            _until_zero(partial(_fetch_error, connection, request), f"offsets of {_group(number)}")
        return time.perf_counter()
    finally:
        connection.close()


def _fetch_error(connection: wire.Connection, request: bytes) -> int:
    """Return the group's error code, the last two bytes of an OffsetFetch v5 answer."""
    (code,) = struct.unpack(">h", connection.ask(request)[-2:])
    return int(code)


def _group(number: int) -> str:
    return f"bench-group-{number}"


def _until_zero(ask: Callable[[], int], action: str) -> None:
    """Ask until the answer is 0, an error code that is none. Raises RowError in the end."""
    deadline = time.perf_counter() + _PATIENCE_S
    while code := ask():
        if time.perf_counter() > deadline:
            raise RowError(f"{action}: error {code} for {_PATIENCE_S:g} s")
        time.sleep(0.001)

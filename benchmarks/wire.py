"""Just enough of Kafka's protocol to send any broker the same bytes, without minibroker's codec.

The versions are those that Kafka 3.9, Kafka 4.4 and kfake all answer: ApiVersions 0, Metadata 4,
CreateTopics 4, DeleteTopics 3, Produce 9.
"""

import socket
import struct
import time
from collections.abc import Callable

import crc32c

PRODUCE, METADATA, API_VERSIONS, CREATE_TOPICS, DELETE_TOPICS = 0, 3, 18, 19, 20
FIND_COORDINATOR, JOIN_GROUP = 10, 11
_CLIENT_ID = b"bench"
_REQUEST_TIMEOUT_MS = 30_000
_BATCH_AFTER_CRC = struct.Struct(">hiqqqhii")


class WireError(Exception):
    """A broker closed the connection, was silent too long or answered an error."""


class Connection:
    """One blocking connection for one request at a time."""

    def __init__(self, port: int, *, timeout_s: float = 30.0) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout_s)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, frame: bytes) -> bytes:
        """Send one frame, return the answer's body: after the size and the correlation id."""
        self.socket.sendall(frame)
        return self.receive()

    def receive(self) -> bytes:
        """Return the body of the next answer."""
        (size_bytes,) = struct.unpack(">i", self._read(4))
        return self._read(size_bytes)[4:]

    def close(self) -> None:
        self.socket.close()

    def _read(self, size_bytes: int) -> bytes:
        parts = bytearray()
        while len(parts) < size_bytes:
            part = self.socket.recv(size_bytes - len(parts))
            if not part:
                raise WireError("the broker closed the connection")
            parts += part
        return bytes(parts)


def frame(api_key: int, version: int, body: bytes, *, flexible: bool = False) -> bytes:
    """One request with its 4-byte size in front; the correlation id, at byte 8, is zero."""
    header = struct.pack(">hhih", api_key, version, 0, len(_CLIENT_ID)) + _CLIENT_ID
    if flexible:
        header += b"\0"
    return struct.pack(">i", len(header) + len(body)) + header + body


def api_versions(connection: Connection) -> dict[int, tuple[int, int]]:
    """What the broker advertises: key → (lowest, highest version)."""
    body = connection.ask(frame(API_VERSIONS, 0, b""))
    error, count = struct.unpack_from(">hi", body)
    if error:
        raise WireError(f"ApiVersions answered error {error}")
    triples = struct.iter_unpack(">hhh", body[6 : 6 + 6 * count])
    return {key: (lowest, highest) for key, lowest, highest in triples}


def has_groups(port: int) -> bool:
    """Whether the broker on `port` serves consumer groups."""
    connection = Connection(port)
    try:
        return {FIND_COORDINATOR, JOIN_GROUP} <= api_versions(connection).keys()
    finally:
        connection.close()


def wait_for_metadata(
    port: int, *, timeout_s: float, check: Callable[[], None] = lambda: None
) -> float:
    """Ask until a Metadata answer names a broker; returns the `time.perf_counter` of that answer.

    A refused connection is tried again after 1 ms, so the answer's time is exact to that. `check`
    is called between tries; what it raises ends the wait. Raises WireError when the time is over.
    """
    request = frame(METADATA, 4, struct.pack(">ib", 0, 0))
    deadline = time.perf_counter() + timeout_s
    while time.perf_counter() < deadline:
        try:
            connection = Connection(port, timeout_s=timeout_s)
            try:
                _, broker_count = struct.unpack_from(">ii", connection.ask(request))
            finally:
                connection.close()
        except (ConnectionError, WireError):
            broker_count = 0
        if broker_count:
            return time.perf_counter()
        check()
        _pause(1)
    raise WireError(f"no Metadata answer from port {port} within {timeout_s:g} s")


def wait_for_listener(
    port: int, *, timeout_s: float, check: Callable[[], None] = lambda: None
) -> None:
    """Wait until something accepts connections on `port`; `check` as in `wait_for_metadata`."""
    deadline = time.perf_counter() + timeout_s
    while time.perf_counter() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), timeout_s).close()
        except ConnectionError:
            check()
            _pause(10)
        else:
            return
    raise WireError(f"nothing listens on port {port} after {timeout_s:g} s")


def create_topic(connection: Connection, name: str) -> None:
    """One partition, one replica, defaults otherwise. Raises WireError on any error code."""
    topic = string(name) + struct.pack(">ihii", 1, 1, 0, 0)
    body = struct.pack(">i", 1) + topic + struct.pack(">ib", _REQUEST_TIMEOUT_MS, 0)
    answer = connection.ask(frame(CREATE_TOPICS, 4, body))
    (error,) = struct.unpack_from(">h", answer, 4 + 4 + 2 + len(name))
    if error:
        raise WireError(f"CreateTopics of {name} answered error {error}")


def delete_topic(connection: Connection, name: str) -> None:
    """Delete one topic. Raises WireError on any error code."""
    body = struct.pack(">i", 1) + string(name) + struct.pack(">i", _REQUEST_TIMEOUT_MS)
    answer = connection.ask(frame(DELETE_TOPICS, 3, body))
    (error,) = struct.unpack_from(">h", answer, 4 + 4 + 2 + len(name))
    if error:
        raise WireError(f"DeleteTopics of {name} answered error {error}")


def wait_for_leader(connection: Connection, name: str, *, timeout_s: float = 10.0) -> None:
    """Produce one record until it is taken: a created topic may not have its leader at once."""
    request = produce_frame(name, one_record_batch(b"leader?"))
    deadline = time.perf_counter() + timeout_s
    while time.perf_counter() < deadline:
        error, _ = produce_answer(connection.ask(request), name)
        if not error:
            return
        _pause(10)
    raise WireError(f"no leader for {name} within {timeout_s:g} s")


def one_record_batch(value: bytes) -> bytes:
    """A v2 batch with one record, no key, no idempotence, a timestamp of now."""
    now_ms = time.time_ns() // 1_000_000
    record = b"\0" + varint(0) + varint(0) + varint(-1) + varint(len(value)) + value + varint(0)
    body = _BATCH_AFTER_CRC.pack(0, 0, now_ms, now_ms, -1, -1, -1, 1)
    body += varint(len(record)) + record
    head = struct.pack(">ibI", -1, 2, crc32c.crc32c(body))
    return struct.pack(">qi", 0, len(head) + len(body)) + head + body


def produce_frame(topic: str, batch: bytes, *, acks: int = 1) -> bytes:
    """A Produce v9 request with one batch for partition 0."""
    partition = struct.pack(">i", 0) + unsigned(len(batch) + 1) + batch + b"\0"
    name = topic.encode()
    topics = b"\x02" + unsigned(len(name) + 1) + name + b"\x02" + partition + b"\0"
    body = b"\0" + struct.pack(">hi", acks, _REQUEST_TIMEOUT_MS) + topics + b"\0"
    return frame(PRODUCE, 9, body, flexible=True)


def produce_answer(body: bytes, topic: str) -> tuple[int, int]:
    """Error code and base offset out of the body of a Produce v9 answer to `produce_frame`."""
    error, base_offset = struct.unpack_from(">hq", body, produce_answer_position(topic))
    return error, base_offset


def produce_answer_position(topic: str) -> int:
    """Where in that body the error code stands: after the header's tags, topic and partition."""
    return 1 + 1 + len(unsigned(len(topic) + 1)) + len(topic) + 1 + 4


def _pause(duration_ms: int) -> None:
    time.sleep(duration_ms / 1000)


def string(text: str) -> bytes:
    """Text with its length in front, as messages that are not flexible have it."""
    return struct.pack(">h", len(text)) + text.encode()


def varint(value: int) -> bytes:
    """A signed number as records have it: zigzag, 7 bits a byte."""
    return unsigned((value << 1) ^ (value >> 63))


def unsigned(value: int) -> bytes:
    """An unsigned number, 7 bits a byte: compact lengths."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)

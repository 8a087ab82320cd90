"""Just enough of Kafka's protocol to send any broker the same bytes.

Headers and the requests that create and delete topics come from the tests' kit. The bodies that a
row sends by the thousand are written here, once, so that a client costs little beside the broker.
The versions are those that Kafka 3.9, Kafka 4.4 and kfake all answer: ApiVersions 0, Metadata 4,
CreateTopics 4, DeleteTopics 3, Produce 9.
"""

import socket
import struct
import time
from collections.abc import Callable, Mapping
from typing import Any

import crc32c

from tests.support.codec import codec_of
from tests.support.connection import FrameConnection
from tests.support.wire import Answer, request_header

PRODUCE, METADATA, API_VERSIONS = 0, 3, 18
FIND_COORDINATOR, JOIN_GROUP = 10, 11
_CLIENT_ID = "bench"
_REQUEST_TIMEOUT_MS = 120_000
_BATCH_AFTER_CRC = struct.Struct(">hiqqqhii")


class WireError(Exception):
    """A broker was silent too long or answered an error."""


class Connection(FrameConnection):
    """One blocking connection for one request at a time."""

    def __init__(self, port: int, *, timeout_s: float = 30.0) -> None:
        super().__init__("127.0.0.1", port, timeout_s=timeout_s)

    def ask(self, frame: bytes) -> bytes:
        """Send one frame, return the answer's body: after the size and the correlation id."""
        self.send_bytes(frame)
        return self.receive()

    def receive(self) -> bytes:
        """Return the body of the next answer. Raises ConnectionError when the broker closes."""
        return self.receive_frame()[4:]


def frame(api_key: int, version: int, body: bytes, *, flexible: bool = False) -> bytes:
    """Return a request with its 4-byte size in front; the correlation id, at byte 8, is zero."""
    header = request_header(api_key, version, 0, _CLIENT_ID, is_flexible=flexible)
    return struct.pack(">i", len(header) + len(body)) + header + body


def call(connection: Connection, api: str, version: int, /, **fields: Any) -> Answer:
    """Send one request that is given as plain values, and return its answer."""
    codec = codec_of(api)
    is_flexible = codec.is_flexible(version)
    body = codec.encode_request(version, fields)
    answer = connection.ask(frame(codec.api_key, version, body, flexible=is_flexible))
    return codec.decode_response(version, answer[1:] if is_flexible else answer)


def api_versions(connection: Connection) -> dict[int, tuple[int, int]]:
    """Return the broker's advertised versions: key → (lowest, highest version)."""
    body = connection.ask(frame(API_VERSIONS, 0, b""))
    error, count = struct.unpack_from(">hi", body)
    if error:
        raise WireError(f"ApiVersions answered error {error}")
    triples = struct.iter_unpack(">hhh", body[6 : 6 + 6 * count])
    return {key: (lowest, highest) for key, lowest, highest in triples}


def has_groups(port: int) -> bool:
    """Return whether the broker on `port` serves consumer groups."""
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
        except ConnectionError:
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


def create_topic(
    connection: Connection,
    name: str,
    partitions: int = 1,
    configs: Mapping[str, str] | None = None,
    *,
    replicas: int = 1,
) -> None:
    """Create a topic. Raises WireError on any error code."""
    settings = [{"name": key, "value": value} for key, value in (configs or {}).items()]
    topic = {
        "name": name,
        "num_partitions": partitions,
        "replication_factor": replicas,
        "assignments": [],
        "configs": settings,
    }
    answer = call(connection, "create_topics", 4, topics=[topic], timeout_ms=_REQUEST_TIMEOUT_MS)
    error = answer["topics"][0]["error_code"]
    if error:
        raise WireError(f"CreateTopics of {name} answered error {error}")


def create_topic_at(port: int, name: str, *, partitions: int = 1) -> None:
    """Create a topic over a connection of its own. Raises WireError on any error code."""
    connection = Connection(port)
    try:
        create_topic(connection, name, partitions=partitions)
    finally:
        connection.close()


def delete_topic(connection: Connection, name: str) -> None:
    """Delete one topic. Raises WireError on any error code."""
    answer = call(
        connection, "delete_topics", 3, topic_names=[name], timeout_ms=_REQUEST_TIMEOUT_MS
    )
    error = answer["responses"][0]["error_code"]
    if error:
        raise WireError(f"DeleteTopics of {name} answered error {error}")


def wait_for_leader(
    connection: Connection, name: str, *, partitions: int = 1, timeout_s: float = 10.0
) -> None:
    """Produce one record to each of the first `partitions` until all are taken: a created topic may
    not have its leaders at once."""
    request = produce_frame(name, one_record_batch(b"leader?"), partitions=partitions)
    deadline = time.perf_counter() + timeout_s
    while time.perf_counter() < deadline:
        answers = produce_answers(connection.ask(request), name, partitions)
        if not any(error for error, _ in answers):
            return
        _pause(10)
    raise WireError(f"no leader for {name} within {timeout_s:g} s")


def one_record_batch(value: bytes) -> bytes:
    """Return a v2 batch with one record, no key, no idempotence, a timestamp of now."""
    now_ms = time.time_ns() // 1_000_000
    record = b"\0" + varint(0) + varint(0) + varint(-1) + varint(len(value)) + value + varint(0)
    body = _BATCH_AFTER_CRC.pack(0, 0, now_ms, now_ms, -1, -1, -1, 1)
    body += varint(len(record)) + record
    head = struct.pack(">ibI", -1, 2, crc32c.crc32c(body))
    return struct.pack(">qi", 0, len(head) + len(body)) + head + body


def produce_frame(topic: str, batch: bytes, *, acks: int = 1, partitions: int = 1) -> bytes:
    """Return a Produce v9 request with the same batch for each of the first `partitions`."""
    data = unsigned(len(batch) + 1) + batch + b"\0"
    entries = b"".join(struct.pack(">i", index) + data for index in range(partitions))
    topics = b"\x02" + compact(topic) + unsigned(partitions + 1) + entries + b"\0"
    body = b"\0" + struct.pack(">hi", acks, _REQUEST_TIMEOUT_MS) + topics + b"\0"
    return frame(PRODUCE, 9, body, flexible=True)


def produce_answer(body: bytes, topic: str) -> tuple[int, int]:
    """Error code and base offset out of the body of a Produce v9 answer about one partition."""
    (answer,) = produce_answers(body, topic, 1)
    return answer


def produce_answers(body: bytes, topic: str, partitions: int) -> list[tuple[int, int]]:
    """Error code and base offset of each partition, in the answer's order.

    Of answers without messages: what follows a partition that was refused is not found.
    """
    position = produce_answer_position(topic, partitions)
    answers = []
    for number in range(partitions):
        error, base_offset = struct.unpack_from(">hq", body, position + number * PRODUCE_STRIDE)
        answers.append((error, base_offset))
        if error:
            break
    return answers


def pipeline(
    connection: Connection, topic: str, request: bytes, count: int, in_flight: int = 10
) -> int:
    """Send a Produce of one partition `count` times, `in_flight` at once; return `count`. Raises
    WireError.
    """
    request_count = answered = 0
    while answered < count:
        while request_count < count and request_count - answered < in_flight:
            connection.socket.sendall(request)
            request_count += 1
        error, _ = produce_answer(connection.receive(), topic)
        if error:
            raise WireError(f"Produce answered error {error}")
        answered += 1
    return count


PRODUCE_STRIDE = 2 + 8 + 8 + 8 + 1 + 1 + 1 + 4
"""From one partition's error code to the next one's: its numbers, no record errors, no message, no
tags, the next index."""


def produce_answer_position(topic: str, partitions: int = 1) -> int:
    """Return the place of the first error code: after the header's tags, topic, count and index."""
    return 1 + 1 + len(compact(topic)) + len(unsigned(partitions + 1)) + 4


def compact(text: str) -> bytes:
    """Text with its length in front, as flexible messages have it."""
    return unsigned(len(text.encode()) + 1) + text.encode()


def _pause(duration_ms: int) -> None:
    time.sleep(duration_ms / 1000)


def string(text: str) -> bytes:
    """Text with its length in front, as messages that are not flexible have it."""
    return struct.pack(">h", len(text)) + text.encode()


def varint(value: int) -> bytes:
    """Return a signed number as records have it: zigzag, 7 bits a byte."""
    return unsigned((value << 1) ^ (value >> 63))


def unsigned(value: int) -> bytes:
    """Return an unsigned number, 7 bits a byte: compact lengths."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)

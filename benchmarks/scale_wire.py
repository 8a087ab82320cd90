"""More of the protocol than `wire` has, for the rows of scale: settings, times.

The versions are those that Kafka 3.9 and 4.4 both answer: Produce 9, ListOffsets 1, Fetch 4,
IncrementalAlterConfigs 0.
"""

import struct

import crc32c

from benchmarks import wire

FETCH, LIST_OFFSETS, INCREMENTAL_ALTER_CONFIGS = 1, 2, 44
_TOPIC_RESOURCE, _SET = 2, 0
_REQUEST_TIMEOUT_MS = 120_000
_CRC_AT, _CRC_FROM = 17, 21
_TIMES = struct.Struct(">qq")
_TIMES_AT = 27
_SHARED = struct.Struct(">hiqqqhii")


def set_topic_config(connection: wire.Connection, name: str, key: str, value: str) -> None:
    """Raises WireError on any error code."""
    body = struct.pack(">ib", 1, _TOPIC_RESOURCE) + _string(name)
    body += struct.pack(">i", 1) + _string(key) + struct.pack(">b", _SET) + _string(value)
    answer = connection.ask(wire.frame(INCREMENTAL_ALTER_CONFIGS, 0, body + b"\0"))
    (error,) = struct.unpack_from(">h", answer, 8)
    if error:
        raise wire.WireError(f"{key}={value} for {name} answered error {error}")


def produce(connection: wire.Connection, topic: str, partition: int, batch: bytes) -> int:
    """Append one batch with acks=1; its base offset. Raises WireError on any error code."""
    content = struct.pack(">i", partition) + wire.unsigned(len(batch) + 1) + batch + b"\0"
    name = topic.encode()
    topics = b"\x02" + wire.unsigned(len(name) + 1) + name + b"\x02" + content + b"\0"
    body = b"\0" + struct.pack(">hi", 1, _REQUEST_TIMEOUT_MS) + topics + b"\0"
    answer = connection.ask(wire.frame(wire.PRODUCE, 9, body, flexible=True))
    error, base_offset = wire.produce_answer(answer, topic)
    if error:
        raise wire.WireError(f"Produce to {topic}-{partition} answered error {error}")
    return base_offset


def offset_at(connection: wire.Connection, topic: str, timestamp_ms: int) -> tuple[int, int]:
    """(timestamp, offset) of the first record of partition 0 that is not older. Raises
    WireError.
    """
    body = struct.pack(">ii", -1, 1) + _string(topic) + struct.pack(">iiq", 1, 0, timestamp_ms)
    answer = connection.ask(wire.frame(LIST_OFFSETS, 1, body))
    error, timestamp, offset = struct.unpack_from(">hqq", answer, 4 + 2 + len(topic) + 4 + 4)
    if error:
        raise wire.WireError(f"ListOffsets of {topic} answered error {error}")
    return timestamp, offset


def fetch(
    connection: wire.Connection, topic: str, partition: int, offset: int, max_bytes: int
) -> bytes:
    """Return the batches from `offset` on, the last one perhaps cut. Raises WireError on any error
    code.
    """
    body = struct.pack(">iiiibi", -1, 0, 0, max_bytes, 0, 1) + _string(topic)
    body += struct.pack(">iiqi", 1, partition, offset, max_bytes)
    answer = connection.ask(wire.frame(FETCH, 4, body))
    position = 4 + 4 + 2 + len(topic) + 4 + 4
    error, _, _, aborted_count = struct.unpack_from(">hqqi", answer, position)
    if error:
        raise wire.WireError(f"Fetch of {topic}-{partition} answered error {error}")
    return answer[position + 22 + max(aborted_count, 0) * 16 + 4 :]


class Batches:
    """v2 batches of one shape, stamped anew for every use: building them costs next to nothing."""

    def __init__(self, count: int, value_bytes: int, *, key_count: int = 0) -> None:
        """`count` records, 1 ms apart; with `key_count` they have keys 0 … `key_count` - 1."""
        self.count = count
        records = bytearray()
        for index in range(count):
            key = b"" if not key_count else b"%012d" % (index % key_count)
            value = (b"%d|" % index).ljust(value_bytes, b"v")[:value_bytes]
            record = b"\0" + wire.varint(index) + wire.varint(index)
            record += wire.varint(len(key) if key_count else -1) + key
            record += wire.varint(len(value)) + value + b"\0"
            records += wire.varint(len(record)) + record
        head = struct.pack(">qiibI", 0, 49 + len(records), -1, 2, 0)
        self._batch = bytearray(head + _SHARED.pack(0, count - 1, 0, 0, -1, -1, -1, count))
        self._batch += records

    def at(self, timestamp_ms: int) -> bytes:
        """Return the batch whose first record has this time."""
        batch = self._batch
        _TIMES.pack_into(batch, _TIMES_AT, timestamp_ms, timestamp_ms + self.count - 1)
        struct.pack_into(">I", batch, _CRC_AT, crc32c.crc32c(memoryview(batch)[_CRC_FROM:]))
        return bytes(batch)

    @property
    def size_bytes(self) -> int:
        return len(self._batch)


def _string(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()

"""The records of one batch for the tools: all formats, with fields that only a tool needs.

`records.record` and `records.message_set` return a consumer's view. This module also keeps the
sequence of a record, and the CRC of each message of the old formats.

Source: Kafka DefaultRecordBatch, AbstractLegacyRecordBatch, ControlRecordType.
"""

import zlib
from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple

from minibroker.kafka.errors import CorruptionError
from minibroker.kafka.records.batch import (
    CODEC_MASK,
    DELETE_HORIZON_FLAG,
    LEGACY_LENGTH_MIN,
    LENGTH_FIELD_END,
    NO_TIMESTAMP,
    RECORDS_AT,
    BatchHeader,
    add_to_sequence,
)
from minibroker.kafka.records.compression import NONE, decompress
from minibroker.kafka.records.message_set import COVERED_AT, key_and_value, unfold
from minibroker.kafka.records.record import Header, Record, parse_records
from minibroker.tools.log_file import FileBatch

UNFOLDED_BYTES_MAX: Final = 512 << 20
"""Most uncompressed bytes of one batch here."""

CONTROL_TYPES: Final = {
    0: "ABORT",
    1: "COMMIT",
    2: "LEADER_CHANGE",
    3: "SNAPSHOT_HEADER",
    4: "SNAPSHOT_FOOTER",
    5: "KRAFT_VERSION",
    6: "KRAFT_VOTERS",
}
_CONTROL_KEY: Final = Struct(">hh")
_END_MARKER: Final = Struct(">hi")
_MESSAGE: Final = Struct(">qiIbb")
_TIMESTAMP: Final = Struct(">q")
_TIMESTAMP_AT: Final = 18


class LogRecord(NamedTuple):
    """One record. `crc` and `is_valid` are None in format 2, where only the batch has a CRC."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]
    sequence: int
    crc: int | None
    is_valid: bool | None


class ControlRecord(NamedTuple):
    """The key of a control record; `coordinator_epoch` is None if it ends no transaction.

    `value`: the value of a control record of the metadata log.
    """

    type_id: int
    coordinator_epoch: int | None
    value: bytes | None = None

    @property
    def name(self) -> str:
        """Return Kafka's name of the type."""
        return CONTROL_TYPES.get(self.type_id, "UNKNOWN")


def timestamp_type(header: BatchHeader) -> str:
    """Return the type of a batch's timestamps, in Kafka's words."""
    if header.magic == 0:
        return "NoTimestampType"
    return "LogAppendTime" if header.is_append_time else "CreateTime"


def delete_horizon_ms(header: BatchHeader) -> int | None:
    """Return the time in ms after which tombstones and markers may go, None without one."""
    if header.magic >= 2 and header.attributes & DELETE_HORIZON_FLAG:
        return header.base_timestamp
    return None


def records_of(batch: FileBatch) -> Iterator[LogRecord]:
    """Yield the records of `batch`, in order. Raises CorruptionError, OSError."""
    header = batch.header
    if header.magic >= 2:
        for record in v2_records(batch):
            sequence = -1
            if header.base_sequence >= 0:
                sequence = add_to_sequence(header.base_sequence, record.offset - header.base_offset)
            yield LogRecord(*record, sequence, None, None)
    else:
        yield from _old_messages(batch)


def v2_records(batch: FileBatch, unfolded_bytes_max: int = UNFOLDED_BYTES_MAX) -> list[Record]:
    """Return the records of a whole batch of format 2. `unfolded_bytes_max`: the most that it may
    unfold to. Raises CorruptionError, UnfoldsTooFarError.
    """
    header = batch.header
    if header.count == 0:
        return []
    body = batch.content()[RECORDS_AT:]
    if header.codec != NONE:
        body = decompress(header.codec, body, unfolded_bytes_max)
    return parse_records(body, header)


def _old_messages(batch: FileBatch) -> Iterator[LogRecord]:
    header = batch.header
    content = batch.content()
    if header.codec == NONE:
        yield _message(content, 0, len(content), header.max_timestamp)
        return
    _, packed = key_and_value(content, 0, len(content), header.magic)
    if packed is None:
        raise CorruptionError(f"the wrapper at position {batch.position} has no value")
    inner = unfold(header.codec, packed, header.magic, UNFOLDED_BYTES_MAX)
    append_time = header.max_timestamp if header.magic == 1 and header.is_append_time else None
    spans = list(_spans(inner))
    if not spans:
        raise CorruptionError(f"the wrapper at position {batch.position} holds no message")
    base = 0
    if header.magic == 1 and header.base_offset != 0:
        base = header.base_offset - _MESSAGE.unpack_from(inner, spans[-1][0])[0]
        if base < 0:
            raise CorruptionError(
                f"the wrapper at position {batch.position} has offset {header.base_offset}, "
                "less than its last message"
            )
    for start, end in spans:
        message = _message(inner, start, end, append_time)
        yield message._replace(offset=message.offset + base)


def _spans(inner: bytes) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of every whole message in an uncompressed wrapper."""
    position = 0
    while position + LENGTH_FIELD_END <= len(inner):
        length = int.from_bytes(inner[position + 8 : position + 12], "big", signed=True)
        if length < LEGACY_LENGTH_MIN:
            raise CorruptionError(
                f"inner message at byte {position} has length {length}, "
                f"expected at least {LEGACY_LENGTH_MIN}"
            )
        end = position + LENGTH_FIELD_END + length
        if end > len(inner):
            return
        yield position, end
        position = end


def _message(data: bytes, start: int, end: int, timestamp: int | None) -> LogRecord:
    """Return the message from `start` to `end`; `timestamp` None takes the message's own."""
    offset, _, crc, magic, attributes = _MESSAGE.unpack_from(data, start)
    if not 0 <= magic <= 1:
        raise CorruptionError(f"inner message at byte {start} has magic {magic}, expected 0 or 1")
    if start and attributes & CODEC_MASK:
        raise CorruptionError(f"inner message at byte {start} is compressed itself")
    key, value = key_and_value(data, start, end, magic)
    if magic == 0:
        timestamp = NO_TIMESTAMP
    elif timestamp is None:
        timestamp = int(_TIMESTAMP.unpack_from(data, start + _TIMESTAMP_AT)[0])
    is_valid = zlib.crc32(memoryview(data)[start + COVERED_AT : end]) == crc
    return LogRecord(offset, timestamp, key, value, (), -1, crc, is_valid)


def control_of(record: LogRecord) -> ControlRecord:
    """Decode the key of a control record. Raises CorruptionError if it is too short."""
    if record.key is None or len(record.key) < _CONTROL_KEY.size:
        raise CorruptionError(f"the control record at offset {record.offset} has no whole key")
    type_id = _CONTROL_KEY.unpack_from(record.key)[1]
    if type_id not in (0, 1):
        return ControlRecord(type_id, None, record.value)
    if record.value is None or len(record.value) < _END_MARKER.size:
        raise CorruptionError(f"the control record at offset {record.offset} has no whole value")
    return ControlRecord(type_id, _END_MARKER.unpack_from(record.value)[1])

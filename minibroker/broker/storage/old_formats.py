"""May these records be appended? The part of `validator` where a format is old: what was sent is a
message set (formats 0 and 1), or the topic stores one (`message.format.version` before 0.11).

Stands beside `validator` on the way of a Produce request and is imported with the first record that
needs it. The outcome is in the topic's format: a set patched in place where that is enough, else
built anew. `number` gives it offsets.

| sent \\ stored     | format 0            | format 1                     | format 2          |
|-------------------|---------------------|------------------------------|-------------------|
| 0, plain          | in place            | rewritten                    | one batch         |
| 0, compressed     | recompressed        | recompressed                 | recompressed      |
| 1, plain          | rewritten           | in place                     | one batch         |
| 1, compressed     | recompressed        | in place, if the inner       | recompressed      |
|                   |                     | offsets are 0, 1, 2 …        |                   |
| 2                 | rewritten           | rewritten                    | (`validator`)     |

The checks, in their order: per message size (MESSAGE_TOO_LARGE) and CRC (CORRUPT_MESSAGE); all of
one format, and alone when compressed (INVALID_RECORD); idempotent or transactional records in an
old format (UNSUPPORTED_FOR_MESSAGE_FORMAT); inner messages (INVALID_RECORD, CORRUPT_MESSAGE);
keys and timestamps as for format 2; what the target cannot say, as headers in format 1
(UNKNOWN_SERVER_ERROR, as in Kafka); sizes again.

Source: Kafka UnifiedLog.analyzeAndValidateRecords, LogValidator, MemoryRecordsBuilder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from minibroker.broker.storage.record_checks import (
    Checked,
    check_can_be_built,
    check_records,
    facts_of,
    unfolded_bytes_max,
    unfolded_records_max,
)
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import CorruptionError, KafkaError
from minibroker.kafka.records.batch import (
    APPEND_TIME_FLAG,
    NO_TIMESTAMP,
    BatchHeader,
    iterate_headers,
    read_header,
)
from minibroker.kafka.records.builder import build_batch
from minibroker.kafka.records.compression import CODEC_NAMES, NONE, ZSTD
from minibroker.kafka.records.message_set import (
    V0,
    V1,
    MalformedSetError,
    UnreadableSetError,
    assign_offset,
    build_message_set,
    crc_is_valid,
    decode_message,
    set_timestamp,
)
from minibroker.kafka.records.record import Record, TooManyRecordsError
from minibroker.kafka.records.turns import in_turns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from minibroker.broker.storage.record_checks import AppendRules

V2: Final = 2


class Append:
    """The append that a check is for. Constant."""

    __slots__ = ("now_ms", "partition", "rules")

    def __init__(self, rules: AppendRules, now_ms: int, partition: object) -> None:
        """`now_ms`: wall clock. `partition` only names the place in messages."""
        self.rules = rules
        self.now_ms = now_ms
        self.partition = partition


class CheckedSet(Checked):
    """A message set that the topic takes; `header` stands for all messages."""

    __slots__ = ("_positions",)

    def __init__(
        self, records: memoryview, header: BatchHeader, now_ms: int, positions: Sequence[int]
    ) -> None:
        """`positions`: of the messages, in bytes; of the wrapper where they are compressed."""
        super().__init__(records, header, now_ms)
        self._positions = positions

    def number(self, next_offset: int, leader_epoch: int) -> None:
        """Give the messages the offsets from `next_offset` on; a wrapper has that of its last."""
        self.header.base_offset = next_offset
        first = next_offset + self.header.count - len(self._positions)
        for index, position in enumerate(self._positions):
            assign_offset(self.records, position, first + index)


class UnbuiltSet(Checked):
    """Records for a wrapper of format 0, which has their offsets inside: numbering builds it."""

    __slots__ = ("_append", "_codec", "_decoded")

    def __init__(self, decoded: list[Record], codec: int, append: Append) -> None:
        """`decoded`: at least one record. `codec`: of the wrapper."""
        self.now_ms = append.now_ms
        self._decoded = decoded
        self._codec = codec
        self._append = append

    def number(self, next_offset: int, leader_epoch: int) -> None:
        """Build the set with offsets from `next_offset` on. Raises KafkaError."""
        built = _built_set(self._decoded, self._codec, next_offset, self._append)
        self.records, self.header = built.records, built.header
        self.header.base_offset = next_offset


def check_message_set(records: memoryview, append: Append) -> Checked:
    """Check the message set in `records` (writable) and put it into the topic's format.

    Returns the bytes to write and a header for all of them: size and the largest timestamp (-1 in
    format 0), `magic` 2 where they are one batch now. Raises KafkaError as above.
    """
    headers, end = _check_shape(records, append)
    records = records[:end]
    first = headers[0][1]
    rules = append.rules
    codec = NONE
    for _, header in in_turns(headers):
        codec = header.codec or codec
    target = codec if rules.codec is None else rules.codec
    if codec == NONE and target == NONE and first.magic == rules.magic:
        return _check_plain(records, headers, append)
    for _, header in in_turns(headers):
        _check_batch(header, first, append)
    decoded: list[Record] = []
    for position, header in headers:
        inner = _decode(records, position, header, append)
        _check_records(inner, header, append)
        decoded += inner
    is_numbered = all(record.offset == index for index, record in enumerate(in_turns(decoded)))
    if codec == target and first.magic == rules.magic == V1 and is_numbered:
        return _check_wrapper(records, decoded, append)
    return build(decoded, target, append)


def _check_shape(records: memoryview, append: Append) -> tuple[list[tuple[int, BatchHeader]], int]:
    """(position, header) of every whole message, and where the last one ends."""
    partition = append.partition
    headers: list[tuple[int, BatchHeader]] = []
    end = 0
    codec = NONE
    try:
        for position, header in iterate_headers(records):
            if header.magic == V0:
                header.attributes &= ~APPEND_TIME_FLAG  # that bit is format 1's
            size_bytes = header.size_bytes
            if size_bytes > append.rules.max_message_bytes:
                raise _too_large(size_bytes, append)
            if header.magic == V2 or not crc_is_valid(records, position, size_bytes):
                raise KafkaError(*_wrong_crc_or_format(header, partition))
            if header.codec > ZSTD:
                raise KafkaError(
                    ErrorCode.UNKNOWN_SERVER_ERROR,
                    f"codec id of a message for {partition} is {header.codec}",
                )
            codec = header.codec or codec
            headers.append((position, header))
            end = position + size_bytes
    except CorruptionError as error:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, str(error)) from error
    if not headers:
        raise KafkaError(ErrorCode.INVALID_RECORD, "there is no whole message")
    if codec != NONE and len(headers) > 1:
        raise KafkaError(
            ErrorCode.INVALID_RECORD, f"{len(headers)} messages, where one is compressed"
        )
    return headers, end


def _wrong_crc_or_format(header: BatchHeader, partition: object) -> tuple[ErrorCode, str]:
    if header.magic == V2:
        return (
            ErrorCode.INVALID_RECORD,
            f"a batch of format 2 behind messages of an older one for {partition}",
        )
    return (
        ErrorCode.CORRUPT_MESSAGE,
        f"CRC of the message at offset {header.base_offset} for {partition} is wrong",
    )


def _check_batch(header: BatchHeader, first: BatchHeader, append: Append) -> None:
    if header.magic != first.magic:
        raise KafkaError(
            ErrorCode.INVALID_RECORD,
            f"a message of format {header.magic} behind one of format {first.magic} "
            f"for {append.partition}",
        )


def _decode(
    records: memoryview, position: int, header: BatchHeader, append: Append
) -> list[Record]:
    size_bytes_max = unfolded_bytes_max(append.rules)
    try:
        return decode_message(
            records,
            position,
            header=header,
            size_bytes_max=size_bytes_max,
            records_max=unfolded_records_max(header),
            check_inner_crc=True,
        )
    except TooManyRecordsError as excess:
        raise KafkaError(ErrorCode.MESSAGE_TOO_LARGE, f"{append.partition}: {excess}") from excess
    except CorruptionError as error:
        code = ErrorCode.CORRUPT_MESSAGE
        if isinstance(error, MalformedSetError):
            code = ErrorCode.INVALID_RECORD
        elif isinstance(error, UnreadableSetError):
            code = ErrorCode.UNKNOWN_SERVER_ERROR
        raise KafkaError(code, f"{append.partition}: {error}") from error


def _check_records(records: list[Record], header: BatchHeader, append: Append) -> None:
    check_records(facts_of(records), header, append.rules, append.now_ms, append.partition)


def _check_plain(
    records: memoryview, headers: list[tuple[int, BatchHeader]], append: Append
) -> CheckedSet:
    """Check uncompressed messages that already have the topic's format."""
    rules = append.rules
    first = headers[0][1]
    for position, header in headers:
        _check_batch(header, first, append)
        _check_records(_decode(records, position, header, append), header, append)
        if first.magic == V0:
            continue
        if rules.is_append_time:
            _set_time(records, position, header, append.now_ms, is_append_time=True)
        elif header.is_append_time or header.max_timestamp < NO_TIMESTAMP:
            timestamp = max(header.max_timestamp, NO_TIMESTAMP)
            _set_time(records, position, header, timestamp, is_append_time=False)
    largest = max(header.max_timestamp for _, header in in_turns(headers))
    positions = [position for position, _ in headers]
    return _as_set(
        records, append, magic=first.magic, count=len(headers), largest=largest, positions=positions
    )


def _check_wrapper(records: memoryview, decoded: list[Record], append: Append) -> CheckedSet:
    """Check a wrapper of format 1 whose inner offsets are 0, 1, 2 …: its own offset says all."""
    header = read_header(records)
    is_append_time = append.rules.is_append_time
    largest = max(NO_TIMESTAMP, *(record.timestamp for record in in_turns(decoded)))
    timestamp = append.now_ms if is_append_time else largest
    if header.max_timestamp != timestamp or header.is_append_time != is_append_time:
        _set_time(records, 0, header, timestamp, is_append_time=is_append_time)
    return _as_set(records, append, magic=V1, count=len(decoded), largest=timestamp, positions=[0])


def _set_time(
    records: memoryview,
    position: int,
    header: BatchHeader,
    timestamp: int,
    *,
    is_append_time: bool,
) -> None:
    header.max_timestamp = timestamp
    set_timestamp(records, position, header.size_bytes, timestamp, is_append_time=is_append_time)


def build(decoded: list[Record], codec: int, append: Append) -> Checked:
    """Return `decoded` in the topic's format and `codec`, as `check_message_set` does.

    Also where a v2 batch is to be stored in an old format. Raises KafkaError.
    """
    rules = append.rules
    check_can_be_built(decoded, append.partition)
    if rules.magic == V0 and codec != NONE:
        return UnbuiltSet(decoded, codec, append)
    if rules.magic < V2:
        return _built_set(decoded, codec, 0, append)
    batch = build_batch(
        decoded,
        codec=CODEC_NAMES[codec],
        level=rules.level,
        append_time_ms=append.now_ms if rules.is_append_time else None,
    )
    built = memoryview(batch)
    _check_sizes(built, append)
    return Checked(built, read_header(built), append.now_ms)


def _built_set(decoded: list[Record], codec: int, base_offset: int, append: Append) -> CheckedSet:
    """Return `decoded` as a message set of format 0 or 1. Raises KafkaError."""
    rules = append.rules
    append_time = append.now_ms if rules.is_append_time else None
    try:
        message_set = build_message_set(
            decoded,
            magic=rules.magic,
            codec=codec,
            level=rules.level,
            base_offset=base_offset,
            append_time_ms=append_time if rules.magic == V1 else None,
        )
    except ValueError as error:
        raise KafkaError(
            ErrorCode.UNKNOWN_SERVER_ERROR, f"cannot store in {append.partition}: {error}"
        ) from error
    built = memoryview(message_set)
    positions = _check_sizes(built, append)
    largest = append_time
    if largest is None:
        largest = max(record.timestamp for record in in_turns(decoded))
    return _as_set(
        built, append, magic=rules.magic, count=len(decoded), largest=largest, positions=positions
    )


def _check_sizes(built: memoryview, append: Append) -> list[int]:
    """Check sizes again, which conversion and recompression change. Return the positions of the
    messages, in bytes. Raises KafkaError.
    """
    positions = []
    for position, header in in_turns(iterate_headers(built)):
        if header.size_bytes > append.rules.max_message_bytes:
            raise _too_large(header.size_bytes, append)
        positions.append(position)
    _check_segment(built, append)
    return positions


def _check_segment(built: memoryview, append: Append) -> None:
    if len(built) > append.rules.segment_bytes:
        raise KafkaError(
            ErrorCode.RECORD_LIST_TOO_LARGE,
            f"{len(built)} bytes of messages for {append.partition}, "
            f"segment.bytes is {append.rules.segment_bytes}",
        )


def _too_large(size_bytes: int, append: Append) -> KafkaError:
    return KafkaError(
        ErrorCode.MESSAGE_TOO_LARGE,
        f"a message for {append.partition} has {size_bytes} bytes, "
        f"max.message.bytes is {append.rules.max_message_bytes}",
    )


def _as_set(
    records: memoryview,
    append: Append,
    *,
    magic: int,
    count: int,
    largest: int,
    positions: Sequence[int],
) -> CheckedSet:
    """Return `records` with the header that stands for all messages in them."""
    _check_segment(records, append)
    largest = NO_TIMESTAMP if magic == V0 else largest
    attributes = APPEND_TIME_FLAG if append.rules.is_append_time else 0
    header = BatchHeader(
        0,
        len(records),
        -1,
        magic,
        0,
        attributes,
        count - 1,
        largest,
        largest,
        -1,
        -1,
        -1,
        count,
    )
    return CheckedSet(records, header, append.now_ms, positions)

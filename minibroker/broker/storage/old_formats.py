"""May these records be appended? The part of `validator` where a format is old: what was sent is a
message set (formats 0 and 1), or the topic stores one (`message.format.version` before 0.11).

Stands beside `validator` on the way of a Produce request and is imported with the first record that
needs it. What comes out is the topic's format, numbered: a set patched in place where that is
enough, else built anew.

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

from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.broker.storage.record_checks import (
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

if TYPE_CHECKING:
    from minibroker.broker.storage.append_rules import AppendRules

V2: Final = 2


class Request(NamedTuple):
    """One call of `validate`, as handed on."""

    rules: AppendRules
    next_offset: int
    leader_epoch: int
    now_ms: int
    partition: object


def validate_message_set(records: memoryview, request: Request) -> tuple[memoryview, BatchHeader]:
    """Check the message set in `records` (writable) and put it into the topic's format.

    Returns the bytes to write and a header for all of them: offsets, size and the largest timestamp
    (-1 in format 0), `magic` 2 where they are one batch now. Raises KafkaError as above.
    """
    headers, end = _check_shape(records, request)
    records = records[:end]
    first = headers[0][1]
    rules = request.rules
    codec = NONE
    for _, header in headers:
        codec = header.codec or codec
    target = codec if rules.codec is None else rules.codec
    if codec == NONE and target == NONE and first.magic == rules.magic:
        return _number_plain(records, headers, request)
    for _, header in headers:
        _check_batch(header, first, request)
    decoded: list[Record] = []
    for position, header in headers:
        found = _decode(records, position, header, request)
        _check_records(found, header, request)
        decoded += found
    is_numbered = all(record.offset == index for index, record in enumerate(decoded))
    if codec == target and first.magic == rules.magic == V1 and is_numbered:
        return _number_wrapper(records, decoded, request)
    return build(decoded, target, request)


def _check_shape(
    records: memoryview, request: Request
) -> tuple[list[tuple[int, BatchHeader]], int]:
    """(position, header) of every whole message, and where the last one ends."""
    partition = request.partition
    headers: list[tuple[int, BatchHeader]] = []
    end = 0
    codec = NONE
    try:
        for position, header in iterate_headers(records):
            if header.magic == V0:
                header.attributes &= ~APPEND_TIME_FLAG  # that bit is format 1's
            size_bytes = header.size_bytes
            if size_bytes > request.rules.max_message_bytes:
                raise _too_large(size_bytes, request)
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


def _check_batch(header: BatchHeader, first: BatchHeader, request: Request) -> None:
    if header.magic != first.magic:
        raise KafkaError(
            ErrorCode.INVALID_RECORD,
            f"a message of format {header.magic} behind one of format {first.magic} "
            f"for {request.partition}",
        )


def _decode(
    records: memoryview, position: int, header: BatchHeader, request: Request
) -> list[Record]:
    size_bytes_max = unfolded_bytes_max(request.rules)
    try:
        return decode_message(
            records,
            position,
            header=header,
            size_bytes_max=size_bytes_max,
            records_max=unfolded_records_max(header),
            check_inner_crc=True,
        )
    except TooManyRecordsError as error:
        raise KafkaError(ErrorCode.MESSAGE_TOO_LARGE, f"{request.partition}: {error}") from error
    except CorruptionError as error:
        code = ErrorCode.CORRUPT_MESSAGE
        if isinstance(error, MalformedSetError):
            code = ErrorCode.INVALID_RECORD
        elif isinstance(error, UnreadableSetError):
            code = ErrorCode.UNKNOWN_SERVER_ERROR
        raise KafkaError(code, f"{request.partition}: {error}") from error


def _check_records(found: list[Record], header: BatchHeader, request: Request) -> None:
    check_records(facts_of(found), header, request.rules, request.now_ms, request.partition)


def _number_plain(
    records: memoryview, headers: list[tuple[int, BatchHeader]], request: Request
) -> tuple[memoryview, BatchHeader]:
    """Uncompressed messages that already have the topic's format."""
    rules = request.rules
    first = headers[0][1]
    offset = request.next_offset
    for position, header in headers:
        _check_batch(header, first, request)
        _check_records(_decode(records, position, header, request), header, request)
        assign_offset(records, position, offset)
        offset += 1
        if first.magic == V0:
            continue
        if rules.is_append_time:
            _set_time(records, position, header, request.now_ms, is_append_time=True)
        elif header.is_append_time or header.max_timestamp < NO_TIMESTAMP:
            timestamp = max(header.max_timestamp, NO_TIMESTAMP)
            _set_time(records, position, header, timestamp, is_append_time=False)
    largest = max(header.max_timestamp for _, header in headers)
    return _result(records, first.magic, len(headers), largest, request)


def _number_wrapper(
    records: memoryview, decoded: list[Record], request: Request
) -> tuple[memoryview, BatchHeader]:
    """Number a wrapper of format 1 whose inner offsets are 0, 1, 2 …: its own offset says all."""
    header = read_header(records)
    is_append_time = request.rules.is_append_time
    largest = max(NO_TIMESTAMP, *(record.timestamp for record in decoded))
    timestamp = request.now_ms if is_append_time else largest
    if header.max_timestamp != timestamp or header.is_append_time != is_append_time:
        _set_time(records, 0, header, timestamp, is_append_time=is_append_time)
    assign_offset(records, 0, request.next_offset + len(decoded) - 1)
    return _result(records, V1, len(decoded), timestamp, request)


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


def build(decoded: list[Record], codec: int, request: Request) -> tuple[memoryview, BatchHeader]:
    """`decoded` in the topic's format and `codec`, numbered; the result of `validate_message_set`.

    Also where a v2 batch is to be stored in an old format. Raises KafkaError.
    """
    rules = request.rules
    append_time = request.now_ms if rules.is_append_time else None
    check_can_be_built(decoded, request.partition)
    if rules.magic == V2:
        batch = build_batch(
            decoded,
            base_offset=request.next_offset,
            codec=CODEC_NAMES[codec],
            level=rules.level,
            append_time_ms=append_time,
            leader_epoch=request.leader_epoch,
        )
        built = memoryview(batch)
        _check_built(built, request)
        return built, read_header(built)
    try:
        message_set = build_message_set(
            decoded,
            magic=rules.magic,
            codec=codec,
            level=rules.level,
            base_offset=request.next_offset,
            append_time_ms=append_time if rules.magic == V1 else None,
        )
    except ValueError as error:
        raise KafkaError(
            ErrorCode.UNKNOWN_SERVER_ERROR, f"cannot store in {request.partition}: {error}"
        ) from error
    built = memoryview(message_set)
    _check_built(built, request)
    largest = max(record.timestamp for record in decoded) if append_time is None else append_time
    return _result(built, rules.magic, len(decoded), largest, request)


def _check_built(built: memoryview, request: Request) -> None:
    """Sizes again: conversion and recompression change them."""
    for _, header in iterate_headers(built):
        if header.size_bytes > request.rules.max_message_bytes:
            raise _too_large(header.size_bytes, request)
    _check_segment(built, request)


def _check_segment(built: memoryview, request: Request) -> None:
    if len(built) > request.rules.segment_bytes:
        raise KafkaError(
            ErrorCode.RECORD_LIST_TOO_LARGE,
            f"{len(built)} bytes of messages for {request.partition}, "
            f"segment.bytes is {request.rules.segment_bytes}",
        )


def _too_large(size_bytes: int, request: Request) -> KafkaError:
    return KafkaError(
        ErrorCode.MESSAGE_TOO_LARGE,
        f"a message for {request.partition} has {size_bytes} bytes, "
        f"max.message.bytes is {request.rules.max_message_bytes}",
    )


def _result(
    records: memoryview, magic: int, count: int, largest: int, request: Request
) -> tuple[memoryview, BatchHeader]:
    """`records` and the header that stands for all messages in them."""
    _check_segment(records, request)
    largest = NO_TIMESTAMP if magic == V0 else largest
    attributes = APPEND_TIME_FLAG if request.rules.is_append_time else 0
    return records, BatchHeader(
        request.next_offset,
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

"""The checks of one partition's records in a Produce request, and the numbering of the records.

First station of an append, before `producer_state` and the write. Pure: works in the request's own
bytes, patches base offset, leader epoch and (LogAppendTime) the timestamp in place, and returns the
bytes to write. Only a topic with another `compression.type` gets a batch built anew.

The order of checks, and the error of each:

| check                                                    | code                               |
|----------------------------------------------------------|------------------------------------|
| length or magic that no format has                       | CORRUPT_MESSAGE                    |
| no whole batch, several batches                          | INVALID_RECORD                     |
| format 0 or 1, or a topic that stores them               | `old_formats` goes on              |
| base offset is not 0 (clients)                           | INVALID_RECORD                     |
| larger than `max.message.bytes`                          | MESSAGE_TOO_LARGE                  |
| smaller than a header, wrong CRC                         | CORRUPT_MESSAGE                    |
| codec id 5 to 7                                          | UNKNOWN_SERVER_ERROR               |
| count or last offset delta < 1 or 0, or not the same     | INVALID_RECORD                     |
| control batch; producer id without a sequence (clients)  | INVALID_RECORD                     |
| records do not fill the batch                            | INVALID_RECORD                     |
| no key in a compacted topic                              | INVALID_RECORD + record errors     |
| timestamp too far from now, or the broker's type         | INVALID_TIMESTAMP + record errors  |
| larger than `max.message.bytes` after recompression      | MESSAGE_TOO_LARGE                  |
| larger than `segment.bytes`                              | RECORD_LIST_TOO_LARGE              |

The claims of the header are compared with the records (`record_checks`). A wrong largest timestamp
is corrected.

Differs from Kafka in two rare answers: records that unfold to more than 100 MiB are
MESSAGE_TOO_LARGE, and an lz4 frame whose own checksum is wrong is refused, as most consumers cannot
read it.

Source: Kafka UnifiedLog.analyzeAndValidateRecords, LogValidator (3.9 and 4.4); KIP-467, KIP-937.
"""

from __future__ import annotations

from typing import Literal

from minibroker.broker.storage.append_rules import AppendRules
from minibroker.broker.storage.record_checks import (
    BUILT_AT_ONCE_MAX,
    NEWEST_MAGIC,
    check_can_be_built,
    check_contents,
    read_records,
)
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import CorruptionError, KafkaError
from minibroker.kafka.records.batch import (
    APPEND_TIME_FLAG,
    ATTRIBUTES_AT,
    CODEC_MASK,
    CONTROL_FLAG,
    HEADER_BYTES,
    KNOWN_ATTRIBUTES,
    LENGTH_FIELD_END,
    MAGIC_AT,
    NUMBERING,
    BatchHeader,
    assign,
    batch_size_at,
    read_header,
    read_produced_header,
    set_timestamps,
)
from minibroker.kafka.records.builder import build_batch
from minibroker.kafka.records.compression import CODEC_NAMES, NONE, ZSTD
from minibroker.kafka.records.crc import crc32c
from minibroker.kafka.records.produce_rules import LargeBatchError
from minibroker.kafka.records.record import Record

Origin = Literal["client", "coordinator"]


class CheckedRecords:
    """Records that were checked before their offsets are known (`check`)."""

    __slots__ = ("_error", "_header", "_records", "now_ms")

    def __init__(
        self,
        now_ms: int,
        records: memoryview | None = None,
        header: BatchHeader | None = None,
        error: KafkaError | None = None,
    ) -> None:
        """Take what `validate` returned, or the error that it raised."""
        self.now_ms = now_ms
        """The time of the check: their append time, where the topic has one."""
        self._records = records
        self._header = header
        self._error = error

    def number(self, next_offset: int, leader_epoch: int) -> tuple[memoryview, BatchHeader]:
        """Number the batch, and return what `validate` returns. Raises its KafkaError."""
        if self._error is not None:
            raise self._error
        records, header = self._records, self._header
        assert records is not None
        assert header is not None
        header.base_offset = next_offset
        if header.magic == NEWEST_MAGIC:
            header.leader_epoch = leader_epoch
            assign(records, 0, next_offset, leader_epoch)
        else:
            from minibroker.kafka.records.message_set import number_messages  # noqa: PLC0415  rarely

            number_messages(records, next_offset, header.count)
        return records, header


def check(
    records: memoryview,
    rules: AppendRules,
    now_ms: int,
    partition: object,
    *,
    is_bounded: bool = False,
    header: BatchHeader | None = None,
) -> CheckedRecords:
    """Do all of `validate` but the offsets, on any thread, for a client's records that nobody else
    uses.

    Not for topics of format 0, whose compressed messages have their offsets inside. Raises
    LargeBatchError with `is_bounded`, as `validate` does.
    """
    try:
        checked, header = validate(
            records, rules, 0, -1, now_ms, partition, "client", is_bounded, header
        )
    except KafkaError as error:
        return CheckedRecords(now_ms, error=error)
    return CheckedRecords(now_ms, checked, header)


def validate(  # noqa: PLR0917  positional: one call per produced batch
    records: memoryview,
    rules: AppendRules,
    next_offset: int,
    leader_epoch: int,
    now_ms: int,
    partition: object,
    origin: Origin = "client",
    is_bounded: bool = False,
    header: BatchHeader | None = None,
) -> tuple[memoryview, BatchHeader]:
    """Check `records` (writable, all bytes of one partition) and number them from `next_offset` on.
    `header` is what `read_produced_header` gives for them, None: it is read here.

    Returns the bytes to write, which are one batch and nothing else (a part of the request's
    memory, or a new buffer after recompression), and their header. The append time of a
    LogAppendTime topic is the header's `max_timestamp`, which `is_append_time` tells; a batch of a
    CreateTime topic never has that flag. In a topic of an old format the bytes are a message set
    and the header, whose `magic` says so, stands for all of it. Bytes behind the batch that are no
    whole batch are cut off.

    `partition` only names the place in messages; `now_ms` is the wall clock. Raises KafkaError as
    in the table above, `records` may then be patched in part; with `is_bounded`, LargeBatchError
    where the check would hold the loop for longer than a millisecond, and nothing is patched.
    """
    if header is None:
        header = read_produced_header(records)
        if header is None:
            return _validate_old(
                records, rules, next_offset, leader_epoch, now_ms, partition, is_bounded
            )
    size_bytes = header.size_bytes
    if size_bytes != len(records):
        records = _only_batch(records)
    if header.base_offset != 0 and origin == "client":
        raise _wrong_base_offset(header, partition)
    if size_bytes > rules.max_message_bytes:
        raise _too_large(size_bytes, rules, partition)
    # Not `crc_is_valid` (nor `assign` below): every produced batch passes here, each call counts.
    if crc32c(records[ATTRIBUTES_AT:size_bytes]) != header.crc:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"CRC of the batch for {partition} is wrong")
    attributes = header.attributes
    count = header.count
    codec = attributes & CODEC_MASK
    if (
        count < 1
        or header.last_offset_delta != count - 1
        or attributes & CONTROL_FLAG
        or codec > ZSTD
        or (header.base_sequence < 0 and header.producer_id > -1)
    ):
        _check_header(header, partition, origin)
    if (
        rules.is_append_time
        or attributes & APPEND_TIME_FLAG
        or rules.magic < NEWEST_MAGIC
        or (codec != rules.codec and rules.codec is not None)
    ):
        return _validate_slowly(
            records, header, rules, next_offset, leader_epoch, now_ms, partition, is_bounded
        )
    _, latest, _, _ = check_contents(records, header, rules, now_ms, partition, is_bounded)
    if latest != header.max_timestamp:
        _set_timestamps(records, header, attributes & KNOWN_ATTRIBUTES, latest)
    if size_bytes > rules.segment_bytes:
        raise _larger_than_segment(size_bytes, rules, partition)
    header.base_offset = next_offset
    header.leader_epoch = leader_epoch
    NUMBERING.pack_into(records, 0, next_offset, size_bytes - LENGTH_FIELD_END, leader_epoch)
    return records, header


def _set_timestamps(
    records: memoryview, header: BatchHeader, attributes: int, max_timestamp: int
) -> None:
    """Write attributes and largest timestamp into the batch, and into its header as it was read."""
    header.crc = set_timestamps(records, 0, attributes, max_timestamp)
    header.attributes = attributes
    header.max_timestamp = max_timestamp


def _validate_slowly(  # noqa: PLR0917  the arguments of `validate`
    records: memoryview,
    header: BatchHeader,
    rules: AppendRules,
    next_offset: int,
    leader_epoch: int,
    now_ms: int,
    partition: object,
    is_bounded: bool,
) -> tuple[memoryview, BatchHeader]:
    """Do the rest of `validate` where more than offsets and the largest timestamp may change."""
    is_bounded = is_bounded and rules.magic > 0
    codec = header.codec
    target = codec if rules.codec is None or header.is_control else rules.codec
    if rules.magic < NEWEST_MAGIC:
        _check_fits_old(header, rules, partition)
    if target != codec or rules.magic < NEWEST_MAGIC:
        decoded = read_records(records, header, rules, now_ms, partition, is_bounded)
        if rules.magic < NEWEST_MAGIC:
            return _store_as_old(
                decoded, header, target, rules, next_offset, leader_epoch, now_ms, partition
            )
        check_can_be_built(decoded, partition)
        append_time = now_ms if rules.is_append_time else None
        records = memoryview(_rebuild(decoded, header, target, rules.level, append_time))
        header = read_header(records)
        if len(records) > rules.max_message_bytes:
            raise _too_large(len(records), rules, partition)
    else:
        _, latest, _, _ = check_contents(records, header, rules, now_ms, partition, is_bounded)
        flags = header.attributes & KNOWN_ATTRIBUTES & ~APPEND_TIME_FLAG
        if rules.is_append_time:
            _set_timestamps(records, header, flags | APPEND_TIME_FLAG, now_ms)
        else:
            _set_timestamps(records, header, flags, latest)
    if len(records) > rules.segment_bytes:
        raise _larger_than_segment(len(records), rules, partition)
    assign(records, 0, next_offset, leader_epoch)
    header.base_offset = next_offset
    header.leader_epoch = leader_epoch
    return records, header


def _rebuild(
    decoded: list[Record],
    header: BatchHeader,
    codec: int,
    level: int | None,
    append_time: int | None,
) -> bytearray:
    """Return the same records as one batch in another codec, with consecutive offsets."""
    return build_batch(
        decoded,
        codec=CODEC_NAMES[codec],
        level=level,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        append_time_ms=append_time,
        is_transactional=header.is_transactional,
    )


def _check_header(header: BatchHeader, partition: object, origin: Origin) -> None:
    """Raise KafkaError for a header that a client may not send; the broker may write some."""
    if header.codec > ZSTD:
        raise KafkaError(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            f"codec id of the batch for {partition} is {header.codec}, expected 0 to {ZSTD}",
        )
    if origin != "client":
        return
    if header.count < 1 or header.last_offset_delta != header.count - 1:
        detail = (
            f"holds {header.count} records, its last offset delta is {header.last_offset_delta}"
        )
    elif header.is_control:
        detail = "is a control batch, which only the broker may write"
    else:
        detail = f"has producer id {header.producer_id} and sequence {header.base_sequence}"
    raise KafkaError(ErrorCode.INVALID_RECORD, f"the batch for {partition} {detail}")


def _check_is_old(records: memoryview) -> None:
    """Raise KafkaError where bytes that begin with no v2 header do not begin with an old message
    either.
    """
    try:
        size_bytes = batch_size_at(records, 0)
        if size_bytes is not None:
            read_header(records)
    except CorruptionError as error:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, str(error)) from error
    if size_bytes is None:
        raise KafkaError(ErrorCode.INVALID_RECORD, "there is no whole record batch")
    if records[MAGIC_AT] == NEWEST_MAGIC:
        raise _too_small(size_bytes)


def _validate_old(  # noqa: PLR0917  the arguments of `validate`
    records: memoryview,
    rules: AppendRules,
    next_offset: int,
    leader_epoch: int,
    now_ms: int,
    partition: object,
    is_bounded: bool,
) -> tuple[memoryview, BatchHeader]:
    """Do the rest of `validate` for bytes that begin with no v2 header."""
    _check_is_old(records)
    is_large = len(records) > BUILT_AT_ONCE_MAX or read_header(records).codec != NONE
    if is_bounded and rules.magic > 0 and is_large:
        raise LargeBatchError
    from minibroker.broker.storage import old_formats  # noqa: PLC0415  few brokers ever see one

    request = old_formats.Request(rules, next_offset, leader_epoch, now_ms, partition)
    return old_formats.validate_message_set(records, request)


def _check_fits_old(header: BatchHeader, rules: AppendRules, partition: object) -> None:
    """Raise KafkaError for a v2 batch that no old format can hold."""
    if header.is_transactional or header.has_producer_id:
        kind = "transactional" if header.is_transactional else "idempotent"
        raise KafkaError(
            ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
            f"{partition} stores message format {rules.magic}, which has no {kind} records",
        )


def _store_as_old(  # noqa: PLR0917  the arguments of `validate`
    decoded: list[Record],
    header: BatchHeader,
    codec: int,
    rules: AppendRules,
    next_offset: int,
    leader_epoch: int,
    now_ms: int,
    partition: object,
) -> tuple[memoryview, BatchHeader]:
    """Return the records of a checked v2 batch in a topic's format 0 or 1."""
    from minibroker.broker.storage import old_formats  # noqa: PLC0415  few topics are of that kind

    if header.is_control:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
            f"{partition} stores message format {rules.magic}, which has no control records",
        )
    request = old_formats.Request(rules, next_offset, leader_epoch, now_ms, partition)
    return old_formats.build(decoded, codec, request)


def _only_batch(records: memoryview) -> memoryview:
    """Return the first batch alone. A part of a batch may follow it, but no whole one."""
    try:
        size_bytes = batch_size_at(records, 0)
        if size_bytes is None:
            raise KafkaError(ErrorCode.INVALID_RECORD, "there is no whole record batch")
        if size_bytes < HEADER_BYTES:
            raise _too_small(size_bytes)
        if batch_size_at(records, size_bytes) is not None:
            raise KafkaError(ErrorCode.INVALID_RECORD, "there is more than one record batch")
    except CorruptionError as error:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, str(error)) from error
    return records[:size_bytes]


def _wrong_base_offset(header: BatchHeader, partition: object) -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_RECORD,
        f"base offset of the batch for {partition} is {header.base_offset}, expected 0",
    )


def _too_small(size_bytes: int) -> KafkaError:
    return KafkaError(
        ErrorCode.CORRUPT_MESSAGE,
        f"the batch has {size_bytes} bytes, a header alone has {HEADER_BYTES}",
    )


def _too_large(size_bytes: int, rules: AppendRules, partition: object) -> KafkaError:
    return KafkaError(
        ErrorCode.MESSAGE_TOO_LARGE,
        f"the batch for {partition} has {size_bytes} bytes, "
        f"max.message.bytes is {rules.max_message_bytes}",
    )


def _larger_than_segment(size_bytes: int, rules: AppendRules, partition: object) -> KafkaError:
    return KafkaError(
        ErrorCode.RECORD_LIST_TOO_LARGE,
        f"the batch for {partition} has {size_bytes} bytes, segment.bytes is {rules.segment_bytes}",
    )

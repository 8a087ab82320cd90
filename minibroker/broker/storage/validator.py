"""The checks of one partition's records in a Produce request.

First station of an append, before the numbering (`Checked.number`), `producer_state` and the write.
There is one way for every batch, on the loop and on a worker: check, then number. Pure: works in
the request's own bytes, and patches the largest timestamp in place. Only a topic with another
`compression.type` gets a batch built anew.

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

from minibroker.broker.storage.record_checks import (
    BUILT_AT_ONCE_MAX,
    NEWEST_MAGIC,
    AppendRules,
    Checked,
    RefusedRecords,
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
    MAGIC_AT,
    BatchHeader,
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


def check_before_append(
    records: memoryview,
    rules: AppendRules,
    now_ms: int,
    partition: object,
    *,
    is_bounded: bool = False,
    header: BatchHeader | None = None,
) -> Checked:
    """Do `check` for a client's records, on any thread; nobody else uses them meanwhile.

    A refusal is not raised: `Checked.number` of what is returned raises it, so that the append
    answers it in its place among other errors. Raises LargeBatchError with `is_bounded`.
    """
    try:
        return check(records, rules, now_ms, partition, "client", is_bounded, header)
    except KafkaError as error:
        return RefusedRecords(error, now_ms)


def check(  # noqa: PLR0917  positional: one call per produced batch
    records: memoryview,
    rules: AppendRules,
    now_ms: int,
    partition: object,
    origin: Origin = "client",
    is_bounded: bool = False,
    header: BatchHeader | None = None,
) -> Checked:
    """Check `records` (writable, all bytes of one partition), and return them in the topic's format
    and with its timestamps; `Checked.number` gives them their offsets.

    `header` is what `read_produced_header` gives for them, None: it is read here. `partition` only
    names the place in messages; `now_ms` is the wall clock. The append time of a LogAppendTime
    topic is the returned header's `max_timestamp`, which `is_append_time` tells; a batch of a
    CreateTime topic never has that flag. In a topic of an old format the bytes are a message set
    and the header, whose `magic` says so, stands for all of it. Bytes behind the batch that are no
    whole batch are cut off.

    Raises KafkaError as in the table above, `records` may then be patched in part; with
    `is_bounded`, LargeBatchError where the check would hold the loop for longer than a millisecond,
    and nothing is patched.
    """
    if header is None:
        header = read_produced_header(records)
        if header is None:
            return _check_message_set(records, rules, now_ms, partition, is_bounded)
    size_bytes = header.size_bytes
    if size_bytes != len(records):
        records = _only_batch(records)
    if header.base_offset != 0 and origin == "client":
        raise _wrong_base_offset(header, partition)
    if size_bytes > rules.max_message_bytes:
        raise _too_large(size_bytes, rules, partition)
    # Not `crc_is_valid`: every produced batch passes here, each call counts.
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
    if attributes & APPEND_TIME_FLAG or codec not in rules.kept_codecs:
        return _check_and_change(records, header, rules, now_ms, partition, is_bounded)
    _, latest, _, _ = check_contents(records, header, rules, now_ms, partition, is_bounded)
    if latest != header.max_timestamp:
        _set_timestamps(records, header, attributes & KNOWN_ATTRIBUTES, latest)
    if size_bytes > rules.segment_bytes:
        raise _larger_than_segment(size_bytes, rules, partition)
    return Checked(records, header, now_ms)


def _set_timestamps(
    records: memoryview, header: BatchHeader, attributes: int, max_timestamp: int
) -> None:
    """Write attributes and largest timestamp into the batch, and into its header as it was read."""
    header.crc = set_timestamps(records, 0, attributes, max_timestamp)
    header.attributes = attributes
    header.max_timestamp = max_timestamp


def _check_and_change(  # noqa: PLR0917  the arguments of `check`
    records: memoryview,
    header: BatchHeader,
    rules: AppendRules,
    now_ms: int,
    partition: object,
    is_bounded: bool,
) -> Checked:
    """Do the rest of `check` where more than the largest timestamp may change."""
    is_bounded = is_bounded and rules.magic > 0
    codec = header.codec
    target = codec if rules.codec is None or header.is_control else rules.codec
    if rules.magic < NEWEST_MAGIC:
        _check_fits_old(header, rules, partition)
    if target != codec or rules.magic < NEWEST_MAGIC:
        decoded = read_records(records, header, rules, now_ms, partition, is_bounded)
        if rules.magic < NEWEST_MAGIC:
            return _store_as_old(decoded, header, target, rules, now_ms, partition)
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
    return Checked(records, header, now_ms)


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


def _check_message_set(
    records: memoryview, rules: AppendRules, now_ms: int, partition: object, is_bounded: bool
) -> Checked:
    """Do the rest of `check` for bytes that begin with no v2 header."""
    _check_is_old(records)
    is_large = len(records) > BUILT_AT_ONCE_MAX or read_header(records).codec != NONE
    if is_bounded and rules.magic > 0 and is_large:
        raise LargeBatchError
    from minibroker.broker.storage import old_formats  # noqa: PLC0415  few brokers ever see one

    return old_formats.check_message_set(records, old_formats.Append(rules, now_ms, partition))


def _check_fits_old(header: BatchHeader, rules: AppendRules, partition: object) -> None:
    """Raise KafkaError for a v2 batch that no old format can hold."""
    if header.is_transactional or header.has_producer_id:
        kind = "transactional" if header.is_transactional else "idempotent"
        raise KafkaError(
            ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
            f"{partition} stores message format {rules.magic}, which has no {kind} records",
        )


def _store_as_old(  # noqa: PLR0917  the arguments of `check`
    decoded: list[Record],
    header: BatchHeader,
    codec: int,
    rules: AppendRules,
    now_ms: int,
    partition: object,
) -> Checked:
    """Return the records of a checked v2 batch in a topic's format 0 or 1."""
    from minibroker.broker.storage import old_formats  # noqa: PLC0415  few topics are of that kind

    if header.is_control:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
            f"{partition} stores message format {rules.magic}, which has no control records",
        )
    return old_formats.build(decoded, codec, old_formats.Append(rules, now_ms, partition))


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

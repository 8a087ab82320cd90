"""The checks of the records in one batch: they are as its header says, and the topic takes each.

`AppendRules` are a topic's rules, prepared for comparison: made once per configuration, shared by
its logs and read for every batch. `Checked` is a batch that passed all checks, to be numbered.

On the way of a Produce request, called by `validator` and `old_formats` after the checks of the
header. Compressed records are opened for it.

| check                                                     | code                              |
|-----------------------------------------------------------|-----------------------------------|
| compressed bytes that the codec does not write            | UNKNOWN_SERVER_ERROR              |
| it unfolds to more than 100 MiB, or to far more headers,  | MESSAGE_TOO_LARGE                 |
| or records that are built anew, than it has bytes         |                                   |
| a length of a plain record is no number                   | UNKNOWN_SERVER_ERROR              |
| fields do not fit, or the records do not fill the batch   | INVALID_RECORD                    |
| no key in a compacted topic                               | INVALID_RECORD + record errors    |
| timestamp too far from now, or of the broker's type       | INVALID_TIMESTAMP + record errors |
| offsets of compressed records that are not 0, 1, 2 ...    | UNKNOWN_SERVER_ERROR              |

Kafka leaves the offsets of plain records unread: its readers go by them, as ours do.

Source: Kafka LogValidator; KIP-467, KIP-937.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import CorruptionError, KafkaError
from minibroker.kafka.records.batch import (
    APPEND_TIME_FLAG,
    CODEC_MASK,
    LENGTH_FIELD_END,
    NO_TIMESTAMP,
    NUMBERING,
    RECORDS_AT,
    BatchHeader,
)
from minibroker.kafka.records.compression import CODEC_IDS, NONE, UnfoldsTooFarError, decompress
from minibroker.kafka.records.contents import (
    Contents,
    RecordFacts,
    UnreadableLengthError,
    iterate_records,
    read_contents,
)
from minibroker.kafka.records.produce_rules import InvalidRecordsError, LargeBatchError, RecordError
from minibroker.kafka.records.record import (
    DECOMPRESSED_BYTES_MAX,
    RECORD_BYTES_MIN,
    Record,
    TooManyRecordsError,
    parse_records,
    wrap_int64,
)
from minibroker.kafka.records.turns import in_turns

if TYPE_CHECKING:
    from minibroker.broker.config.topic import TopicConfig

RECORDS_AT_ONCE_MAX: Final = 1000
UNFOLDED_AT_ONCE_MAX: Final = 128 << 10
PACKED_AT_ONCE_MAX: Final = 64 << 10
"""Limits of a check on the loop: records, bytes unfolded, bytes compressed. A larger batch would
hold the loop for longer than a millisecond."""
HEADERS_AT_ONCE_MAX: Final = 2000
"""Limit of a check on the loop for all headers of a batch, as above."""
BUILT_AT_ONCE_MAX: Final = 16 << 10
BUILT_RECORDS_AT_ONCE_MAX: Final = 200
"""The same for a batch that is built anew: bytes, unfolded or not, and records."""
UNFOLDED_FORMAT_0_MAX: Final = 4 << 20
"""Most bytes that a batch for a topic of format 0 may unfold to. Its compressed messages have their
offsets inside, so they are built on the loop."""
ITEMS_ANYWAY: Final = 10_000
RECORDS_A_BYTE: Final = 8
HEADERS_A_BYTE: Final = 32
"""Limits of what a compressed batch unfolds to: so many records or headers, and so many for each of
its bytes. Each record has another offset, which no codec packs into less than six bits: zstd gets
1.3 records into a byte, gzip 0.75."""
NEWEST_MAGIC: Final = 2
_ALL_CODECS: Final = frozenset((NONE, *CODEC_IDS.values()))
_RECORD_ERRORS_SHOWN: Final = 3
_RECORD_ERRORS_MAX: Final = 10_000
_COPIED_BYTES_MAX: Final = 512
"""A batch of records up to this size, on average, is copied first: bytes are quicker to index than
a view. The only record of a batch, and larger ones, cost more to copy: of 1 KB, the time is the
same, but the instructions are twice as many."""


class AppendRules:
    """The rules of one configuration. Sizes in bytes, times in ms."""

    __slots__ = (
        "after_max_ms",
        "before_max_ms",
        "codec",
        "is_append_time",
        "is_compacted",
        "kept_codecs",
        "level",
        "magic",
        "max_message_bytes",
        "segment_bytes",
    )

    def __init__(self, config: TopicConfig) -> None:
        self.max_message_bytes = config.max_message_bytes
        self.segment_bytes = config.segment_bytes
        self.is_compacted = config.compact
        self.is_append_time = config.is_append_time
        self.before_max_ms = config.message_timestamp_before_max_ms
        self.after_max_ms = config.message_timestamp_after_max_ms
        # None: whatever the producer chose.
        self.codec = _codec_of(config.compression_type)
        self.level = _level_of(config)
        # The format that is stored.
        self.magic = config.message_magic
        self.kept_codecs = _ALL_CODECS if self.codec is None else frozenset((self.codec,))
        """Codecs of batches that are stored as they come."""
        if self.is_append_time or self.magic < NEWEST_MAGIC:
            self.kept_codecs = frozenset()


def _codec_of(compression_type: str) -> int | None:
    if compression_type == "producer":
        return None
    return NONE if compression_type == "uncompressed" else CODEC_IDS[compression_type]


def _level_of(config: TopicConfig) -> int | None:
    """Return the level for the topic's own codec; None where it has none."""
    if config.compression_type == "gzip":
        return config.compression_gzip_level
    if config.compression_type == "lz4":
        return config.compression_lz4_level
    return config.compression_zstd_level if config.compression_type == "zstd" else None


class Checked:
    """Records that the topic takes, in its format, before they have offsets."""

    __slots__ = ("header", "now_ms", "records")

    def __init__(self, records: memoryview, header: BatchHeader, now_ms: int) -> None:
        """Take what is written: all bytes of one batch, and their header."""
        self.records = records
        self.header = header
        self.now_ms = now_ms
        """The time of the check: their append time, where the topic has one."""

    def number(self, next_offset: int, leader_epoch: int) -> None:
        """Give the records the offsets from `next_offset` on, in the bytes and in `header`. Raises
        KafkaError where they are refused.
        """
        header = self.header
        header.base_offset = next_offset
        header.leader_epoch = leader_epoch
        length = header.size_bytes - LENGTH_FIELD_END
        NUMBERING.pack_into(self.records, 0, next_offset, length, leader_epoch)


class RefusedRecords(Checked):
    """Records that were checked before their append, and that the topic does not take."""

    __slots__ = ("_error",)

    def __init__(self, error: KafkaError, now_ms: int) -> None:
        """Take the error of the check."""
        self._error = error
        self.now_ms = now_ms

    def number(self, next_offset: int, leader_epoch: int) -> None:
        """Raise the error of the check."""
        raise self._error


def is_quick(header: BatchHeader | None, rules: AppendRules) -> bool:
    """Return whether this is a plain v2 batch of few records, which is stored as it comes; None
    stands for a message set.
    """
    return (
        header is not None
        and not header.attributes & CODEC_MASK
        and 0 <= header.count <= RECORDS_AT_ONCE_MAX
        and not rules.codec
        and rules.magic == NEWEST_MAGIC
    )


def unfolded_bytes_max(rules: AppendRules) -> int:
    """Return how many bytes a batch may unfold to."""
    return UNFOLDED_FORMAT_0_MAX if rules.magic == 0 else DECOMPRESSED_BYTES_MAX


def unfolded_records_max(header: BatchHeader) -> int:
    """Return how many records a compressed batch may unfold to where they are built anew."""
    return ITEMS_ANYWAY + RECORDS_A_BYTE * header.size_bytes


def unfolded_headers_max(header: BatchHeader) -> int:
    """Return how many headers the records of a compressed batch may have in all."""
    return ITEMS_ANYWAY + HEADERS_A_BYTE * header.size_bytes


def check_contents(  # noqa: PLR0917  once per produced batch
    records: memoryview,
    header: BatchHeader,
    rules: AppendRules,
    now_ms: int,
    partition: object,
    is_bounded: bool = False,
) -> Contents:
    """Return the contents of a batch; each record is one that the topic takes.

    `is_bounded`: raise LargeBatchError where that takes too long for the loop. Raises KafkaError
    where Kafka's reader would fail, InvalidRecordsError.
    """
    size_bytes = end = header.size_bytes
    count, attributes = header.count, header.attributes
    if is_bounded and count > RECORDS_AT_ONCE_MAX:
        raise LargeBatchError
    body: bytes | memoryview = records
    start, is_framed = RECORDS_AT, True
    headers_max = HEADERS_AT_ONCE_MAX if is_bounded else size_bytes
    if attributes & CODEC_MASK:
        at_once_max = UNFOLDED_AT_ONCE_MAX if is_bounded else None
        body = _unfold(records, header, rules, partition, at_once_max)
        start, end, is_framed = 0, len(body), False
        if not is_bounded:
            headers_max = unfolded_headers_max(header)
    elif count > 1 and size_bytes < _COPIED_BYTES_MAX * (count - 1):
        body = bytes(records)
    try:
        contents = read_contents(body, start, end, header, is_framed, headers_max)
    except TooManyRecordsError as excess:
        if is_bounded:
            raise LargeBatchError from excess
        raise KafkaError(ErrorCode.MESSAGE_TOO_LARGE, f"{partition}: {excess}") from excess
    except CorruptionError as error:
        code = ErrorCode.INVALID_RECORD
        if isinstance(error, UnreadableLengthError):
            code = ErrorCode.UNKNOWN_SERVER_ERROR
        raise KafkaError(code, f"{partition}: {error}") from error
    earliest, max_timestamp, is_consecutive, has_null_key = contents
    if (
        (has_null_key and rules.is_compacted)
        or max_timestamp > now_ms + rules.after_max_ms
        or earliest < now_ms - rules.before_max_ms
        or attributes & APPEND_TIME_FLAG
    ):
        facts = iterate_records(body, start, end, header, is_framed=is_framed)
        check_records(facts, header, rules, now_ms, partition)
    if not is_framed and not is_consecutive:
        # Kafka begins to build the batch anew here, of records that it has read in part only.
        raise KafkaError(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            f"{partition}: the offsets of a compressed batch are not 0, 1, 2 ...",
        )
    return contents


def _unfold(
    records: memoryview,
    header: BatchHeader,
    rules: AppendRules,
    partition: object,
    at_once_max: int | None,
) -> bytes:
    """Return the records, decompressed. Raises KafkaError; LargeBatchError where they are more than
    `at_once_max` bytes (None: any number).
    """
    limit = unfolded_bytes_max(rules)
    if at_once_max is not None:
        if header.size_bytes > PACKED_AT_ONCE_MAX:
            raise LargeBatchError
        limit = min(limit, at_once_max)
    try:
        return decompress(header.codec, records[RECORDS_AT : header.size_bytes], limit)
    except UnfoldsTooFarError as excess:
        if at_once_max is not None:
            raise LargeBatchError from excess
        raise KafkaError(ErrorCode.MESSAGE_TOO_LARGE, f"{partition}: {excess}") from excess
    except CorruptionError as error:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"{partition}: {error}") from error


def read_records(  # noqa: PLR0917  the arguments of `check_contents`
    records: memoryview,
    header: BatchHeader,
    rules: AppendRules,
    now_ms: int,
    partition: object,
    is_bounded: bool = False,
) -> list[Record]:
    """Return all records of a batch that is to be built anew. Raises LargeBatchError where
    `is_bounded` and that takes too long for the loop; KafkaError where Kafka's reader would fail;
    InvalidRecordsError.
    """
    at_once_max = BUILT_AT_ONCE_MAX if is_bounded else None
    headers_max: int | None = None
    if is_bounded and (
        header.count > BUILT_RECORDS_AT_ONCE_MAX or header.size_bytes > BUILT_AT_ONCE_MAX
    ):
        raise LargeBatchError
    if header.codec == NONE:
        check_contents(records, header, rules, now_ms, partition)
        body = bytes(records[RECORDS_AT : header.size_bytes])
    else:
        headers_max = unfolded_headers_max(header)
        body = _unfold(records, header, rules, partition, at_once_max)
    try:
        if headers_max is not None and (
            unfolded_records_max(header) < header.count <= len(body) // RECORD_BYTES_MIN
        ):
            raise TooManyRecordsError(f"{header.count} records in {header.size_bytes} bytes")
        decoded = parse_records(body, header, headers_max)
    except TooManyRecordsError as excess:
        raise KafkaError(ErrorCode.MESSAGE_TOO_LARGE, f"{partition}: {excess}") from excess
    except CorruptionError as error:
        raise KafkaError(ErrorCode.INVALID_RECORD, f"{partition}: {error}") from error
    check_records(facts_of(decoded), header, rules, now_ms, partition)
    return decoded


def facts_of(decoded: Sequence[Record]) -> Iterator[RecordFacts]:
    """Return the facts that `check_records` looks at."""
    return (
        RecordFacts(record.offset, record.timestamp, record.key is not None)
        for record in in_turns(decoded)
    )


def check_records(
    facts: Iterable[RecordFacts],
    header: BatchHeader,
    rules: AppendRules,
    now_ms: int,
    partition: object,
) -> None:
    """Check keys and timestamps. Raises InvalidRecordsError with every record that is refused, up
    to 10,000 of them."""
    errors: list[RecordError] = []
    code = ErrorCode.INVALID_RECORD
    for index, (_, timestamp, has_key) in enumerate(facts):
        if rules.is_compacted and not has_key:
            message = f"{partition} is compacted, a record without a key cannot be kept in it"
        elif not rules.is_append_time and timestamp != NO_TIMESTAMP:
            if _is_in_bounds(timestamp, rules, now_ms):
                continue
            code = ErrorCode.INVALID_TIMESTAMP
            message = (
                f"timestamp {timestamp} is not within {now_ms - rules.before_max_ms} to "
                f"{now_ms + rules.after_max_ms}"
            )
        elif header.is_append_time:
            code = ErrorCode.INVALID_TIMESTAMP
            message = "the timestamp type is LogAppendTime, which only the broker may set"
        else:
            continue
        errors.append(RecordError(index, message))
        if len(errors) == _RECORD_ERRORS_MAX:
            break
    if not errors:
        return
    errors_text = "; ".join(
        f"record {error.batch_index}: {error.message}" for error in errors[:_RECORD_ERRORS_SHOWN]
    )
    raise InvalidRecordsError(
        code, f"{len(errors)} of {header.count} records refused: {errors_text}", errors
    )


def _is_in_bounds(timestamp: int, rules: AppendRules, now_ms: int) -> bool:
    """Return whether `timestamp` is near enough to now. As in Kafka, differences may overflow."""
    age_ms = wrap_int64(now_ms - timestamp)
    return age_ms <= rules.before_max_ms and wrap_int64(-age_ms) <= rules.after_max_ms


def check_can_be_built(decoded: Sequence[Record], partition: object) -> None:
    """Raise KafkaError for a timestamp below -1: Kafka builds no batch with one."""
    if any(record.timestamp < NO_TIMESTAMP for record in in_turns(decoded)):
        raise KafkaError(
            ErrorCode.UNKNOWN_SERVER_ERROR, f"a record for {partition} has a negative timestamp"
        )

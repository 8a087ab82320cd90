"""The records inside a v2 batch: varint-coded, found by walking from one to the next.

An append reads the facts that it needs with `contents`, and copies no record. Whole records are
read by compaction, look-ups by time, another `compression.type`, tools and tests.

One record (every number but `attributes` a zigzag varint, lengths of -1 mean null):

    length, attributes int8 (always 0), timestamp delta, offset delta,
    key length, key, value length, value, header count, (key length, key, value length, value)*

Source: Kafka DefaultRecord; KIP-82, KIP-98.
"""

from __future__ import annotations

from array import array
from typing import Final, NamedTuple

from minibroker.kafka.errors import CorruptionError
from minibroker.kafka.records.batch import RECORDS_AT, BatchHeader, read_header
from minibroker.kafka.records.compression import NONE, decompress
from minibroker.kafka.records.turns import TURN, let_others_run

Header = tuple[str, bytes | None]

DECOMPRESSED_BYTES_MAX: int = 100 * 1024 * 1024
"""Most bytes one batch may unfold to, as many as `socket.request.max.bytes` lets through
uncompressed: a batch of a few KB can name gigabytes."""
INT32_BYTES_MAX: Final = 5
INT64_BYTES_MAX: Final = 10
_BODY_BYTES_MIN: Final = 6
"""attributes, two deltas, null key, null value, no headers: one byte each."""
RECORD_BYTES_MIN: Final = 1 + _BODY_BYTES_MIN
_RUN_MIN: Final = 16
"""Records of one length one behind the other that are worth a slice."""
_LOOK_MIN: Final = 64
"""Records that a first look for some of one length sees."""
_ONCE: Final = array("q", [1])
_WALK_MIN: Final = 64
_WALK_MAX: Final = 1024
"""Records whose lengths are read one by one before another look for records of one length."""
_SHIFT_OF_INT32: Final = 28
_UINT32_MAX: Final = 2**32 - 1
_UINT64_MAX: Final = 2**64 - 1
_INT64_MIN: Final = -(2**63)
_INT64_MAX: Final = 2**63 - 1


class TooManyRecordsError(CorruptionError):
    """A batch has more records, or more headers in them, than the caller takes."""


class Record(NamedTuple):
    """One record. `timestamp` in ms (-1: none); the batch's append time if it has one."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()


def read_varint(
    buffer: bytes | memoryview, position: int, bytes_max: int = INT32_BYTES_MAX
) -> tuple[int, int]:
    """Return (value, position behind it) of the zigzag varint at `position`.

    It takes at most `bytes_max` bytes. Bits that the type has no room for are dropped, as by Java's
    shifts. Raises IndexError beyond the end of the buffer, CorruptionError for a longer number.
    """
    byte = buffer[position]
    position += 1
    raw = byte & 0x7F
    shift = 7
    while byte >= 0x80:
        if shift == 7 * bytes_max:
            raise CorruptionError(f"varint before byte {position} has more than {bytes_max} bytes")
        byte = buffer[position]
        position += 1
        raw |= (byte & 0x7F) << shift
        shift += 7
    if shift > _SHIFT_OF_INT32:
        raw &= _UINT32_MAX if bytes_max == INT32_BYTES_MAX else _UINT64_MAX
    return (raw >> 1) ^ -(raw & 1), position


def wrap_int64(number: int) -> int:
    """Return `number` in 64 bits, overflowing as the clients' arithmetic on timestamps does."""
    return (number - _INT64_MIN) % 2**64 + _INT64_MIN


def count_records(buffer: bytes | memoryview, position: int, end: int, count: int) -> None:
    """Check that exactly `count` records, by their lengths, fill the uncompressed bytes `position`
    … `end`.

    Takes 0.1 µs a record: it goes from length to length and does not read a record's fields.
    Raises CorruptionError naming both numbers. `buffer` must reach to `end`, and may go on behind
    it.
    """
    _check_count(count, end - position)
    remaining = count
    try:
        while remaining > 0:
            position = _walk(buffer, position, min(remaining, _WALK_MAX), array("q"))
            remaining -= _WALK_MAX
            if remaining > 0:
                let_others_run()
    except IndexError:
        position = end + 1
    if position > end:
        raise CorruptionError(f"the {count} records that the batch declares reach beyond its end")
    if position < end:
        raise CorruptionError(
            f"{end - position} bytes are left behind the {count} records that the batch declares"
        )


class SizeRuns(NamedTuple):
    """Sizes of records one behind the other, in bytes with their length: runs of equal ones."""

    sizes: array[int]
    counts: array[int]
    """Records of each size in a row; 1 for records whose sizes change."""


def size_runs(buffer: bytes, position: int, end: int, count: int) -> SizeRuns:
    """Return the sizes of the `count` records that fill the uncompressed bytes `position` … `end`.

    The bytes of a length are the same within a run.

    For readers of many records at once, column by column. Raises CorruptionError for the same bytes
    as `count_records`. Takes a tenth of its time where records of one length follow each other, and
    otherwise little more.
    """
    _check_count(count, end - position)
    sizes, counts = array("q"), array("q")
    look, walk, remaining = _LOOK_MIN, 0, count
    try:
        while remaining > 0:
            alike, hop = 0, 0
            if count >= _RUN_MIN:
                alike, hop = _count_alike(buffer, position, end, min(look, remaining))
            if alike:
                sizes.append(hop)
                counts.append(alike)
                position += alike * hop
                remaining -= alike
                look = 8 * look if alike == look else max(_LOOK_MIN, 2 * alike)
            if alike >= _RUN_MIN:
                walk = 0
            else:
                # Lengths that change cost a look for each so many records.
                walk = min(max(4 * walk, _WALK_MIN), _WALK_MAX)
                singly = min(walk, remaining)
                let_others_run()
                position = _walk(buffer, position, singly, sizes)
                counts += _ONCE * singly
                remaining -= singly
    except IndexError:
        position = end + 1
    if position != end:
        raise CorruptionError(
            f"the {count} records that the batch declares end at byte {position}, expected {end}"
        )
    return SizeRuns(sizes, counts)


def _count_alike(buffer: bytes, position: int, end: int, most: int) -> tuple[int, int]:
    """Return how many records from `position` on, up to `most`, have the same bytes as length, and
    the bytes from one to the next.

    (0, 0) for a length of three bytes or more, or a wrong one. One slice takes every byte that is
    `hop` bytes behind the one before: as long as they are the same, each is a length.
    """
    hop, size = _HOPS[buffer[position]], 1
    if hop < 0 and (second := buffer[position + 1]) < 0x80:
        hop, size = (second << 6) - hop, 2
    if hop <= 0:
        return 0, 0
    stop = min(end, position + most * hop)
    for at in range(position, position + size):
        column = buffer[at:stop:hop]
        most = min(most, len(column) - len(column.lstrip(buffer[at : at + 1])))
    return most, hop


def _check_count(count: int, size_bytes: int) -> None:
    """Raise CorruptionError for more records than so many bytes can have."""
    if count < 0 or count * RECORD_BYTES_MIN > size_bytes:
        raise CorruptionError(f"batch declares {count} records in {size_bytes} bytes")


def _walk(buffer: bytes | memoryview, position: int, count: int, sizes: array[int]) -> int:
    """Note the sizes of `count` records from `position` on, and return the position behind them.

    Raises IndexError behind the end of `buffer`.
    """
    hops = _HOPS
    note = sizes.append
    for _ in range(count):
        hop = hops[buffer[position]]
        if hop <= 0:
            if hop < 0 and (second := buffer[position + 1]) < 0x80:
                hop = (second << 6) - hop
            else:
                hop = _hop_slowly(buffer, position) - position
        note(hop)
        position += hop
    return position


def _hop(byte: int) -> int:
    """Return the bytes to the next record where the first byte of a record's length is all of it.

    Negative: the hop for a second byte of zero (each unit of it adds 64); 0: a longer length.
    """
    if byte & 1:
        return 0
    half = (byte & 0x7F) >> 1
    if byte >= 0x80:
        return -(2 + half)
    return 1 + half if half >= _BODY_BYTES_MIN else 0


_HOPS: Final = tuple(_hop(byte) for byte in range(256))


def _hop_slowly(buffer: bytes | memoryview, position: int) -> int:
    """Return the position behind the record at `position`, whose length has three bytes or more, or
    is wrong."""
    length, start = read_varint(buffer, position)
    if length < _BODY_BYTES_MIN:
        raise CorruptionError(
            f"record at byte {position} declares {length} bytes, "
            f"expected at least {_BODY_BYTES_MIN}"
        )
    return start + length


def decode_records(
    buffer: bytes | bytearray | memoryview,
    position: int = 0,
    *,
    header: BatchHeader | None = None,
    size_bytes_max: int = DECOMPRESSED_BYTES_MAX,
) -> list[Record]:
    """Return all records of the v2 batch at `position`, decompressed (to at most `size_bytes_max`
    bytes) and copied.

    `header` saves reading it again. Raises CorruptionError where the batch is cut, is of another
    format, unfolds to more than the limit, or its records do not fill it exactly.
    """
    if header is None:
        header = read_header(buffer, position)
    if header.magic != 2:
        raise CorruptionError(f"batch at byte {position} has magic {header.magic}, expected 2")
    end = position + header.size_bytes
    if end > len(buffer):
        raise CorruptionError(
            f"batch at byte {position} has {header.size_bytes} bytes, "
            f"but only {len(buffer) - position} are there"
        )
    payload = memoryview(buffer)[position + RECORDS_AT : end]
    body = (
        bytes(payload)
        if header.codec == NONE
        else decompress(header.codec, payload, size_bytes_max)
    )
    return parse_records(body, header)


class HeaderRoom:
    """The number of headers that the records of a batch may still have."""

    __slots__ = ("remaining",)

    def __init__(self, remaining: int) -> None:
        self.remaining = remaining

    def take(self, count: int) -> None:
        """Count the headers of one record. Raises TooManyRecordsError."""
        self.remaining -= count
        if self.remaining < 0:
            raise TooManyRecordsError("the records have more headers than such a batch may have")


def parse_records(body: bytes, header: BatchHeader, headers_max: int | None = None) -> list[Record]:
    """Return the records in `body` (uncompressed), which belong to the batch of `header`.

    Raises CorruptionError where they are not exactly `header.count`, or one is malformed;
    TooManyRecordsError where they have more than `headers_max` headers in all (None: any number).
    """
    room = HeaderRoom(len(body) if headers_max is None else headers_max)
    count = header.count
    if count < 0 or count * RECORD_BYTES_MIN > len(body):
        raise CorruptionError(f"batch declares {count} records in {len(body)} bytes")
    append_time = header.max_timestamp if header.is_append_time else None
    base_offset, base_timestamp = header.base_offset, header.base_timestamp
    records: list[Record] = []
    position = 0
    for index in range(count):
        if index & TURN == TURN:
            let_others_run()
        try:
            record, position = _parse_record(
                body, position, base_offset, base_timestamp, append_time, room
            )
        except IndexError as error:
            raise CorruptionError(f"record {index} of {count} is malformed: {error}") from error
        records.append(record)
    if position != len(body):
        raise CorruptionError(f"{len(body) - position} bytes are left behind the {count} records")
    return records


def _parse_record(  # noqa: PLR0917  once per record
    body: bytes,
    position: int,
    base_offset: int,
    base_timestamp: int,
    append_time: int | None,
    room: HeaderRoom,
) -> tuple[Record, int]:
    """Return (record, position behind it). Raises IndexError where it ends beyond `body`,
    CorruptionError for other errors.

    Most numbers are one byte long, and those are read here: a call for each would double the time
    of a walk through a log (compaction, coordinators at start).
    """
    length = body[position]
    if length < 0x80:
        length = (length >> 1) ^ -(length & 1)
        start = position + 1
    else:
        length, start = read_varint(body, position)
    end = start + length
    if length < 0 or end > len(body):
        raise CorruptionError(
            f"record at byte {position} declares {length} bytes, {len(body) - start} are left"
        )
    if body[start + 1] == 0:
        timestamp_delta, position = 0, start + 2
    else:
        timestamp_delta, position = read_varint(body, start + 1, INT64_BYTES_MAX)
    offset_delta = body[position]
    if offset_delta < 0x80:
        offset_delta = (offset_delta >> 1) ^ -(offset_delta & 1)
        position += 1
    else:
        offset_delta, position = read_varint(body, position)
    key, position = _read_bytes(body, position, end)
    value, position = _read_bytes(body, position, end)
    headers: tuple[Header, ...] = ()
    if body[position] == 0:
        position += 1
    else:
        header_count, position = read_varint(body, position)
        headers, position = _read_headers(body, position, end, header_count, room)
    if position != end:
        raise CorruptionError(f"record declares {length} bytes, its fields take {position - start}")
    timestamp = base_timestamp + timestamp_delta if append_time is None else append_time
    if not _INT64_MIN <= timestamp <= _INT64_MAX:
        timestamp = wrap_int64(timestamp)
    return Record(base_offset + offset_delta, timestamp, key, value, headers), end


def _read_bytes(body: bytes, position: int, end: int) -> tuple[bytes | None, int]:
    """Return (bytes or null, position behind them) of a field with its length, up to `end`."""
    length = body[position]
    if length < 0x80:
        length = (length >> 1) ^ -(length & 1)
        start = position + 1
    else:
        length, start = read_varint(body, position)
    if length < 0:
        return None, start
    stop = start + length
    if stop > end:
        raise CorruptionError(
            f"field at byte {position} declares {length} bytes, the record has {end - start} left"
        )
    return body[start:stop], stop


def _read_headers(
    body: bytes, position: int, end: int, count: int, room: HeaderRoom
) -> tuple[tuple[Header, ...], int]:
    """Return (headers, position behind them). Raises CorruptionError for a count that cannot fit,
    or a null key; TooManyRecordsError."""
    if count < 0 or count > end - position:
        raise CorruptionError(f"record declares {count} headers in {end - position} bytes")
    room.take(count)
    headers: list[Header] = []
    for number in range(count):
        if number & TURN == TURN:
            let_others_run()
        key, position = _read_bytes(body, position, end)
        if key is None:
            raise CorruptionError("record has a header without a key")
        value, position = _read_bytes(body, position, end)
        headers.append((key.decode("utf-8", "replace"), value))
    return tuple(headers), position

"""Contents of a produced batch: the facts that its header only claims.

On the way of a Produce request: `storage.validator` asks here, once per batch, for the timestamps
of the records, whether their offsets are 0, 1, 2 ..., and whether each has a key. Records are read
field by field, because a batch is refused for a field that does not fit. Keys and values are not
looked at.

Each of these gives the same answer, takes more kinds of records than the one before, and more time:

| by          | for these records                                         | time a record |
|-------------|-----------------------------------------------------------|---------------|
| `_shapes`   | one alone, with the sizes of one that was read before      | 0.3 µs        |
| `_read_run` | neighbours of one layout: their columns are compared,      | 0.02 µs       |
|             | at once where the layout was read before (`_layouts`)      |               |
| `_read_all` | any with sizes and timestamps that clients write           | 0.5 µs        |
| `_exactly`  | all, by Kafka's own rules; it alone names the error        | 3 µs          |

Source: Kafka DefaultRecord.readFrom and readPartiallyFrom, DefaultRecordBatch.RecordIterator.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from struct import error as StructError  # noqa: N812  a class, named as the others are
from typing import Final, NamedTuple

from minibroker.kafka.errors import CorruptionError
from minibroker.kafka.records.batch import APPEND_TIME_FLAG, NO_TIMESTAMP, BatchHeader
from minibroker.kafka.records.record import (
    INT32_BYTES_MAX,
    INT64_BYTES_MAX,
    RECORD_BYTES_MIN,
    TooManyRecordsError,
    read_varint,
    wrap_int64,
)
from minibroker.kafka.records.turns import TURN, let_others_run

Bytes = bytes | memoryview

_HEADER_BYTES_MIN: Final = 2
"""The sizes of key and value, one byte each."""
_RUN_MIN: Final = 8
"""Fewer neighbours than this are not worth a look at their columns."""
_RUN_MAX: Final = 512
_NO_RUN: Final = (0, 0, -1, False)
_FIELDS: Final = Struct("5B").unpack_from
"""Attributes, two deltas, two sizes of a record: most often they take a byte each, and there is no
key between the sizes."""
_BYTES: Final = tuple(bytes((byte,)) for byte in range(256))
READ_ON_MAX: Final = 10_000
"""Compressed records that are read behind the first offset out of order. The batch is refused for
it, but for what is wrong behind it first, as by Kafka. A few hundred bytes may unfold to millions
of records, so this ends somewhere; Kafka reads all."""
_RETRY_AFTER: Final = 64
"""Records until the next look, where neighbours were not alike."""
_INT64_MAX: Final = 2**63 - 1
_ASCII: Final = bytes(range(128))
_EVEN: Final = bytes(range(0, 128, 2))
"""The numbers of one byte that are not negative, as they are written."""
_EVEN_CONTINUED: Final = bytes(range(128, 256, 2))
"""The first bytes of those with more bytes."""
_ONE_BYTE_TIMES: Final = bytes(0xFF if byte & 0x81 else byte for byte in range(256))
"""Timestamp deltas that take one byte and are not negative; 0xFF for all other bytes."""
_ONE_BYTE_END: Final = 64
_TWO_BYTES_END: Final = 8192
_LOW_BYTES: Final = _EVEN_CONTINUED * 128
_HIGH_BYTES: Final = b"".join(bytes((high,)) * 64 for high in range(128))
"""First and second byte of the offset deltas 64 to 8191; those below 64 are not used."""


class RecordFacts(NamedTuple):
    """One record; `offset` counts from the batch's base offset, `timestamp` is in ms."""

    offset: int
    timestamp: int
    has_key: bool


Contents = tuple[int, int, bool, bool]
"""Facts of one batch, as a plain tuple because every produced batch makes one: (a timestamp in ms
that no record is below; the largest timestamp in ms, at least -1; whether the records carry the
offsets 0, 1, 2 ... of their places; whether a key is null). Both timestamps are the append time
where the batch has one."""


class UnreadableLengthError(CorruptionError):
    """The length of a record is no number at all: Kafka has an error of its own for that."""


def read_contents(  # noqa: PLR0917  positional: one call per produced batch
    body: Bytes,
    position: int,
    end: int,
    header: BatchHeader,
    is_framed: bool,
    headers_max: int,
) -> Contents:
    """Read the `header.count` records that must fill `body` from `position` to `end` exactly.

    `is_framed`: the fields of a record must take the bytes that its length declares. Kafka does not
    compare the two in a batch that stays compressed. Such records are read for some way only where
    their offsets are not in order (READ_ON_MAX). Raises CorruptionError, UnreadableLengthError
    (where `is_framed`), TooManyRecordsError for more than `headers_max` headers in all.
    """
    if header.count == 1:
        shape = _shapes.get(end - position)
        if shape is not None and shape.unpack(body, position) == shape.fields:
            timestamp = header.base_timestamp
            if not header.attributes & APPEND_TIME_FLAG and timestamp >= NO_TIMESTAMP:
                return timestamp, timestamp, True, shape.is_keyless
    if not is_framed and header.count * RECORD_BYTES_MIN > end - position:
        raise CorruptionError(f"{header.count} records do not fit into {end - position} bytes")
    try:
        contents = _read_all(body, position, end, header, headers_max, is_framed)
    except TooManyRecordsError:
        raise
    except (IndexError, StructError, CorruptionError):
        contents = None
    if contents is not None:
        if header.count == 1:
            _note_shape(body, position, end)
        return contents
    records = iterate_records(
        body, position, end, header, is_framed=is_framed, headers_max=headers_max
    )
    return _exactly(records)


class _Shape:
    """The bytes of a record, alone in its batch, that say where its fields are: those up to the
    key, the size of the value, and the number of headers. There are none, and both deltas are zero.
    """

    __slots__ = ("fields", "is_keyless", "unpack")

    def __init__(self, fields: Struct, body: Bytes, position: int, *, is_keyless: bool) -> None:
        self.unpack = fields.unpack_from
        self.fields = self.unpack(body, position)
        self.is_keyless = is_keyless


SHAPES_MAX: int = 1024
_shapes: dict[int, _Shape] = {}
"""Bytes of a record → the shape of the first one that was read. Those behind it have it, too, most
often. Any thread adds, and nobody changes one."""


def _note_shape(body: Bytes, position: int, end: int) -> None:
    """Remember the shape of a record that was read, if it is the first one of its size and has a
    shape.
    """
    if end - position in _shapes or len(_shapes) >= SHAPES_MAX:
        return
    _, start = _written(body, position)
    _, time, offset, key_size, _ = _FIELDS(body, start)
    key_at = start + 4
    if time or offset or key_size > 0x7F:
        return
    key_bytes = key_size >> 1
    size, value_at = _written(body, key_at + key_bytes)
    value_bytes = size >> 1
    if value_at + value_bytes != end - 1:
        return
    size_bytes = value_at - key_at - key_bytes
    fields = Struct(f"{key_at - position}s{key_bytes}x{size_bytes}s{value_bytes}xB")
    _shapes[end - position] = _Shape(fields, body, position, is_keyless=key_size == 1)


def _read_all(  # noqa: C901, PLR0912, PLR0915, PLR0917  calls would cost more than the work
    body: Bytes, position: int, end: int, header: BatchHeader, room: int, is_framed: bool
) -> Contents | None:
    """Return the contents of records as clients write them. Numbers are doubled, odd if negative.

    None, IndexError, StructError, CorruptionError: `_exactly` reads them.
    """
    late, early, is_consecutive, has_null_key = -1, -1, True, False
    index, look_at = 0, 0 if (count := header.count) >= _RUN_MIN else count
    while index < count:
        if index >= look_at:
            alike, stop, time, is_keyless = _read_run(body, position, end, index, count)
            if alike:
                has_null_key = has_null_key or is_keyless
                late = time if time > late else late
                index, position = index + alike, stop
                continue
            look_at = index + _RETRY_AFTER
        length, at = body[position], position + 1
        if length > 0x7F:
            if (more := body[at]) > 0x7F:
                length, at = _written(body, position)
            else:
                length, at = length & 0x7F | more << 7, at + 1
        stop = at + (length >> 1)
        _, time, offset, key, size = _FIELDS(body, at)
        at += 5  # behind the size of the value, here and below
        if time > 0x7F:
            time, at = _written(body, at - 4, INT64_BYTES_MAX)
            offset, key, size, at = body[at], body[at + 1], body[at + 2], at + 3
        if offset > 0x7F:
            offset, at = _written(body, at - 3)
            key, size, at = body[at], body[at + 1], at + 2
        if key == 1:
            has_null_key = True
        else:
            if key > 0x7F:
                key, at = _written(body, at - 2)
                at += 1
            at += key >> 1
            size = body[at - 1]
            if key & 1:
                return None
        if size > 0x7F:
            if (more := body[at]) > 0x7F:
                size, at = _written(body, at - 1)
            else:
                size, at = size & 0x7F | more << 7, at + 1
        at += (size >> 1) + 1
        if body[at - 1]:
            at, room = _behind_headers(body, at - 1, room)
        if at != stop:
            return None
        if (length | time | size) & 1:
            if length & 1 or (size & 1 and size != 1):
                return None
            if time & 1:
                early, time = max(early, time), -1
        if time > late:  # noqa: PLR1730  `max` would be a call
            late = time
        if offset != index << 1:
            if not is_framed:
                return None  # it is read for some way only
            is_consecutive = False
        index, position = index + 1, stop
    if position != end or late < 0:
        return None
    earliest, latest = _times(header, late, -early - 1)
    is_known = earliest >= -_INT64_MAX and latest <= _INT64_MAX
    return (earliest, latest, is_consecutive, has_null_key) if is_known else None


def _times(header: BatchHeader, latest_delta: int, earliest_delta: int) -> tuple[int, int]:
    """Return the earliest and the latest time, ms, for the deltas, which are doubled."""
    if header.attributes & APPEND_TIME_FLAG:
        return header.max_timestamp, header.max_timestamp
    latest = header.base_timestamp + (latest_delta >> 1)
    earliest = header.base_timestamp + (earliest_delta >> 1)
    return earliest, latest if latest > NO_TIMESTAMP else NO_TIMESTAMP


def _read_run(
    body: Bytes, position: int, end: int, index: int, count: int
) -> tuple[int, int, int, bool]:
    """Return how many records from `index` on, which begins at `position`, are alike; where they
    end; their largest timestamp delta, as it is written; and whether their keys are null.

    Alike: lengths, sizes and header counts are the same bytes, offsets ascend by one, timestamp
    deltas take one byte or two and are not negative. Raises IndexError, CorruptionError.
    """
    if index:
        let_others_run()
    width, index_end = (1, _ONE_BYTE_END) if index < _ONE_BYTE_END else (2, _TWO_BYTES_END)
    length, more = body[position], body[position + 1]
    if length > 0x7F >= more:
        hop, start = 2 + ((length & 0x7F | more << 7) >> 1), position + 2
    else:
        length, start = _written(body, position)
        hop = start + (length >> 1) - position
    number = min(count - index, index_end - index, (end - position) // hop, _RUN_MAX)
    if number < _RUN_MIN or body[position + hop] != body[position]:
        return _NO_RUN
    offset_at = start + (2 if body[start + 1] < 0x80 else 3)
    place = hop, offset_at + width - position
    layout = _layouts.get(place)
    alike = 0 if layout is None else _count_alike(body, position, hop, number, layout)
    if layout is None or not alike:
        layout = _layout_at(body, position, *place)
        alike = 0 if layout is None else _count_alike(body, position, hop, number, layout)
        if layout is None or not alike:
            return _NO_RUN
        if len(_layouts) < SHAPES_MAX or place in _layouts:
            _layouts[place] = layout
    stop = position + alike * hop
    first_bytes = _EVEN if width == 1 else _LOW_BYTES
    if body[offset_at:stop:hop] != first_bytes[index : index + alike]:
        return _NO_RUN
    if width == 2 and body[offset_at + 1 : stop : hop] != _HIGH_BYTES[index : index + alike]:
        return _NO_RUN
    latest = _latest_of_column(body, start + 1, offset_at, stop, hop)
    return _NO_RUN if latest < 0 else (alike, stop, latest, layout[1])


_Layout = tuple[tuple[tuple[int, bytes], ...], bool]
"""Places of a record, from its first byte on, with their bytes: length, sizes, number of headers;
and whether its key is null."""
_layouts: dict[tuple[int, int], _Layout] = {}
"""Bytes of a record, and those up to the size of its key → the layout of the last run of such."""


def _layout_at(body: Bytes, position: int, hop: int, key_place: int) -> _Layout | None:
    """Return the layout of the record at `position`, which has `hop` bytes; None where its fields
    do not fill it, or it has headers. Raises IndexError, CorruptionError.
    """
    length, start = _written(body, position)
    key_at = position + key_place
    key_size, key_end = _written(body, key_at)
    size_at = key_end + (key_size >> 1)
    size, value_at = _written(body, size_at)
    last_at = value_at + (size >> 1)
    if last_at - position != hop - 1 or body[last_at] or length & 1:
        return None
    if (key_size & 1 and key_size != 1) or (size & 1 and size != 1):
        return None
    fields = range(position, start), range(key_at, key_end), range(size_at, value_at), (last_at,)
    places = tuple((at - position, _BYTES[body[at]]) for field in fields for at in field)
    return places, key_size == 1


def _count_alike(body: Bytes, position: int, hop: int, number: int, layout: _Layout) -> int:
    """Return how many of `number` records of `hop` bytes have this layout; 0 for too few."""
    stop = position + number * hop
    for place, byte in layout[0]:
        column = body[position + place : stop : hop]
        if column != byte * number:
            number -= len(bytes(column).lstrip(byte))
            if number < _RUN_MIN:
                return 0
            stop = position + number * hop
    return number


def _latest_of_column(body: Bytes, at: int, end: int, stop: int, hop: int) -> int:
    """Return the largest timestamp delta, as it is written, of the records up to `stop`.

    In the first record it takes the bytes `at` to `end`. -1 where a delta is negative or takes
    another number of bytes.
    """
    low = bytes(body[at:stop:hop])
    latest = low[-1]
    if end - at == 1:
        if low.translate(None, _EVEN[: (latest >> 1) + 1]):  # not the last one, or not at all
            latest = max(low.translate(_ONE_BYTE_TIMES))
        return latest if latest <= 0x7F else -1
    high = bytes(body[at + 1 : stop : hop])
    if low.translate(None, _EVEN_CONTINUED) or not high.isascii():
        return -1
    highest = high[-1]
    if high.translate(None, _ASCII[: highest + 1]) or low[high.index(highest) :].translate(
        None, _EVEN_CONTINUED[: (latest - 0x80 >> 1) + 1]
    ):
        highest, latest = max(zip(high, low, strict=True))
    return highest << 7 | latest & 0x7F


def _written(body: Bytes, at: int, bytes_max: int = INT32_BYTES_MAX) -> tuple[int, int]:
    """Return a number as `_read_all` compares it, and the position behind it. Raises IndexError,
    CorruptionError.
    """
    number = body[at]
    if number <= 0x7F:
        return number, at + 1
    more = body[at + 1]
    if more <= 0x7F:
        return number & 0x7F | more << 7, at + 2
    value, at = read_varint(body, at, bytes_max)
    return value << 1 ^ value >> 63, at


def _behind_headers(body: Bytes, at: int, room: int) -> tuple[int, int]:
    """Return the position behind the headers whose count stands at `at`, and for how many headers
    there is room then. Raises CorruptionError, TooManyRecordsError where there is none for these.
    """
    count, at = read_varint(body, at)
    if not 0 <= count * _HEADER_BYTES_MIN <= len(body) - at:
        raise CorruptionError(f"record declares {count} headers in {len(body) - at} bytes")
    room -= count
    if room < 0:
        raise TooManyRecordsError("the records have more headers than such a batch may have")
    for number in range(count):
        if number & TURN == TURN:
            let_others_run()
        size = body[at]
        if size > 0x7F or size & 1:
            size, at = read_varint(body, at)
            if size < 0:
                raise CorruptionError(f"record has a header whose key has size {size}")
            at += size
        else:
            at += 1 + (size >> 1)
        size = body[at]
        if size > 0x7F:
            size, at = read_varint(body, at)
            at += max(size, 0)
        else:
            at += 1 + (0 if size & 1 else size >> 1)
    return at, room


def iterate_records(
    body: Bytes,
    position: int,
    end: int,
    header: BatchHeader,
    *,
    is_framed: bool,
    headers_max: int | None = None,
) -> Iterator[RecordFacts]:
    """Yield one record after the other, as Kafka reads them, and as many as `read_contents` reads.

    Raises CorruptionError, UnreadableLengthError (where `is_framed`), TooManyRecordsError for more
    than `headers_max` headers in all.
    """
    body = bytes(body[position:end])
    room = len(body) if headers_max is None else headers_max
    index_end: int | None = None
    base_timestamp = header.base_timestamp
    append_time = header.max_timestamp if header.is_append_time else None
    position = 0
    for index in range(header.count):
        if index & TURN == TURN:
            let_others_run()
        try:
            start, stop = _frame(body, position, index, is_framed)
            delta, at = read_varint(body, start + 1, INT64_BYTES_MAX)
            offset, at = read_varint(body, at)
            key_size, at = read_varint(body, at)
            size, at = read_varint(body, at + max(key_size, 0))
            position, room = _behind_headers(body, at + max(size, 0), room)
        except IndexError as error:
            raise CorruptionError(
                f"record {index} of {header.count} reaches beyond the batch"
            ) from error
        if is_framed and position != stop:
            raise CorruptionError(
                f"record {index} of {header.count} declares {stop - start} bytes, its fields take "
                f"{position - start}"
            )
        timestamp = wrap_int64(base_timestamp + delta) if append_time is None else append_time
        yield RecordFacts(offset, timestamp, key_size >= 0)
        if offset != index and index_end is None and not is_framed:
            index_end = index + READ_ON_MAX
        if index == index_end:
            return
    if position != len(body):
        raise CorruptionError(
            f"{len(body) - position} bytes are left behind the {header.count} records"
        )


def _exactly(facts: Iterator[RecordFacts]) -> Contents:
    """Return the contents of any records. Raises what `facts` raises."""
    earliest, latest = _INT64_MAX, NO_TIMESTAMP
    is_consecutive, has_null_key = True, False
    for index, (offset, timestamp, has_key) in enumerate(facts):
        earliest, latest = min(earliest, timestamp), max(latest, timestamp)
        is_consecutive = is_consecutive and offset == index
        has_null_key = has_null_key or not has_key
    return earliest, latest, is_consecutive, has_null_key


def _frame(body: bytes, position: int, index: int, is_framed: bool) -> tuple[int, int]:
    """Return where the fields of the record at `position` begin, and where its length ends them."""
    try:
        length, start = read_varint(body, position)
    except CorruptionError as error:
        if is_framed:
            raise UnreadableLengthError(f"record {index} has a length that is none") from error
        raise
    if length < 0:
        raise CorruptionError(f"record {index} has the length {length}")
    return start, start + length

"""Records of many batches at once, as Arrow columns: no Python object is made for a record.

Batches come from segment files (`records`) or from a broker (`source.range_reader`). A `Chunk`
holds the uncompressed bodies of some batches, one behind the other. Python finds the size of each
record (`records.record.size_runs`); then Arrow's functions find every field of all records, column
by column:

    sizes → timestamp delta → offset delta → key length → key → value length → value

Each arrow is one `_varints` (value and next position of every record) or one `_slices`. This is two
to three times as fast as a loop over the fields in Python, and as strict: lengths from outside are
checked before the bytes at that place are read.

Formats 0 and 1 are read record by record (`LegacyChunk`).

Source: Kafka DefaultRecord; `records/record.py`.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from minibroker.kafka.errors import CorruptionError
from minibroker.kafka.records.batch import RECORDS_AT
from minibroker.kafka.records.compression import NONE, decompress
from minibroker.kafka.records.message_set import decode_message
from minibroker.kafka.records.record import read_varint, size_runs
from minibroker.pipeline.kafka.schemas import NO_TIMESTAMP_TYPE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from minibroker.kafka.records.batch import BatchHeader
    from minibroker.kafka.records.record import Record
    from minibroker.kafka.records.stored_batch import StoredBatch

UNFOLDED_BYTES_MAX: Final = 512 << 20
"""Most uncompressed bytes of one batch: positions are 32 bits wide."""
HEADER_TURNS_MAX: Final = 32
"""Headers of a record up to which all records are read together, in so many turns."""
_PADDING: Final = bytes(32)
"""Bytes behind the last body: a record with wrong lengths is read a little beyond its end."""
_INT32_VARINT_MAX: Final = 5
_INT64_VARINT_MAX: Final = 10

_INT64: Final = pa.int64()
_NULL: Final = pa.scalar(None, _INT64)
_ZERO: Final = pa.scalar(0, _INT64)
_ONE: Final = pa.scalar(1, _INT64)
_UINT64: Final = pa.uint64()
_NO_BITS: Final = pa.scalar(0, _UINT64)
_SIGN_BIT: Final = pa.scalar(1, _UINT64)
_LOW_BITS: Final = pa.scalar(0x7F, _UINT64)
_MORE_BIT: Final = pa.scalar(0x80, _UINT64)
_HALF: Final = pa.scalar(32, _INT64)
_MICROSECONDS: Final = pa.scalar(1000, _INT64)
_TIMESTAMP_MS_MAX: Final = 2**63 // 1000 - 1

Columns = dict[str, pa.Array]
"""Column name of `schemas.RECORD_WITH_HEADERS` → its values, without topic and partition."""


class _Body(NamedTuple):
    header: BatchHeader
    position: int
    content: bytes | memoryview


class Chunk:
    """Batches of format 2 that become columns."""

    def __init__(self, *, keeps_far_times: bool = False) -> None:
        """`keeps_far_times`: a time that no column can hold becomes the last one, and not null."""
        self._keeps_far_times = keeps_far_times
        self._bodies: list[_Body] = []
        self.size_bytes = 0
        self.count = 0

    def add(self, batch: StoredBatch) -> None:
        """Add a data batch, uncompressed. Raises CorruptionError."""
        header = batch.header
        content: bytes | memoryview = batch.content[RECORDS_AT:]
        if header.codec != NONE:
            content = decompress(header.codec, content, UNFOLDED_BYTES_MAX)
        self._bodies.append(_Body(header, batch.position, content))
        self.size_bytes += len(content)
        self.count += header.count

    def take_columns(self, *, include_headers: bool) -> Columns:
        """Return the records of every batch, in order, and empty the chunk.

        Raises CorruptionError that names the position of the batch that is malformed.
        """
        bodies, self._bodies = self._bodies, []
        self.size_bytes = self.count = 0
        try:
            columns = _decode(bodies, include_headers=include_headers)
        except CorruptionError:
            for body in bodies:
                try:
                    _decode([body], include_headers=include_headers)
                except CorruptionError as error:
                    raise CorruptionError(
                        f"batch at position {body.position} (offset {body.header.base_offset}): "
                        f"{error}"
                    ) from error
            raise
        return _with_times(columns, keeps_far_times=self._keeps_far_times)


def rows_within(
    columns: Columns,
    schema: pa.Schema,
    place: tuple[str, int],
    start: int,
    end: int | None,
) -> pa.RecordBatch:
    """Return the records from offset `start` to before `end` as rows of `schema`.

    Args:
        columns: of `take_columns`.
        schema: `schemas.arrow_schema`.
        place: topic and partition of every record.
        start: batches have records before it, too.
        end: batches have records behind it, too; None: no end.
    """
    topic, partition = place
    offsets = columns["offset"]
    constant = {
        "topic": pa.repeat(pa.scalar(topic), len(offsets)),
        "partition": pa.repeat(pa.scalar(partition, pa.int32()), len(offsets)),
    }
    all_columns = {**columns, **constant}
    whole = pa.RecordBatch.from_arrays(
        [all_columns[name].cast(schema.field(name).type) for name in schema.names], schema=schema
    )
    is_wanted = pc.greater_equal(offsets, start)
    if end is not None:
        is_wanted = pc.and_(is_wanted, pc.less(offsets, end))
    return whole if pc.all(is_wanted).as_py() else whole.filter(is_wanted)


def _decode(bodies: Sequence[_Body], *, include_headers: bool) -> Columns:
    sizes, counts = array("q"), array("q")
    joined = b"".join([*(body.content for body in bodies), _PADDING])
    end = 0
    for body in bodies:
        start, end = end, end + len(body.content)
        runs = size_runs(joined, start, end, body.header.count)
        sizes += runs.sizes
        counts += runs.counts
    data = pa.py_buffer(joined)
    octets = pa.Array.from_buffers(pa.uint8(), len(joined), [None, data])
    at, ends = _body_places(octets, _column(sizes), _column(counts))

    timestamp_delta, at = _varints(octets, pc.add(at, _ONE), _INT64_VARINT_MAX)
    offset_delta, at = _varints(octets, at, _INT32_VARINT_MAX)
    key_length, at = _varints(octets, at, _INT32_VARINT_MAX)
    key, at = _slices(data, at, key_length, ends)
    value_length, at = _varints(octets, at, _INT32_VARINT_MAX)
    value, at = _slices(data, at, value_length, ends)

    of_batch = _OfBatches([body.header for body in bodies])
    columns = {
        "key": key,
        "value": value,
        "offset": pc.add(of_batch.base_offsets(), offset_delta),
        "timestamp": of_batch.timestamps(timestamp_delta),
        "timestampType": of_batch.timestamp_types(),
    }
    if include_headers:
        columns["headers"] = _headers(_Texts(joined, data, octets), at, ends)
    return columns


def _column(numbers: array[int]) -> pa.Array:
    """Return 64-bit numbers as a column over the same memory."""
    return pa.Array.from_buffers(_INT64, len(numbers), [None, pa.py_buffer(numbers)])


def _body_places(octets: pa.Array, sizes: pa.Array, counts: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return where each record goes on behind its length, and where it ends.

    Args:
        octets: the data.
        sizes: `SizeRuns` of all records, which follow each other from byte 0 on.
        counts: as above.
    """
    run_bytes = pc.multiply(sizes, counts)
    begins = pc.subtract(pc.cumulative_sum(run_bytes), run_bytes)
    _, behind = _varints(octets, begins, _INT32_VARINT_MAX)
    runs = _Runs(counts)
    size = runs.repeated(sizes)
    ends = pc.cumulative_sum(size)
    body_bytes = runs.repeated(pc.subtract(pc.add(begins, sizes), behind))
    return pc.subtract(ends, body_bytes), ends


class _Runs:
    """Records one behind the other that share values."""

    def __init__(self, counts: pa.Array) -> None:
        self._ends = pc.cumulative_sum(counts).cast(pa.int32())

    def repeated(self, values: pa.Array) -> pa.Array:
        """Return the value of each run for each of its records."""
        return pc.run_end_decode(pa.RunEndEncodedArray.from_arrays(self._ends, values))


class _OfBatches:
    """Fields of the batches, repeated for each of their records."""

    def __init__(self, headers: Sequence[BatchHeader]) -> None:
        self._headers = headers
        self._runs = _Runs(pa.array([header.count for header in headers], _INT64))

    def _repeat(self, values: Sequence[int], kind: pa.DataType) -> pa.Array:
        return self._runs.repeated(pa.array(values, kind))

    def base_offsets(self) -> pa.Array:
        return self._repeat([header.base_offset for header in self._headers], _INT64)

    def timestamps(self, deltas: pa.Array) -> pa.Array:
        """Return milliseconds; in a batch with append time every record has the batch's largest."""
        headers = self._headers
        base = self._repeat(
            [
                header.max_timestamp if header.is_append_time else header.base_timestamp
                for header in headers
            ],
            _INT64,
        )
        if any(header.is_append_time for header in headers):
            of_create_time = self._repeat(
                [int(not header.is_append_time) for header in headers], _INT64
            )
            deltas = pc.multiply(deltas, of_create_time)
        return pc.add(base, deltas)

    def timestamp_types(self) -> pa.Array:
        return self._repeat([int(header.is_append_time) for header in self._headers], pa.int32())


def _varints(octets: pa.Array, at: pa.Array, bytes_max: int) -> tuple[pa.Array, pa.Array]:
    """Return (values, positions behind them) of the zigzag varints at the positions `at`.

    The positions lie inside the data or less than the padding behind it. Raises CorruptionError for
    a varint of more than `bytes_max` bytes.
    """
    byte = octets.take(at).cast(_UINT64)
    raw = pc.bit_wise_and(byte, _LOW_BITS)
    at = pc.add(at, _ONE)
    more = pc.greater_equal(byte, _MORE_BIT)
    length = 1
    while pc.any(more).as_py():
        if length == bytes_max:
            raise CorruptionError(f"a varint has more than {bytes_max} bytes")
        byte = pc.if_else(more, octets.take(at).cast(_UINT64), _NO_BITS)
        bits = pc.shift_left(pc.bit_wise_and(byte, _LOW_BITS), pa.scalar(7 * length, _UINT64))
        raw = pc.bit_wise_or(raw, bits)
        at = pc.add(at, more.cast(_INT64))
        more = pc.greater_equal(byte, _MORE_BIT)
        length += 1
    sign = pc.negate(pc.bit_wise_and(raw, _SIGN_BIT).view(_INT64))
    return pc.bit_wise_xor(pc.shift_right(raw, _SIGN_BIT).view(_INT64), sign), at


def _slices(
    data: pa.Buffer, at: pa.Array, length: pa.Array, ends: pa.Array
) -> tuple[pa.Array, pa.Array]:
    """Return (bytes or null, positions behind them) of fields of these lengths, negative for null.

    Seen as one binary array, `data` alternates between the fields and what lies between them; every
    other element is a field. Raises CorruptionError for a field that passes the end of its record.
    """
    count = len(at)
    is_null = pc.less(length, _ZERO)
    stop = pc.add(at, pc.max_element_wise(length, _ZERO))
    if pc.any(pc.greater(stop, ends)).as_py():
        raise CorruptionError("a key or a value reaches beyond the end of its record")
    limits = pc.bit_wise_or(at, pc.shift_left(stop, _HALF))  # two int32 in one int64
    pieces = pa.Array.from_buffers(pa.binary(), 2 * count - 1, [None, limits.buffers()[1], data])
    indices = pc.multiply(_counting(count), pa.scalar(2, _INT64))
    if pc.any(is_null).as_py():
        indices = pc.if_else(is_null, _NULL, indices)
    return pieces.take(indices), stop


def _counting(count: int) -> pa.Array:
    """Return 0, 1, 2 … `count` - 1."""
    global _numbers  # noqa: PLW0603  a constant that grows: 1 ms for each chunk otherwise
    if len(_numbers) < count:
        _numbers = pa.array(range(2 * count), _INT64)
    return _numbers.slice(0, count)


_numbers: pa.Array = pa.array([], _INT64)
"""0, 1, 2 … as far as it was needed."""


def _with_times(columns: Columns, *, keeps_far_times: bool) -> Columns:
    """Return the columns with times in microseconds instead of milliseconds.

    A time that no column can hold becomes null, or the last that it can.
    """
    times_ms = columns["timestamp"]
    limit = pa.scalar(_TIMESTAMP_MS_MAX, _INT64)
    too_large = pc.greater(times_ms, limit)
    too_small = pc.less(times_ms, pc.negate(limit))
    if pc.any(pc.or_(too_large, too_small)).as_py():
        most, least = (limit, pc.negate(limit)) if keeps_far_times else (_NULL, _NULL)
        times_ms = pc.if_else(too_large, most, pc.if_else(too_small, least, times_ms))
    times = pc.multiply(times_ms, _MICROSECONDS).view(pa.timestamp("us", "UTC"))
    return {**columns, "timestamp": times}


HEADERS: Final = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


class _Texts(NamedTuple):
    """The bytes of a chunk, as the functions for headers need them."""

    joined: bytes
    data: pa.Buffer
    octets: pa.Array


def _headers(texts: _Texts, at: pa.Array, ends: pa.Array) -> pa.Array:
    """Return the headers of each record, null without headers.

    They are read in turns: the first header of every record, then the second, and so on.
    """
    counts, at = _varints(texts.octets, at, _INT32_VARINT_MAX)
    is_wrong = pc.or_(pc.less(counts, _ZERO), pc.greater(counts, pc.subtract(ends, at)))
    if pc.any(is_wrong).as_py():
        [count, *_] = counts.filter(is_wrong).to_pylist()
        raise CorruptionError(f"a record declares {count} headers, more than it has bytes, or none")
    most = pc.max(counts).as_py()
    if not most:
        return pa.nulls(len(counts), HEADERS)
    if most > HEADER_TURNS_MAX:
        return _headers_singly(texts.joined, counts, at, ends)
    index = pc.indices_nonzero(counts)
    stops = pc.cumulative_sum(counts)
    first = pc.subtract(stops, counts)
    keys, values, places = [], [], []
    at, ends = at.take(index), ends.take(index)
    for turn in range(most):
        key_length, at = _varints(texts.octets, at, _INT32_VARINT_MAX)
        if pc.any(pc.less(key_length, _ZERO)).as_py():
            raise CorruptionError("a record has a header without a key")
        key, at = _slices(texts.data, at, key_length, ends)
        value_length, at = _varints(texts.octets, at, _INT32_VARINT_MAX)
        value, at = _slices(texts.data, at, value_length, ends)
        keys.append(key)
        values.append(value)
        places.append(pc.add(first.take(index), pa.scalar(turn, _INT64)))
        has_more = pc.greater(counts.take(index), pa.scalar(turn + 1, _INT64))
        index, at, ends = index.filter(has_more), at.filter(has_more), ends.filter(has_more)
    order = pc.sort_indices(pa.concat_arrays(places))
    pairs = pa.StructArray.from_arrays(
        [
            _text_column(pa.concat_arrays(keys).take(order)),
            pa.concat_arrays(values).take(order),
        ],
        fields=list(HEADERS.value_type),
    )
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), stops.cast(pa.int32())])
    return pa.ListArray.from_arrays(offsets, pairs, type=HEADERS, mask=pc.equal(counts, _ZERO))


def _text_column(keys: pa.Array) -> pa.Array:
    """Return bytes as texts; as the Java client: what is no UTF-8 shows as such."""
    try:
        return keys.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([key.decode("utf-8", "replace") for key in keys.to_pylist()], pa.string())


def _headers_singly(joined: bytes, counts: pa.Array, at: pa.Array, ends: pa.Array) -> pa.Array:
    """Return the headers of records of which some have very many, record by record."""
    headers: list[list[dict[str, Any]] | None] = [None] * len(at)
    for index in pc.indices_nonzero(counts).to_pylist():
        headers[index] = _headers_of(
            joined, at[index].as_py(), ends[index].as_py(), counts[index].as_py()
        )
    return pa.array(headers, HEADERS)


def _headers_of(data: bytes, at: int, end: int, count: int) -> list[dict[str, Any]]:
    headers = []
    for _ in range(count):
        key, at = _field(data, at, end)
        value, at = _field(data, at, end)
        if key is None:
            raise CorruptionError("a record has a header without a key")
        # As the Java client: what is no UTF-8 shows as such.
        headers.append({"key": key.decode("utf-8", "replace"), "value": value})
    return headers


def _field(data: bytes, at: int, end: int) -> tuple[bytes | None, int]:
    length, at = read_varint(data, at)
    stop = at + max(length, 0)
    if stop > end:
        raise CorruptionError("a header reaches beyond the end of its record")
    return (None if length < 0 else data[at:stop]), stop


class LegacyChunk:
    """Like `Chunk` for messages of formats 0 and 1, which have no headers: record by record."""

    def __init__(self, *, keeps_far_times: bool = False) -> None:
        self._keeps_far_times = keeps_far_times
        self._records: list[Record] = []
        self._types: list[int] = []
        self.size_bytes = 0

    @property
    def count(self) -> int:
        """Return the number of waiting records."""
        return len(self._records)

    def add(self, batch: StoredBatch) -> None:
        """Add a message, or all messages in a wrapper. Raises CorruptionError."""
        header = batch.header
        try:
            records = decode_message(
                batch.content, header=header, size_bytes_max=UNFOLDED_BYTES_MAX
            )
        except CorruptionError as error:
            raise CorruptionError(f"message at position {batch.position}: {error}") from error
        kind = NO_TIMESTAMP_TYPE if header.magic == 0 else int(header.is_append_time)
        self._records += records
        self._types += [kind] * len(records)
        for record in records:
            self.size_bytes += len(record.key or b"") + len(record.value or b"")

    def take_columns(self, *, include_headers: bool) -> Columns:
        """Return every record, in order, and empty the chunk."""
        records, self._records = self._records, []
        types, self._types = self._types, []
        self.size_bytes = 0
        columns = {
            "key": pa.array([record.key for record in records], pa.binary()),
            "value": pa.array([record.value for record in records], pa.binary()),
            "offset": pa.array([record.offset for record in records], _INT64),
            "timestamp": pa.array([record.timestamp for record in records], _INT64),
            "timestampType": pa.array(types, pa.int32()),
        }
        if include_headers:
            columns["headers"] = pa.nulls(len(records), HEADERS)
        return _with_times(columns, keeps_far_times=self._keeps_far_times)

"""Rows of an Arrow batch → record batches of format 2: no Python object is made for a record.

    rows ─► partition of each ─► rows of a partition side by side ─► batches, by size and count
         ─► every field of all records as a column of bytes ─► one join ─► cut at the batches' ends

Arrow joins the columns row by row, so the joined buffer is the records one behind the other. A
column whose values are all the same (no key, no headers) is one value for the join.

Source: Kafka DefaultRecord.writeTo; `records/builder.py` does the same record by record.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from minibroker.kafka.ids import TopicPartition
from minibroker.kafka.records.builder import write_varint

if TYPE_CHECKING:
    from collections.abc import Iterator

RECORDS_MAX: Final = 10_000
"""Most records of a batch."""
RECORD_OVERHEAD_BYTES: Final = 36
"""Most bytes of a record beside its key, value and headers: the varints, and the attributes."""
_VARINTS_KEPT: Final = 1 << 15
_INT64: Final = pa.int64()
_NOTHING: Final = b"\x00"
_NULL: Final = b"\x01"

Column = Any
"""An array, or one value for all rows."""


class RowsToSend(NamedTuple):
    """Rows for topics, as columns of equal length."""

    topics: Column
    """One topic as text, or an array of strings."""
    partitions: pa.Array
    """int32."""
    keys: pa.Array | None
    values: pa.Array
    times: pa.Array | int
    """ms since the epoch; a number: of every row."""
    headers: pa.Array | None
    """Binary: the count of headers and the headers, encoded; None: there are none."""

    def part(self, start: int, count: int) -> RowsToSend:
        """Return at most `count` of these rows, from `start` on."""
        return RowsToSend(
            *(
                column.slice(start, count) if isinstance(column, pa.Array) else column
                for column in self
            )
        )

    def take(self, indices: pa.Array) -> RowsToSend:
        """Return these rows in another order, or some of them."""
        return RowsToSend(*(_take_rows(column, indices) for column in self))


class EncodedRecords(NamedTuple):
    """The records of one batch, without its header."""

    place: TopicPartition
    payload: memoryview
    rows: int
    base_time_ms: int
    max_time_ms: int


def _take_rows(column: Column, indices: pa.Array) -> Column:
    return column.take(indices) if isinstance(column, pa.Array) else column


def encode_headers(headers: list[tuple[str, bytes | None]] | None) -> bytes:
    """Return the headers of one record, with their count."""
    if not headers:
        return _NOTHING
    out = bytearray()
    write_varint(out, len(headers))
    for key, value in headers:
        _write_bytes(out, key.encode())
        _write_bytes(out, value)
    return bytes(out)


def _write_bytes(out: bytearray, value: bytes | None) -> None:
    if value is None:
        out += _NULL
    else:
        write_varint(out, len(value))
        out += value


def encode(
    rows: RowsToSend, size_bytes_max: int, count_max: int = RECORDS_MAX
) -> Iterator[EncodedRecords]:
    """Yield the batches of rows; those of one partition have its rows in order.

    Args:
        rows: at least one.
        size_bytes_max: of the records of a batch; a larger record is alone in its batch.
        count_max: records of a batch, at most `RECORDS_MAX`.
    """
    sorted_rows, groups = _grouped(rows)
    ends = pc.cumulative_sum(_size_bounds(sorted_rows))
    spans = [
        (place, *span)
        for place, start, end in groups
        for span in _cut(ends, (start, end), size_bytes_max, count_max)
    ]
    counts = [end - start for _, start, end in spans]
    bases = _base_times(sorted_rows.times, spans)
    joined = _joined(sorted_rows, counts, bases)
    offsets, data = joined.buffers()[1:]
    places = memoryview(offsets).cast("q" if pa.types.is_large_binary(joined.type) else "i")
    content = memoryview(data)
    for (place, start, end), base in zip(spans, bases, strict=True):
        payload = content[places[start] : places[end]]
        latest = base
        if isinstance(sorted_rows.times, pa.Array):
            latest = pc.max(sorted_rows.times.slice(start, end - start)).as_py()
        yield EncodedRecords(place, payload, end - start, base, latest)


def _grouped(rows: RowsToSend) -> tuple[RowsToSend, list[tuple[TopicPartition, int, int]]]:
    """Return the rows with those of a partition side by side, and where each partition's are."""
    topics: list[str] = [rows.topics]
    codes = rows.partitions.cast(_INT64)
    if isinstance(rows.topics, pa.Array):
        coded = rows.topics.dictionary_encode()
        topics = coded.dictionary.to_pylist()
        codes = pc.add(codes, pc.shift_left(coded.indices.cast(_INT64), 32))
    sorts = pc.min_max(codes)
    if sorts["min"] == sorts["max"]:
        place = _place(sorts["min"].as_py(), topics)
        return rows, [(place, 0, len(codes))]
    order = pc.array_sort_indices(codes)
    counted = {item["values"]: item["counts"] for item in pc.value_counts(codes).to_pylist()}
    groups, start = [], 0
    for code in sorted(counted):
        end = start + counted[code]
        groups.append((_place(code, topics), start, end))
        start = end
    return rows._replace(topics="", partitions=codes).take(order), groups


def _place(code: int, topics: list[str]) -> TopicPartition:
    return TopicPartition(topics[code >> 32], code & 0xFFFFFFFF)


def _size_bounds(rows: RowsToSend) -> pa.Array:
    """Return for each row the most bytes that its record may have."""
    bounds = pc.add(_lengths(rows.values), RECORD_OVERHEAD_BYTES)
    for column in (rows.keys, rows.headers):
        if column is not None:
            bounds = pc.add(bounds, _lengths(column))
    return bounds


def _lengths(column: pa.Array) -> pa.Array:
    return pc.fill_null(pc.binary_length(column).cast(_INT64), 0)


def _cut(
    ends: pa.Array, span: tuple[int, int], size_bytes_max: int, count_max: int
) -> Iterator[tuple[int, int]]:
    """Yield first row and end of each batch of the rows of a span."""
    start, end = span
    while start < end:
        start_bytes = ends[start - 1].as_py() if start else 0
        most = start_bytes + size_bytes_max
        limit = min(end, start + count_max)
        if ends[limit - 1].as_py() > most:
            limit = bisect_right(ends, most, start, limit, key=lambda bound: bound.as_py())
        limit = max(limit, start + 1)
        yield start, limit
        start = limit


def _base_times(times: pa.Array | int, spans: list[tuple[TopicPartition, int, int]]) -> list[int]:
    if isinstance(times, int):
        return [times] * len(spans)
    return [times[start].as_py() for _, start, _ in spans]


def _joined(rows: RowsToSend, counts: list[int], bases: list[int]) -> pa.Array:
    """Return the record of each row.

    Args:
        rows: in the order of the batches.
        counts: records of each batch.
        bases: time of the first record of each batch.
    """
    numbers = _small_varints()
    deltas = pa.concat_arrays([numbers.slice(0, count) for count in counts])
    fields: list[Column] = [_NOTHING, _time_deltas(rows.times, counts, bases), deltas]
    for column in (rows.keys, rows.values):
        if column is None:
            fields.append(_NULL)
            continue
        lengths = pc.binary_length(column).cast(_INT64)
        fields.append(_varints(pc.fill_null(lengths, -1)))
        fields.append(pc.fill_null(column, b"") if column.null_count else column)
    fields.append(_NOTHING if rows.headers is None else rows.headers)
    size = sum(len(field) for field in fields if isinstance(field, bytes))
    sizes: Column = pa.scalar(size, _INT64)
    for field in fields:
        if not isinstance(field, bytes):
            sizes = pc.add(sizes, pc.binary_length(field))
    return _join([_varints(sizes), *fields])


def _join(fields: list[Column]) -> pa.Array:
    kind = pa.binary()
    if any(pa.types.is_large_binary(field.type) for field in fields if isinstance(field, pa.Array)):
        kind = pa.large_binary()
    cast = [
        field.cast(kind) if isinstance(field, pa.Array) else pa.scalar(field, kind)
        for field in fields
    ]
    return pc.binary_join_element_wise(*cast, pa.scalar(b"", kind))


def _time_deltas(times: pa.Array | int, counts: list[int], bases: list[int]) -> Column:
    if isinstance(times, int):
        return _NOTHING
    firsts = pa.concat_arrays(
        [
            pa.repeat(pa.scalar(base, _INT64), count)
            for base, count in zip(bases, counts, strict=True)
        ]
    )
    return _varints(pc.subtract(times, firsts))


def _varints(numbers: pa.Array) -> pa.Array:
    """Return int64 numbers as zigzag varints."""
    bounds = pc.min_max(numbers)
    low, high = bounds["min"].as_py(), bounds["max"].as_py()
    if low == high:
        return pa.repeat(pa.scalar(_varint(low), pa.binary()), len(numbers))
    if low >= 0 and high < _VARINTS_KEPT:
        return _small_varints().take(numbers)
    coded = numbers.dictionary_encode()
    varints = pa.array(map(_varint, coded.dictionary.to_pylist()), pa.binary())
    return varints.take(coded.indices)


def _varint(number: int) -> bytes:
    out = bytearray()
    write_varint(out, number)
    return bytes(out)


@cache
def _small_varints() -> pa.Array:
    return pa.array(map(_varint, range(_VARINTS_KEPT)), pa.binary())

"""Hashes of the records of an Arrow batch, for `compare`: two records are the same if theirs are.

Bytes are hashed by XXH3 of the package `xxhash`, 128 bits as two lanes of 64. The lanes of a
record's columns go into one lane each, by multiplication with odd constants and a last mix, so that
values that change places between two records are seen. No Python code runs for a record: `map`
calls the extension, and the rest are functions of Arrow on whole columns.

    key, value ── XXH3 ─┐
    headers ────────────┼► mix ─► first, second: 128 bits of the record
    timestamp, offset ──┘
    key ──────────────────► sequence: the records whose order counts

With a random seed for each comparison, two different records have the same hash by chance once in
2^128 pairs. XXH3 is no protection against somebody who knows the seed and looks for such a pair.
"""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from xxhash import xxh3_128_digest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from minibroker.pipeline.verbs.compare.rules import CompareRules

ROWS_MAX: Final = 10_000
"""Rows that are hashed at a time; more do not fit into the caches."""

_UINT64: Final = pa.uint64()
_INT64: Final = pa.int64()


def _constant(number: int) -> pa.Scalar:
    return pa.scalar(number, _UINT64)


# Odd numbers without a pattern: the digits of pi and of e behind the point.
_FACTORS: Final = (
    tuple(
        _constant(number)
        for number in (
            0x243F6A8885A308D3,
            0x13198A2E03707345,
            0xA4093822299F31D1,
            0x082EFA98EC4E6C89,
            0x452821E638D01377,
        )
    ),
    tuple(
        _constant(number)
        for number in (
            0xB7E151628AED2A6B,
            0xBF7158809CF4F3C7,
            0x62E7160F38B4DA57,
            0xA784D9045190CFEF,
            0x324E7738926CFBE5,
        )
    ),
)
"""For each lane: of key, value, headers, timestamp and offset."""
_NULL: Final = (_constant(0x9E3779B97F4A7C15), _constant(0xC2B2AE3D27D4EB4F))
"""Lanes of a null, which is not an empty value."""
_PLACE: Final = _constant(0x165667B19E3779F9)
"""Factor of a header's place among the headers of its record."""
_SHIFTS: Final = (_constant(30), _constant(27), _constant(31))
_MIXERS: Final = (_constant(0xBF58476D1CE4E5B9), _constant(0x94D049BB133111EB))
"""Steps of SplitMix64's last mix, which is a permutation of 64 bits."""

NO_KEY: Final = 0x5851F42D4C957F2D
"""Sequence of the records of a partition that have no key."""


class RowHashes(NamedTuple):
    """The hashes of the records of a batch, each a column of uint64."""

    sequence: pa.Array
    """Records of the same key have the same number."""
    first: pa.Array
    second: pa.Array
    value: pa.Array
    headers: pa.Array

    def slice(self, start: int, rows: int) -> RowHashes:
        """Return the hashes of some of the records."""
        return RowHashes(*(column.slice(start, rows) for column in self))


def hashes(batch: pa.RecordBatch, rules: CompareRules, seed: int) -> RowHashes:
    """Return the hashes of the records of a batch.

    Args:
        batch: columns of `schemas.RECORD_WITH_HEADERS`; headers only if they count.
        rules: the columns that count.
        seed: of this comparison, 0 to 2^64-1.
    """
    key, value = _lanes(batch["key"], seed), _lanes(batch["value"], seed)
    nothing = (pa.repeat(_constant(0), batch.num_rows),) * 2
    headers = _of_headers(batch["headers"], seed) if rules.headers else nothing
    numbers = []
    if rules.timestamp:
        numbers.append((3, _as_uint64(batch["timestamp"].cast(pa.timestamp("us", "UTC")))))
    if rules.offset:
        numbers.append((4, _as_uint64(batch["offset"])))
    lanes = []
    for lane, factors in enumerate(_FACTORS):
        total = pc.multiply(key[lane], factors[0])
        total = pc.add(total, pc.multiply(value[lane], factors[1]))
        if rules.headers:
            total = pc.add(total, pc.multiply(headers[lane], factors[2]))
        for index, column in numbers:
            total = pc.add(total, pc.multiply(column, factors[index]))
        lanes.append(_mixed(total))
    sequence = key[0]
    if batch["key"].null_count:
        # Wherever a record without a key may be, it has no order.
        without = _constant(NO_KEY) if rules.partition else lanes[0]
        sequence = pc.if_else(batch["key"].is_null(), without, sequence)
    return RowHashes(sequence, lanes[0], lanes[1], value[0], headers[0])


def _lanes(column: pa.Array, seed: int) -> tuple[pa.Array, pa.Array]:
    """Return the hashes of bytes or texts, as two lanes."""
    if not pa.types.is_binary(column.type):
        column = column.cast(pa.binary())
    values: list[Any] = (column.fill_null(b"") if column.null_count else column).to_pylist()
    digests = pa.py_buffer(b"".join(map(xxh3_128_digest, values, repeat(seed))))
    pairs = pa.Array.from_buffers(_UINT64, 2 * len(values), [None, digests])
    both = pa.FixedSizeListArray.from_arrays(pairs, 2)
    first, second = pc.list_element(both, 0), pc.list_element(both, 1)
    if column.null_count:
        is_null = column.is_null()
        first = pc.if_else(is_null, _NULL[0], first)
        second = pc.if_else(is_null, _NULL[1], second)
    return first, second


def _of_headers(column: pa.Array, seed: int) -> tuple[pa.Array, pa.Array]:
    """Return the hashes of lists of headers, 0 for a record without any; their order counts."""
    rows = len(column)
    lengths = pc.list_value_length(column).fill_null(0)
    nothing = pa.repeat(_constant(0), rows)
    flat = column.flatten()
    if not len(flat):
        return nothing, nothing
    parents = pc.list_parent_indices(column)
    starts = pc.subtract(pc.cumulative_sum(lengths), lengths)
    places = pc.subtract(pa.array(range(len(flat)), pa.int32()), starts.take(parents))
    offsets = pc.multiply(_as_uint64(places), _PLACE)
    keys, values = _lanes(flat.field("key"), seed), _lanes(flat.field("value"), seed)
    mixed = [
        _mixed(
            pc.add(
                offsets,
                pc.add(pc.multiply(keys[lane], factors[0]), pc.multiply(values[lane], factors[1])),
            )
        )
        for lane, factors in enumerate(_FACTORS)
    ]
    sums = (
        pa.table({"row": parents, "first": mixed[0], "second": mixed[1]})
        .group_by("row", use_threads=False)
        .aggregate([("first", "sum"), ("second", "sum")])
    )
    has_some = pc.greater(lengths, 0)
    first, second = (
        pc.replace_with_mask(nothing, has_some, sums[name].combine_chunks())
        for name in ("first_sum", "second_sum")
    )
    return first, second


def _mixed(column: pa.Array) -> pa.Array:
    """Return the last mix of SplitMix64: each bit depends on every other one."""
    column = pc.bit_wise_xor(column, pc.shift_right(column, _SHIFTS[0]))
    column = pc.multiply(column, _MIXERS[0])
    column = pc.bit_wise_xor(column, pc.shift_right(column, _SHIFTS[1]))
    column = pc.multiply(column, _MIXERS[1])
    return pc.bit_wise_xor(column, pc.shift_right(column, _SHIFTS[2]))


def _as_uint64(column: pa.Array) -> pa.Array:
    if column.type.bit_width != 64:
        column = column.cast(_INT64)
    return column.view(_INT64).fill_null(-1).view(_UINT64)


def as_int64(columns: Sequence[pa.Array]) -> list[pa.Array]:
    """Return hashes with the bits of a bigint, which Spark has."""
    return [column.view(_INT64) for column in columns]

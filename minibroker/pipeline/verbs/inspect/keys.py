"""Counts of keys in bounded memory, for `inspect`: how many there are, and which are frequent.

    KeyCount       the smallest hashes: the number of different keys, exact below KEPT, else about
    FrequentKeys   a count for each of the most frequent keys, exact while there are few keys

Both take the different keys of an Arrow batch, and both can be merged: a task makes them, the
driver unites them. A key is known by its 64 bits of XXH3, so no content is kept but the start of
the few keys that are counted.

Sources: Bar-Yossef and others, "Counting Distinct Elements in a Data Stream" (the k smallest
hashes); Misra and Gries, "Finding Repeated Elements", and Agarwal and others, "Mergeable
Summaries", for the counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from xxhash import xxh3_64_intdigest

if TYPE_CHECKING:
    pass

SMALLEST_MAX: Final = 4096
"""Hashes of a `KeyCount`: the error of its estimate is 1.6 % (1 / √KEPT) in two of three cases."""
COUNTED: Final = 8192
"""Keys of `FrequentKeys`: a count is short by 1 / COUNTED of the records at most."""
KEY_BYTES_SHOWN: Final = 64

_HASHES: Final = 1 << 64
_COLUMNS: Final = pa.schema(
    [
        ("hash", pa.uint64()),
        ("records", pa.int64()),
        ("start", pa.binary()),
        ("size", pa.int64()),
        ("first", pa.int32()),
        ("last", pa.int32()),
    ]
)


class Keys(NamedTuple):
    """The different keys of a batch, each once; fields as the first columns of `_COLUMNS`."""

    hashes: pa.Array
    records: pa.Array
    starts: pa.Array
    """Their first KEY_BYTES_SHOWN bytes."""
    sizes: pa.Array


class CountedKey(NamedTuple):
    """One key of `FrequentKeys`."""

    start: bytes
    size: int
    records: int
    first_partition: int
    last_partition: int


def keys_of(column: pa.Array) -> Keys:
    """Return the keys of a column of bytes; nulls are no keys."""
    counts = pc.value_counts(column.drop_null())
    keys = counts.field("values").cast(pa.binary())
    hashes = pa.array(map(xxh3_64_intdigest, keys.to_pylist()), pa.uint64())
    starts = pc.binary_slice(keys, 0, KEY_BYTES_SHOWN)
    return Keys(hashes, counts.field("counts"), starts, pc.binary_length(keys).cast(pa.int64()))


class KeyCount:
    """The number of different keys; the tasks send it by pickle."""

    def __init__(self) -> None:
        self._smallest = pa.array([], pa.uint64())
        self._waiting: list[pa.Array] = []
        self._count = 0

    def add(self, hashes: pa.Array) -> None:
        """Take hashes of keys, in any order and any number of times."""
        if len(self._smallest) == SMALLEST_MAX:
            hashes = hashes.filter(pc.less(hashes, self._smallest[SMALLEST_MAX - 1]))
        self._waiting.append(hashes)
        self._count += len(hashes)
        if self._count >= SMALLEST_MAX:
            self.settle()

    def merge(self, other: KeyCount) -> None:
        """Take the keys of another one."""
        for hashes in (other._smallest, *other._waiting):
            self.add(hashes)

    def settle(self) -> None:
        """Keep the smallest hashes alone: nothing else has to travel."""
        hashes = pc.unique(pa.concat_arrays([self._smallest, *self._waiting]))
        self._smallest = hashes.take(pc.array_sort_indices(hashes).slice(0, SMALLEST_MAX))
        self._waiting, self._count = [], 0

    def estimate(self) -> int:
        """Return the number of different keys, exact if there are fewer than KEPT."""
        self.settle()
        if len(self._smallest) < SMALLEST_MAX:
            return len(self._smallest)
        largest: int = self._smallest[SMALLEST_MAX - 1].as_py()
        return round((SMALLEST_MAX - 1) * _HASHES / (largest + 1))


class FrequentKeys:
    """Counts of the most frequent keys; the tasks send it by pickle.

    Once there are more than COUNTED keys, the count of the first one behind them is taken from all,
    and the keys without a rest are dropped. `missed` is the sum of what was taken: a key has its
    count at least, and its count plus `missed` at most.
    """

    def __init__(self) -> None:
        self.missed = 0
        self._table = _COLUMNS.empty_table()
        self._waiting: list[pa.Table] = []
        self._rows = 0

    def add(self, keys: Keys, partition: int) -> None:
        """Take the keys of a batch of one partition."""
        places = pa.repeat(pa.scalar(partition, pa.int32()), len(keys.hashes))
        self._take(pa.table([*keys, places, places], schema=_COLUMNS))

    def merge(self, other: FrequentKeys) -> None:
        """Take the counts of another one."""
        self.missed += other.missed
        for table in (other._table, *other._waiting):
            self._take(table)

    def settle(self) -> None:
        """Count each key once, COUNTED of them at most: nothing else has to travel."""
        table = (
            pa.concat_tables([self._table, *self._waiting])
            .group_by("hash", use_threads=False)
            .aggregate(
                [
                    ("records", "sum"),
                    ("start", "one"),
                    ("size", "max"),
                    ("first", "min"),
                    ("last", "max"),
                ]
            )
            .rename_columns(_COLUMNS.names)
            .cast(_COLUMNS)
        )
        self._waiting, self._rows = [], 0
        if table.num_rows > COUNTED:
            counts = table["records"].combine_chunks()
            order = pc.array_sort_indices(counts, order="descending")
            least = counts[order[COUNTED].as_py()].as_py()
            self.missed += least
            table = table.set_column(1, "records", pc.subtract(counts, least))
            table = table.filter(pc.greater(table["records"], 0))
        self._table = table.combine_chunks()

    def most_frequent(self, most: int) -> list[CountedKey]:
        """Return the `most` most frequent keys whose count is larger than what may be missed."""
        self.settle()
        table = self._table.filter(pc.greater(self._table["records"], self.missed))
        order = pc.sort_indices(table, [("records", "descending"), ("hash", "ascending")])
        rows = table.take(order.slice(0, most)).to_pylist()
        return [
            CountedKey(row["start"], row["size"], row["records"], row["first"], row["last"])
            for row in rows
        ]

    def _take(self, table: pa.Table) -> None:
        self._waiting.append(table)
        self._rows += table.num_rows
        if self._rows > COUNTED:
            self.settle()

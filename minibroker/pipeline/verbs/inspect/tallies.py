"""Tallies of the records of a task, for `inspect`: small, however many records there are.

    FACTS of records, each partition in order ─► Tally.add ─► Tally, one a task ─► Tally.merge

A task reads whole partitions, so that "a timestamp earlier than one before it" is known in the
task, and nothing is sorted. The driver merges the tallies of the tasks.

- Slices of time are counted in slices of a width that divides every width the page may show. It
  grows with the time that the records span.
- Sizes are counted exactly below 2,048 bytes, and with eleven binary digits above.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from minibroker.pipeline.kafka.partition_rows import rows_by_partition
from minibroker.pipeline.verbs.inspect.facts import PartitionFacts
from minibroker.pipeline.verbs.inspect.keys import FrequentKeys, KeyCount, keys_of

FACTS: Final = ("topic", "partition", "offset", "ms", "key", "valueBytes")
"""Columns of a record that are counted. `ms`: milliseconds since the epoch, negative or null for no
time; `valueBytes`: null for a tombstone.
"""
SLICES: Final = 60
"""Number of time slices to show, about."""
_SIZE_DIGITS: Final = 11
_YEAR_MS: Final = 365 * 86_400_000
_WIDTHS_MS: Final = tuple(
    number * unit
    for unit, numbers in (
        (1, (1, 2, 5, 10, 20, 50, 100, 200, 500)),
        (1_000, (1, 2, 5, 10, 30)),
        (60_000, (1, 2, 5, 10, 30)),
        (3_600_000, (1, 2, 6, 12)),
        (86_400_000, (1, 7, 30, 90, 365)),
    )
    for number in numbers
)


def width_of(span_ms: int) -> int:
    """Return a round width that divides `span_ms` into about `SLICES` slices."""
    for width in _WIDTHS_MS:
        if span_ms / width <= SLICES:
            return width
    years = -(-span_ms // (_YEAR_MS * SLICES))
    return _YEAR_MS << (years - 1).bit_length()


def _counted_width(span_ms: int) -> int:
    """Return a width that divides each `width_of` of this span and of every longer one."""
    width = width_of(span_ms)
    return math.gcd(*(larger for larger in (*_WIDTHS_MS, width) if larger >= width))


class PartitionTally:
    """The records of one partition."""

    def __init__(self, partition: int) -> None:
        self.counted = PartitionFacts(partition)
        """Those so far, but for `keys`."""
        self.keys = KeyCount()

    @property
    def facts(self) -> PartitionFacts:
        """Return what is known: different keys about, and never more than records with one."""
        with_key = self.counted.records - self.counted.without_key
        return self.counted._replace(keys=min(self.keys.estimate(), with_key))

    def add(self, rows: pa.RecordBatch, sizes: pa.Array) -> None:
        """Take records with the columns FACTS and their sizes, but for times and keys."""
        earlier = self.counted
        first, last = (bound.as_py() for bound in pc.min_max(rows["offset"]).values())
        self.counted = earlier._replace(
            records=earlier.records + rows.num_rows,
            size_bytes=earlier.size_bytes + pc.sum(sizes).as_py(),
            first_offset=earlier.first_offset if earlier.records else first,
            last_offset=last,
            without_key=earlier.without_key + rows["key"].null_count,
            tombstones=earlier.tombstones + rows["valueBytes"].null_count,
        )

    def add_times(self, times: pa.Array) -> None:
        """Take the times of the next records that have one; there is one at least."""
        earlier = self.counted
        first, last = (bound.as_py() for bound in pc.min_max(times).values())
        earliest = first if earlier.first_ms is None else earlier.first_ms
        latest = first if earlier.last_ms is None else earlier.last_ms
        behind = pc.subtract(pc.cumulative_max(times, start=latest), times)
        self.counted = earlier._replace(
            first_ms=min(first, earliest),
            last_ms=max(last, latest),
            out_of_order=earlier.out_of_order + pc.sum(pc.greater(behind, 0)).as_py(),
            most_behind_ms=max(earlier.most_behind_ms, pc.max(behind).as_py()),
        )


class Times:
    """Records and bytes of slices of time."""

    def __init__(self) -> None:
        self.first_ms: int | None = None
        self.last_ms: int | None = None
        self._width = 1
        self._slices: dict[int, tuple[int, int]] = {}
        """Number of a slice of `_width` → records, bytes."""

    def add(self, times: pa.Array, sizes: pa.Array) -> None:
        """Take the times of records, none of them negative, and their sizes."""
        if not len(times):
            return
        first, last = (bound.as_py() for bound in pc.min_max(times).values())
        self._reach(first, last)
        table = pa.table({"slice": pc.divide(times, self._width), "bytes": sizes})
        sums = table.group_by("slice", use_threads=False).aggregate(
            [("bytes", "count"), ("bytes", "sum")]
        )
        columns = (sums[name].to_pylist() for name in ("slice", "bytes_count", "bytes_sum"))
        for number, records, size in zip(*columns, strict=True):
            self._put(number, records, size)

    def merge(self, other: Times) -> None:
        """Take the slices of another one."""
        if other.first_ms is None or other.last_ms is None:
            return
        self._reach(other.first_ms, other.last_ms)
        for start, records, size in other.slices(other._width):
            self._put(start // self._width, records, size)

    def slices(self, width_ms: int) -> list[tuple[int, int, int]]:
        """Return begin, records and bytes of each slice that has records, in order.

        `width_ms`: of `width_of`, of the time of these records or of a longer one.
        """
        sums: dict[int, tuple[int, int]] = {}
        for number, (records, size) in self._slices.items():
            start = number * self._width // width_ms * width_ms
            earlier = sums.get(start, (0, 0))
            sums[start] = earlier[0] + records, earlier[1] + size
        return [(start, *sums[start]) for start in sorted(sums)]

    def _reach(self, first: int, last: int) -> None:
        """Widen the slices, if need be, to a span that has these times, too."""
        self.first_ms = first if self.first_ms is None else min(first, self.first_ms)
        self.last_ms = last if self.last_ms is None else max(last, self.last_ms)
        width = _counted_width(self.last_ms - self.first_ms)
        if width == self._width:
            return
        slices = self.slices(width)
        self._width, self._slices = width, {}
        for start, records, size in slices:
            self._put(start // width, records, size)

    def _put(self, number: int, records: int, size: int) -> None:
        earlier = self._slices.get(number, (0, 0))
        self._slices[number] = earlier[0] + records, earlier[1] + size


class TopicTally:
    """The records of one topic."""

    def __init__(self) -> None:
        self.partitions: dict[int, PartitionTally] = {}
        self.times = Times()
        self.frequent = FrequentKeys()
        self.smallest = self.largest = 0
        """Bytes of key and value; 0 before the first record."""
        self.sizes: Counter[int] = Counter()
        """Size, rounded down to `_SIZE_DIGITS` binary digits → records."""

    @property
    def records(self) -> int:
        """Return the number of records."""
        return self.sizes.total()

    def add(self, partition: int, rows: pa.RecordBatch) -> None:
        """Take records of one partition, the next ones behind those before."""
        tally = self.partitions.setdefault(partition, PartitionTally(partition))
        key, value = rows["key"], rows["valueBytes"]
        sizes = pc.add(
            pc.binary_length(key).fill_null(0).cast(pa.int64()),
            value.fill_null(0).cast(pa.int64()),
        )
        tally.add(rows, sizes)
        self._add_sizes(sizes)
        self._add_times(tally, rows["ms"], sizes)
        if key.null_count < len(key):
            keys = keys_of(key)
            tally.keys.add(keys.hashes)
            self.frequent.add(keys, partition)

    def merge(self, other: TopicTally) -> None:
        """Take the records of other partitions. Raises ValueError for one that is here."""
        if both := self.partitions.keys() & other.partitions.keys():
            raise ValueError(f"partition {min(both)} was read in two tasks: expected one")
        bounds = [tally for tally in (self, other) if tally.records]
        self.smallest = min((tally.smallest for tally in bounds), default=0)
        self.largest = max(self.largest, other.largest)
        self.partitions |= other.partitions
        self.times.merge(other.times)
        self.frequent.merge(other.frequent)
        self.sizes.update(other.sizes)

    def settle(self) -> None:
        """Drop what need not travel to the driver."""
        self.frequent.settle()
        for tally in self.partitions.values():
            tally.keys.settle()

    def size_at(self, share: float) -> int:
        """Return the smallest size that `share` of the records do not exceed; 0 without records."""
        rank, count = math.ceil(share * self.records), 0
        for size in sorted(self.sizes):
            count += self.sizes[size]
            if count >= rank:
                return size
        return 0

    def sizes_by_power(self) -> list[tuple[int, int]]:
        """Return (power, records) of 0 bytes, 1, 2 to 3, 4 to 7 …: `power` is -1, 0, 1, 2 …"""
        counts: Counter[int] = Counter()
        for size, records in self.sizes.items():
            counts[size.bit_length() - 1] += records
        return sorted(counts.items())

    def key_count(self) -> int:
        """Return the number of different keys of all partitions, about."""
        keys = KeyCount()
        for tally in self.partitions.values():
            keys.merge(tally.keys)
        counted = [tally.counted for tally in self.partitions.values()]
        with_key = sum(facts.records - facts.without_key for facts in counted)
        return min(keys.estimate(), with_key)

    def _add_sizes(self, sizes: pa.Array) -> None:
        smallest, largest = (bound.as_py() for bound in pc.min_max(sizes).values())
        self.smallest = min(self.smallest, smallest) if self.records else smallest
        self.largest = max(self.largest, largest)
        if largest >= 1 << _SIZE_DIGITS:
            power = pc.floor(pc.log2(pc.max_element_wise(sizes, 1).cast(pa.float64())))
            shift = pc.max_element_wise(
                pc.subtract(power.cast(pa.int64()), _SIZE_DIGITS - 1), pa.scalar(0, pa.int64())
            )
            sizes = pc.shift_left(pc.shift_right(sizes, shift), shift)
        counts = pc.value_counts(sizes)
        pairs = zip(counts.field(0).to_pylist(), counts.field(1).to_pylist(), strict=True)
        self.sizes.update(dict(pairs))

    def _add_times(self, tally: PartitionTally, times: pa.Array, sizes: pa.Array) -> None:
        """Take the records that have a time; those of format 0 have none."""
        has_time = pc.greater_equal(times, 0).fill_null(False)
        if has_time.true_count < len(has_time):
            times, sizes = times.filter(has_time), sizes.filter(has_time)
        if not len(times):
            return
        self.times.add(times, sizes)
        tally.add_times(times)


class Tally:
    """The records of a task, or of all tasks."""

    def __init__(self) -> None:
        self.topics: dict[str, TopicTally] = {}

    def add(self, batch: pa.RecordBatch) -> None:
        """Take records with the columns FACTS, each partition in the order of its offsets."""
        for topic, partition, rows in rows_by_partition(batch):
            self.topics.setdefault(topic, TopicTally()).add(partition, rows)

    def merge(self, other: Tally) -> None:
        """Take the records of another task, which has read other partitions."""
        for topic, tally in other.topics.items():
            self.topics.setdefault(topic, TopicTally()).merge(tally)

    def settle(self) -> None:
        """Drop what need not travel to the driver."""
        for tally in self.topics.values():
            tally.settle()

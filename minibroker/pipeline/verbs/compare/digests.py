"""Digests of many records for `compare`: equal for the same records, and small.

The keys of a partition are spread over some buckets by their hash. For each bucket a digest has:

| field           | is                                                  | finds                    |
|-----------------|-----------------------------------------------------|--------------------------|
| `records`       | their number                                        |                          |
| `sums`, 2 lanes | the sum of the records' hashes, modulo 2^64         | any other set of records |
| `order`, 2 lanes| the sum of hash * r^(place in the bucket), mod 2^64 | any other order          |

A sum of 128-bit hashes counts a record as often as it is there. The digests of two ranges of
offsets make that of both: the later one's `order` is multiplied by r^(records of the earlier one).
So tasks read ranges that need not be the same on both sides, and no record leaves them.

Records that both sides have just so at one place are in no bucket (`pairs`). Their number
is in `same`, and `order` is closed there: what comes behind them is not taken for what came before.
"""

from __future__ import annotations

import struct
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from xxhash import xxh3_128_digest

from minibroker.pipeline.kafka.partition_rows import rows_by_partition
from minibroker.pipeline.verbs.compare.hashes import ROWS_MAX, hashes

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from minibroker.pipeline.verbs.compare.hashes import RowHashes
    from minibroker.pipeline.verbs.compare.rules import CompareRules

BUCKETS_MAX: Final = 64
BUCKETS_MIN: Final = 8
_BUCKETS_OF_ALL: Final = 1 << 16
"""Buckets of all partitions of a topic together, about: their digests are in the driver."""

_LIMIT: Final = 1 << 64
_BASES: Final = (0x5851F42D4C957F2D, 0xDA942042E4DD58B5)
"""The r of the two lanes."""
_PACKED: Final = struct.Struct("<H5Q")
_LANES: Final = struct.Struct("<2Q")
_UINT64: Final = pa.uint64()


class BucketDigest(NamedTuple):
    """The records of one bucket."""

    records: int = 0
    sums: tuple[int, int] = (0, 0)
    order: tuple[int, int] = (0, 0)

    def then(self, later: BucketDigest) -> BucketDigest:
        """Return the digest of these records and of those of `later` behind them."""
        return BucketDigest(
            self.records + later.records,
            (
                (self.sums[0] + later.sums[0]) % _LIMIT,
                (self.sums[1] + later.sums[1]) % _LIMIT,
            ),
            (self._order_with(later, 0), self._order_with(later, 1)),
        )

    @property
    def unordered(self) -> BucketDigest:
        """Return the digest of these records in any order."""
        return self._replace(order=(0, 0))

    def closed(self) -> BucketDigest:
        """Return the digest with its order closed: a record behind it is not one of it."""
        first, second = _LANES.unpack(xxh3_128_digest(_LANES.pack(*self.order)))
        return self._replace(order=(first, second))

    def _order_with(self, later: BucketDigest, lane: int) -> int:
        shift = pow(_BASES[lane], self.records, _LIMIT)
        return (self.order[lane] + later.order[lane] * shift) % _LIMIT


class RunDigest(NamedTuple):
    """Records of one partition in the order of their offsets."""

    side: int
    """0: A, 1: B."""
    topic: str
    partition: int
    first_offset: int
    last_offset: int
    first_ms: int
    """Smallest timestamp, milliseconds."""
    last_ms: int
    buckets: Mapping[int, BucketDigest]
    is_ordered: bool = True
    """False if some offset went back: `order` says nothing then."""
    same: int = 0
    """Records in no bucket: the other side has them just so at their place."""

    @property
    def records(self) -> int:
        """Return the number of records."""
        return self.same + sum(bucket.records for bucket in self.buckets.values())


def buckets_for(partitions: int) -> int:
    """Return the number of buckets of each partition of a topic; a power of two."""
    count = max(BUCKETS_MIN, min(BUCKETS_MAX, _BUCKETS_OF_ALL // max(1, partitions)))
    return 1 << (count.bit_length() - 1)


def bucket_of(row_hashes: RowHashes, buckets: int) -> pa.Array:
    """Return the bucket of each record, uint16."""
    return pc.bit_wise_and(row_hashes.sequence, pa.scalar(buckets - 1, _UINT64)).cast(pa.uint16())


class Digester:
    """Takes the records of a task, batch after batch, and keeps their digests."""

    def __init__(self, side: int, rules: CompareRules, seed: int, buckets: int) -> None:
        """Args:
        side: 0 for A, 1 for B.
        rules: what counts.
        seed: of the comparison.
        buckets: of each partition, see `buckets_for`.
        """
        self._side = side
        self._rules = rules
        self._seed = seed
        self._buckets = buckets
        self._runs: dict[tuple[str, int], RunDigest] = {}

    def add(self, batch: pa.RecordBatch) -> None:
        """Take the records of a batch; it may have several topics and partitions."""
        for start in range(0, batch.num_rows, ROWS_MAX):
            for topic, partition, rows in rows_by_partition(batch.slice(start, ROWS_MAX)):
                self._add_run(topic, partition, rows)

    def _add_run(self, topic: str, partition: int, batch: pa.RecordBatch) -> None:
        row_hashes = hashes(batch, self._rules, self._seed)
        self._join(topic, partition, batch, digests_of(row_hashes, self._buckets))

    def add_same(self, batch: pa.RecordBatch) -> None:
        """Take records of one partition that the other side has just so at their place."""
        self._join(batch["topic"][0].as_py(), batch["partition"][0].as_py(), batch, {})

    def _join(
        self,
        topic: str,
        partition: int,
        batch: pa.RecordBatch,
        buckets: Mapping[int, BucketDigest],
    ) -> None:
        """Take a batch with these buckets, or none of them for records that are the same."""
        offsets = batch["offset"]
        times = batch["timestamp"].cast(pa.timestamp("ms", "UTC"), safe=False).cast(pa.int64())
        first, last = pc.min_max(offsets).values()
        earliest, latest = pc.min_max(times).values()
        run = RunDigest(
            self._side,
            topic,
            partition,
            first.as_py(),
            last.as_py(),
            earliest.as_py(),
            latest.as_py(),
            buckets,
            is_ascending(offsets),
            0 if buckets else batch.num_rows,
        )
        earlier = self._runs.get((topic, partition))
        self._runs[topic, partition] = run if earlier is None else joined(earlier, run)

    def runs(self) -> list[RunDigest]:
        """Return the digests, one for each partition that has records."""
        return list(self._runs.values())


def is_ascending(offsets: pa.Array) -> bool:
    """Return whether each offset is larger than the one before."""
    if len(offsets) < 2:
        return True
    return bool(pc.all(pc.greater(offsets.slice(1), offsets.slice(0, len(offsets) - 1))).as_py())


def digests_of(row_hashes: RowHashes, buckets: int) -> dict[int, BucketDigest]:
    """Return bucket → digest of the records of one batch, ROWS_MAX at most, in their order."""
    bucket = bucket_of(row_hashes, buckets)
    order = pc.sort_indices(bucket)  # stable: a bucket's records keep their order
    sorted_buckets = bucket.take(order)
    places = _places(sorted_buckets)
    columns: dict[str, Any] = {"bucket": sorted_buckets}
    for lane, column in enumerate((row_hashes.first, row_hashes.second)):
        lane_hashes = column.take(order)
        columns[f"sum{lane}"] = lane_hashes
        columns[f"order{lane}"] = pc.multiply(lane_hashes, _powers(lane).take(places))
    table = pa.table(columns).group_by("bucket", use_threads=False)
    sums = table.aggregate(
        [("bucket", "count"), *((name, "sum") for name in ("sum0", "sum1", "order0", "order1"))]
    )
    rows = zip(
        *(
            sums[name].to_pylist()
            for name in (
                "bucket",
                "bucket_count",
                "sum0_sum",
                "sum1_sum",
                "order0_sum",
                "order1_sum",
            )
        ),
        strict=True,
    )
    return {row[0]: BucketDigest(row[1], (row[2], row[3]), (row[4], row[5])) for row in rows}


def _places(sorted_buckets: pa.Array) -> pa.Array:
    """Return the place of each row among those of its bucket, from 0 on."""
    ends = pc.run_end_encode(sorted_buckets).run_ends
    zero = pa.array([0], ends.type)
    starts = pa.concat_arrays([zero, ends.slice(0, len(ends) - 1)])
    of_rows = pc.run_end_decode(pa.RunEndEncodedArray.from_arrays(ends, starts))
    return pc.subtract(_numbers().slice(0, len(sorted_buckets)), of_rows)


@cache
def _numbers() -> pa.Array:
    """Return 0, 1, … for the rows of a batch, made once in a process."""
    return pa.array(range(ROWS_MAX), pa.int32())


@cache
def _powers(lane: int) -> pa.Array:
    """Return r^0, r^1, … of a lane, made once in a process."""
    powers = [1]
    for _ in range(ROWS_MAX - 1):
        powers.append(powers[-1] * _BASES[lane] % _LIMIT)
    return pa.array(powers, _UINT64)


def joined(earlier: RunDigest, later: RunDigest) -> RunDigest:
    """Return the digest of the records of two runs of a partition."""
    buckets = dict(earlier.buckets)
    if later.same:
        buckets = {number: bucket.closed() for number, bucket in buckets.items()}
    for number, bucket in later.buckets.items():
        buckets[number] = buckets.get(number, BucketDigest()).then(bucket)
    return RunDigest(
        earlier.side,
        earlier.topic,
        earlier.partition,
        min(earlier.first_offset, later.first_offset),
        max(earlier.last_offset, later.last_offset),
        min(earlier.first_ms, later.first_ms),
        max(earlier.last_ms, later.last_ms),
        buckets,
        earlier.is_ordered and later.is_ordered and earlier.last_offset < later.first_offset,
        earlier.same + later.same,
    )


def by_partition(runs: Iterable[RunDigest]) -> dict[int, RunDigest]:
    """Return partition → digest of all its runs, for the runs of one side and topic."""
    by_number: dict[int, RunDigest] = {}
    for run in sorted(runs, key=lambda run: (run.partition, run.first_offset)):
        earlier = by_number.get(run.partition)
        by_number[run.partition] = run if earlier is None else joined(earlier, run)
    return by_number


def total(runs: Iterable[RunDigest]) -> dict[int, BucketDigest]:
    """Return bucket → digest of all runs together, in whatever partition; `order` says nothing."""
    sums: dict[int, BucketDigest] = {}
    for run in runs:
        for number, bucket in run.buckets.items():
            sums[number] = sums.get(number, BucketDigest()).then(bucket)
    return sums


def pack(buckets: Mapping[int, BucketDigest]) -> bytes:
    """Return the buckets as bytes, 42 for each."""
    return b"".join(
        _PACKED.pack(number, bucket.records, *bucket.sums, *bucket.order)
        for number, bucket in sorted(buckets.items())
    )


def unpack(packed: bytes) -> dict[int, BucketDigest]:
    """Return what `pack` has packed."""
    return {
        number: BucketDigest(records, (first, second), (of_first, of_second))
        for number, records, first, second, of_first, of_second in _PACKED.iter_unpack(packed)
    }

"""The tasks of `compare` as a data source: `minibroker-compare`. Records stay in their tasks.

    read, `digests`       ranges of topics ─► one row for each side of a partition: its digests
    read, `rows`          ranges of topics ─► a `ROW` for each record of the buckets that differ
    write, `digests`      records of an archive ─► the same digests, in the file `result`
    write, `differences`  rows of `compare.differences` ─► their number and examples, in `result`

A writer commits nothing: Spark calls its `commit` once, beside the driver, with what the tasks
return. It is a data source and no `mapInArrow`, because that needs pandas.
"""

from __future__ import annotations

import heapq
import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.types import (
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from minibroker.pipeline.kafka import options as source_options
from minibroker.pipeline.kafka.source.reader import read_ranges
from minibroker.pipeline.offsets import OffsetRange
from minibroker.pipeline.verbs.compare.digests import Digester, RunDigest, bucket_of, pack, unpack
from minibroker.pipeline.verbs.compare.hashes import ROWS_MAX, as_int64, hashes
from minibroker.pipeline.verbs.compare.pairs import digest_pair
from minibroker.pipeline.verbs.compare.rules import CompareRules

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

FORMAT: Final = "minibroker-compare"
DIGESTS: Final = "digests"
ROWS: Final = "rows"
DIFFERENCES: Final = "differences"

KEY_BYTES_SHOWN: Final = 48
"""Bytes of a key that travel for an example; one more says that it goes on."""

DIGEST: Final = StructType(
    [
        StructField("side", IntegerType()),
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("firstOffset", LongType()),
        StructField("lastOffset", LongType()),
        StructField("firstMs", LongType()),
        StructField("lastMs", LongType()),
        StructField("buckets", BinaryType()),
        StructField("isOrdered", IntegerType()),
        StructField("same", LongType()),
    ]
)
"""Fields of a `RunDigest`."""

ROW: Final = StructType(
    [
        StructField("side", IntegerType()),
        StructField("partition", IntegerType()),
        StructField("place", IntegerType()),
        StructField("sequence", LongType()),
        StructField("first", LongType()),
        StructField("second", LongType()),
        StructField("value", LongType()),
        StructField("headers", LongType()),
        StructField("timestamp", LongType()),
        StructField("offset", LongType()),
        StructField("key", BinaryType()),
    ]
)
"""A record as its hashes. `place` is its partition if partitions count, else -1; `timestamp` is in
microseconds; `key` is null or the first bytes.
"""

_ARROW_DIGEST: Final = pa.schema(
    [
        ("side", pa.int32()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("firstOffset", pa.int64()),
        ("lastOffset", pa.int64()),
        ("firstMs", pa.int64()),
        ("lastMs", pa.int64()),
        ("buckets", pa.binary()),
        ("isOrdered", pa.int32()),
        ("same", pa.int64()),
    ]
)
_ARROW_ROW: Final = pa.schema(
    [
        ("side", pa.int32()),
        ("partition", pa.int32()),
        ("place", pa.int32()),
        *((name, pa.int64()) for name in ("sequence", "first", "second", "value", "headers")),
        ("timestamp", pa.int64()),
        ("offset", pa.int64()),
        ("key", pa.binary()),
    ]
)
EVERYWHERE: Final = -1
"""Place of every record if partitions do not count."""


@dataclass(frozen=True)
class Task:
    """The comparison as a task needs it; JSON in the option `task`."""

    rules: CompareRules
    seed: int
    buckets: int

    def to_json(self) -> str:
        """Return the text for the option."""
        return json.dumps([list(self.rules), self.seed, self.buckets])

    @staticmethod
    def from_json(text: str) -> Task:
        """Return what `to_json` made text of."""
        rules, seed, buckets = json.loads(text)
        return Task(CompareRules(*rules), seed, buckets)


Buckets = dict[int, list[int]]
"""Place → its buckets that differ."""


class CompareSource(DataSource):
    """`spark.read.format("minibroker-compare")`; only `compare.job` uses it."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> StructType:
        return DIGEST if self.options["work"] == DIGESTS else ROW

    def reader(self, schema: StructType) -> RangesReader:
        return RangesReader(self.options)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        if self.options["work"] == DIGESTS:
            return DigestWriter(self.options)
        return DifferenceWriter(self.options)


class RangesReader(DataSourceReader):
    """Reads ranges of one or two topics; options: work, task, tasks, clients, wanted.

    `tasks`: for each the ranges of A and those of B.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        self._work = options["work"]
        self._task = Task.from_json(options["task"])
        self._tasks: list[list[list[list[Any]]]] = json.loads(options["tasks"])
        self._clients: dict[str, dict[str, str]] = json.loads(options["clients"])
        self._buckets = buckets_of(options.get("wanted", "{}"))

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(ranges) for ranges in self._tasks]

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """Read the ranges in the task. Raises PipelineError."""
        sides = [self._records(side, ranges) for side, ranges in enumerate(partition.value)]
        if self._work == DIGESTS:
            digesters = [Digester(side, *_of(self._task)) for side in range(len(sides))]
            digest_pair(sides, digesters, ("key", *self._task.rules.columns))
            yield digest_batch(run for digester in digesters for run in digester.runs())
            return
        for side, records in enumerate(sides):
            for batch in records:
                for start in range(0, batch.num_rows, ROWS_MAX):
                    yield rows_of(batch.slice(start, ROWS_MAX), side, self._task, self._buckets)

    def _records(self, side: int, ranges: Sequence[Sequence[Any]]) -> Iterator[pa.RecordBatch]:
        if ranges:
            options = source_options.parse(self._clients[str(side)], streaming=False)
            yield from read_ranges(options, [OffsetRange(*span) for span in ranges])


def _of(task: Task) -> tuple[CompareRules, int, int]:
    return task.rules, task.seed, task.buckets


def buckets_of(text: str) -> Buckets:
    """Return the buckets of JSON."""
    return {int(place): list(buckets) for place, buckets in json.loads(text).items()}


def rows_of(batch: pa.RecordBatch, side: int, task: Task, buckets: Buckets) -> pa.RecordBatch:
    """Return the `ROW`s of the records in a batch that are in one of the buckets that differ.

    Args:
        batch: at most ROWS_MAX records.
        side: 0 or 1.
        buckets: of the rows that are returned.
    """
    columns, is_wanted = _rows_and_mask(batch, side, task, buckets)
    return pa.RecordBatch.from_arrays(columns, schema=_ARROW_ROW).filter(is_wanted)


def marked_rows(batch: pa.RecordBatch, side: int, task: Task, buckets: Buckets) -> pa.Array:
    """Return the same as structs for all records, null for one in another bucket."""
    columns, is_wanted = _rows_and_mask(batch, side, task, buckets)
    return pa.StructArray.from_arrays(columns, fields=list(_ARROW_ROW), mask=pc.invert(is_wanted))


def _rows_and_mask(
    batch: pa.RecordBatch, side: int, task: Task, buckets: Buckets
) -> tuple[list[pa.Array], pa.Array]:
    row_hashes = hashes(batch, task.rules, task.seed)
    count = batch.num_rows
    partition = batch["partition"].cast(pa.int32())
    place = partition
    if not task.rules.partition:
        place = pa.repeat(pa.scalar(EVERYWHERE, pa.int32()), count)
    bucket = pc.add(
        pc.multiply(place.cast(pa.int64()), task.buckets),
        bucket_of(row_hashes, task.buckets).cast(pa.int64()),
    )
    chosen = pa.array(
        [number * task.buckets + bucket for number in buckets for bucket in buckets[number]],
        pa.int64(),
    )
    key = batch["key"].cast(pa.binary())
    columns = [
        pa.repeat(pa.scalar(side, pa.int32()), count),
        partition,
        place,
        *as_int64(row_hashes),
        batch["timestamp"].cast(pa.timestamp("us", "UTC")).cast(pa.int64()),
        batch["offset"],
        pc.binary_slice(key, 0, KEY_BYTES_SHOWN + 1),
    ]
    return columns, pc.is_in(bucket, chosen)


def digest_batch(runs: Iterable[RunDigest]) -> pa.RecordBatch:
    """Return digests as rows of `DIGEST`."""
    rows = [_fields(run) for run in runs]
    columns = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in _ARROW_DIGEST]
    arrays = [
        pa.array(column, field.type) for column, field in zip(columns, _ARROW_DIGEST, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=_ARROW_DIGEST)


def _fields(run: RunDigest) -> list[Any]:
    return [*run[:7], pack(run.buckets), int(run.is_ordered), run.same]


def run_of(row: Sequence[Any]) -> RunDigest:
    """Return the digest in a row of `DIGEST`."""
    side, topic, partition, first, last, first_ms, last_ms, buckets, is_ordered, same = row
    packed = unpack(bytes(buckets))
    return RunDigest(
        side, topic, partition, first, last, first_ms, last_ms, packed, bool(is_ordered), same
    )


@dataclass
class WrittenDigests(WriterCommitMessage):
    """The digests of one task, each as its fields."""

    runs: list[list[Any]]


class DigestWriter(DataSourceArrowWriter):
    """Makes digests of records of an archive; options: task, side, result."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._task = Task.from_json(options["task"])
        self._side = int(options["side"])
        self._result = options["result"]

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WrittenDigests:
        digester = Digester(self._side, *_of(self._task))
        for batch in iterator:
            digester.add(batch)
        return WrittenDigests([_fields(run) for run in digester.runs()])

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        rows = [
            [*row[:7], row[7].hex(), *row[8:]]
            for message in messages
            if isinstance(message, WrittenDigests)
            for row in message.runs
        ]
        Path(self._result).write_text(json.dumps(rows), encoding="utf-8")


def digests_in(result: Path) -> list[RunDigest]:
    """Return the digests that `DigestWriter.commit` has written."""
    rows = json.loads(result.read_text(encoding="utf-8"))
    return [run_of([*row[:7], bytes.fromhex(row[7]), *row[8:]]) for row in rows]


Difference = tuple[str, int, int, int, int, str, str]
"""kind, partition and offset in A, those in B (-1 where it is not), fields, key in hexadecimal."""


@dataclass
class WrittenDifferences(WriterCommitMessage):
    """The differences of one task."""

    counts: dict[tuple[str, int], int]
    """(kind, partition) → number of records; the partition is A's, or B's of one only in B."""
    fields: dict[str, int]
    """Name of a column → changed records in which it differs."""
    examples: list[Difference]


class DifferenceWriter(DataSourceArrowWriter):
    """Counts rows of `compare.differences`, and keeps the first of each kind; options: examples,
    result.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        self._examples = int(options["examples"])
        self._result = options["result"]

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WrittenDifferences:
        counts: Counter[tuple[str, int]] = Counter()
        fields: Counter[str] = Counter()
        examples: dict[str, list[Difference]] = {}
        for batch in iterator:
            columns = [batch[name].to_pylist() for name in _DIFFERENCE]
            differences = [_difference(row) for row in zip(*columns, strict=True)]
            counts.update((row[0], row[1] if row[1] >= 0 else row[3]) for row in differences)
            fields.update(name for row in differences for name in row[5].split(",") if name)
            for kind in {row[0] for row in differences}:
                rows = [*examples.get(kind, ()), *(row for row in differences if row[0] == kind)]
                examples[kind] = first_of(rows, self._examples)
        return WrittenDifferences(
            dict(counts), dict(fields), [row for rows in examples.values() for row in rows]
        )

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        counts: Counter[tuple[str, int]] = Counter()
        fields: Counter[str] = Counter()
        examples: dict[str, list[Difference]] = {}
        for message in messages:
            if isinstance(message, WrittenDifferences):
                counts.update(message.counts)
                fields.update(message.fields)
                for row in message.examples:
                    examples.setdefault(row[0], []).append(row)
        facts = {
            "counts": [[*key, number] for key, number in sorted(counts.items())],
            "fields": fields,
            "examples": [
                row for kind in sorted(examples) for row in first_of(examples[kind], self._examples)
            ],
        }
        Path(self._result).write_text(json.dumps(facts), encoding="utf-8")


_DIFFERENCE: Final = ("kind", "partitionA", "offsetA", "partitionB", "offsetB", "fields", "key")


def _difference(row: Sequence[Any]) -> Difference:
    kind, *places, fields, key = row
    in_a, at_a, in_b, at_b = (-1 if number is None else number for number in places)
    return kind, in_a, at_a, in_b, at_b, fields, "null" if key is None else key.hex()


def first_of(rows: Iterable[Difference], count: int) -> list[Difference]:
    """Return the first rows by partition and offset, those of A first."""
    return heapq.nsmallest(count, rows, key=lambda row: row[1:3] if row[1] >= 0 else row[3:5])

"""`inspect`: statistics of topics, of a broker or in its files, as values, a table and a page.

    topics ─ source.frames ───┐
                              ├► facts (kept) ─ transforms.inspected ─► Inspection ─► reports
    files ─ minibroker-log ───┤
            minibroker-batches ─ transforms.inspected_batches ────┘

The records are read once. The few columns that are kept of them meanwhile go to Spark's local disk
when memory is short. Results are small: they are collected.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from pyspark import StorageLevel

from minibroker.clock import SystemClock
from minibroker.pipeline import preflight
from minibroker.pipeline.explain import explained
from minibroker.pipeline.lag import readers as group_lag
from minibroker.pipeline.operations import mask_secret
from minibroker.pipeline.operations.rows import source_options
from minibroker.pipeline.reports import page_file
from minibroker.pipeline.reports.facts import (
    CodecFacts,
    Defect,
    FrequentKey,
    GroupLag,
    Inspection,
    PartitionFacts,
    ProducerFacts,
    Slice,
    TopicFacts,
)
from minibroker.pipeline.reports.page import page
from minibroker.pipeline.segments.records import SegmentOptions
from minibroker.pipeline.source import frames as sources
from minibroker.pipeline.transforms import inspected, inspected_batches
from minibroker.pipeline.transforms.operated import operated
from minibroker.pipeline.verbs.inspect import InspectPlan

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pyspark.sql import DataFrame, Row, SparkSession

    from minibroker.pipeline.lag.readers import ReaderLag

FREQUENT_KEYS: Final = 10
SLICES: Final = 60
"""Number of time slices to show, about."""
_SLICE_MS: Final = tuple(
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

Numbers = dict[tuple[str, int], int]
"""(topic, partition) → a number."""


def check(plan: InspectPlan) -> None:
    """Check that the topics exist and that the page can be written.

    Raises:
        PipelineError: no broker, no such topic, no such directory.
    """
    page_file.check(plan.report)
    if plan.log_dir is not None:
        SegmentOptions.parse(_of_files(plan)).find_partitions()
    else:
        preflight.chosen_topics(preflight.ask(plan.kafka), plan.topics, None)


def run(
    spark: SparkSession, plan: InspectPlan, *, tell: Callable[[str], None] | None = None
) -> Inspection:
    """Inspect the topics; write the page if `plan` names one.

    Args:
        spark: of `session`.
        plan: the topics, and the page to write.
        tell: called with a few words about the current step.

    Raises:
        PipelineError: it cannot be done.
    """
    try:
        found = _look(spark, plan, tell or (lambda _: None))
    except Exception as error:
        raise explained(error) from error
    if plan.report is not None:
        page_file.write(plan.report, page(found))
    return found


def _look(spark: SparkSession, plan: InspectPlan, tell: Callable[[str], None]) -> Inspection:
    partitions = _all_partitions(plan)
    tell("reading records")
    kept = inspected.facts(_records(spark, plan)).persist(StorageLevel.MEMORY_AND_DISK)
    try:
        topics = _topics_of(kept, partitions, tell)
    finally:
        kept.unpersist()
    if plan.log_dir is not None:
        tell("reading batches")
        topics = _with_batches(topics, _batches(spark, plan))
    else:
        tell("asking for groups")
        readers = group_lag.LagReader(plan.kafka, topics=sorted(topics), groups_max=None).read()
        topics = {
            name: facts._replace(groups=groups_of(facts, readers)) for name, facts in topics.items()
        }
    return Inspection(
        plan.log_dir or plan.kafka.bootstrap,
        SystemClock().now_ms(),
        plan.log_dir is not None,
        tuple(topics[name] for name in sorted(topics)),
    )


def groups_of(topic: TopicFacts, readers: Sequence[ReaderLag]) -> tuple[GroupLag, ...]:
    """Return the groups that read a topic, the one with the largest lag first.

    A partition without a commit counts as no lag.
    """
    found = []
    for reader in readers:
        read = [where for where in reader.partitions if where.topic == topic.topic]
        if read:
            lag, partitions = sum(where.lag for where in read), len(topic.partitions)
            found.append(
                GroupLag(reader.name, reader.state, lag, partitions, partitions - len(read))
            )
    return tuple(sorted(found, key=lambda group: (-group.lag, group.group)))


def _all_partitions(plan: InspectPlan) -> dict[str, list[int]]:
    """Return every partition: one without a record is shown as well."""
    if plan.log_dir is None:
        there = preflight.ask(plan.kafka).partitions
        return {name: list(range(there[name])) for name in plan.topics}
    found: dict[str, list[int]] = {}
    for partition in SegmentOptions.parse(_of_files(plan)).find_partitions():
        found.setdefault(partition.topic, []).append(partition.partition)
    return found


def _records(spark: SparkSession, plan: InspectPlan) -> DataFrame:
    operations = plan.operations
    secret = mask_secret.secret_of_job(operations, os.environ, None)
    if plan.log_dir is None:
        options = plan.kafka.options() | {
            "subscribe": ",".join(plan.topics),
            "startingOffsets": "earliest",
            "includeHeaders": str(operations.is_used).lower(),
            **source_options(operations, streaming=False),
        }
        options = sources.in_parallel(spark, options)
        records = sources.read_topics(spark, options, source=plan.kafka.source)
        return operated(records, operations, secret)
    isolation = plan.kafka.options()["kafka.isolation.level"]
    reader = spark.read.format("minibroker-log").options(**_of_files(plan))
    return operated(reader.option("isolation.level", isolation).load(), operations, secret)


def _batches(spark: SparkSession, plan: InspectPlan) -> DataFrame:
    reader = spark.read.format("minibroker-batches").options(**_of_files(plan))
    return reader.option("unfold", "true").load()


def _of_files(plan: InspectPlan) -> dict[str, str]:
    chosen = {"subscribe": ",".join(plan.topics)} if plan.topics else {}
    # What cannot be read is part of what is found.
    return {"path": str(plan.log_dir), "failOnDataLoss": "false", **chosen}


def _topics_of(
    kept: DataFrame, partitions: Mapping[str, list[int]], tell: Callable[[str], None]
) -> dict[str, TopicFacts]:
    begun_s = SystemClock().monotonic_s()
    by_partition = inspected.by_partition(kept).collect()
    records = sum(row.records for row in by_partition)
    rate = records / max(SystemClock().monotonic_s() - begun_s, 0.001)
    tell(f"{records:,} records  {rate:,.0f} records/s  sizes, keys and order")
    of_topics = _grouped(by_partition)
    slices_ms = {name: _slice_ms(of_topics.get(name, ())) for name in partitions}
    of_topic = {row.topic: row for row in inspected.by_topic(kept).collect()}
    slices = _grouped(inspected.over_time(kept, slices_ms).collect())
    sizes = _grouped(inspected.by_size(kept).collect())
    keys = _grouped(inspected.frequent_keys(kept, FREQUENT_KEYS).collect())
    late = {(row.topic, row.partition): row for row in inspected.out_of_order(kept).collect()}
    found = {}
    for name, numbers in partitions.items():
        rows = {row.partition: row for row in by_partition if row.topic == name}
        all_of_them = tuple(
            _partition(number, rows.get(number), late.get((name, number))) for number in numbers
        )
        facts = TopicFacts(name, all_of_them)
        if name in of_topic:
            facts = _with_totals(facts, of_topic[name])._replace(
                slice_ms=slices_ms[name],
                slices=tuple(Slice(r.startMs, r.records, r.bytes) for r in slices.get(name, ())),
                sizes=tuple((row.power, row.records) for row in sizes.get(name, ())),
                frequent_keys=tuple(_key(row) for row in keys.get(name, ())),
            )
        found[name] = facts
    return found


def _slice_ms(partitions: Sequence[Row]) -> int:
    """Return the width of a topic's slices, from its partitions' first and last timestamps."""
    begins = [row.firstMs for row in partitions if row.firstMs is not None and row.firstMs >= 0]
    ends = [row.lastMs for row in partitions if row.lastMs is not None]
    return slice_of(max(ends) - min(begins)) if begins else _SLICE_MS[0]


def slice_of(span_ms: int) -> int:
    """Return a round width that divides `span_ms` into about `SLICES` slices."""
    for width in _SLICE_MS:
        if span_ms / width <= SLICES:
            return width
    return _SLICE_MS[-1] * (span_ms // (_SLICE_MS[-1] * SLICES) + 1)


def _grouped(rows: Iterable[Row]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row.topic, []).append(row)
    return found


def _partition(number: int, row: Row | None, late: Row | None) -> PartitionFacts:
    if row is None:
        return PartitionFacts(number)
    has_time = row.lastMs is not None and row.lastMs >= 0
    return PartitionFacts(
        number,
        row.records,
        row.bytes,
        row.firstOffset,
        row.lastOffset,
        row.firstMs if has_time else None,
        row.lastMs if has_time else None,
        row.withoutKey,
        row.tombstones,
        row["keys"],
        0 if late is None else late.records,
        0 if late is None else late.mostBehindMs,
    )


def _with_totals(topic: TopicFacts, row: Row) -> TopicFacts:
    median, large = row.quantiles
    return topic._replace(
        keys=row["keys"],
        smallest_bytes=row.smallest,
        median_bytes=median,
        large_bytes=large,
        largest_bytes=row.largest,
    )


def _key(row: Row) -> FrequentKey:
    text = bytes(row.keyStart).decode("utf-8", "backslashreplace")
    if not text.isprintable():
        text = "0x" + bytes(row.keyStart).hex()
    if row.keyBytes > inspected.KEY_BYTES_SHOWN:
        text += "…"
    is_in_one = row.firstPartition == row.lastPartition
    return FrequentKey(text, row.records, row.firstPartition if is_in_one else None)


def _with_batches(topics: dict[str, TopicFacts], batches: DataFrame) -> dict[str, TopicFacts]:
    kept = batches.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        codecs = _grouped(inspected_batches.by_codec(kept).collect())
        producers = _grouped(inspected_batches.by_producer(kept).collect())
        defects = _grouped(inspected_batches.defects(kept).collect())
    finally:
        kept.unpersist()
    return {
        name: topic._replace(
            codecs=tuple(
                CodecFacts(
                    row.codec,
                    row.magic,
                    row.batches,
                    row.records,
                    row.sizeBytes,
                    row.recordBytes,
                    row.abortedRecords,
                )
                for row in codecs.get(name, ())
            ),
            producers=tuple(
                ProducerFacts(
                    row.partition,
                    row.producerId,
                    row.batches,
                    row.records,
                    row.epochs,
                    row.missing,
                    row.repeated,
                    row.abortedBatches,
                )
                for row in producers.get(name, ())
            ),
            defects=tuple(
                Defect(row.partition, row.segment, row.position, row.sizeBytes, row.defect)
                for row in defects.get(name, ())
            ),
        )
        for name, topic in topics.items()
    }

"""Data source `minibroker-log`: the records in a broker's files, with no broker running.

    spark.read.format("minibroker-log").option("subscribe", "payments").load("/var/lib/kafka")

Reads what minibroker and Apache Kafka write, all formats and codecs, into the columns of `schemas`.
Tasks are of about equal size: many small segments, or a part of a large one. The driver lists names
and sizes (`layout`), the rest is found in the tasks (`parts`).

| option             | default          | meaning                                                  |
|--------------------|------------------|----------------------------------------------------------|
| `path`             | (needed)         | a log directory or a partition's; several with commas    |
| `subscribe`        | every topic      | topics, with commas                                      |
| `subscribePattern` | every topic      | a regular expression for the whole name                  |
|                    |                  | (Kafka's own topics only if `subscribe` names them)      |
| `includeHeaders`   | `false`          | the column `headers`                                     |
| `isolation.level`  | `read_committed` | `read_uncommitted`: aborted and open transactions, too   |
| `failOnDataLoss`   | `true`           | `false`: what cannot be read inside a log is passed by   |
| `wholePartitions`  | `false`          | `true`: a partition is in one task, and so in its order  |

Records below the log start offset and control batches are left out. A tail that a crash tore is
no error: records up to it are read, the rest is logged as a warning, and `minibroker-batches` has
a row for it. On a cluster every worker must see the directory under the same path, and have the
packages crc32c and cramjam. A broker may be running: what it had written when the read was
planned is read, replicated to others or not. If it compacts or truncates a segment of which several
tasks read a part, the read fails and says so. A batch with a wrong CRC inside such a segment is an
error as in older segments, since the parts behind it are read.

Differs from the connector: committed records by default, since nobody wants those of a transaction
that was aborted; a timestamp that Spark cannot hold (after the year 294246) is null, not an error.
"""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from minibroker.kafka.errors import CorruptionError
from minibroker.kafka.records.stored_batch import StoredBatch
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.kafka.schemas import arrow_schema, record_schema
from minibroker.pipeline.kafka.segments.file import SegmentDefect, SegmentFile
from minibroker.pipeline.kafka.segments.layout import PartitionFiles, find_partitions, plan_tasks
from minibroker.pipeline.kafka.segments.parts import SegmentPart, parts_of
from minibroker.pipeline.kafka.segments.record_columns import (
    Chunk,
    Columns,
    LegacyChunk,
    rows_within,
)
from minibroker.pipeline.kafka.segments.transactions import AbortedBatches
from minibroker.pipeline.offsets import INTERNAL_TOPICS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pyspark.sql.types import StructType

NAME: Final = "minibroker-log"
CHUNK_BYTES: Final = 4 << 20
"""Most bytes of records, or most records, of one Arrow batch; one larger log batch may exceed it.
"""
CHUNK_RECORDS: Final = 20_000

logger = logging.getLogger(__name__)
_ISOLATION: Final = ("read_committed", "read_uncommitted")
_BOOLEANS: Final = {"true": True, "false": False}


class SegmentOptions(NamedTuple):
    """Options of the source, checked."""

    paths: tuple[str, ...]
    topics: frozenset[str] | None
    pattern: str | None
    include_headers: bool
    committed_only: bool
    fail_on_data_loss: bool
    whole_partitions: bool = False

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> SegmentOptions:
        """Return the options from Spark's.

        Raises PipelineError for a value that an option does not allow.
        """
        paths = _split_names(options.get("path", ""))
        if not paths:
            raise PipelineError(f"{NAME} needs a path: a log directory, or that of a partition")
        topics, pattern = options.get("subscribe"), options.get("subscribePattern")
        if topics is not None and pattern is not None:
            raise PipelineError("subscribe and subscribePattern are both given; give one of them")
        if pattern is not None:
            try:
                re.compile(pattern)
            except re.error as error:
                raise PipelineError(
                    f"subscribePattern {pattern!r} is no regular expression: {error}"
                ) from error
        isolation = options.get("isolation.level", options.get("kafka.isolation.level"))
        if isolation not in (None, *_ISOLATION):
            raise PipelineError(
                f"isolation.level is {isolation!r}, expected {' or '.join(_ISOLATION)}"
            )
        return cls(
            paths,
            None if topics is None else frozenset(_split_names(topics)),
            pattern,
            read_boolean(options, "includeHeaders", default=False),
            isolation != "read_uncommitted",
            read_boolean(options, "failOnDataLoss", default=True),
            read_boolean(options, "wholePartitions", default=False),
        )

    def find_partitions(self) -> list[PartitionFiles]:
        """Return the partitions that the options name.

        Raises PipelineError, also for a topic that does not exist.
        """
        is_wanted = self._topic_filter()
        partitions = find_partitions(self.paths)
        topics = {partition.topic for partition in partitions}
        missing = sorted((self.topics or frozenset()) - topics)
        if missing:
            raise PipelineError(
                f"{', '.join(self.paths)} holds no partition of topic {', '.join(missing)}; there "
                f"are {', '.join(sorted(topics - INTERNAL_TOPICS)) or 'no topics'}"
            )
        return [partition for partition in partitions if is_wanted(partition.topic)]

    def _topic_filter(self) -> Callable[[str], bool]:
        if self.topics is not None:
            return self.topics.__contains__
        matches = re.compile(self.pattern or ".*").fullmatch
        return lambda topic: matches(topic) is not None and topic not in INTERNAL_TOPICS


def _split_names(text: str) -> tuple[str, ...]:
    return tuple(part for name in text.split(",") if (part := name.strip()))


def read_boolean(options: Mapping[str, str], name: str, *, default: bool) -> bool:
    """Return the value of the option `name`.

    Raises PipelineError if it is neither true nor false.
    """
    text = options.get(name)
    if text is None:
        return default
    value = _BOOLEANS.get(text.strip().lower())
    if value is None:
        raise PipelineError(f"{name} is {text!r}, expected true or false")
    return value


class SegmentSource(DataSource):
    """`spark.read.format("minibroker-log")`; options in the module's description."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> StructType:
        options = SegmentOptions.parse(self.options)
        return record_schema(include_headers=options.include_headers)

    def reader(self, schema: StructType) -> SegmentReader:
        """Raises PipelineError."""
        return SegmentReader(SegmentOptions.parse(self.options))


class SegmentReader(DataSourceReader):
    """The reader: plans in the driver, reads in the tasks."""

    def __init__(self, options: SegmentOptions) -> None:
        self._options = options

    def partitions(self) -> list[InputPartition]:
        """Return one partition of Spark's for each task. Raises PipelineError."""
        partitions = self._options.find_partitions()
        tasks = plan_tasks(partitions, whole=self._options.whole_partitions)
        return [InputPartition(task) for task in tasks]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Yield Arrow batches of a task's records, each partition in the order of offsets.

        Raises PipelineError.
        """
        committed_only = self._options.committed_only
        # Spark's answer to a plan without tasks is a partition with None.
        for part in parts_of(
            partition.value or (), tell_aborted=committed_only, leave_out_open=committed_only
        ):
            yield from read_records(
                part,
                include_headers=self._options.include_headers,
                fail_on_data_loss=self._options.fail_on_data_loss,
            )


def read_records(
    part: SegmentPart, *, include_headers: bool, fail_on_data_loss: bool = True
) -> Iterator[pa.RecordBatch]:
    """Yield the records of a part of a segment as Arrow batches of `schemas.RECORD`.

    Raises PipelineError for a part that cannot be read to its end; a torn tail is no reason.
    """
    task = part.task
    schema = arrow_schema(include_headers=include_headers)
    file = SegmentFile(part.task.path, begin=part.begin, end=part.end)
    chunk: Chunk | LegacyChunk = Chunk()
    try:
        for batch in _data_batches(file, part):
            chunk_class = Chunk if batch.header.magic == 2 else LegacyChunk
            is_full = chunk.size_bytes >= CHUNK_BYTES or chunk.count >= CHUNK_RECORDS
            if chunk.count and (is_full or not isinstance(chunk, chunk_class)):
                columns = chunk.take_columns(include_headers=include_headers)
                yield _record_batch(columns, part, schema)
            if not isinstance(chunk, chunk_class):
                chunk = chunk_class()
            chunk.add(batch)
        if chunk.count:
            columns = chunk.take_columns(include_headers=include_headers)
            yield _record_batch(columns, part, schema)
    except CorruptionError as error:
        raise PipelineError(f"{task.path}: {error}; dump-log shows what stands there") from error
    except OSError as error:
        raise PipelineError(f"{task.path} cannot be read: {error.strerror}") from error
    if file.defect is not None:
        _tell_defect(part, file.defect, fail_on_data_loss=fail_on_data_loss)


def _data_batches(file: SegmentFile, part: SegmentPart) -> Iterator[StoredBatch]:
    """Yield the batches with wanted records; the first and the last batch may have others, too."""
    aborted = AbortedBatches(part.aborted)
    for batch in file.batches():
        header = batch.header
        if part.end_offset is not None and header.base_offset >= part.end_offset:
            return
        if header.last_offset < part.task.start_offset or header.is_control or header.count == 0:
            continue
        if not aborted.has(header):
            yield batch


def _record_batch(columns: Columns, part: SegmentPart, schema: pa.Schema) -> pa.RecordBatch:
    task = part.task
    place = (task.topic, task.partition)
    return rows_within(columns, schema, place, task.start_offset, part.end_offset)


def _tell_defect(part: SegmentPart, defect: SegmentDefect, *, fail_on_data_loss: bool) -> None:
    """Log a defect at the end of a log.

    Raises PipelineError for one inside it, which would hide a loss.
    """
    sentence = (
        f"{part.task.path}: {part.lost_bytes(defect)} bytes from position {defect.position} on are "
        "no batches "
        f"({defect.reason})"
    )
    if part.is_tail(defect) or not fail_on_data_loss:
        logger.warning("%s; they are left out", sentence)
        return
    raise PipelineError(
        f"{sentence}, and later batches follow; check-log tells more, and with failOnDataLoss set "
        "to false the rest is read"
    )

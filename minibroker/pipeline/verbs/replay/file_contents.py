"""The contents of the Parquet files of an archive, found by tasks: partitions and their offsets.

    paths ─► a task for each core ─► footers, and two columns where a footer says too little

Spark would look for each file in a task of its own, and keep what it knows of it in the driver.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import quote, unquote

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import functions as f

from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.files.file_system import local
from minibroker.pipeline.operations.record_times import in_range

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

CONTENT: Final = (
    "path string, topic string, partition int, first bigint, last bigint, records bigint"
)
"""Columns of the result, those of `replay.rows.files_of`."""
_ARROW: Final = pa.struct(
    [
        ("path", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("first", pa.int64()),
        ("last", pa.int64()),
        ("records", pa.int64()),
    ]
)
_TIMES: Final = ("timestamp", "timestampType")
Content = tuple[str, str, int, int, int, int]
"""A row of the result."""


class Chosen(NamedTuple):
    """The records that count."""

    topics: Sequence[str] = ()
    """Empty: all."""
    since_ms: int | None = None
    """First time in milliseconds since 1970, None: no bound."""
    until_ms: int | None = None
    """First time that does not count."""
    last_ms: int | None = None
    """As of `in_range`."""

    @property
    def is_timed(self) -> bool:
        """Return whether the time of a record matters."""
        return self.since_ms is not None or self.until_ms is not None


def contents_of(spark: SparkSession, paths: Sequence[str], chosen: Chosen) -> DataFrame:
    """Return a row for each file and partition with records that count.

    Args:
        spark: its workers reach the files under these paths.
        paths: Parquet files below `topic=…` directories; at least one.
        chosen: the records that count.
    """
    path_rows = spark.createDataFrame([(path,) for path in paths], "path string")

    def contents(paths: pa.Array) -> pa.Array:
        return contents_in(chosen, paths)

    arrow_udf: Any = f.arrow_udf  # its hints know no array of structs
    contents_column = arrow_udf(contents, f"array<struct<{CONTENT}>>")
    return path_rows.select(contents_column("path").alias("found")).select(f.inline("found"))


def contents_in(chosen: Chosen, paths: pa.Array) -> pa.Array:
    """Return the rows of files, a list for each. Raises PipelineError."""
    fields = _ARROW.names
    rows = [
        [dict(zip(fields, row, strict=True)) for row in content_of(path, chosen)]
        for path in paths.to_pylist()
    ]
    return pa.array(rows, pa.list_(_ARROW))


def content_of(path: str, chosen: Chosen) -> list[Content]:
    """Return the rows of one file. Raises PipelineError if it cannot be read."""
    file = local(path)
    topic = _topic_of(str(file))
    if chosen.topics and topic not in chosen.topics:
        return []
    try:
        with pq.ParquetFile(file) as parquet:
            spans = None if chosen.is_timed else _by_footer(parquet.metadata)
            if spans is None:
                spans = _by_columns(parquet, chosen)
    except (OSError, pa.ArrowException) as error:
        raise PipelineError(f"{path} of the archive cannot be read: {error}") from error
    url = f"file://{quote(str(file.absolute()))}"
    return [(url, topic, *span) for span in spans]


def _topic_of(path: str) -> str:
    [name] = [part for part in path.split("/") if part.startswith("topic=")][-1:] or [""]
    if not name:
        raise PipelineError(f"{path} is in no directory topic=…: it is no file of an archive")
    return unquote(name.removeprefix("topic="))


def _by_footer(footer: pq.FileMetaData) -> list[tuple[int, int, int, int]] | None:
    """Return partition, first, last and number of records, None if the footer does not tell."""
    names = [footer.schema.column(index).path for index in range(footer.num_columns)]
    numbers: list[int] = []
    offsets: list[int] = []
    for group in range(footer.num_row_groups):
        row_group = footer.row_group(group)
        for name, ends in (("partition", numbers), ("offset", offsets)):
            statistics = row_group.column(names.index(name)).statistics
            if statistics is None or not statistics.has_min_max:
                return None
            ends.extend((statistics.min, statistics.max))
    if len(set(numbers)) != 1:
        return None
    return [(numbers[0], min(offsets), max(offsets), footer.num_rows)]


def _by_columns(file: pq.ParquetFile, chosen: Chosen) -> list[tuple[int, int, int, int]]:
    """Return the same from the rows, for each partition."""
    names = ["partition", "offset", *(_TIMES if chosen.is_timed else ())]
    grouped: dict[int, tuple[int, int, int]] = {}
    for batch in file.iter_batches(columns=names):
        rows = batch
        if chosen.is_timed:
            rows = in_range(chosen.since_ms, chosen.until_ms, batch, chosen.last_ms)
        table = pa.table({"partition": rows["partition"], "offset": rows["offset"]})
        spans = table.group_by("partition").aggregate(
            [("offset", "min"), ("offset", "max"), ("offset", "count")]
        )
        for row in spans.to_pylist():
            span = row["offset_min"], row["offset_max"], row["offset_count"]
            first, last, count = grouped.get(row["partition"], (span[0], span[1], 0))
            joined = min(first, span[0]), max(last, span[1]), count + span[2]
            grouped[row["partition"]] = joined
    return [(number, *span) for number, span in sorted(grouped.items())]

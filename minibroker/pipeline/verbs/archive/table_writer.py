"""A batch of an archive: from rows in the tasks to one commit of a table.

Spark calls the driver with each batch (`foreachBatch`). The tasks write the files and return their
facts, and the driver commits them with the identity of the batch. After a kill Spark runs the batch
again, under the same number and with the same offsets. If it was committed, nothing is written.

    ranges ─► tasks: task, data_files ─────────► facts of the files ─► file_archive.commit(…)
    records ─► tasks: Spark's files of a stage ──────────────────────► file_archive.commit(…)

Tables, decoded columns and dead letters are written in the same way by `decoded_writer`. Ranges of
offsets are the quick way: the records do not cross to the JVM and back. The other way is for what
needs Spark: its writers of JSON and CSV, directories that are URLs.
"""

from __future__ import annotations

import tempfile
from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyspark.sql.types import StructType

from minibroker.pipeline.checkpoints.query_identity import begin_batch
from minibroker.pipeline.files.file_system import local
from minibroker.pipeline.kafka.schemas import ARCHIVE, ARCHIVE_PARTITION_COLUMNS, to_arrow
from minibroker.pipeline.kafka.sink import frames as sinks
from minibroker.pipeline.operations.rows import ROWS, SET_ASIDE
from minibroker.pipeline.tables.archived_rows import to_text
from minibroker.pipeline.tables.data_files import Layout
from minibroker.pipeline.tables.table import BatchId, is_repeated
from minibroker.pipeline.verbs.archive import table_sink
from minibroker.pipeline.verbs.archive.table_sink import TableSink

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from minibroker.pipeline.files.file_system import FileSystem
    from minibroker.pipeline.spark.dead_letters import BadDates
    from minibroker.pipeline.tables.data_files import DataFile
    from minibroker.pipeline.tables.file_archive import FileArchive
    from minibroker.pipeline.verbs.archive.plan import ArchivePlan


_CODEC_SETTING: Final = "spark.sql.parquet.compression.codec"
_CODECS: Final = {
    "none": "none",
    "uncompressed": "none",
    "snappy": "snappy",
    "gzip": "gzip",
    "zstd": "zstd",
    "brotli": "brotli",
    "lz4": "lz4",
    "lz4_raw": "lz4",
}
"""Spark's names of Parquet's codecs, and PyArrow's."""


class ArchiveBatchWriter(ABC):
    """The function that Spark calls with each batch, in the driver."""

    def __init__(self, files: FileSystem, plan: ArchivePlan) -> None:
        """Args:
        files: of the directory of the archive.
        plan: of the archive.
        """
        self._files = files
        self._plan = plan
        self.rows: dict[int, int] = {}
        """Number of a batch of ranges → its records, until the caller removes the entry."""
        self.metrics: dict[int, dict[str, int]] = {}
        """Number of a batch → its metrics of `operations.rows`, until the caller removes it."""

    def write(self, batch: DataFrame, number: int) -> None:
        """Write and commit a batch: rows with the columns of an archive, or ranges of offsets.

        Raises PipelineError, in the text of Spark's exception.
        """
        plan, files = self._plan, self._files
        query = begin_batch(files, plan.to, files, plan.checkpoint, number)
        self.store(batch, BatchId(query, number))

    def close(self) -> None:  # noqa: B027  most writers hold nothing
        """End what the writer holds; called once, after the last batch."""

    @abstractmethod
    def store(self, batch: DataFrame, identity: BatchId) -> None:
        """Write and commit a batch, unless it is committed already."""


class ParquetBatchWriter(ArchiveBatchWriter):
    """Writes a batch of ranges into Parquet files of a directory of this machine."""

    def __init__(
        self, archive: FileArchive, files: FileSystem, plan: ArchivePlan, task: Mapping[str, str]
    ) -> None:
        """Take `task` from `task.options_of`."""
        super().__init__(files, plan)
        self._archive = archive
        self._task = task

    def store(self, batch: DataFrame, identity: BatchId) -> None:
        if is_repeated(self._archive, identity):
            return
        stage = self._archive.new_stage(identity)
        columns = [field for field in ARCHIVE if field.name not in ARCHIVE_PARTITION_COLUMNS]
        layout = Layout(
            directory=str(local(stage)),
            prefix="",
            schema=to_arrow(StructType(columns)),
            target_bytes=self._plan.target_bytes,
            stem=f"part-{identity.number:09d}",
            compression=compression_of(batch.sparkSession) or "none",
        )
        files = write_data_files(batch, layout, self._task)
        self.rows[identity.number] = sum(file.rows for file in files)
        self._archive.commit(identity, stage, [file.path for file in files])


class FileBatchWriter(ArchiveBatchWriter):
    """Writes Parquet, JSON or CSV files with Spark's own writers."""

    def __init__(
        self,
        archive: FileArchive,
        files: FileSystem,
        plan: ArchivePlan,
        bad_dates: BadDates | None,
    ) -> None:
        """Take `bad_dates` of `dead_letters.bad_dates`; None: all stay, whatever their date."""
        super().__init__(files, plan)
        self._archive = archive
        self._bad_dates = bad_dates

    def store(self, batch: DataFrame, identity: BatchId) -> None:
        if is_repeated(self._archive, identity):
            return
        stage = self._archive.new_stage(identity)
        if self._bad_dates is None:
            self._write(batch, stage)
        else:
            batch.persist()  # it is looked at before it is written, and counts its rows once
            good = self._bad_dates.without(batch, identity)
            self.metrics[identity.number] = {ROWS: good.record_count, SET_ASIDE: good.bad}
            self._write(good.rows, stage)
            batch.unpersist()
        self._archive.commit(identity, stage)

    def _write(self, rows: DataFrame, stage: str) -> None:
        sinks.write_files(
            few_tasks(to_text(rows) if self._plan.format == "csv" else rows),
            stage,
            file_format=self._plan.format,
            partition_by=ARCHIVE_PARTITION_COLUMNS,
        )


def write_data_files(
    batch: DataFrame, layout: Layout, task: Mapping[str, str]
) -> Sequence[DataFile]:
    """Write the files of a batch in the tasks of `batch`, and return them.

    Args:
        batch: rows with a date, or ranges.
        task: of `task.options_of` for ranges, empty for rows.
    """
    batch.sparkSession.dataSource.register(TableSink)
    with tempfile.TemporaryDirectory(prefix="minibroker-archive-") as directory:
        result = Path(directory, "files.json")
        options = {**task, **table_sink.options_of(layout, result)}
        batch.write.format(table_sink.FORMAT).options(**options).mode("append").save()
        return table_sink.files_in(result)


def compression_of(spark: SparkSession) -> str | None:
    """Return PyArrow's name of the session's codec for Parquet, None if it has no such codec."""
    codec = str(spark.conf.get(_CODEC_SETTING, "snappy")).lower()
    return _CODECS.get(codec)


def few_tasks(batch: DataFrame) -> DataFrame:
    """Return the rows in as many tasks as Spark has cores, without moving them.

    A topic of 10,000 partitions would make as many files of each batch otherwise.
    """
    return batch.coalesce(batch.sparkSession.sparkContext.defaultParallelism)

"""A batch of an archive: from rows in the tasks to one commit of a table.

Spark calls the driver with each batch (`foreachBatch`). The tasks write the files and return their
facts, and the driver commits them with the identity of the batch. After a kill Spark runs the batch
again, under the same number and with the same offsets. If it was committed, nothing is written.

    ranges, records ─► tasks: task, data_files ─► facts of the files ─► table.commit(…)
    records ─► tasks: Spark's files of a stage ───────────────────────► file_archive.commit(…)

The first way is that of `decoded_writer`. With ranges of offsets it is the quick one: the records
do not cross to the JVM and back. The other way, here, is for what needs Spark: its writers of JSON
and CSV, directories that are URLs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Final

from minibroker.pipeline.checkpoints.query_identity import begin_batch
from minibroker.pipeline.kafka.schemas import ARCHIVE_PARTITION_COLUMNS
from minibroker.pipeline.kafka.sink import frames as sinks
from minibroker.pipeline.operations.rows import ROWS, SET_ASIDE
from minibroker.pipeline.tables.archived_rows import to_text
from minibroker.pipeline.tables.table import BatchId, is_repeated

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from minibroker.pipeline.files.file_system import FileSystem
    from minibroker.pipeline.spark.dead_letters import BadDates
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


def compression_of(spark: SparkSession) -> str | None:
    """Return PyArrow's name of the session's codec for Parquet, None if it has no such codec."""
    codec = str(spark.conf.get(_CODEC_SETTING, "snappy")).lower()
    return _CODECS.get(codec)


def few_tasks(batch: DataFrame) -> DataFrame:
    """Return the rows in as many tasks as Spark has cores, without moving them.

    A topic of 10,000 partitions would make as many files of each batch otherwise.
    """
    return batch.coalesce(batch.sparkSession.sparkContext.defaultParallelism)

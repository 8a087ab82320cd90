"""The files of an archive as a frame: all of them, or the files for one batch of a replay."""

from __future__ import annotations

import itertools
import os
import re
import sys
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from pyspark.sql.types import StructField, StructType

from minibroker.pipeline.checkpoints import job_directory
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.files.file_system import files_with
from minibroker.pipeline.files.object_stores import is_object_store, store_of_session
from minibroker.pipeline.files.paths import absolute, join
from minibroker.pipeline.kafka import schemas
from minibroker.pipeline.tables import TABLE_FORMATS
from minibroker.pipeline.tables import choice as tables
from minibroker.pipeline.tables.archived_rows import CSV, from_text
from minibroker.pipeline.tables.file_archive import FileArchive

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame, DataFrameReader, SparkSession

    from minibroker.pipeline.files.file_system import FileSystem

_OPTIONS: Final = {"header": "true"}
"""Options of CSV files, as the sink writes them."""

FILES_AT_ONCE: Final = 10_000
"""Files of one frame where a job can do with parts of an archive."""

_LISTING: Final = "spark.sql.sources.parallelPartitionDiscovery.parallelism"
_EACH: Final = "10000"
"""Spark's default: a task for each path, up to so many."""
_LISTS_A_CORE: Final = 2
"""Tasks of a core in which Spark looks for files."""

_GLOB: Final = re.compile(r"([\\*?\[\]{}])")


def format_of(files: FileSystem, directory: str, *, is_in_catalogue: bool = False) -> str:
    """Return the format of an archive's files.

    Raises PipelineError if `directory` is no archive.
    """
    if not files.names(directory):
        raise PipelineError(f"there is no archive at {directory}: check the path")
    job = job_directory.found_job(files, directory)
    if job.get("job") != "archive":
        writer = f"is of `minibroker pipeline {job['job']}`" if "job" in job else "is no archive"
        raise PipelineError(
            f"{directory} {writer}: give a directory that `minibroker pipeline archive` has written"
        )
    if "upsert by" in job:
        raise PipelineError(
            f"{directory} is a table of rows by their key, not of records: neither replay nor "
            "maintain work on it; compact it with the tools of its format"
        )
    if "table" in job and not is_in_catalogue:
        raise PipelineError(
            f"{directory} belongs to table {job['table']} of a catalogue: give --catalog and "
            "--table to maintain it; replay reads tables whose directory is the catalogue"
        )
    return job["format"]


def kept_bytes(files: FileSystem, directory: str) -> dict[str, str]:
    """Return column → the column that keeps its bytes, for columns that are decoded.

    Raises PipelineError if the bytes were not kept.
    """
    job = job_directory.read_job(files, directory)
    if "values" not in job:
        return {}
    if job.get("bytes") != "kept":
        raise PipelineError(
            f"{directory} has values as columns and not as bytes: records cannot be written as "
            "they were; archive with --keep-bytes to replay"
        )
    return {name: f"{name}Bytes" for name in job["columns"].split(", ")}


def all_rows(spark: SparkSession, directory: str, file_format: str) -> DataFrame:
    """Return every row that counts, as it is in the files; for CSV files `decoded` comes next.

    Raises PipelineError.
    """
    [rows] = rows_in_parts(spark, directory, file_format, files_max=sys.maxsize)
    return rows


def rows_in_parts(
    spark: SparkSession, directory: str, file_format: str, *, files_max: int = FILES_AT_ONCE
) -> Iterator[DataFrame]:
    """Yield the rows of `all_rows`, each frame of `files_max` files at most.

    Spark keeps what it knows of every file of a frame in the driver, as long as the frame is used.

    Raises PipelineError.
    """
    reader = spark.read.schema(CSV if file_format == "csv" else schemas.ARCHIVE).options(**_OPTIONS)
    parts = paths_in_parts(spark, directory, file_format, files_max=files_max)
    if parts is None:
        yield reader.format(file_format).load(directory)
        return
    for part in parts:
        yield _load(spark, reader, directory, file_format, part)


def paths_in_parts(
    spark: SparkSession, directory: str, file_format: str, *, files_max: int = FILES_AT_ONCE
) -> Iterator[list[str]] | None:
    """Return the paths of all files, `files_max` at most at a time, at least one list of them.

    None: Spark's file sink has written them, and only Spark knows which of them count.

    Raises PipelineError, also while the lists are taken.
    """
    if file_format in TABLE_FORMATS:
        store = None
        if is_object_store(directory):
            store = store_of_session(directory, spark, os.environ, {})
        return _parts(iter(tables.data_paths(file_format, directory, store)), files_max)
    archive = FileArchive(files_with(spark, directory), directory)
    if archive.is_of_spark():
        return None
    return _parts((join(directory, name) for name in archive.names()), files_max)


def _parts(paths: Iterator[str], files_max: int) -> Iterator[list[str]]:
    yield list(itertools.islice(paths, files_max))
    while part := list(itertools.islice(paths, files_max)):
        yield part


def rows_of(
    spark: SparkSession,
    directory: str,
    file_format: str,
    paths: Sequence[str],
    renamed: Mapping[str, str],
) -> DataFrame:
    """Return the rows of the files in `paths` (URIs), with the columns of an archive.

    `renamed` is as of `kept_bytes`.
    """
    fields = (CSV if file_format == "csv" else schemas.ARCHIVE).fields
    schema = StructType(
        [StructField(renamed.get(field.name, field.name), field.dataType) for field in fields]
    )
    reader = spark.read.schema(schema).options(**_OPTIONS)
    rows = _load(spark, reader, directory, file_format, [unquote(path) for path in paths])
    rows = rows.withColumnsRenamed({column: name for name, column in renamed.items()})
    return from_text(rows) if file_format == "csv" else rows


def _load(
    spark: SparkSession,
    reader: DataFrameReader,
    directory: str,
    file_format: str,
    paths: Sequence[str],
) -> DataFrame:
    """Return the rows of these files; topic and date come from the names of directories."""
    root, read_format = directory, file_format
    if file_format in TABLE_FORMATS:
        read_format = "parquet"
        root = join(absolute(directory), "data") if file_format == "iceberg" else directory
    reader = reader.format(read_format)
    if spark.conf.get(_LISTING, _EACH) == _EACH:
        spark.conf.set(_LISTING, str(_LISTS_A_CORE * spark.sparkContext.defaultParallelism))
    if not paths:
        raise PipelineError(f"the archive {directory} has no records: archive some first")
    escaped = [_GLOB.sub(r"\\\1", path) for path in paths]
    return reader.option("basePath", root).load(escaped)

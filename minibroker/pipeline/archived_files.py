"""The files of an archive as a frame: all of them, or the files for one batch of a replay."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from minibroker.pipeline import job_directory, schemas
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.transforms.archived import CSV, from_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

    from minibroker.pipeline.files import FileSystem

_OPTIONS: Final = {"header": "true"}
"""Options of CSV files, as the sink writes them."""

_GLOB: Final = re.compile(r"([\\*?\[\]{}])")


def format_of(files: FileSystem, directory: str) -> str:
    """Return the format of an archive's files.

    Raises PipelineError if `directory` is no archive.
    """
    if not files.names(directory):
        raise PipelineError(f"there is no archive at {directory}: check the path given as --from")
    found = job_directory.read_job(files, directory)
    if found.get("job") != "archive":
        raise PipelineError(
            f"{directory} was written by {found.get('job', 'something else')}, not by "
            "`minibroker pipeline archive`: give the directory of an archive"
        )
    return found["format"]


def all_rows(spark: SparkSession, directory: str, file_format: str) -> DataFrame:
    """Return every row that counts, as it is in the files; for CSV files `decoded` comes next."""
    schema = CSV if file_format == "csv" else schemas.ARCHIVE
    return spark.read.schema(schema).options(**_OPTIONS).format(file_format).load(directory)


def rows_of(
    spark: SparkSession, directory: str, file_format: str, paths: Sequence[str]
) -> DataFrame:
    """Return the rows of the files in `paths`, with the columns of an archive."""
    schema = CSV if file_format == "csv" else schemas.ARCHIVE
    reader = spark.read.schema(schema).options(**_OPTIONS, basePath=directory).format(file_format)
    rows = reader.load([_GLOB.sub(r"\\\1", unquote(path)) for path in paths])
    return from_text(rows) if file_format == "csv" else rows

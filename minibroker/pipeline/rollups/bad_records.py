"""A directory of JSON lines for the records that a job cannot use, each with the reason.

A query of its own reads the topic beside the job's: it has its own checkpoint in the directory, so
every bad record is there exactly once, also after a kill.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as f

from minibroker.pipeline.files import files_of
from minibroker.pipeline.plan import JOB_DIRECTORY, join
from minibroker.pipeline.sink import frames as sinks
from minibroker.pipeline.state import job_directory, topic_identity
from minibroker.pipeline.state.topic_identity import Place
from minibroker.pipeline.transforms import json_values

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

    from minibroker.pipeline.files import FileSystem
    from minibroker.pipeline.preflight import ClusterTopics
    from minibroker.pipeline.verbs.rollup import RollupPlan

METRIC: Final = "bad_records"


def check(
    plan: RollupPlan, directory: str, there: ClusterTopics, spark: SparkSession | None = None
) -> None:
    """Raise PipelineError if `directory` belongs to another job, or its progress does not fit."""
    files = files_of(directory, spark)
    if files is not None:
        found = job_directory.read_job(files, directory)
        job_directory.check_job(directory, found, _job_of(plan.topic))
        topic_identity.check(plan, _place(files, directory), there, [plan.topic])


def begin(spark: SparkSession, plan: RollupPlan, directory: str, ids: Mapping[str, str]) -> None:
    """Write into `directory` what it is; `ids` as of `state.topic_identity.begin`."""
    files = files_of(directory, spark)
    if files is not None:
        job_directory.write_job(files, directory, _job_of(plan.topic))
        topic_identity.begin(plan, _place(files, directory), ids)


def counted(rows: DataFrame) -> DataFrame:
    """Return `rows`; the progress of the query then has the number of bad rows."""
    return rows.observe(METRIC, f.count(json_values.BAD).alias(METRIC))


def set_aside(
    rows: DataFrame, directory: str, *, available_now: bool, trigger: str | None
) -> StreamingQuery:
    """Start the query that writes the bad rows of `rows`."""
    return sinks.stream_to_files(
        json_values.bad(rows),
        directory,
        checkpoint=_checkpoint(directory),
        file_format="json",
        partition_by=(),
        available_now=available_now,
        trigger=trigger,
    )


def _place(files: FileSystem, directory: str) -> Place:
    return Place(files, directory, _checkpoint(directory))


def _checkpoint(directory: str) -> str:
    return join(directory, JOB_DIRECTORY, "checkpoint")


def _job_of(topic: str) -> Mapping[str, str]:
    return {"job": "bad records", "topic": topic}

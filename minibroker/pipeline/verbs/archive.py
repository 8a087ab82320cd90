"""`archive`: its options, its plan and its help."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Final, NamedTuple

from minibroker.pipeline.errors import JobUsageError
from minibroker.pipeline.plan import JOB_DIRECTORY, TABLE_FORMATS, Kafka, join
from minibroker.pipeline.row_operations import NONE, RowOperations
from minibroker.pipeline.verbs import row_options
from minibroker.pipeline.verbs.declaration import Names, Option, Verb
from minibroker.pipeline.verbs.kinds import DIRECTORY, TOPICS, Kind, choice
from minibroker.pipeline.verbs.row_options import ROW_OPTIONS
from minibroker.pipeline.verbs.shared import (
    BATCH_BYTES,
    BATCH_ROWS,
    CATALOG,
    CLUSTER,
    DEFAULT_BATCH_ROWS,
    DEFAULT_TARGET_BYTES,
    EVERY,
    FAIL,
    FILE_FORMATS,
    FOLLOW,
    MAX_RATE,
    ON_DATA_LOSS,
    ON_RECREATED,
    TABLE,
    TARGET_FILE_SIZE,
    Engine,
    check_limits,
)

FORMATS: Final = (*FILE_FORMATS, *TABLE_FORMATS)
TABLE_EVERY_MS: Final = 60_000
"""Time between two batches of a table that is followed: each of them is a version of the table."""


class ArchivePlan(NamedTuple):
    """A plan to copy topics to files."""

    kafka: Annotated[Kafka, CLUSTER]
    to: Annotated[
        str,
        Option(
            "--to",
            DIRECTORY,
            "directory of the files; a path or a URL that Spark can write, such as s3a://bucket/dir",
            example="archive",
        ),
    ]
    topics: Annotated[Sequence[str], Option("--topic", TOPICS, "topics to copy")] = ()
    pattern: Annotated[
        str | None,
        Option(
            "--pattern",
            Kind("P"),
            "or all topics whose whole name this (Java) regular expression matches",
        ),
    ] = None
    format: Annotated[
        str,
        Option(
            "--format",
            choice(*FORMATS),
            "format of the files, or a table; json and csv hold bytes as base64; tables need: "
            "pip install 'minibroker[tables]'",
        ),
    ] = FORMATS[0]
    follow: Annotated[bool, FOLLOW] = False
    batch_rows: Annotated[int, BATCH_ROWS] = DEFAULT_BATCH_ROWS
    fail_on_data_loss: Annotated[bool, ON_DATA_LOSS] = True
    on_recreated: Annotated[str, ON_RECREATED] = FAIL
    target_bytes: Annotated[int, TARGET_FILE_SIZE] = DEFAULT_TARGET_BYTES
    every_ms: Annotated[int | None, EVERY._replace(default="tables: 1m, files: none")] = None
    catalog: Annotated[Mapping[str, str], CATALOG] = {}
    table: Annotated[str | None, TABLE] = None
    batch_bytes: Annotated[int | None, BATCH_BYTES] = None
    """Bytes of a batch, at most, about; None: the default."""
    max_rate: Annotated[int | None, MAX_RATE] = None
    """Bytes that are read in a second, at most; None: no limit."""
    operations: Annotated[RowOperations, ROW_OPTIONS] = NONE

    @property
    def checkpoint(self) -> str:
        """Return the directory of the job's progress."""
        return join(self.to, JOB_DIRECTORY, "checkpoint")

    @property
    def shared_paths(self) -> list[str]:
        """Return the directories that the driver and the workers use."""
        return [self.to]

    @property
    def is_table(self) -> bool:
        """Return whether the archive is a table of Iceberg or Delta."""
        return self.format in TABLE_FORMATS

    @property
    def trigger_ms(self) -> int | None:
        """Return the time between two batches, None for no pause."""
        return TABLE_EVERY_MS if self.every_ms is None and self.is_table else self.every_ms


def check(plan: ArchivePlan, names: Names) -> None:
    """Raise JobUsageError if options do not go together."""
    if bool(plan.topics) == bool(plan.pattern):
        raise JobUsageError(f"what to archive: give either {names['topics']} or {names['pattern']}")
    if plan.every_ms is not None and not plan.follow:
        raise JobUsageError(f"{names['every_ms']} is for a job with {names['follow']}")
    check_limits(plan.kafka, plan, names)
    if bool(plan.catalog) != bool(plan.table):
        raise JobUsageError(
            f"{names['catalog']} and {names['table']} go together: a catalogue, and the name of "
            "the table in it"
        )
    if plan.catalog and plan.format != "iceberg":
        raise JobUsageError(f"{names['catalog']} is for iceberg; {plan.format} has no catalogue")
    if plan.table is not None and not ("." in plan.table and all(plan.table.split("."))):
        raise JobUsageError(
            f"{names['table']} {plan.table!r}: expected NAMESPACE.NAME, such as logs.orders"
        )
    row_options.check(plan.operations, names, follows=plan.follow)


VERB: Final = Verb(
    name="archive",
    does="copy topics into files, each record exactly once",
    usage="(--topic T... | --pattern P) --to DIR",
    plan=ArchivePlan,
    command="minibroker.pipeline.commands.stream",
    group="Topics and files",
    notes="""
The files are in DIR/topic=T/date=YYYY-MM-DD, by the date of the record in UTC, with key, value,
partition, offset, timestamp, timestampType (0: by the producer, 1: by the broker) and headers.
The same command again goes on where the last one ended, and also copies new partitions.

A table has the same columns. Its readers see whole batches, each once, with any tool. Iceberg
(date left out; hidden partitions by topic and day): Spark reads DIR, DuckDB iceberg_scan('DIR'),
PyIceberg StaticTable.from_metadata('DIR'). Delta: Spark, DuckDB delta_scan('DIR'), deltalake.

Every file below DIR/topic=... is committed, and DIR can be moved: read it with Spark, pyarrow, or
DuckDB as 'DIR/topic=*/date=*/*.parquet'. DIR/_minibroker has the checkpoint and the lists of files,
and hidden files of batches that are not committed. Archives of earlier versions go on as they are:
there DIR/_spark_metadata lists the files that count.
""",
    examples=(
        "archive --topic orders --to archive",
        "archive --pattern 'orders-.*' --to archive --follow",
        "archive --topic orders --to ./orders --format iceberg --follow --every 5m",
    ),
    check=check,
    engine=Engine,
    first=("topics",),
    job="minibroker.pipeline.jobs.archive",
    done=lambda plan, rows: f"{rows:,} records archived to {plan.to}",
)

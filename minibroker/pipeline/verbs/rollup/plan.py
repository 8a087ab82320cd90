"""`rollup`: its options, its plan and its help."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final, NamedTuple

from minibroker.cli.declaration import Names, Option
from minibroker.cli.kinds import DURATION, FILE, TOPIC, is_path
from minibroker.cli.quantities import counted, duration
from minibroker.pipeline.errors import JobUsageError
from minibroker.pipeline.files.paths import JOB_DIRECTORY, join
from minibroker.pipeline.kafka.cluster import Kafka
from minibroker.pipeline.operations.rows import NONE, RowOperations
from minibroker.pipeline.options import row_options
from minibroker.pipeline.options.declaration import PipelineVerb
from minibroker.pipeline.options.kinds import DIRECTORY_OR_TOPIC, EXPRESSION, EXPRESSIONS
from minibroker.pipeline.options.row_options import ROW_OPTIONS
from minibroker.pipeline.options.shared import (
    BATCH_ROWS,
    CHECKPOINT,
    CLUSTER,
    DEFAULT_BATCH_ROWS,
    EVERY,
    FAIL,
    FILE_FORMATS,
    FOLLOW,
    FORMAT_OF_FILES,
    ON_DATA_LOSS,
    ON_RECREATED,
    REACTIONS,
    Engine,
    check_every,
    trigger_of,
)
from minibroker.pipeline.spark.progress import Note, Outcome

WATERMARK_MS: Final = 600_000


class RollupPlan(NamedTuple):
    """A plan to aggregate a topic into windows, in files or in another topic."""

    kafka: Annotated[Kafka, CLUSTER]
    topic: Annotated[str, Option("--topic", TOPIC, "topic to read", example="orders")]
    window_ms: Annotated[
        int,
        Option(
            "--window",
            DURATION,
            "length of a window, for instance 30s, 1m, 1h30m or 1d",
            name="window",
            example="1m",
        ),
    ]
    aggregates: Annotated[
        Sequence[str],
        Option(
            "--agg",
            EXPRESSIONS,
            "an aggregate, such as 'sum(amount) AS revenue' or 'count(*) AS orders'",
            name="agg",
            example="count(*) AS records",
        ),
    ]
    to: Annotated[
        str,
        Option(
            "--to",
            DIRECTORY_OR_TOPIC,
            "a topic; or a directory, which needs a / in it here, such as ./out",
            example="./windows",
        ),
    ]
    by: Annotated[
        Sequence[str],
        Option(
            "--by",
            EXPRESSIONS,
            "a group, a Spark SQL expression such as country or lower(name) AS name",
        ),
    ] = ()
    slide_ms: Annotated[
        int | None,
        Option(
            "--slide",
            DURATION,
            "time between the starts of two windows",
            name="slide",
            default="the length of a window: none overlap",
        ),
    ] = None
    watermark_ms: Annotated[
        int,
        Option(
            "--watermark",
            DURATION,
            "longest delay of a record; later ones are left out and counted",
            name="watermark",
        ),
    ] = WATERMARK_MS
    time: Annotated[
        str | None,
        Option(
            "--time",
            EXPRESSION,
            "time of the event, such as 'timestamp_millis(at)'",
            default="the record's timestamp",
        ),
    ] = None
    schema: Annotated[
        str | None,
        Option(
            "--schema",
            FILE,
            "the fields of a value: DDL such as 'id BIGINT, amount DOUBLE', or Spark's schema as "
            "JSON; in a file, or as it is",
        ),
    ] = None
    example: Annotated[
        str | None,
        Option("--example", FILE, "or example values, one JSON object on each line"),
    ] = None
    dead_letters: Annotated[
        str | None,
        Option(
            "--dead-letters",
            DIRECTORY_OR_TOPIC,
            "topic, or directory with a / in it, for records that cannot be used, with the reason "
            "and position: "
            "values that do not fit the schema, times more than a day ahead of now; without it the "
            "first such value ends the job, and records of such times are left out and counted",
            REACTIONS,
        ),
    ] = None
    format: Annotated[str, FORMAT_OF_FILES] = FILE_FORMATS[0]
    follow: Annotated[bool, FOLLOW] = False
    batch_rows: Annotated[int, BATCH_ROWS] = DEFAULT_BATCH_ROWS
    fail_on_data_loss: Annotated[bool, ON_DATA_LOSS] = True
    on_recreated: Annotated[str, ON_RECREATED] = FAIL
    checkpoint_directory: Annotated[
        str | None,
        CHECKPOINT.changed(
            help="directory of progress and open windows; needed with a topic",
            default="TO/_minibroker/checkpoint",
        ),
    ] = None
    every_ms: Annotated[int | None, EVERY] = None
    operations: Annotated[RowOperations, ROW_OPTIONS] = NONE

    @property
    def trigger(self) -> str | None:
        """Return how often Spark starts a batch, None for at once."""
        return trigger_of(self.every_ms)

    @property
    def to_topic(self) -> str | None:
        """Return the topic that `to` names, None if it is a directory."""
        return None if is_path(self.to) else self.to

    @property
    def checkpoint(self) -> str:
        """Return the directory of the job's progress and of its open windows."""
        return self.checkpoint_directory or join(self.to, JOB_DIRECTORY, "checkpoint")

    @property
    def owner(self) -> str:
        """Return the directory that holds the identity of the job."""
        return self.checkpoint if self.to_topic is not None else self.to

    @property
    def shared_paths(self) -> list[str]:
        """Return the directories that the driver and the workers use."""
        paths = [self.checkpoint]  # workers write the open windows there
        paths += [] if self.to_topic else [self.to]
        dead = self.dead_letters
        return [*paths, dead] if dead is not None and is_path(dead) else paths


def check(plan: RollupPlan, names: Names) -> None:
    """Raise JobUsageError if options do not go together."""
    if bool(plan.schema) == bool(plan.example):
        raise JobUsageError(
            f"the fields of a value: give either {names['schema']} or {names['example']}"
        )
    check_every(plan, names)
    if plan.slide_ms and plan.slide_ms > plan.window_ms:
        raise JobUsageError(
            f"{names['slide_ms']} is longer than {names['window_ms']}: records between two windows "
            "would be lost"
        )
    if plan.to_topic is not None and not plan.checkpoint_directory:
        raise JobUsageError(
            f"{names['to']} {plan.to} is a topic, as it has no /: write ./{plan.to} for a "
            "directory; a rollup to a topic keeps its open windows in a directory: say which with "
            f"{names['checkpoint_directory']}"
        )
    row_options.check(plan.operations, names, follows=plan.follow)


def windows_note(plan: RollupPlan, outcome: Outcome) -> Note | None:
    """Return a note about the windows of a rollup that does not follow, None if there is none."""
    if plan.follow:
        return None
    final = f"{_windows(outcome.final_windows)} became final"
    later = f"when the topic has a record {duration(plan.watermark_ms)} later than its end"
    if plan.to_topic is None:
        fields = {
            "final_windows": outcome.final_windows,
            "provisional_windows": outcome.provisional_windows,
        }
        rest = (
            f"{_windows(outcome.provisional_windows)} can still change:\n"
            "they are provisional rows, which the next run replaces;\n"
            f"a window becomes final {later}"
            if outcome.provisional_windows
            else "none can still change"
        )
    elif outcome.batches:
        fields = {
            "final_windows": outcome.final_windows,
            "open_windows": outcome.open_windows,
        }
        rest = (
            f"{_windows(outcome.open_windows)} can still change:\n"
            f"they are not in the topic; a later run writes each of them\n{later}"
            if outcome.open_windows
            else "none can still change"
        )
    else:
        return None
    return Note(f"{final}; {rest}", fields)


def _windows(number: int) -> str:
    return f"{number:,} {'window' if number == 1 else 'windows'}"


VERB: Final = PipelineVerb(
    name="rollup",
    does="aggregate a topic of JSON values over windows of time",
    usage="--topic T --window 1m --agg EXPR... (--schema FILE | --example FILE) --to TOPIC|DIR",
    plan=RollupPlan,
    rank=4,
    group="Topic and windows",
    notes="""
In expressions, names are fields of the value. The record itself has record.key, record.partition,
record.offset, record.timestamp and record.headers.

The watermark is the latest time seen, less --watermark. A window is final when the watermark has
passed its end; then it is written once. Windows that are open when a run ends stay in the
checkpoint. A directory also gets them as provisional rows, in files named provisional-..., so that
readers of the directory find every record in a window. The next run replaces these rows. With
--follow, and in a topic, there are only final windows.

In a topic each window and group is a JSON object; its key has the window's begin and the group.
""",
    examples=(
        "rollup --topic orders --example order.json --window 1m --by country "
        "--agg 'sum(amount) AS revenue' --agg 'count(*) AS orders' --to ./revenue",
    ),
    check=check,
    engine=Engine,
    first=("topic",),
    function="""Aggregate JSON values over windows of time; each final window is written once.

Windows that are open at the end are written into a directory as provisional rows, which the
next call replaces; into a topic, and with `follow`, only final ones are written.""",
    done=lambda plan, rows: f"{counted(rows, 'record')} rolled up to {plan.to}",
    note=windows_note,
)

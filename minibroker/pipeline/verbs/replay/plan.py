"""`replay`: its options, its plan and its help."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final, NamedTuple

from minibroker.cli.declaration import Names, Option
from minibroker.cli.kinds import SWITCH, TOPIC, TOPICS, Kind, is_path
from minibroker.cli.quantities import counted
from minibroker.pipeline.files.paths import JOB_DIRECTORY, join
from minibroker.pipeline.kafka.cluster import Kafka
from minibroker.pipeline.operations.rows import NONE, RowOperations
from minibroker.pipeline.options import row_options
from minibroker.pipeline.options.declaration import PipelineVerb
from minibroker.pipeline.options.kinds import DIRECTORY, speed_of
from minibroker.pipeline.options.row_options import ROW_OPTIONS
from minibroker.pipeline.options.shared import (
    BATCH_BYTES,
    BATCH_ROWS,
    CHECKPOINT,
    DEAD_LETTERS,
    DEFAULT_BATCH_BYTES,
    MAX_RATE,
    OWN_SOURCE,
    PACE,
    Engine,
)

REPLAY_BATCH_ROWS: Final = 500_000
"""Rows of a replay's batch and of its transactions, which must end before the broker aborts them.
"""


class ReplayPlan(NamedTuple):
    """A plan to copy files to a topic."""

    kafka: Annotated[Kafka, OWN_SOURCE]
    archive: Annotated[
        str,
        Option(
            "--from",
            DIRECTORY,
            "directory that `pipeline archive` has written: files, or an Iceberg or Delta table "
            "whose catalogue is the directory",
            example="archive",
        ),
    ]
    to_topic: Annotated[
        str,
        Option(
            "--to-topic",
            TOPIC,
            "topic to write; it is made if it does not exist, see below",
            example="orders-copy",
        ),
    ]
    topics: Annotated[
        Sequence[str], Option("--topic", TOPICS, "topics to copy, if the archive has several")
    ] = ()
    speed: Annotated[
        float | None,
        Option(
            "--speed",
            Kind("SPEED", speed_of, lambda speed: f"{speed:g}x"),
            "as fast as possible (max), as recorded (1x), faster (60x) or slower (0.5x); due "
            "records are written about once a second",
            PACE,
            default="max",
        ),
    ] = None
    """How many times faster than recorded, None for as fast as possible."""
    keep_timestamps: Annotated[
        bool,
        Option(
            "--keep-timestamps",
            SWITCH,
            "records keep their timestamps, and a new topic keeps records of any age "
            "(retention.ms=-1); otherwise they get the time of the replay",
        ),
    ] = False
    keep_partitions: Annotated[
        bool,
        Option(
            "--keep-partitions",
            SWITCH,
            "records keep their partitions; otherwise the key decides, as usual",
        ),
    ] = False
    batch_rows: Annotated[
        int, BATCH_ROWS.changed(help="records of a batch and its transactions, at most")
    ] = REPLAY_BATCH_ROWS
    batch_bytes: Annotated[int, BATCH_BYTES.changed(default="")] = DEFAULT_BATCH_BYTES
    max_rate: Annotated[int | None, MAX_RATE] = None
    """Bytes that are written in a second, at most; None: no limit."""
    checkpoint_directory: Annotated[
        str | None, CHECKPOINT.changed(default="FROM/_minibroker/replays/TOPIC")
    ] = None
    operations: Annotated[RowOperations, ROW_OPTIONS] = NONE
    dead_letters: Annotated[str | None, DEAD_LETTERS] = None

    @property
    def checkpoint(self) -> str:
        """Return the directory of the job's progress.

        The default is a directory for each target, beside the archive.
        """
        return self.checkpoint_directory or join(
            self.archive, JOB_DIRECTORY, "replays", self.to_topic
        )

    @property
    def shared_paths(self) -> list[str]:
        """Return the directories that the driver and the workers use."""
        dead = self.dead_letters
        return [self.archive, dead] if dead is not None and is_path(dead) else [self.archive]


def check(plan: ReplayPlan, names: Names) -> None:
    """Raise JobUsageError if options do not go together."""
    row_options.check(plan.operations, names)


VERB: Final = PipelineVerb(
    name="replay",
    does="copy archived records into a topic, each exactly once",
    usage="--from DIR --to-topic T",
    plan=ReplayPlan,
    rank=2,
    group="Files and topic",
    notes="""
A topic that does not exist is made, with as many partitions as the archived topic had and the
cluster's defaults for everything else. For other settings make the topic first. With
--keep-timestamps a new topic keeps records of any age. A topic that is there keeps its retention,
which counts by the timestamps: a line says so if it deletes old records.

Records of a partition are written in their order, in transactions. The same command again goes on
where the last one ended, also after a kill; when all is written it writes nothing. Give another
--checkpoint to replay the same archive once more.
""",
    examples=(
        "replay --from archive --to-topic orders-copy",
        "replay --from archive --to-topic load-test --speed 10x",
        "replay --from archive --to-topic orders --keep-timestamps --keep-partitions",
    ),
    check=check,
    engine=Engine,
    first=("archive",),
    function="Copy archived records into a topic, each exactly once, a partition's in their order.",
    done=lambda plan, rows: f"{counted(rows, 'record')} written to topic {plan.to_topic}",
)

"""`copy`: its options, its plan and its help."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Final, NamedTuple

from minibroker.cli.connection import BOOTSTRAP, KAFKA, KAFKA_CONFIG
from minibroker.cli.declaration import Names, Option, Part
from minibroker.cli.kinds import SWITCH, TOPIC, TOPICS, Kind, Many, is_path
from minibroker.cli.quantities import counted
from minibroker.pipeline.errors import JobUsageError
from minibroker.pipeline.files.paths import join
from minibroker.pipeline.kafka.cluster import Kafka
from minibroker.pipeline.operations.rows import NONE, RowOperations
from minibroker.pipeline.options import row_options
from minibroker.pipeline.options.declaration import PipelineVerb
from minibroker.pipeline.options.kinds import DIRECTORY
from minibroker.pipeline.options.row_options import ROW_OPTIONS
from minibroker.pipeline.options.shared import (
    BATCH_ROWS,
    DEAD_LETTERS,
    EVERY,
    FAIL,
    FOLLOW,
    MAX_RATE,
    ON_DATA_LOSS,
    OWN_SOURCE,
    Engine,
    check_every,
    cluster_beside,
)

COPY_BATCH_ROWS: Final = 500_000
"""Records of a batch and of its transactions, which must end before the broker aborts them."""
_GROUPS: Final = Many("GROUP[,...]")


class TargetCluster(NamedTuple):
    """The cluster that is written to, as the user gives it."""

    bootstrap: Annotated[
        str | None,
        BOOTSTRAP.changed(
            flag="--to-bootstrap",
            help="the broker of the target",
            name="to_bootstrap",
            default="bootstrap.servers of --to-kafka-config, or that of the source",
        ),
    ] = None
    kafka: Annotated[
        Mapping[str, str],
        KAFKA.changed(
            flag="--to-kafka",
            help="a setting of the Kafka client for the target: on the cluster of the source it is "
            "added to those of the source; another cluster takes those only if it has none",
            name="to_kafka",
        ),
    ] = {}
    kafka_config: Annotated[
        str | None,
        KAFKA_CONFIG.changed(
            flag="--to-kafka-config",
            help="settings of the Kafka client for the target in a properties file, taken "
            "as --to-kafka",
            name="to_kafka_config",
        ),
    ] = None

    def beside(self, kafka: Kafka) -> Kafka:
        """Return the cluster; `kafka` is that of the source. Raises PipelineError."""
        return cluster_beside(kafka, self.bootstrap, self.kafka, self.kafka_config)


class CopyPlan(NamedTuple):
    """A plan to copy topics into topics."""

    kafka: Annotated[Kafka, OWN_SOURCE]
    to: Annotated[TargetCluster, Part(TargetCluster)]
    checkpoint_directory: Annotated[
        str,
        Option(
            "--checkpoint",
            DIRECTORY,
            "directory of the progress, and of the offsets that records got",
            name="checkpoint",
            example="./copy-of-orders",
        ),
    ]
    topics: Annotated[Sequence[str], Option("--topic", TOPICS, "topics to copy")] = ()
    pattern: Annotated[
        str | None,
        Option("--pattern", Kind("P"), "or all topics whose whole name this expression matches"),
    ] = None
    to_topic: Annotated[
        str | None,
        Option(
            "--to-topic",
            TOPIC,
            "name of the copy of the only topic",
            default="the name of the topic behind --prefix",
        ),
    ] = None
    prefix: Annotated[
        str,
        Option("--prefix", Kind("TEXT"), "name a copy by this and the topic's name: us-west."),
    ] = ""
    by_key: Annotated[
        bool,
        Option(
            "--by-key",
            SWITCH,
            "the key chooses the partition, as usual; otherwise records keep theirs",
        ),
    ] = False
    groups: Annotated[
        Sequence[str],
        Option("--groups", _GROUPS, "consumer groups whose offsets are translated"),
    ] = ()
    groups_pattern: Annotated[
        str | None,
        Option("--groups-pattern", Kind("P"), "and those whose whole name this expression matches"),
    ] = None
    follow: Annotated[bool, FOLLOW] = False
    every_ms: Annotated[int | None, EVERY] = None
    batch_rows: Annotated[
        int, BATCH_ROWS.changed(help="records of a batch and its transactions, about")
    ] = COPY_BATCH_ROWS
    max_rate: Annotated[int | None, MAX_RATE] = None
    """Bytes that are written in a second, at most; None: no limit."""
    fail_on_data_loss: Annotated[bool, ON_DATA_LOSS] = True
    operations: Annotated[RowOperations, ROW_OPTIONS] = NONE
    dead_letters: Annotated[
        str | None,
        DEAD_LETTERS.changed(
            help="topic of the target, or directory, for records that cannot be used, with the "
            "reason and position: those that are dated more than a day ahead of now; without it "
            "they are copied as they are"
        ),
    ] = None

    @property
    def on_recreated(self) -> str:
        """Return the reaction to a topic of the source that was made anew."""
        return FAIL

    @property
    def target(self) -> Kafka:
        """Return the cluster that is written to."""
        return self.to.beside(self.kafka)

    @property
    def keeps_partitions(self) -> bool:
        """Return whether records keep their partitions."""
        return not self.by_key

    @property
    def has_groups(self) -> bool:
        """Return whether consumer groups follow."""
        return bool(self.groups) or self.groups_pattern is not None

    @property
    def checkpoint(self) -> str:
        """Return the directory of Spark's checkpoint."""
        return join(self.checkpoint_directory, "checkpoint")

    @property
    def chooses(self) -> bool:
        """Return whether records may be left out or changed, so that no offset is translated."""
        return self.operations.is_used or self.dead_letters is not None

    @property
    def shared_paths(self) -> list[str]:
        """Return the directories that the workers use."""
        dead = self.dead_letters
        return [dead] if dead is not None and is_path(dead) else []

    def target_of(self, topic: str) -> str:
        """Return the name of the copy of a topic."""
        return self.to_topic or f"{self.prefix}{topic}"


def check(plan: CopyPlan, names: Names) -> None:
    """Raise JobUsageError if options do not go together."""
    if bool(plan.topics) == bool(plan.pattern):
        raise JobUsageError(f"what to copy: give either {names['topics']} or {names['pattern']}")
    if plan.to_topic is not None and (len(plan.topics) != 1 or plan.prefix):
        raise JobUsageError(
            f"{names['to_topic']} is the name of the copy of one topic: for several give "
            f"{names['prefix']}"
        )
    if plan.by_key and plan.has_groups:
        raise JobUsageError(
            f"offsets are translated within partitions: leave out {names['by_key']}, or "
            f"{names['groups']}"
        )
    check_every(plan, names)
    row_options.check(plan.operations, names, follows=plan.follow)
    if plan.chooses and plan.has_groups:
        raise JobUsageError(
            f"{names['groups']} need a copy of all records as they are: leave out --since to "
            f"--select and {names['dead_letters']}, or the groups"
        )
    for name in ("pattern", "groups_pattern"):
        try:
            re.compile(getattr(plan, name) or "")
        except re.error as error:
            raise JobUsageError(
                f"{names[name]} {getattr(plan, name)!r} is no regular expression: {error}"
            ) from None


VERB: Final = PipelineVerb(
    name="copy",
    does="copy topics into topics of any cluster, each record exactly once",
    usage="(--topic T... | --pattern P) --checkpoint DIR",
    plan=CopyPlan,
    rank=3,
    group="Topics and groups",
    notes="""
Key, value, headers, timestamp, partition and the order within a partition stay. A target that does
not exist is made with the source's partitions and its own settings, without those that belong to a
cluster: min.insync.replicas, unclean.leader.election.enable, the throttled replicas, and
message.timestamp.*, which would change the copy. Read copies with isolation.level=read_committed.

The same command again goes on where the last one ended, also after a kill. With --groups the
committed offsets of consumer groups are written into the target, translated: to the same record,
never ahead of what is copied, never back, and only while the group has no member there. That
happens at the end, with --follow once a minute. Offsets are exact while nobody else writes into the
target.
""",
    examples=(
        "copy --topic orders --to-topic orders-copy --checkpoint ./copy",
        "copy --pattern 'orders.*' --to-bootstrap 127.0.0.1:9093 --groups-pattern '.*' "
        "--follow --checkpoint ./copy",
        "copy --topic orders --to-bootstrap 127.0.0.1:9093 --checkpoint ./copy --sample 1% "
        "--sample-by key --mask 'customer.email=email, key=hash'",
    ),
    check=check,
    engine=Engine,
    first=("topics",),
    function="Copy topics into topics of this or another cluster, each record exactly once.",
    done=lambda plan, rows: f"{counted(rows, 'record')} copied to {plan.target.bootstrap}",
)

"""`lag`: its options, its plan and its help."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Final, NamedTuple

from minibroker.cli.declaration import Names, Option
from minibroker.cli.kinds import DURATION, PORT_MAX, SWITCH, TOPICS, Kind, Many
from minibroker.pipeline.errors import JobUsageError
from minibroker.pipeline.kafka.cluster import Kafka
from minibroker.pipeline.options.declaration import PipelineVerb
from minibroker.pipeline.options.shared import OUTPUT, OWN_SOURCE

DEFAULT_EVERY_MS: Final = 5_000
_PORT: Final = re.compile(r"[0-9]{1,5}")


def local_address(text: str) -> str:
    """Return `HOST:PORT` if it is on this machine. Raises JobUsageError."""
    host, _, port = text.rpartition(":")
    if host not in ("127.0.0.1", "localhost", "[::1]"):
        raise JobUsageError(
            f"{text!r}: nobody is asked for a password there, so HOST is 127.0.0.1, [::1] or "
            "localhost: expected for instance 127.0.0.1:9308"
        )
    if not _PORT.fullmatch(port) or int(port) > PORT_MAX:
        raise JobUsageError(f"{text!r}: expected a port from 0 to {PORT_MAX} behind the host")
    return text


class LagPlan(NamedTuple):
    """A plan to watch how far readers are behind."""

    kafka: Annotated[Kafka, OWN_SOURCE]
    groups: Annotated[
        Sequence[str],
        Option(
            "--group",
            Many("G[,...]"),
            "groups to watch",
            default="all, but none beside --checkpoint",
        ),
    ] = ()
    pattern: Annotated[
        str | None,
        Option(
            "--group-pattern",
            Kind("P"),
            "or all groups whose whole name this regular expression matches",
            name="group_pattern",
        ),
    ] = None
    checkpoints: Annotated[
        Sequence[str],
        Option(
            "--checkpoint",
            Many("DIR[,...]"),
            "directories of pipeline jobs, or of the checkpoints of any Spark query that reads "
            "topics: their progress instead of groups, or beside the groups that are named",
        ),
    ] = ()
    topics: Annotated[
        Sequence[str], Option("--topic", TOPICS, "topics to watch; none: all that are read")
    ] = ()
    every_ms: Annotated[
        int, Option("--every", DURATION, "time between two looks", OUTPUT, name="every")
    ] = DEFAULT_EVERY_MS
    once: Annotated[bool, Option("--once", SWITCH, "look once and end", OUTPUT)] = False
    age: Annotated[
        bool,
        Option(
            "--age",
            SWITCH,
            "read the oldest unread record of each partition, for its time",
            OUTPUT,
        ),
    ] = False
    report: Annotated[
        str | None,
        Option(
            "--report",
            Kind("FILE.html"),
            "write a page with the lag over time, anew at each look; it opens without a network",
            OUTPUT,
        ),
    ] = None
    metrics: Annotated[
        str | None,
        Option(
            "--metrics",
            Kind("HOST:PORT", local_address),
            "serve the same to Prometheus at http://HOST:PORT/metrics; only this machine can be "
            "HOST; port 0 takes a free one",
            OUTPUT,
        ),
    ] = None


def check(plan: LagPlan, names: Names) -> None:
    """Raise JobUsageError if options do not go together."""
    if plan.once and plan.metrics is not None:
        raise JobUsageError(
            f"{names['metrics']} is for a watch that goes on, without {names['once']}"
        )


VERB: Final = PipelineVerb(
    name="lag",
    does="watch how far groups and jobs are behind the ends of topics",
    usage="[--group G...] [--checkpoint DIR...]",
    plan=LagPlan,
    rank=8,
    job="command",
    command="minibroker.pipeline.verbs.lag.command",
    group="Readers",
    notes="""
On a terminal it is a table that renews itself, until Ctrl-C; otherwise each look is one JSON line
on stdout, with a position for each partition. Lag counts offsets: the end of the partition less
the next offset to read. A job has done what its last committed batch has read.

Prometheus gets kafka_consumergroup_lag, kafka_consumergroup_current_offset,
kafka_consumergroup_oldest_unread_seconds (with --age) with the labels consumergroup, topic and
partition, and kafka_topic_partition_current_offset. kafka_consumergroup_up is 0 while the brokers
do not answer.

The page of --report has a line for each of the six readers that were behind most, the lag now, and
a table of all. Of a long watch it has at most 600 looks, evenly spread.

Neither Spark nor Java is needed. A look asks for 1,000 groups at most.
""",
    examples=(
        "lag --age",
        "lag --group billing,search --topic orders",
        "lag --checkpoint ./archive --once",
        "lag --metrics 127.0.0.1:9308 --every 15s",
        "lag --report lag.html",
    ),
    check=check,
)

"""`inspect`: its options, its plan and its help."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final, NamedTuple

from minibroker.cli.declaration import Names, Option
from minibroker.cli.kinds import TOPICS, Kind
from minibroker.pipeline.errors import JobUsageError
from minibroker.pipeline.kafka.cluster import Kafka
from minibroker.pipeline.operations.rows import NONE, RowOperations
from minibroker.pipeline.options import row_options
from minibroker.pipeline.options.declaration import PipelineVerb
from minibroker.pipeline.options.kinds import DIRECTORY
from minibroker.pipeline.options.row_options import ROW_OPTIONS
from minibroker.pipeline.options.shared import CLUSTER, Engine


class InspectPlan(NamedTuple):
    """A plan to inspect topics, or a data directory, with a table and a page as the result."""

    kafka: Annotated[Kafka, CLUSTER]
    topics: Annotated[Sequence[str], Option("--topic", TOPICS, "topics to read")] = ()
    log_dir: Annotated[
        str | None,
        Option(
            "--log-dir",
            DIRECTORY,
            "or a data directory of minibroker or Kafka, with no broker running",
        ),
    ] = None
    report: Annotated[
        str | None,
        Option("--report", Kind("FILE.html"), "write a page that opens without a network"),
    ] = None
    operations: Annotated[RowOperations, ROW_OPTIONS] = NONE


def check(plan: InspectPlan, names: Names) -> None:
    """Raise JobUsageError if options do not go together."""
    if not plan.topics and plan.log_dir is None:
        raise JobUsageError(f"what to inspect: give {names['topics']} or {names['log_dir']}")
    row_options.check(plan.operations, names)


VERB: Final = PipelineVerb(
    name="inspect",
    does="show statistics of topics, as a table and as a page with plots",
    usage="(--topic T... | --log-dir DIR)",
    plan=InspectPlan,
    rank=6,
    group="Topics and page",
    notes="""
Shows records, bytes and rates over time, sizes, keys and skew between partitions, timestamps out
of order, lag of groups, compression ratio, duplicates and gaps of producers.
""",
    examples=(
        "inspect --topic orders",
        "inspect --log-dir minibroker-data --topic orders --report orders.html",
    ),
    check=check,
    engine=Engine,
    first=("topics",),
    brokers=lambda plan: None if plan.log_dir is not None else plan.kafka.bootstrap,
    function="Look at topics: how much, how large, how spread, in what order, who is behind.",
)

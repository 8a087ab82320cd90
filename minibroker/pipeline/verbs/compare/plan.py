"""`compare`: its options, its plan and its help."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Final, NamedTuple

from minibroker.cli.connection import BOOTSTRAP, KAFKA, KAFKA_CONFIG
from minibroker.cli.declaration import Names, Option, Part
from minibroker.cli.kinds import COUNT, SWITCH, Kind, Many, check_choice
from minibroker.pipeline.errors import JobUsageError
from minibroker.pipeline.kafka.cluster import Kafka
from minibroker.pipeline.operations.rows import BY_KEY, NONE, RowOperations
from minibroker.pipeline.options import row_options
from minibroker.pipeline.options.declaration import PipelineVerb
from minibroker.pipeline.options.row_options import ROW_OPTIONS
from minibroker.pipeline.options.shared import OWN_SOURCE, Engine, cluster_beside
from minibroker.pipeline.verbs.compare.rules import IGNORED, CompareRules
from minibroker.pipeline.verbs.compare.side import SIDE, Side, side_of

DEFAULT_EXAMPLES: Final = 5
"""Examples of each kind of difference."""
EXAMPLES_MAX: Final = 10_000
_WORDS: Final = Many("WORD[,...]", lambda word: check_choice(word, IGNORED))


class OtherCluster(NamedTuple):
    """The cluster of B, as the user gives it."""

    bootstrap: Annotated[
        str | None,
        BOOTSTRAP.changed(
            flag="--with-bootstrap",
            help="the broker of B",
            name="with_bootstrap",
            default="bootstrap.servers of --with-kafka-config, or that of A",
        ),
    ] = None
    kafka: Annotated[
        Mapping[str, str],
        KAFKA.changed(
            flag="--with-kafka",
            help="a setting of the Kafka client for B: on the cluster of A it is added to those of "
            "A; another cluster takes those only if it has none",
            name="with_kafka",
        ),
    ] = {}
    kafka_config: Annotated[
        str | None,
        KAFKA_CONFIG.changed(
            flag="--with-kafka-config",
            help="settings of the Kafka client for B in a properties file, taken as --with-kafka",
            name="with_kafka_config",
        ),
    ] = None

    def beside(self, kafka: Kafka) -> Kafka:
        """Return the cluster; `kafka` is that of A. Raises PipelineError."""
        return cluster_beside(kafka, self.bootstrap, self.kafka, self.kafka_config)


class ComparePlan(NamedTuple):
    """A plan to compare two sides."""

    kafka: Annotated[Kafka, OWN_SOURCE]
    other: Annotated[OtherCluster, Part(OtherCluster)]
    a: Annotated[
        str, Option("A", SIDE, "a topic, or the directory of an archive", example="orders")
    ]
    b: Annotated[
        str, Option("B", SIDE, "what it is compared with, named alike", example="orders-copy")
    ]
    ignore: Annotated[
        Sequence[str],
        Option(
            "--ignore",
            _WORDS,
            f"what need not be the same: {', '.join(IGNORED)}",
        ),
    ] = ()
    same_offsets: Annotated[
        bool, Option("--same-offsets", SWITCH, "offsets have to be the same, too")
    ] = False
    examples: Annotated[
        int, Option("--examples", COUNT, "examples of each kind of difference, at most")
    ] = DEFAULT_EXAMPLES
    report: Annotated[
        str | None,
        Option("--report", Kind("FILE.html"), "write a page that opens without a network"),
    ] = None
    operations: Annotated[RowOperations, ROW_OPTIONS] = NONE

    @property
    def sides(self) -> tuple[Side, Side]:
        """Return A and B."""
        return side_of(self.a, self.kafka), side_of(self.b, self.other.beside(self.kafka))

    @property
    def rules(self) -> CompareRules:
        """Return what has to be the same."""
        return CompareRules(
            offset=self.same_offsets, **{word: word not in self.ignore for word in IGNORED}
        )


def check(plan: ComparePlan, names: Names) -> None:
    """Raise JobUsageError if options do not go together."""
    if plan.same_offsets and "partition" in plan.ignore:
        raise JobUsageError(
            f"offsets belong to partitions: give {names['same_offsets']}, or {names['ignore']} "
            "partition"
        )
    if plan.examples > EXAMPLES_MAX:
        raise JobUsageError(f"{names['examples']} is {plan.examples:,}: at most {EXAMPLES_MAX:,}")
    row_options.check(plan.operations, names)
    if plan.operations.sample is not None and plan.operations.sample_by != BY_KEY:
        raise JobUsageError(
            f"{names['sample']} of a comparison is of keys, since a copy has other offsets: give "
            f"{names['sample_by']} {BY_KEY}, too"
        )


VERB: Final = PipelineVerb(
    name="compare",
    does="say whether two topics, or a topic and its archive, are the same",
    usage="A B",
    plan=ComparePlan,
    rank=7,
    group="Sides and rules",
    notes="""
A and B are topics (orders, or orders@host:9092 of another cluster) or archives (./lake, or
./lake#orders if it has several topics). Key, value, headers, timestamp, partition and the order of
each key are compared, and records that are there twice count twice. Offsets are shown and not
compared, because a copy in transactions has others.

Counts for each partition: equal; missing in B; only in B; changed (another record of that key is
there instead); out of order (behind a record of its key that A has behind it).

Operations on records (--since to --select) choose the records of both sides, and what of their
values counts: --select id,amount compares two fields. A masked key is masked in the examples.

Equal sides are read once and nothing is shuffled. Otherwise only hashes of the records in question
are. On a terminal the result is a table, else one JSON object. Of more than 40 partitions both tell
only those that differ one by one. Exit code 3: they differ.
""",
    examples=(
        "compare orders orders-copy",
        "compare orders orders@127.0.0.1:9093 --ignore timestamp,partition",
        "compare orders ./archive --same-offsets --report compare.html",
        "compare orders orders-copy --since -1d --select id,amount",
    ),
    check=check,
    engine=Engine,
    first=("a", "b"),
    function="Compare two topics, or a topic and its archive, record by record.",
)

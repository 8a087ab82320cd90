"""Options that several verbs have: declared once, and taken by a verb's plan.

A constant is one option. A NamedTuple holds options that belong together; a plan takes it as a
`Part`. Their groups are titles of the help page, in the order of `GROUPS`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Final, NamedTuple, Protocol

from minibroker.cli.connection import BOOTSTRAP, CONNECTION, KAFKA, KAFKA_CONFIG, ConnectionOptions
from minibroker.cli.declaration import Names, Option, Part
from minibroker.cli.kinds import (
    COUNT,
    DURATION,
    PAIRS,
    RATE,
    SIZE,
    SWITCH,
    TEXT,
    Either,
    Kind,
    Many,
    check_choice,
    choice,
)
from minibroker.pipeline.errors import JobUsageError
from minibroker.pipeline.kafka.cluster import Kafka, kafka_of
from minibroker.pipeline.options.kinds import DIRECTORY, DIRECTORY_OR_TOPIC, STORAGE

RECORDS: Final = "Records"
VALUES: Final = "Values as columns"
PACE: Final = "Batches and files"
OUTPUT: Final = "Output"
REACTIONS: Final = "Reactions"
SPARK: Final = "Spark"
RUN: Final = "This command"
GROUPS: Final = (RECORDS, VALUES, PACE, OUTPUT, REACTIONS, CONNECTION, SPARK, RUN)
"""Titles behind the verb's own one, in the order of the help page."""

FILE_FORMATS: Final = ("parquet", "json", "csv")
FAIL: Final = "fail"
READ: Final = "read"
"""Reactions to a topic that was deleted and made again since the last run."""

DEFAULT_MASTER: Final = "local[*]"
DEFAULT_BATCH_ROWS: Final = 2_000_000
"""Rows of a micro-batch: enough to make its start cheap, few enough to show progress."""
DEFAULT_BATCH_BYTES: Final = 512 << 20
"""Bytes of a micro-batch, as `DEFAULT_BATCH_ROWS`: with large records there are fewer of them."""
DEFAULT_TARGET_BYTES: Final = 128 << 20
"""Size of a file of Parquet or of a table, about."""

ASK_MS: Final = 1_000
"""Time between two questions whether a batch can start, at most."""

_SOURCE: Final = "minibroker"

FOLLOW: Final = Option("--follow", SWITCH, "do not end: go on with new records", PACE)
EVERY: Final = Option(
    "--every",
    DURATION,
    "with --follow, time between two batches, unless more waits than fits into one",
    PACE,
    name="every",
    default="none",
)
BATCH_ROWS: Final = Option("--batch-rows", COUNT, "records of a batch, at most", PACE)
BATCH_BYTES: Final = Option(
    "--batch-bytes",
    SIZE,
    "bytes of keys, values and headers of a batch, at most, about; a batch ends at the first of "
    "its limits",
    PACE,
    name="batch_bytes",
    default="512MB",
)
MAX_RATE: Final = Option(
    "--max-rate",
    RATE,
    "bytes of a second in all tasks together, at most, such as 50MB/s",
    PACE,
    name="max_rate",
    default="none",
)
TARGET_FILE_SIZE: Final = Option(
    "--target-file-size",
    SIZE,
    "size of a file of Parquet or of a table, about",
    PACE,
    name="target_file_size",
)
ON_DATA_LOSS: Final = Option(
    "--on-data-loss",
    Either("fail", "continue"),
    "reaction if records were removed from a topic before they were read",
    REACTIONS,
    name="fail_on_data_loss",
)
ON_RECREATED: Final = Option(
    "--on-recreated",
    choice(FAIL, READ),
    "reaction if a topic was deleted and made again since the last run; read: read it from its "
    "start",
    REACTIONS,
)
DEAD_LETTERS: Final = Option(
    "--dead-letters",
    DIRECTORY_OR_TOPIC,
    "topic, or directory with a / in it, for records that cannot be used, with the reason "
    "and position: those that "
    "are dated more than a day ahead of now; without it they are written as they are",
    REACTIONS,
)
FORMAT_OF_FILES: Final = Option("--format", choice(*FILE_FORMATS), "format of files")
CATALOG: Final = Option(
    "--catalog",
    PAIRS,
    "a property of PyIceberg for the catalogue of an iceberg table, such as type=rest",
    default="DIR is the catalogue",
)
TABLE: Final = Option(
    "--table", TEXT, "name of the table in that catalogue", metavar="NAMESPACE.NAME"
)


STORAGE_OPTION: Final = Option(
    "--storage",
    STORAGE,
    "a setting of the object store of an s3:// or s3a:// directory, by its name in Spark "
    "(fs.s3a.endpoint), PyIceberg (s3.endpoint) or deltalake (AWS_ENDPOINT_URL)",
    name="storage",
    default="the variables AWS_..., and --conf spark.hadoop.fs.s3a. where Spark runs",
)


def _source(text: str) -> str:
    """Return the only source. Raises JobUsageError."""
    if text == "connector":
        raise JobUsageError(
            "'connector': Spark's connector does not read for a job any more; leave --source out"
        )
    return check_choice(text, (_SOURCE,))


class ClientOptions(NamedTuple):
    """The cluster that holds the topics, as the user gives it."""

    bootstrap: Annotated[str | None, BOOTSTRAP] = None
    kafka: Annotated[Mapping[str, str], KAFKA] = {}
    kafka_config: Annotated[str | None, KAFKA_CONFIG] = None
    source: Annotated[
        str,
        Option(
            "--source",
            Kind(_SOURCE, _source),
            "minibroker's own source reads topics; there is no other one any more",
            CONNECTION,
        ),
    ] = _SOURCE

    def cluster(self) -> Kafka:
        """Return the cluster. Raises UsageError if the file of settings cannot be read."""
        return kafka_of(self.bootstrap, self.kafka_config, self.kafka)


CLUSTER: Final = Part(ClientOptions, ClientOptions.cluster)
"""The field `kafka` of a plan."""
OWN_SOURCE: Final = Part(
    ConnectionOptions,
    lambda options: kafka_of(options.bootstrap, options.kafka_config, options.kafka),
)
"""The same of a verb that never had `--source`."""


class Engine(NamedTuple):
    """The Spark that runs the job."""

    master: Annotated[
        str,
        Option(
            "--master",
            Kind("URL"),
            "where Spark runs; on a cluster, paths are on Spark's default file system, and local "
            "ones must be shared",
            SPARK,
            default="local[*]: here, on all cores",
        ),
    ] = DEFAULT_MASTER
    jars: Annotated[
        Sequence[str], Option("--jars", Many("FILE[,...]"), "jars for Spark", SPARK)
    ] = ()
    packages: Annotated[
        Sequence[str],
        Option(
            "--packages",
            Many("G:A:V[,...]"),
            "jars by their Maven coordinates, for instance "
            "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
            SPARK,
        ),
    ] = ()
    conf: Annotated[Mapping[str, str], Option("--conf", PAIRS, "a setting of Spark", SPARK)] = {}
    ui: Annotated[
        bool,
        Option(
            "--ui",
            SWITCH,
            "serve Spark's pages about the job while it runs, on 127.0.0.1; their address is shown",
            SPARK,
        ),
    ] = False


class CommandOptions(NamedTuple):
    """Options of the command line alone."""

    dry_run: Annotated[bool, Option("--dry-run", SWITCH, "show the plan and do nothing", RUN)] = (
        False
    )


def cluster_beside(
    kafka: Kafka, bootstrap: str | None, settings: Mapping[str, str], config_file: str | None
) -> Kafka:
    """Return a second cluster, which is `kafka` itself unless something says where it is.

    Its settings are added to those of `kafka` if it is the same cluster. Another cluster has only
    its own ones; if it has none, it takes those of `kafka`.

    Raises PipelineError: the file cannot be read.
    """
    own = kafka_of(bootstrap, config_file, settings, elsewhere="")
    if not own.bootstrap:
        return kafka._replace(
            settings={**kafka.settings, **own.settings},
            registry={**kafka.registry, **own.registry},
        )
    if own.settings or own.registry:
        return own
    return kafka._replace(bootstrap=own.bootstrap)


class WithEvery(Protocol):
    """A plan of a job that may go on, with a time between its batches."""

    @property
    def follow(self) -> bool:
        """Return whether it goes on."""

    @property
    def every_ms(self) -> int | None:
        """Return the time between two batches, None if it was not given."""


def check_every(plan: WithEvery, names: Names) -> None:
    """Raise JobUsageError for a time between batches in a job that ends."""
    if plan.every_ms is not None and not plan.follow:
        raise JobUsageError(f"{names['every_ms']} is for a job with {names['follow']}")


def trigger_of(every_ms: int | None) -> str | None:
    """Return how often Spark starts a batch, None for at once.

    The source makes the pause itself, and makes none while a full batch waits; Spark only asks it
    often enough.
    """
    return None if every_ms is None else f"{min(every_ms, ASK_MS)} milliseconds"


def pause_option(every_ms: int | None) -> dict[str, str]:
    """Return the option of the source for the time between two batches."""
    return {} if every_ms is None else {"batchPause": f"{every_ms}ms"}


CHECKPOINT: Final = Option(
    "--checkpoint", DIRECTORY, "directory of the progress", name="checkpoint"
)

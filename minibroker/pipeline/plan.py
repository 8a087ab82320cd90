"""Plans of jobs, as values: the command line and the Python functions make them, the jobs read
them.

Nothing here needs Spark or a broker, so that `--help`, wrong usage and `--dry-run` answer at once.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.pipeline.client_settings import read_file, writer_settings
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.quantities import milliseconds

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

SOURCES: Final = ("minibroker", "connector")
FORMATS: Final = ("parquet", "json", "csv")
TABLE_FORMATS: Final = ("iceberg", "delta")
ARCHIVE_FORMATS: Final = (*FORMATS, *TABLE_FORMATS)

FAIL: Final = "fail"
READ: Final = "read"
ON_RECREATED: Final = (FAIL, READ)
"""Reactions to a topic that was deleted and made again since the last run."""

DEFAULT_BOOTSTRAP: Final = "127.0.0.1:9092"
DEFAULT_MASTER: Final = "local[*]"
DEFAULT_BATCH_ROWS: Final = 2_000_000
"""Rows of a micro-batch: enough to make its start cheap, few enough to show progress."""

REPLAY_BATCH_ROWS: Final = 500_000
"""Rows of a replay's batch and of its transactions, which must end before the broker aborts them.
"""

DEFAULT_TARGET_BYTES: Final = 128 << 20
"""Size of a table's data file, about."""
DEFAULT_KEEP_MS: Final = 7 * 86_400_000
"""Time for which readers can go on with an old version of a table."""
DEFAULT_EVERY_MS: Final = 60_000
"""Time between two batches of a table that is followed: each of them is a version of the table."""

JOB_DIRECTORY: Final = "_minibroker"
"""Name of the directory beside a job's results; Spark and other readers skip names with `_`."""

_SIZE: Final = re.compile(r"(\d{1,12})\s*(K|M|G)?I?B?")
_UNIT_BYTES: Final = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_TOPIC: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")
_REMOTE: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")


class JobUsageError(PipelineError):
    """An error in the arguments of a job; the command line exits with 2."""


class Kafka(NamedTuple):
    """The cluster that holds the topics, and how to connect to it."""

    bootstrap: str = DEFAULT_BOOTSTRAP
    source: str = SOURCES[0]
    settings: Mapping[str, str] = {}
    """Settings of the client, without the prefix `kafka.` of Spark's options."""

    def options(self) -> dict[str, str]:
        """Return Spark's Kafka options; jobs read committed records unless a setting says
        otherwise.
        """
        settings = {"isolation.level": "read_committed", **self.settings}
        return {
            "kafka.bootstrap.servers": self.bootstrap,
            **{f"kafka.{key}": value for key, value in settings.items()},
        }

    def writer_options(self) -> dict[str, str]:
        """Return the options of the sink: without the settings of consumers alone."""
        settings = writer_settings({**self.settings, "bootstrap.servers": self.bootstrap})
        return {f"kafka.{key}": value for key, value in settings.items()}


def kafka_of(
    bootstrap: str | None, source: str, config_file: str | None, settings: Mapping[str, str]
) -> Kafka:
    """Return a cluster from what the user gave.

    Args:
        bootstrap: where it is; None: the file says, or it is on this machine.
        source: one of SOURCES.
        config_file: a properties file with settings of a client, None: none.
        settings: more of them, which win; `kafka.` may stand before the names.

    Raises:
        PipelineError: the file cannot be read.
    """
    given = {} if config_file is None else read_file(config_file)
    given |= {name.removeprefix("kafka."): value for name, value in settings.items()}
    told = given.pop("bootstrap.servers", DEFAULT_BOOTSTRAP)
    return Kafka(bootstrap or told, source, given)


class Engine(NamedTuple):
    """The Spark that runs the job."""

    master: str = DEFAULT_MASTER
    jars: Sequence[str] = ()
    packages: Sequence[str] = ()
    conf: Mapping[str, str] = {}


class ArchivePlan(NamedTuple):
    """A plan to copy topics to files."""

    kafka: Kafka
    to: str
    topics: Sequence[str] = ()
    pattern: str | None = None
    """A regular expression instead of `topics`, as Spark's `subscribePattern`."""
    format: str = FORMATS[0]
    follow: bool = False
    batch_rows: int = DEFAULT_BATCH_ROWS
    fail_on_data_loss: bool = True
    on_recreated: str = FAIL
    target_bytes: int = DEFAULT_TARGET_BYTES
    """Size of a file of Parquet or of a table, about."""
    every_ms: int | None = None
    """With `follow`, time between two batches; None: the default of the format."""
    catalog: Mapping[str, str] = {}
    """PyIceberg's properties of a catalogue; empty: the directory is the catalogue."""
    table: str | None = None
    """`namespace.table` in that catalogue."""

    @property
    def checkpoint(self) -> str:
        """Return the directory of the job's progress."""
        return join(self.to, JOB_DIRECTORY, "checkpoint")

    @property
    def is_table(self) -> bool:
        """Return whether the archive is a table of Iceberg or Delta."""
        return self.format in TABLE_FORMATS

    @property
    def trigger_ms(self) -> int | None:
        """Return the time between two batches, None for no pause."""
        return DEFAULT_EVERY_MS if self.every_ms is None and self.is_table else self.every_ms


class ReplayPlan(NamedTuple):
    """A plan to copy files to a topic."""

    kafka: Kafka
    archive: str
    to_topic: str
    topics: Sequence[str] = ()
    """Archived topics to replay, empty for the only one."""
    speed: float | None = None
    """How many times faster than recorded, None for as fast as possible."""
    keep_timestamps: bool = False
    keep_partitions: bool = False
    batch_rows: int = REPLAY_BATCH_ROWS
    checkpoint_directory: str | None = None

    @property
    def checkpoint(self) -> str:
        """Return the directory of the job's progress.

        The default is a directory for each target, beside the archive.
        """
        return self.checkpoint_directory or join(
            self.archive, JOB_DIRECTORY, "replays", self.to_topic
        )


class RollupPlan(NamedTuple):
    """A plan to aggregate a topic into windows, in files or in another topic."""

    kafka: Kafka
    topic: str
    window_ms: int
    aggregates: Sequence[str]
    to: str
    by: Sequence[str] = ()
    slide_ms: int | None = None
    watermark_ms: int = 600_000
    time: str | None = None
    """SQL expression of the event's time, None: the record's timestamp."""
    schema: str | None = None
    example: str | None = None
    bad_records: str | None = None
    format: str = FORMATS[0]
    follow: bool = False
    batch_rows: int = DEFAULT_BATCH_ROWS
    fail_on_data_loss: bool = True
    on_recreated: str = FAIL
    checkpoint_directory: str | None = None
    every_ms: int | None = None
    """With `follow`, time between two batches; None: no pause."""

    @property
    def trigger(self) -> str | None:
        """Return the time between two batches as Spark reads it, None for no pause."""
        return None if self.every_ms is None else f"{self.every_ms} milliseconds"

    @property
    def to_topic(self) -> str | None:
        """Return the topic that `to` names, None if it is a directory."""
        return None if is_path(self.to) else self.to

    @property
    def checkpoint(self) -> str:
        """Return the directory of the job's progress and of its open windows."""
        if self.checkpoint_directory:
            return self.checkpoint_directory
        if self.to_topic is not None:
            raise JobUsageError(
                "a rollup to a topic keeps its open windows in a directory: "
                "say which with --checkpoint DIR"
            )
        return join(self.to, JOB_DIRECTORY, "checkpoint")


class InspectPlan(NamedTuple):
    """A plan to inspect topics, or a data directory, with a table and a page as the result."""

    kafka: Kafka
    topics: Sequence[str] = ()
    log_dir: str | None = None
    report: str | None = None


class MaintainPlan(NamedTuple):
    """A plan for the upkeep of an archive."""

    to: str
    target_bytes: int = DEFAULT_TARGET_BYTES
    keep_ms: int = DEFAULT_KEEP_MS
    catalog: Mapping[str, str] = {}
    table: str | None = None


StreamPlan = ArchivePlan | ReplayPlan | RollupPlan
Plan = StreamPlan | InspectPlan | MaintainPlan


def checked(plan: StreamPlan) -> StreamPlan:
    """Return `plan` if its parts fit together. Raises UsageError."""
    if plan.batch_rows < 1:
        raise JobUsageError(f"batches of {plan.batch_rows} rows: expected a number from 1 up")
    if isinstance(plan, ArchivePlan):
        if bool(plan.topics) == bool(plan.pattern):
            raise JobUsageError("what to archive: either topics or a pattern")
        _check_table(plan)
        names: Sequence[str] = plan.topics
    elif isinstance(plan, ReplayPlan):
        names = (plan.to_topic, *plan.topics)
    else:
        names = (plan.topic,) if plan.to_topic is None else (plan.topic, plan.to_topic)
        _check_rollup(plan)
    for name in names:
        check_topic(name)
    return plan


def _check_table(plan: ArchivePlan) -> None:
    if plan.every_ms is not None and not plan.follow:
        raise JobUsageError("a time between batches is for an archive that follows its topics")
    if bool(plan.catalog) != bool(plan.table):
        raise JobUsageError("a catalogue needs the name of the table in it, and a name a catalogue")
    if plan.catalog and plan.format != "iceberg":
        raise JobUsageError(f"a catalogue is for iceberg; {plan.format} has none")
    if plan.table is not None and not ("." in plan.table and all(plan.table.split("."))):
        raise JobUsageError(f"table {plan.table!r}: expected NAMESPACE.NAME, such as logs.orders")


def _check_rollup(plan: RollupPlan) -> None:
    if bool(plan.schema) == bool(plan.example):
        raise JobUsageError("the fields of a value: either a schema or an example")
    if plan.every_ms is not None and not plan.follow:
        raise JobUsageError("a time between batches is for a rollup that follows its topic")
    if not plan.aggregates:
        raise JobUsageError("no aggregate: give one such as 'count(*) AS records'")
    if plan.slide_ms and plan.slide_ms > plan.window_ms:
        raise JobUsageError("windows begin further apart than they are long: records would be lost")
    if not plan.checkpoint:
        raise JobUsageError("the checkpoint needs a directory")


def duration_ms(text: str) -> int:
    """Return a duration such as `90s`, `1m`, `1h30m` or `250ms` in milliseconds.

    Raises UsageError.
    """
    total = milliseconds(text)
    if total is None:
        raise JobUsageError(f"{text!r} is no duration: expected for instance 30s, 1m, 1h30m or 1d")
    if total == 0:
        raise JobUsageError(f"{text!r} is no duration: it has to be longer than nothing")
    return total


def bytes_of(text: str) -> int:
    """Return a size such as `64MB`, `512KB`, `1GB` or `1000000` in bytes. Raises UsageError."""
    found = _SIZE.fullmatch(text.strip().upper())
    if found is None or int(found[1]) == 0:
        raise JobUsageError(f"{text!r} is no size: expected for instance 64MB, 512KB or 1GB")
    return int(found[1]) * _UNIT_BYTES[found[2] or ""]


def speed_of(text: str) -> float | None:
    """Return a speed such as `1x`, `0.5x` or `60x` as a factor, `max` as None.

    Raises UsageError.
    """
    if text == "max":
        return None
    try:
        factor = float(text.removesuffix("x"))
    except ValueError:
        factor = 0.0
    if not 0 < factor < float("inf"):
        raise JobUsageError(f"speed {text!r}: expected 1x, 0.5x, 60x and the like, or max")
    return factor


def check_topic(name: str) -> str:
    """Return `name` if Kafka allows it as a topic. Raises UsageError."""
    if not _TOPIC.fullmatch(name) or name in (".", ".."):
        raise JobUsageError(
            f"{name!r} cannot be a topic: its name may have letters, digits, '.', '_' and '-', "
            "249 at most"
        )
    return name


def check_choice(what: str, value: str, allowed: Iterable[str]) -> str:
    """Return `value` if it is in `allowed`. Raises UsageError."""
    if value not in (choices := tuple(allowed)):
        raise JobUsageError(f"{what} {value!r}: expected {' or '.join(choices)}")
    return value


def is_path(text: str) -> bool:
    """Return whether `text` names a directory: it has a `/` (or is `.`), which no topic has."""
    return "/" in text or text in (".", "..")


def is_remote(path: str) -> bool:
    """Return whether `path` is a URL (`s3a://…`, `hdfs:/…`) and not a local path."""
    return bool(_REMOTE.match(path)) and not path.startswith("file:/")


def is_on_this_machine(master: str) -> bool:
    """Return whether every worker of `master` runs here, so that a loopback address works."""
    return master.startswith("local")


def has_scheme(path: str) -> bool:
    """Return whether `path` is a URL, `file:/…` too."""
    return bool(_REMOTE.match(path))


def absolute(path: str) -> str:
    """Return a local path as an absolute one: Spark's JVM may run in another directory."""
    return path if _REMOTE.match(path) else str(Path(path).absolute())


def join(directory: str, *names: str) -> str:
    """Return a path below `directory`, which may be a URL."""
    if _REMOTE.match(directory):
        return "/".join((directory.rstrip("/"), *names))
    return str(PurePath(directory, *names))

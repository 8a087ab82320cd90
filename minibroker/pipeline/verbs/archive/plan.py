"""`archive`: its options, its plan and its help."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Final, NamedTuple

from minibroker.cli.declaration import Names, Option
from minibroker.cli.kinds import SWITCH, TOPICS, Kind, Many, choice, is_path
from minibroker.cli.quantities import counted, exact_duration
from minibroker.pipeline.errors import JobUsageError
from minibroker.pipeline.files.object_stores import is_object_store, store_of
from minibroker.pipeline.files.paths import JOB_DIRECTORY, is_remote, join
from minibroker.pipeline.kafka.cluster import Kafka, without_password
from minibroker.pipeline.operations.rows import NONE, RowOperations
from minibroker.pipeline.options import row_options
from minibroker.pipeline.options.declaration import PipelineVerb
from minibroker.pipeline.options.kinds import DIRECTORY, DIRECTORY_OR_TOPIC
from minibroker.pipeline.options.row_options import ROW_OPTIONS
from minibroker.pipeline.options.shared import (
    BATCH_BYTES,
    BATCH_ROWS,
    CATALOG,
    CHECKPOINT,
    CLUSTER,
    DEFAULT_BATCH_BYTES,
    DEFAULT_BATCH_ROWS,
    DEFAULT_TARGET_BYTES,
    EVERY,
    FAIL,
    FILE_FORMATS,
    FOLLOW,
    MAX_RATE,
    ON_DATA_LOSS,
    ON_RECREATED,
    REACTIONS,
    STORAGE_OPTION,
    TABLE,
    TARGET_FILE_SIZE,
    VALUES,
    Engine,
    check_every,
)
from minibroker.pipeline.tables import TABLE_FORMATS

FORMATS: Final = (*FILE_FORMATS, *TABLE_FORMATS)
FOLLOW_EVERY_MS: Final = 60_000
"""Time between two batches of an archive that follows: each makes a file, or a version of a table.
"""


class ArchivePlan(NamedTuple):
    """A plan to copy topics to files."""

    kafka: Annotated[Kafka, CLUSTER]
    to: Annotated[
        str,
        Option(
            "--to",
            DIRECTORY,
            "directory of the files, never a topic: a path, or a URL that Spark can write, such as "
            "s3a://bucket/dir",
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
    every_ms: Annotated[int | None, EVERY.changed(default=exact_duration(FOLLOW_EVERY_MS))] = None
    catalog: Annotated[Mapping[str, str], CATALOG] = {}
    table: Annotated[str | None, TABLE] = None
    batch_bytes: Annotated[int, BATCH_BYTES] = DEFAULT_BATCH_BYTES
    """Bytes of a batch, at most, about; None: the default."""
    max_rate: Annotated[int | None, MAX_RATE] = None
    """Bytes that are read in a second, at most; None: no limit."""
    operations: Annotated[RowOperations, ROW_OPTIONS] = NONE
    registry_url: Annotated[
        str | None,
        Option(
            "--schema-registry",
            Kind("URL", show=without_password),
            "values are Avro, JSON or Protobuf in the wire format of this schema registry "
            "(Confluent's API), and become columns; its settings are among those of the Kafka "
            "client, behind schema.registry. (basic.auth.user.info, ssl.truststore.location, ...)",
            VALUES,
            name="schema_registry",
        ),
    ] = None
    schema: Annotated[
        str | None,
        Option(
            "--schema",
            Kind("DDL|FILE"),
            "or values are JSON with these fields, such as 'id BIGINT, amount DECIMAL(10, 2)'",
            VALUES,
        ),
    ] = None
    decode_keys: Annotated[
        bool, Option("--decode-keys", SWITCH, "decode keys with the registry, too", VALUES)
    ] = False
    keep_bytes: Annotated[
        bool,
        Option(
            "--keep-bytes",
            SWITCH,
            "keep the bytes, too, in the columns valueBytes and keyBytes: replay needs them",
            VALUES,
        ),
    ] = False
    dead_letters: Annotated[
        str | None,
        Option(
            "--dead-letters",
            DIRECTORY_OR_TOPIC,
            "topic, or directory with a / in it, for records that cannot be used, with the reason "
            "and position: "
            "values that cannot be decoded, rows without a key, dates more than a day ahead; "
            "without it the first such value ends the job, and a table keeps those dates apart in "
            "DIR/_minibroker/bad-dates",
            REACTIONS,
        ),
    ] = None

    upsert_by: Annotated[
        Sequence[str],
        Option(
            "--upsert-by",
            Many("COLUMN[,...]"),
            "make a table of rows instead, as the source of Debezium's events has them: the last "
            "one of each key, in these columns; key: the record's key",
            VALUES,
        ),
    ] = ()

    storage: Annotated[Mapping[str, str], STORAGE_OPTION] = {}
    checkpoint_directory: Annotated[
        str | None, CHECKPOINT.changed(default="TO/_minibroker/checkpoint")
    ] = None

    @property
    def decoded_columns(self) -> Sequence[str]:
        """Return the columns that become typed ones, empty if bytes stay bytes."""
        if self.registry_url is None and self.schema is None:
            return ()
        return ("key", "value") if self.decode_keys else ("value",)

    @property
    def dead_letter_place(self) -> str | None:
        """Return the place of records that cannot be used, None if files keep all as they are."""
        if self.dead_letters is None and self.is_table and not self.upsert_by:
            return join(self.to, JOB_DIRECTORY, "bad-dates")
        return self.dead_letters

    @property
    def masks_columns(self) -> bool:
        """Return whether masks and selected fields are for decoded columns, not for JSON."""
        return self.operations.changes and self.registry_url is not None

    @property
    def checkpoint(self) -> str:
        """Return the directory of the job's progress."""
        return self.checkpoint_directory or join(self.to, JOB_DIRECTORY, "checkpoint")

    @property
    def shared_paths(self) -> list[str]:
        """Return the directories that the driver and the workers use."""
        dead = self.dead_letters
        return [self.to, dead] if dead is not None and is_path(dead) else [self.to]

    @property
    def is_table(self) -> bool:
        """Return whether the archive is a table of Iceberg or Delta."""
        return self.format in TABLE_FORMATS

    @property
    def takes_store(self) -> bool:
        """Return whether PyArrow writes into an object store, without Spark's Hadoop."""
        return is_object_store(self.to) and (self.is_table or bool(self.decoded_columns))

    @property
    def trigger_ms(self) -> int | None:
        """Return the time between two batches, None for an archive that ends."""
        if not self.follow:
            return None
        return FOLLOW_EVERY_MS if self.every_ms is None else self.every_ms


def check(plan: ArchivePlan, names: Names) -> None:
    """Raise JobUsageError if options do not go together."""
    if bool(plan.topics) == bool(plan.pattern):
        raise JobUsageError(f"what to archive: give either {names['topics']} or {names['pattern']}")
    check_every(plan, names)
    _check_places(plan, names)
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
    _check_decoding(plan, names)


def _check_places(plan: ArchivePlan, names: Names) -> None:
    if plan.storage and not is_object_store(plan.to):
        raise JobUsageError(f"{names['storage']} is for a directory such as s3://BUCKET/DIR")
    checkpoint = plan.checkpoint_directory
    if checkpoint is None or is_remote(checkpoint) == is_remote(plan.to):
        return
    if not (plan.takes_store and not is_remote(checkpoint)):
        raise JobUsageError(
            f"{names['checkpoint_directory']} is on another file system than {names['to']}: only a "
            "table or decoded columns in s3://BUCKET/DIR can have it on this machine"
        )


def _check_decoding(plan: ArchivePlan, names: Names) -> None:
    if not plan.decoded_columns:
        for field in ("decode_keys", "keep_bytes", "upsert_by"):
            if getattr(plan, field):
                raise JobUsageError(
                    f"{names[field]} is for values that become columns: give "
                    f"{names['registry_url']} or {names['schema']}"
                )
        return
    if plan.registry_url is not None and plan.schema is not None:
        raise JobUsageError(
            f"the fields of a value: give either {names['registry_url']} or {names['schema']}"
        )
    if plan.decode_keys and plan.registry_url is None:
        raise JobUsageError(f"{names['decode_keys']} is for {names['registry_url']}")
    if plan.upsert_by and not plan.is_table:
        raise JobUsageError(f"{names['upsert_by']} is for {names['format']} iceberg or delta")
    if plan.upsert_by and plan.keep_bytes:
        raise JobUsageError(f"{names['keep_bytes']} is for records, not for {names['upsert_by']}")
    if plan.masks_columns:
        option = names["mask" if plan.operations.rules else "select"]
        if plan.keep_bytes:
            raise JobUsageError(
                f"{names['keep_bytes']} keeps bytes as they came, and {option} hides a part of "
                f"them: leave {names['keep_bytes']} out"
            )
    if plan.format not in (*TABLE_FORMATS, FORMATS[0]):
        raise JobUsageError(
            f"{plan.format} files hold bytes: values become columns with {names['format']} "
            "iceberg, delta or parquet"
        )


def engine_with_store(plan: ArchivePlan, engine: Engine, environment: Mapping[str, str]) -> Engine:
    """Return the engine with settings of S3A for an archive in a store; given settings win."""
    if not is_object_store(plan.to):
        return engine
    hadoop = {
        name.removeprefix("spark.hadoop."): text
        for name, text in engine.conf.items()
        if name.startswith("spark.hadoop.")
    }
    store = store_of(plan.to, environment, hadoop, plan.storage)
    return engine._replace(conf={**store.for_spark(), **engine.conf})


VERB: Final = PipelineVerb(
    name="archive",
    does="copy topics into files, each record exactly once",
    usage="(--topic T... | --pattern P) --to DIR",
    plan=ArchivePlan,
    rank=1,
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

Tables and decoded columns may be in S3 or a store with its API: s3://BUCKET/DIR, with --storage or
AWS_ variables. Without Hadoop's S3A (--packages org.apache.hadoop:hadoop-aws:...) Spark's progress
needs --checkpoint DIR.

With --schema-registry or --schema, the column value is a struct with the fields of the schemas of
the subjects TOPIC-value, and of all others that come. A newer schema adds fields and widens int to
long and float to double (in delta only before the table is made); fields that it lacks stay and are
null. Times, dates and decimals that Connect and Debezium name are such columns. What cannot be
decoded, or does not fit, is a dead letter. This needs: pip install 'minibroker[schemas]'

With --upsert-by, the table has the rows and not the records: values are events of Debezium (op,
before, after; in JSON also below payload), or rows as they are. A later record of a key replaces
the row; an event d, a row with __deleted: "true" or a tombstone removes it.
""",
    examples=(
        "archive --topic orders --to archive",
        "archive --pattern 'orders-.*' --to archive --follow",
        "archive --topic orders --to ./orders --format iceberg --follow --every 5m",
        "archive --topic orders --to ./orders --format iceberg "
        "--schema-registry http://localhost:8081 --dead-letters orders-dead",
        "archive --topic shop.orders --to ./orders --format delta --upsert-by id "
        "--schema-registry http://localhost:8081",
    ),
    check=check,
    engine=Engine,
    first=("topics",),
    function="Copy topics into files, each record exactly once; the next call goes on from there.",
    done=lambda plan, rows: f"{counted(rows, 'record')} archived to {plan.to}",
    engine_for=engine_with_store,
)

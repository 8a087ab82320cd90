"""An archive that the tasks write, with PyArrow: its needs, its identity and its writer.

It is a table, has values as columns, or is a directory of Parquet files on this machine.
"""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Final

from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.spark import dead_letters
from minibroker.pipeline.tables.choice import check_place
from minibroker.pipeline.tables.file_archive import FileArchive

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from minibroker.pipeline.operations.masked_columns import ColumnMasks
    from minibroker.pipeline.tables.table import TablePlace
    from minibroker.pipeline.values.schema_registry import SchemaRegistry
    from minibroker.pipeline.verbs.archive.decoded_sink import RecordRules
    from minibroker.pipeline.verbs.archive.decoded_writer import DecodedBatchWriter, GrowingTable
    from minibroker.pipeline.verbs.archive.decodings import DecodedColumn
    from minibroker.pipeline.verbs.archive.plan import ArchivePlan

DEFAULT_CODEC: Final = "zstd"
_LIBRARIES: Final = ("fastavro", "ptars", "pyruhvro", "grpc_tools", "confluent_kafka")


def check_columns(plan: ArchivePlan) -> None:
    """Raise PipelineError if values cannot become columns here."""
    missing = [name for name in _LIBRARIES if importlib.util.find_spec(name) is None]
    if plan.registry_url is not None and missing:
        raise PipelineError(
            f"{missing[0]} is not installed, which values of a schema registry need: "
            "pip install 'minibroker[schemas]'"
        )
    check_place(plan.to, "values as columns")


def columns_of_job(plan: ArchivePlan) -> Mapping[str, str]:
    """Return the settings of the columns that must be the same in every run."""
    if not plan.decoded_columns:
        return {}
    return {
        "values": "of a schema registry" if plan.schema is None else "of a schema",
        "columns": ", ".join(plan.decoded_columns),
        "bytes": "kept" if plan.keep_bytes else "not kept",
        **({"upsert by": ", ".join(plan.upsert_by)} if plan.upsert_by else {}),
    }


def check_same_columns(plan: ArchivePlan, job: Mapping[str, str]) -> None:
    """Raise PipelineError if the directory's values are columns, and the plan's are not."""
    if "values" in job and not plan.decoded_columns:
        raise PipelineError(
            f"{plan.to} has values as columns: give --schema-registry or --schema again, or "
            "another directory"
        )


def columns_writer(
    spark: SparkSession,
    plan: ArchivePlan,
    archive: TablePlace,
    topics: Sequence[str],
    task: Mapping[str, str] | None,
    *,
    secret: bytes,
    first: pa.Table | None,
) -> DecodedBatchWriter:
    """Return the writer of the archive's batches.

    Args:
        topics: those that are there now; their schemas are asked for at once.
        task: of `task.options_of`, for batches of ranges; None: they have rows.
        secret: of the hashes of the plan's masks.
        first: columns `key`, `value` and `headers` of the first records of an archive that nothing
            is written into yet, to check the masks of decoded columns with; None: no check.

    Raises PipelineError: the table, the registry or the schema cannot be used. JobUsageError: the
    first records have no place for a mask.
    """
    from minibroker.pipeline.values.arrow_types import plain  # noqa: PLC0415  PyArrow
    from minibroker.pipeline.verbs.archive.decoded_writer import DecodedBatchWriter  # noqa: PLC0415  PyArrow
    from minibroker.pipeline.verbs.archive.decodings import Decodings  # noqa: PLC0415  PyArrow

    columns = _columns(plan)
    masks = _masks(plan, secret)
    registry = _registry(plan, topics)
    try:
        if masks is not None and first is not None:
            ahead = Decodings(columns, registry, {}, widens=True, has_bounds=plan.is_table)
            ahead.begin(topics)
            ahead.learn_all(first)
            masks.check(ahead.types(), plan.operations)
        # Behind all that a wrong setting can end: a table that is made claims its directory.
        table = _table(spark, plan, archive)
        now = table.columns()
        names = [name for name in plan.decoded_columns if name in now.names]
        decodings = Decodings(
            columns,
            registry,
            {name: plain(now.field(name).type) for name in names},
            widens=plan.format != "delta",
            has_bounds=plan.is_table,
        )
        decodings.begin(topics)
        place = dead_letters.open_place(plan.dead_letter_place, plan.kafka, spark, archive.store)
    except BaseException as error:
        if registry is not None:
            registry.close()
        if isinstance(error, ValueError):
            raise PipelineError(f"--schema {plan.schema} does not fit {plan.to}: {error}") from (
                error
            )
        raise
    return DecodedBatchWriter(
        table,
        archive.files,
        plan,
        decodings=decodings,
        dead_letters=place,
        rules=_rules(plan),
        masks=masks,
        task=task,
    )


def _registry(plan: ArchivePlan, topics: Sequence[str]) -> SchemaRegistry | None:
    """Return the registry, which has answered, None if there is none. Raises PipelineError."""
    if plan.registry_url is None:
        return None
    from minibroker.pipeline.values.schema_registry import SchemaRegistry  # noqa: PLC0415  an extra

    registry = SchemaRegistry({**plan.kafka.registry, "url": plan.registry_url})
    try:
        for topic in topics[:1]:
            registry.ids(f"{topic}-value")
    except BaseException:
        registry.close()
        raise
    return registry


def _rules(plan: ArchivePlan) -> RecordRules:
    """Return what becomes of records that cannot be used.

    A table of rows does not have the dates of records, and so does not judge them.
    """
    from minibroker.pipeline.verbs.archive.decoded_sink import RecordRules  # noqa: PLC0415  PyArrow

    judges_dates = plan.dead_letter_place is not None and not plan.upsert_by
    return RecordRules(
        last_ms=0 if judges_dates else None,
        fails=plan.dead_letters is None,
        by=plan.upsert_by,
    )


def _masks(plan: ArchivePlan, secret: bytes) -> ColumnMasks | None:
    """Return the masks of decoded columns; None: there are none, or JSON is masked before."""
    if not plan.masks_columns:
        return None
    from minibroker.pipeline.operations.masked_columns import ColumnMasks  # noqa: PLC0415  PyArrow
    from minibroker.pipeline.operations.masking import Masker  # noqa: PLC0415  only then

    operations = plan.operations
    masker = Masker(operations.rules, operations.fields, secret)
    return ColumnMasks(masker, plan.decoded_columns, skips=operations.skips)


def _columns(plan: ArchivePlan) -> list[DecodedColumn]:
    from minibroker.pipeline.verbs.archive.decodings import DecodedColumn  # noqa: PLC0415  PyArrow

    schema = None
    if plan.schema is not None:
        from minibroker.pipeline.operations.value_schema import of_json  # noqa: PLC0415  only then

        schema = of_json(plan.schema, is_event=bool(plan.upsert_by))
    return [DecodedColumn(name, schema, plan.keep_bytes) for name in plan.decoded_columns]


def _table(spark: SparkSession, plan: ArchivePlan, place: TablePlace) -> GrowingTable:
    if plan.is_table and not plan.upsert_by:
        from minibroker.pipeline.tables.choice import open_archive  # noqa: PLC0415  an extra

        return open_archive(plan.format, place, plan.catalog, plan.table, plan.decoded_columns)
    from minibroker.pipeline.tables.parquet_directory import ParquetDirectory  # noqa: PLC0415  PyArrow
    from minibroker.pipeline.verbs.archive.table_writer import compression_of  # noqa: PLC0415  PyArrow

    archive = FileArchive(place.files, plan.to)
    codec = compression_of(spark) or DEFAULT_CODEC
    staged = ParquetDirectory(
        archive,
        place.files,
        plan.to,
        plan.decoded_columns,
        compression=codec,
        store=place.store,
    )
    if not plan.upsert_by:
        return staged
    from minibroker.pipeline.verbs.archive.mirror import MirrorTable  # noqa: PLC0415  an extra

    return MirrorTable(plan, place, staged)

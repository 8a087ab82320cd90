"""The schemas that an archive knows, and the columns that they become; used by the driver alone.

    registry ─ schemas of the topics' subjects, and those that a task has met ─► types ─► the union
                                                                                            │
    table ◄─ room for the union ◄───────────────────────────────────────────────────────────┘

The union begins with the columns that the table has, and takes in one schema after the other, the
newest of a subject first: where two of them do not fit together, the newer one counts. A schema
that does not fit is refused: its values are dead letters, and the reason names the field. A Delta
table cannot widen a number that it has. A new column of such a table gets the widest type of all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa

from minibroker.pipeline.values.arrow_types import (
    TypeConflictError,
    check_names,
    united,
    widened,
)
from minibroker.pipeline.values.decoding import (
    ColumnDecoding,
    SchemaKey,
    ValueSchema,
    decoded,
    reader_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from minibroker.pipeline.values.schema_registry import SchemaRegistry

NOT_THERE: Final = ValueSchema("", "", reason="the registry does not have it")


class DecodedColumn(NamedTuple):
    """One column to decode: by a registry, or by one schema that the user gave."""

    name: str
    """`key` or `value`."""
    plain: ValueSchema | None = None
    keeps_bytes: bool = False


class Decodings:
    """The schemas and types of the decoded columns of one archive."""

    def __init__(
        self,
        columns: Sequence[DecodedColumn],
        registry: SchemaRegistry | None,
        types: Mapping[str, pa.DataType],
        *,
        widens: bool,
        has_bounds: bool = False,
    ) -> None:
        """Begin with the columns of the table.

        Args:
            registry: has the schemas; None if every column has a plain one.
            types: column → type that the table has already.
            widens: whether the table can make int32 int64, and float32 float64.
            has_bounds: whether it can keep the years 1 to 9999 only.

        Raises ValueError: a plain schema cannot be a column, or does not fit the table.
        """
        self._columns = columns
        self._registry = registry
        self._widens = widens
        self._has_bounds = has_bounds
        self._types = dict(types)
        self._in_table = dict(types)
        self._schemas: dict[str, dict[SchemaKey, ValueSchema]] = {
            column.name: {} for column in columns
        }
        for column in columns:
            if column.plain is not None:
                self._take_in(column.name, column.plain)

    def begin(self, topics: Iterable[str]) -> None:
        """Ask for the schemas of topics: those of the subjects `TOPIC-value` and `TOPIC-key`.

        Raises PipelineError: the registry does not answer.
        """
        if self._registry is None:
            return
        for topic in topics:
            for column in self._columns:
                if column.plain is None:
                    for id_ in reversed(self._registry.ids(f"{topic}-{column.name}")):
                        self.learn([(column.name, SchemaKey(id_))])

    def learn(self, unseen: Iterable[tuple[str, SchemaKey]]) -> None:
        """Ask for schemas that tasks have met. Raises PipelineError: the registry is away."""
        if self._registry is None:
            raise AssertionError("tasks meet schemas only if there is a registry")
        for column, key in sorted(set(unseen), key=repr):
            schemas = self._schemas[column]
            if key not in schemas:
                schema = self._registry.schema(key.id)
                if schema is not None:
                    schema = schema._replace(message=key.message)
                schemas[key] = self._judged(column, schema or NOT_THERE)

    def learn_all(self, records: pa.Table) -> None:
        """Ask for every schema of these records. Raises PipelineError: the registry is away.

        Protobuf takes two rounds: the schema of a file, then the messages that the values are.
        """
        for batch in records.to_batches():
            while unseen := decoded(batch, self.columns()).unseen:
                self.learn(unseen)

    def columns(self) -> list[ColumnDecoding]:
        """Return the decodings for the tasks of a batch."""
        return [
            ColumnDecoding(
                column.name,
                self._schemas[column.name],
                column.plain,
                self._types.get(column.name, pa.null()),
                column.keeps_bytes,
                self._has_bounds,
            )
            for column in self._columns
        ]

    def types(self) -> Mapping[str, pa.DataType]:
        """Return column → type, for the columns that have one already."""
        return self._types

    def close(self) -> None:
        """End the connections to the registry."""
        if self._registry is not None:
            self._registry.close()

    def is_changed(self) -> bool:
        """Return whether a column has another type than in the table."""
        return self._types != self._in_table

    def note_taken_in(self) -> None:
        """Note that the table has all columns now."""
        self._in_table = dict(self._types)

    def _judged(self, column: str, schema: ValueSchema) -> ValueSchema:
        """Return the schema, with the reason if the table cannot have its values."""
        if schema.reason:
            return schema
        try:
            self._take_in(column, schema)
        except ValueError as error:
            # A table of an earlier version has numbers where times belong, and keeps them.
            older = schema._replace(as_numbers=True)
            try:
                self._take_in(column, older)
            except ValueError:
                return schema._replace(reason=str(error))
            return older
        return schema

    def _take_in(self, column: str, schema: ValueSchema) -> None:
        kind = reader_of(schema).type
        old = self._types.get(column)
        if old is None:
            check_names(kind, column)
        new = kind if old is None else united(old, kind, column)
        in_table = None if self._widens else self._in_table.get(column)
        changed = [] if in_table is None else widened(in_table, new, column)
        if changed:
            raise TypeConflictError(
                f"{changed[0]}, and a Delta table cannot widen a number: write into a new "
                "directory, or with --format iceberg"
            )
        self._types[column] = new

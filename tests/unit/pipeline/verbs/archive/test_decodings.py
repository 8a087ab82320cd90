"""The schemas that an archive knows: union in the order of versions, refusals with the reason."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from minibroker.pipeline.values.decoding import AVRO, SchemaKey, ValueSchema, of_type
from minibroker.pipeline.verbs.archive.decodings import DecodedColumn, Decodings


class Registry:
    """A registry with the schemas 1, 2, …, all of subject `t-value` but the last one."""

    def __init__(self, *schemas: dict[str, str]) -> None:
        self._schemas = schemas
        self.requests: list[int] = []

    def ids(self, subject: str) -> list[int]:
        return list(range(1, len(self._schemas))) if subject == "t-value" else []

    def schema(self, id_: int) -> ValueSchema | None:
        self.requests.append(id_)
        if id_ > len(self._schemas):
            return None
        fields = [
            {"name": name, "type": field_type}
            for name, field_type in self._schemas[id_ - 1].items()
        ]
        return ValueSchema(AVRO, json.dumps({"type": "record", "name": "R", "fields": fields}))

    def close(self) -> None:
        pass


VALUE = [DecodedColumn("value")]


def begin(
    *schemas: dict[str, str], widens: bool = True, has_bounds: bool = False, **types: Any
) -> Decodings:
    registry: Any = Registry(*schemas)
    decodings = Decodings(VALUE, registry, types, widens=widens, has_bounds=has_bounds)
    decodings.begin(["t"])
    return decodings


def test_versions_of_the_subject_make_the_columns() -> None:
    decodings = begin({"a": "int"}, {"a": "long", "b": "string"}, {"c": "string"})
    assert decodings.types() == {"value": pa.struct([("a", pa.int64()), ("b", pa.string())])}
    assert decodings.is_changed()
    decodings.note_taken_in()
    assert not decodings.is_changed()
    decodings.learn([("value", SchemaKey(3)), ("value", SchemaKey(3)), ("value", SchemaKey(99))])
    assert decodings.types()["value"].names == ["a", "b", "c"]
    (column,) = decodings.columns()
    assert column.schemas[SchemaKey(99)].reason == "the registry does not have it"


def test_a_schema_that_does_not_fit_is_refused_with_the_field() -> None:
    now = pa.struct([("a", pa.int32())])
    decodings = begin({"a": "string"}, {"b": "int"}, {}, value=now)
    (column,) = decodings.columns()
    assert column.schemas[SchemaKey(1)].reason == "value.a is string there and int32 in the table"
    assert column.schemas[SchemaKey(2)].reason == ""
    assert decodings.types() == {"value": pa.struct([("a", pa.int32()), ("b", pa.int32())])}

    # The first schema, too: Delta refuses such columns, and Spark does not read them.
    (column,) = begin({"id": "int", "ID": "string"}, {}).columns()
    assert column.schemas[SchemaKey(1)].reason == (
        "value.ID differs from value.id by upper and lower case only"
    )


def test_a_table_that_cannot_widen() -> None:
    now = pa.struct([("a", pa.int32())])
    decodings = begin({"a": "long"}, {}, widens=False, value=now)
    (column,) = decodings.columns()
    assert column.schemas[SchemaKey(1)].reason == (
        "value.a is int64 there and int32 in the table, and a Delta table cannot widen a number: "
        "write into a new directory, or with --format iceberg"
    )
    assert decodings.types() == {"value": now}


def test_a_new_table_that_cannot_widen_takes_the_widest_of_the_versions() -> None:
    decodings = begin(
        {"a": "int"}, {"a": "long", "b": "int"}, {"a": "int", "b": "long"}, widens=False
    )
    decodings.learn([("value", SchemaKey(3))])
    assert decodings.types() == {"value": pa.struct([("a", pa.int64()), ("b", pa.int64())])}
    assert [schema.reason for schema in decodings.columns()[0].schemas.values()] == ["", "", ""]
    decodings.note_taken_in()
    late = begin({"c": "int"}, {"c": "long"}, {}, widens=False, value=decodings.types()["value"])
    assert late.types()["value"].field("c").type == pa.int64()


def test_the_newest_version_decides_where_two_do_not_fit_together() -> None:
    decodings = begin({"a": "int"}, {"a": "string"}, {})
    (column,) = decodings.columns()
    assert column.schemas[SchemaKey(1)].reason == "value.a is int32 there and string in the table"
    assert column.schemas[SchemaKey(2)].reason == ""


MICROS: Any = {"type": "long", "connect.name": "io.debezium.time.MicroTimestamp"}


def test_an_older_table_keeps_numbers_where_a_new_one_has_times() -> None:
    (column,) = begin({"at": MICROS}, {}, has_bounds=True).columns()
    assert column.type == pa.struct([("at", pa.timestamp("us"))])
    assert column.has_bounds
    now = pa.struct([("at", pa.int64())])
    (column,) = begin({"at": MICROS, "new": MICROS}, {}, value=now).columns()
    assert column.type == pa.struct([("at", pa.int64()), ("new", pa.int64())])
    assert (column.schemas[SchemaKey(1)].as_numbers, column.schemas[SchemaKey(1)].reason) == (
        True,
        "",
    )


def test_one_schema_of_the_user_has_to_fit_the_table() -> None:
    plain = of_type(pa.struct([("a", pa.string())]))
    column = DecodedColumn("value", plain, keeps_bytes=True)
    decodings = Decodings([column], None, {}, widens=True)
    decodings.begin(["t"])
    assert decodings.columns()[0].plain == plain
    with pytest.raises(ValueError, match=r"value.a is string there and int64 in the table"):
        Decodings([column], None, {"value": pa.struct([("a", pa.int64())])}, widens=True)

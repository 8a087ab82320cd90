"""The fields of JSON values: from a schema that a person wrote, or from example values."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.operations.json_columns import clashes, parsed_schema
from minibroker.pipeline.values.schema_text import read_text, schema_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from minibroker.pipeline.values.decoding import ValueSchema

EXAMPLES_MAX: Final = 10_000


def check(text: str | None, example: str | None) -> None:
    """Check everything that needs no Spark. Raises PipelineError.

    Args:
        text: DDL or Spark's JSON, or a file with it.
        example: in place of it a file with values.
    """
    if example is not None:
        examples(example)
    else:
        schema_text(text or "")


def schema_of(spark: SparkSession, text: str | None, example: str | None) -> StructType:
    """Return the fields of values; arguments as of `check`. Raises PipelineError."""
    if example is not None:
        lines = [json.dumps(value) for value in examples(example)]
        schema = spark.read.json(spark.sparkContext.parallelize(lines, 1)).schema
    else:
        schema = parsed_schema(schema_text(text or ""), text or "")
    if not schema.names:
        raise PipelineError(f"{example or text} has no fields: give at least one")
    if names := clashes(schema):
        raise PipelineError(
            f"a value's field cannot be named {names[0]!r}: that is the name of the record itself; "
            "leave it out of the schema"
        )
    return schema


def of_json(text: str, *, is_event: bool = False) -> ValueSchema:
    """Return the schema of JSON values for the tasks of an archive.

    Args:
        text: DDL or Spark's JSON, or a file with it.
        is_event: whether the values may be events of Debezium with such rows, too.

    Raises PipelineError: it is no schema, or has types that JSON values do not have.
    """
    from pyspark.sql.pandas.types import to_arrow_type  # noqa: PLC0415  slow to import

    from minibroker.pipeline.values.decoding import of_type  # noqa: PLC0415  PyArrow
    from minibroker.pipeline.values.json_values import table_type  # noqa: PLC0415  PyArrow

    schema = parsed_schema(schema_text(text), text)
    if not schema.names:
        raise PipelineError(f"{text} has no fields: give at least one")
    try:
        return of_type(table_type(to_arrow_type(schema, timezone="UTC")), is_event=is_event)
    except ValueError as error:
        raise PipelineError(f"{text}: {error}") from error


def examples(path: str) -> list[object]:
    """Return the values in a file: one JSON object, an array of them, or one for each line.

    Raises:
        PipelineError: no such file, or no JSON objects.
    """
    text = read_text(path, "--example")
    try:
        whole = json.loads(text)
        values = whole if isinstance(whole, list) else [whole]
    except json.JSONDecodeError:
        values = [_line(path, number, line) for number, line in enumerate(text.splitlines(), 1)]
        values = [value for value in values if value is not None]
    if not values or not all(isinstance(value, dict) for value in values):
        raise PipelineError(f"{path} is no example: expected JSON objects, one a line")
    return values[:EXAMPLES_MAX]


def _line(path: str, number: int, line: str) -> object:
    if not line.strip():
        return None
    try:
        return json.loads(line)
    except json.JSONDecodeError as error:
        raise PipelineError(f"{path} line {number} is no JSON: {error}") from error

"""The three formats by name; a format's module is imported with its first schema."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

from minibroker.registry.formats.limits import check_sizes
from minibroker.registry.formats.parsed_schema import InvalidSchemaError, ParsedSchema

if TYPE_CHECKING:
    from collections.abc import Sequence

_MODULES: Final = {"JSON": "json_schemas", "PROTOBUF": "protobuf", "AVRO": "avro"}
SCHEMA_TYPES: Final = tuple(_MODULES)
"""In the order of Confluent's answer to GET /schemas/types."""


def parse(schema_type: str, text: str, references: Sequence[tuple[str, str]] = ()) -> ParsedSchema:
    """Return the schema of a text.

    Args:
        schema_type: one of SCHEMA_TYPES.
        text: as a client posts it.
        references: (name as the schema uses it, text) of every schema that this one refers to,
            of theirs too; a schema stands behind those that it refers to.

    Raises InvalidSchemaError: the format does not take it, or it is beyond `limits`.
    """
    if schema_type not in _MODULES:
        raise InvalidSchemaError(f"Invalid schema type {schema_type}")
    check_sizes(text, references)
    module = import_module(f"minibroker.registry.formats.{_MODULES[schema_type]}")
    try:
        schema: ParsedSchema = module.parse(text, references)
    except RecursionError:
        raise InvalidSchemaError("it is nested too deep") from None
    return schema

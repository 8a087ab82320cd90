"""The comparison of two schemas, by format; a format's module is imported with its first pair."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

from minibroker.registry.compatibility.incompatibility import REASONS_MAX, Incompatibility
from minibroker.registry.formats import InvalidSchemaError

if TYPE_CHECKING:
    from minibroker.registry.formats import ParsedSchema

_MODULES: Final = {
    "AVRO": "avro_checks",
    "JSON": "json_checks",
    "PROTOBUF": "protobuf_checks",
}


def incompatibilities(reader: ParsedSchema, writer: ParsedSchema) -> list[str]:
    """Return why the reader cannot read all data of the writer; empty: it can.

    A pair that cannot be compared in bounded work is not compatible.
    """
    if reader is writer:
        return []
    if reader.schema_type != writer.schema_type:
        return [
            str(
                Incompatibility(
                    "SCHEMA_TYPE_MISMATCH",
                    "/",
                    f"a reader of {reader.schema_type} reads no data of {writer.schema_type}",
                )
            )
        ]
    module = import_module(f"minibroker.registry.compatibility.{_MODULES[reader.schema_type]}")
    try:
        reasons = module.incompatibilities(reader.content, writer.content)
    except (InvalidSchemaError, RecursionError) as error:
        reasons = [Incompatibility("NOT_COMPARABLE", "/", _sentence(error))]
    return list(map(str, reasons[:REASONS_MAX]))


def _sentence(error: InvalidSchemaError | RecursionError) -> str:
    return "they are nested too deep" if isinstance(error, RecursionError) else str(error)

"""Schemas of the three formats: text ─► `parse` ─► ParsedSchema, with the text that decides.

A format's library is loaded with its first schema. `parse` does no I/O of its own and knows no
subject and no id: the store resolves references before it calls.

The caller's duty: a schema may be hostile, so `parse` is bounded but not short. It takes
milliseconds for usual schemas, 50 ms for Protobuf, and some seconds for the worst. Call it on a
worker, never on the loop.
"""

from minibroker.registry.formats.parsed_schema import InvalidSchemaError, ParsedSchema
from minibroker.registry.formats.parsing import SCHEMA_TYPES, parse

__all__ = ["SCHEMA_TYPES", "InvalidSchemaError", "ParsedSchema", "parse"]

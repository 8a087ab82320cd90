"""Avro schemas: text ─► JSON ─► types ─► ParsedSchema, whose content is an AvroType.

Apache Avro's own parser for Python is not the judge of a text: it takes no name before its
definition, does not look at defaults, and does not print what Avro's Java prints.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.registry.formats import json_text
from minibroker.registry.formats.avro_defaults import DefaultCheck
from minibroker.registry.formats.avro_reading import TypeReader
from minibroker.registry.formats.avro_texts import SchemaWriter
from minibroker.registry.formats.limits import WorkBudget
from minibroker.registry.formats.parsed_schema import ParsedSchema

if TYPE_CHECKING:
    from collections.abc import Sequence


def parse(text: str, references: Sequence[tuple[str, str]]) -> ParsedSchema:
    """Return the schema of a text; see `formats.parse`. Raises InvalidSchemaError."""
    reader = TypeReader()
    for content in dict.fromkeys(content for _, content in references):
        reader.read(json_text.load(content))
    names = list(reader.names)
    root = reader.read(json_text.load(text))
    DefaultCheck(WorkBudget()).check(reader.types)
    return ParsedSchema(
        schema_type="AVRO",
        canonical=json_text.dump(SchemaWriter(names).json(root)),
        normalized=json_text.dump(SchemaWriter(names, normalize=True).json(root)),
        content=root,
    )

"""Protobuf schemas: text or descriptor ─► ParsedSchema, whose content is a ProtobufContent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from minibroker.registry.formats.parsed_schema import ParsedSchema
from minibroker.registry.formats.protobuf_files import pool_of, read_files
from minibroker.registry.formats.protobuf_texts import ProtoWriter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from google.protobuf.descriptor_pb2 import FileDescriptorProto


@dataclass(frozen=True, slots=True)
class ProtobufContent:
    """A Protobuf schema for comparisons."""

    file: FileDescriptorProto
    imports: tuple[FileDescriptorProto, ...]
    """Everything that it imports, the imports of those too."""


def parse(text: str, references: Sequence[tuple[str, str]]) -> ParsedSchema:
    """Return the schema of a text; see `formats.parse`. Raises InvalidSchemaError."""
    *imports, file = read_files(text, references)
    pool = pool_of([*imports, file])
    return ParsedSchema(
        schema_type="PROTOBUF",
        canonical=ProtoWriter(file, pool).text(),
        normalized=ProtoWriter(file, pool, normalize=True).text(),
        content=ProtobufContent(file, tuple(imports)),
    )

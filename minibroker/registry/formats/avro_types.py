"""The types of an Avro schema as a graph: values that `avro_reading` makes and nobody changes.

Apache Avro's checker of compatibility walks these types: they have the attributes that it reads.
Its own classes look a field up in a dictionary that they make anew for each field, so that two
records of 1 MB would take three minutes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

PRIMITIVES: Final = frozenset(
    {"null", "boolean", "int", "long", "float", "double", "bytes", "string"}
)
RECORDS: Final = frozenset({"record", "error"})
TYPES_WITH_A_NAME: Final = frozenset({*RECORDS, "enum", "fixed"})
NO_DEFAULT: Final = object()
"""A field without a default; None is the default null."""


@dataclass(slots=True, eq=False)
class AvroField:
    """A field of a record."""

    name: str
    type: AvroType
    doc: str | None
    default: Any
    order: str
    """`ascending`, `descending` or `ignore`."""
    aliases: tuple[str, ...]
    properties: dict[str, Any]
    """The keys that Avro gives no meaning to."""

    @property
    def has_default(self) -> bool:
        """Return whether a reader may do without the field."""
        return self.default is not NO_DEFAULT

    @property
    def props(self) -> dict[str, Any]:
        """Return what the checker asks a field for by its key."""
        return {"aliases": self.aliases}


@dataclass(slots=True, eq=False)
class AvroType:
    """A type of a schema. A named type is one object, however often it is used."""

    kind: str
    """As in `type`; `union` for a list."""
    fullname: str = ""
    """Full name of a named type."""
    doc: str | None = None
    aliases: tuple[str, ...] = ()
    """Full names."""
    properties: dict[str, Any] = field(default_factory=dict)
    """The keys that Avro gives no meaning to, and those of logical types."""
    schemas: list[AvroType] = field(default_factory=list)
    """The branches of a union; of an array or a map: the one type of its values."""
    fields: list[AvroField] = field(default_factory=list)
    symbols: tuple[str, ...] = ()
    enum_default: str | None = None
    size: int = 0
    """Bytes of a fixed."""
    fields_dict: dict[str, AvroField] = field(default_factory=dict)
    """The fields by their names."""

    @property
    def branch_name(self) -> str:
        """Return the name that is unique among the branches of a union."""
        return self.fullname or self.kind

    @property
    def type(self) -> str:
        """Return the kind, an error being a record."""
        return "record" if self.kind in RECORDS else self.kind

    @property
    def name(self) -> str:
        """Return the name without its namespace."""
        return self.fullname.rpartition(".")[2]

    @property
    def namespace(self) -> str:
        """Return the namespace, empty for none."""
        return self.fullname.rpartition(".")[0]

    @property
    def items(self) -> AvroType:
        """Return the type of an array's items."""
        return self.schemas[0]

    @property
    def values(self) -> AvroType:
        """Return the type of a map's values."""
        return self.schemas[0]

    @property
    def props(self) -> dict[str, Any]:
        """Return what the checker asks a type for by its key."""
        return {"aliases": self.aliases, "default": self.enum_default}

# fmt: off
# ruff: noqa: E501
"""DescribeClientQuotas: key 48, versions 0 to 1.

Admin clients read client quotas (KIP-546).

Versions:
1: Flexible encoding (KIP-482).

Generated from protocol_specs/apis/48_describe_client_quotas.json by `python -m protocol_specs.codegen`; do not edit.
"""

from struct import Struct

from minibroker.kafka.protocol.message import JsonFields, Message
from minibroker.kafka.protocol.primitives import Reader, Writer

_IH = Struct(">ih")


class ComponentData(Message):
    """Conditions; an entity must meet all of them."""

    __slots__ = ("entity_type", "match_type", "match")
    JSON_FIELDS: JsonFields = (
        ("entity_type", "string", 0, 1, False),
        ("match_type", "int8", 0, 1, False),
        ("match", "string", 0, 1, False),
    )

    def __init__(
        self,
        *,
        entity_type: str = "",
        match_type: int = 0,
        match: str | None = "",
    ) -> None:
        self.entity_type: str = entity_type
        """user, client-id or ip."""
        self.match_type: int = match_type
        """0: equals match; 1: only the <default> entity; 2: every named entity of the type."""
        self.match: str | None = match
        """Name for match type 0; null for the others."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ComponentData":
        self = cls.__new__(cls)
        if version >= 1:
            self.entity_type = reader.compact_string()
        else:
            self.entity_type = reader.string()
        self.match_type = reader.int8()
        if version >= 1:
            self.match = reader.compact_nullable_string()
        else:
            self.match = reader.nullable_string()
        if version >= 1:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 1:
            writer.compact_string(self.entity_type)
        else:
            writer.string(self.entity_type)
        writer.int8(self.match_type)
        if version >= 1:
            writer.compact_nullable_string(self.match)
        else:
            writer.nullable_string(self.match)
        if version >= 1:
            writer.append(b"\x00")


class DescribeClientQuotasRequest(Message):
    """Request of DescribeClientQuotas."""

    __slots__ = ("components", "strict")
    API_KEY = 48
    VERSIONS = (0, 1)
    FLEXIBLE_FROM: int | None = 1
    JSON_FIELDS: JsonFields = (
        ("components", "ComponentData", 0, 1, False),
        ("strict", "bool", 0, 1, False),
    )

    def __init__(
        self,
        *,
        components: list[ComponentData] | None = None,
        strict: bool = False,
    ) -> None:
        self.components: list[ComponentData] = [] if components is None else components
        """Conditions; an entity must meet all of them."""
        self.strict: bool = strict
        """True: only entities made of exactly these types; false: also those with further types."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "DescribeClientQuotasRequest":
        self = cls.__new__(cls)
        if version >= 1:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        components: list[ComponentData] = []
        for _ in range(count):
            components.append(ComponentData.read(reader, version))
        self.components = components
        self.strict = reader.boolean()
        if version >= 1:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 1:
            writer.compact_array_count(len(self.components))
        else:
            writer.array_count(len(self.components))
        for component_data in self.components:
            component_data.write(writer, version)
        writer.boolean(self.strict)
        if version >= 1:
            writer.append(b"\x00")


class EntityData(Message):
    """Parts the entity is made of, e.g. user and client-id."""

    __slots__ = ("entity_type", "entity_name")
    JSON_FIELDS: JsonFields = (
        ("entity_type", "string", 0, 1, False),
        ("entity_name", "string", 0, 1, False),
    )

    def __init__(
        self,
        *,
        entity_type: str = "",
        entity_name: str | None = "",
    ) -> None:
        self.entity_type: str = entity_type
        """user, client-id or ip."""
        self.entity_name: str | None = entity_name
        """Name of the part; null = the default entity."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "EntityData":
        self = cls.__new__(cls)
        if version >= 1:
            self.entity_type = reader.compact_string()
        else:
            self.entity_type = reader.string()
        if version >= 1:
            self.entity_name = reader.compact_nullable_string()
        else:
            self.entity_name = reader.nullable_string()
        if version >= 1:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 1:
            writer.compact_string(self.entity_type)
        else:
            writer.string(self.entity_type)
        if version >= 1:
            writer.compact_nullable_string(self.entity_name)
        else:
            writer.nullable_string(self.entity_name)
        if version >= 1:
            writer.append(b"\x00")


class ValueData(Message):
    """Quotas set on the entity."""

    __slots__ = ("key", "value")
    JSON_FIELDS: JsonFields = (
        ("key", "string", 0, 1, False),
        ("value", "float64", 0, 1, False),
    )

    def __init__(
        self,
        *,
        key: str = "",
        value: float = 0.0,
    ) -> None:
        self.key: str = key
        """Quota, e.g. producer_byte_rate, request_percentage, connection_creation_rate."""
        self.value: float = value
        """Limit: bytes/s, percent of one thread or count/s, according to the quota."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ValueData":
        self = cls.__new__(cls)
        if version >= 1:
            self.key = reader.compact_string()
        else:
            self.key = reader.string()
        self.value = reader.float64()
        if version >= 1:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 1:
            writer.compact_string(self.key)
        else:
            writer.string(self.key)
        writer.float64(self.value)
        if version >= 1:
            writer.append(b"\x00")


class EntryData(Message):
    """Quotas by entity; null on error."""

    __slots__ = ("entity", "values")
    JSON_FIELDS: JsonFields = (
        ("entity", "EntityData", 0, 1, False),
        ("values", "ValueData", 0, 1, False),
    )

    def __init__(
        self,
        *,
        entity: list[EntityData] | None = None,
        values: list[ValueData] | None = None,
    ) -> None:
        self.entity: list[EntityData] = [] if entity is None else entity
        """Parts the entity is made of, e.g. user and client-id."""
        self.values: list[ValueData] = [] if values is None else values
        """Quotas set on the entity."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "EntryData":
        self = cls.__new__(cls)
        if version >= 1:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        entity: list[EntityData] = []
        for _ in range(count):
            entity.append(EntityData.read(reader, version))
        self.entity = entity
        if version >= 1:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        values: list[ValueData] = []
        for _ in range(count):
            values.append(ValueData.read(reader, version))
        self.values = values
        if version >= 1:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 1:
            writer.compact_array_count(len(self.entity))
        else:
            writer.array_count(len(self.entity))
        for entity_data in self.entity:
            entity_data.write(writer, version)
        if version >= 1:
            writer.compact_array_count(len(self.values))
        else:
            writer.array_count(len(self.values))
        for value_data in self.values:
            value_data.write(writer, version)
        if version >= 1:
            writer.append(b"\x00")


class DescribeClientQuotasResponse(Message):
    """Answer of DescribeClientQuotas."""

    __slots__ = ("throttle_time_ms", "error_code", "error_message", "entries")
    API_KEY = 48
    VERSIONS = (0, 1)
    FLEXIBLE_FROM: int | None = 1
    JSON_FIELDS: JsonFields = (
        ("throttle_time_ms", "int32", 0, 1, False),
        ("error_code", "error_code", 0, 1, False),
        ("error_message", "string", 0, 1, False),
        ("entries", "EntryData", 0, 1, False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        entries: list[EntryData] | None | tuple[()] = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        """Pause the quota asks of the client, in ms; 0 when it is within quota."""
        self.error_code: int = error_code
        """Error that concerns the request as a whole; 0 (NONE) on success."""
        self.error_message: str | None = error_message
        """Human-readable reason for error_code; null when there is nothing to add."""
        self.entries: list[EntryData] | None = [] if isinstance(entries, tuple) else entries
        """Quotas by entity; null on error."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "DescribeClientQuotasResponse":
        self = cls.__new__(cls)
        self.throttle_time_ms, self.error_code = reader.fixed(_IH)
        if version >= 1:
            self.error_message = reader.compact_nullable_string()
        else:
            self.error_message = reader.nullable_string()
        if version >= 1:
            count = reader.compact_nullable_array_count()
        else:
            count = reader.nullable_array_count()
        entries: list[EntryData] = []
        for _ in range(count):
            entries.append(EntryData.read(reader, version))
        self.entries = entries if count >= 0 else None
        if version >= 1:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.append(_IH.pack(self.throttle_time_ms, self.error_code))
        if version >= 1:
            writer.compact_nullable_string(self.error_message)
        else:
            writer.nullable_string(self.error_message)
        if version >= 1:
            writer.compact_array_count(-1 if self.entries is None else len(self.entries))
        else:
            writer.array_count(-1 if self.entries is None else len(self.entries))
        for entry_data in self.entries or []:
            entry_data.write(writer, version)
        if version >= 1:
            writer.append(b"\x00")

# fmt: off
# ruff: noqa: E501
"""AlterClientQuotas: key 49, versions 0 to 1.

Admin clients set or remove client quotas (KIP-546).

Versions:
1: Flexible encoding (KIP-482).

Generated from protocol_specs/apis/49_alter_client_quotas.json by `python -m protocol_specs.codegen`; do not edit.
"""

from struct import Struct

from minibroker.kafka.protocol.message import JsonFields, Message
from minibroker.kafka.protocol.primitives import Reader, Writer

_DZ = Struct(">d?")


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


class OpData(Message):
    """Changes to quotas of the entity."""

    __slots__ = ("key", "value", "remove")
    JSON_FIELDS: JsonFields = (
        ("key", "string", 0, 1, False),
        ("value", "float64", 0, 1, False),
        ("remove", "bool", 0, 1, False),
    )

    def __init__(
        self,
        *,
        key: str = "",
        value: float = 0.0,
        remove: bool = False,
    ) -> None:
        self.key: str = key
        """Quota, e.g. producer_byte_rate, request_percentage, connection_creation_rate."""
        self.value: float = value
        """New limit; not looked at when the quota is removed."""
        self.remove: bool = remove
        """True = take the quota away, false = set it."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "OpData":
        self = cls.__new__(cls)
        if version >= 1:
            self.key = reader.compact_string()
        else:
            self.key = reader.string()
        self.value, self.remove = reader.fixed(_DZ)
        if version >= 1:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 1:
            writer.compact_string(self.key)
        else:
            writer.string(self.key)
        writer.append(_DZ.pack(self.value, self.remove))
        if version >= 1:
            writer.append(b"\x00")


class RequestEntryData(Message):
    """Entities to change."""

    __slots__ = ("entity", "ops")
    JSON_FIELDS: JsonFields = (
        ("entity", "EntityData", 0, 1, False),
        ("ops", "OpData", 0, 1, False),
    )

    def __init__(
        self,
        *,
        entity: list[EntityData] | None = None,
        ops: list[OpData] | None = None,
    ) -> None:
        self.entity: list[EntityData] = [] if entity is None else entity
        """Parts the entity is made of, e.g. user and client-id."""
        self.ops: list[OpData] = [] if ops is None else ops
        """Changes to quotas of the entity."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "RequestEntryData":
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
        ops: list[OpData] = []
        for _ in range(count):
            ops.append(OpData.read(reader, version))
        self.ops = ops
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
            writer.compact_array_count(len(self.ops))
        else:
            writer.array_count(len(self.ops))
        for op_data in self.ops:
            op_data.write(writer, version)
        if version >= 1:
            writer.append(b"\x00")


class AlterClientQuotasRequest(Message):
    """Request of AlterClientQuotas."""

    __slots__ = ("entries", "validate_only")
    API_KEY = 49
    VERSIONS = (0, 1)
    FLEXIBLE_FROM: int | None = 1
    JSON_FIELDS: JsonFields = (
        ("entries", "RequestEntryData", 0, 1, False),
        ("validate_only", "bool", 0, 1, False),
    )

    def __init__(
        self,
        *,
        entries: list[RequestEntryData] | None = None,
        validate_only: bool = False,
    ) -> None:
        self.entries: list[RequestEntryData] = [] if entries is None else entries
        """Entities to change."""
        self.validate_only: bool = validate_only
        """True: run all checks and answer as if done, but change nothing."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "AlterClientQuotasRequest":
        self = cls.__new__(cls)
        if version >= 1:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        entries: list[RequestEntryData] = []
        for _ in range(count):
            entries.append(RequestEntryData.read(reader, version))
        self.entries = entries
        self.validate_only = reader.boolean()
        if version >= 1:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 1:
            writer.compact_array_count(len(self.entries))
        else:
            writer.array_count(len(self.entries))
        for request_entry_data in self.entries:
            request_entry_data.write(writer, version)
        writer.boolean(self.validate_only)
        if version >= 1:
            writer.append(b"\x00")


class ResponseEntryData(Message):
    """One result per entity."""

    __slots__ = ("error_code", "error_message", "entity")
    JSON_FIELDS: JsonFields = (
        ("error_code", "error_code", 0, 1, False),
        ("error_message", "string", 0, 1, False),
        ("entity", "EntityData", 0, 1, False),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = "",
        entity: list[EntityData] | None = None,
    ) -> None:
        self.error_code: int = error_code
        """Result for this entry alone; 0 (NONE) on success."""
        self.error_message: str | None = error_message
        """Human-readable reason for this entry's error_code; null when there is nothing to add."""
        self.entity: list[EntityData] = [] if entity is None else entity
        """Parts of the entity, as asked."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ResponseEntryData":
        self = cls.__new__(cls)
        self.error_code = reader.int16()
        if version >= 1:
            self.error_message = reader.compact_nullable_string()
        else:
            self.error_message = reader.nullable_string()
        if version >= 1:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        entity: list[EntityData] = []
        for _ in range(count):
            entity.append(EntityData.read(reader, version))
        self.entity = entity
        if version >= 1:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.int16(self.error_code)
        if version >= 1:
            writer.compact_nullable_string(self.error_message)
        else:
            writer.nullable_string(self.error_message)
        if version >= 1:
            writer.compact_array_count(len(self.entity))
        else:
            writer.array_count(len(self.entity))
        for entity_data in self.entity:
            entity_data.write(writer, version)
        if version >= 1:
            writer.append(b"\x00")


class AlterClientQuotasResponse(Message):
    """Answer of AlterClientQuotas."""

    __slots__ = ("throttle_time_ms", "entries")
    API_KEY = 49
    VERSIONS = (0, 1)
    FLEXIBLE_FROM: int | None = 1
    JSON_FIELDS: JsonFields = (
        ("throttle_time_ms", "int32", 0, 1, False),
        ("entries", "ResponseEntryData", 0, 1, False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        entries: list[ResponseEntryData] | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        """Pause the quota asks of the client, in ms; 0 when it is within quota."""
        self.entries: list[ResponseEntryData] = [] if entries is None else entries
        """One result per entity."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "AlterClientQuotasResponse":
        self = cls.__new__(cls)
        self.throttle_time_ms = reader.int32()
        if version >= 1:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        entries: list[ResponseEntryData] = []
        for _ in range(count):
            entries.append(ResponseEntryData.read(reader, version))
        self.entries = entries
        if version >= 1:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.int32(self.throttle_time_ms)
        if version >= 1:
            writer.compact_array_count(len(self.entries))
        else:
            writer.array_count(len(self.entries))
        for response_entry_data in self.entries:
            response_entry_data.write(writer, version)
        if version >= 1:
            writer.append(b"\x00")

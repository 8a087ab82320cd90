# fmt: off
# ruff: noqa: E501
"""AlterConfigs: key 33, versions 0 to 2.

Replaces ALL dynamic settings of a resource at once (superseded by IncrementalAlterConfigs, key 44).

Versions:
1: Over quota, the answer goes out first and the pause follows (KIP-219).
2: Flexible encoding (KIP-482).

Generated from protocol_specs/apis/33_alter_configs.json by `python -m protocol_specs.codegen`; do not edit.
"""

from minibroker.kafka.protocol.message import JsonFields, Message
from minibroker.kafka.protocol.primitives import Reader, Writer


class AlterableConfig(Message):
    """New set; keys not listed fall back to their defaults."""

    __slots__ = ("name", "value")
    JSON_FIELDS: JsonFields = (
        ("name", "string", 0, 2, False),
        ("value", "string", 0, 2, False),
    )

    def __init__(
        self,
        *,
        name: str = "",
        value: str | None = "",
    ) -> None:
        self.name: str = name
        """Config key."""
        self.value: str | None = value
        """New value as text; null is refused with INVALID_REQUEST."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "AlterableConfig":
        self = cls.__new__(cls)
        if version >= 2:
            self.name = reader.compact_string()
        else:
            self.name = reader.string()
        if version >= 2:
            self.value = reader.compact_nullable_string()
        else:
            self.value = reader.nullable_string()
        if version >= 2:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 2:
            writer.compact_string(self.name)
        else:
            writer.string(self.name)
        if version >= 2:
            writer.compact_nullable_string(self.value)
        else:
            writer.nullable_string(self.value)
        if version >= 2:
            writer.append(b"\x00")


class AlterConfigsResource(Message):
    """Resources to change, each with its complete new set of dynamic settings."""

    __slots__ = ("resource_type", "resource_name", "configs")
    JSON_FIELDS: JsonFields = (
        ("resource_type", "int8", 0, 2, False),
        ("resource_name", "string", 0, 2, False),
        ("configs", "AlterableConfig", 0, 2, False),
    )

    def __init__(
        self,
        *,
        resource_type: int = 0,
        resource_name: str = "",
        configs: list[AlterableConfig] | None = None,
    ) -> None:
        self.resource_type: int = resource_type
        """2 = topic, 4 = broker, 16 = client metrics, 32 = group; others are refused."""
        self.resource_name: str = resource_name
        """Topic, broker id as text, …; empty with type 4 = cluster-wide broker defaults."""
        self.configs: list[AlterableConfig] = [] if configs is None else configs
        """New set; keys not listed fall back to their defaults."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "AlterConfigsResource":
        self = cls.__new__(cls)
        self.resource_type = reader.int8()
        if version >= 2:
            self.resource_name = reader.compact_string()
        else:
            self.resource_name = reader.string()
        if version >= 2:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        configs: list[AlterableConfig] = []
        for _ in range(count):
            configs.append(AlterableConfig.read(reader, version))
        self.configs = configs
        if version >= 2:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.int8(self.resource_type)
        if version >= 2:
            writer.compact_string(self.resource_name)
        else:
            writer.string(self.resource_name)
        if version >= 2:
            writer.compact_array_count(len(self.configs))
        else:
            writer.array_count(len(self.configs))
        for alterable_config in self.configs:
            alterable_config.write(writer, version)
        if version >= 2:
            writer.append(b"\x00")


class AlterConfigsRequest(Message):
    """Request of AlterConfigs."""

    __slots__ = ("resources", "validate_only")
    API_KEY = 33
    VERSIONS = (0, 2)
    FLEXIBLE_FROM: int | None = 2
    JSON_FIELDS: JsonFields = (
        ("resources", "AlterConfigsResource", 0, 2, False),
        ("validate_only", "bool", 0, 2, False),
    )

    def __init__(
        self,
        *,
        resources: list[AlterConfigsResource] | None = None,
        validate_only: bool = False,
    ) -> None:
        self.resources: list[AlterConfigsResource] = [] if resources is None else resources
        """Resources to change, each with its complete new set of dynamic settings."""
        self.validate_only: bool = validate_only
        """True: run all checks and answer as if done, but change nothing."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "AlterConfigsRequest":
        self = cls.__new__(cls)
        if version >= 2:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        resources: list[AlterConfigsResource] = []
        for _ in range(count):
            resources.append(AlterConfigsResource.read(reader, version))
        self.resources = resources
        self.validate_only = reader.boolean()
        if version >= 2:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 2:
            writer.compact_array_count(len(self.resources))
        else:
            writer.array_count(len(self.resources))
        for alter_configs_resource in self.resources:
            alter_configs_resource.write(writer, version)
        writer.boolean(self.validate_only)
        if version >= 2:
            writer.append(b"\x00")


class AlterConfigsResourceResponse(Message):
    """One result per resource."""

    __slots__ = ("error_code", "error_message", "resource_type", "resource_name")
    JSON_FIELDS: JsonFields = (
        ("error_code", "error_code", 0, 2, False),
        ("error_message", "string", 0, 2, False),
        ("resource_type", "int8", 0, 2, False),
        ("resource_name", "string", 0, 2, False),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = "",
        resource_type: int = 0,
        resource_name: str = "",
    ) -> None:
        self.error_code: int = error_code
        """Result for this resource; 0 (NONE) when changed or valid."""
        self.error_message: str | None = error_message
        """Human-readable reason for this entry's error_code; null when there is nothing to add."""
        self.resource_type: int = resource_type
        """Kind of resource, as asked."""
        self.resource_name: str = resource_name
        """Resource, as asked."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "AlterConfigsResourceResponse":
        self = cls.__new__(cls)
        self.error_code = reader.int16()
        if version >= 2:
            self.error_message = reader.compact_nullable_string()
        else:
            self.error_message = reader.nullable_string()
        self.resource_type = reader.int8()
        if version >= 2:
            self.resource_name = reader.compact_string()
        else:
            self.resource_name = reader.string()
        if version >= 2:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.int16(self.error_code)
        if version >= 2:
            writer.compact_nullable_string(self.error_message)
        else:
            writer.nullable_string(self.error_message)
        writer.int8(self.resource_type)
        if version >= 2:
            writer.compact_string(self.resource_name)
        else:
            writer.string(self.resource_name)
        if version >= 2:
            writer.append(b"\x00")


class AlterConfigsResponse(Message):
    """Answer of AlterConfigs."""

    __slots__ = ("throttle_time_ms", "responses")
    API_KEY = 33
    VERSIONS = (0, 2)
    FLEXIBLE_FROM: int | None = 2
    JSON_FIELDS: JsonFields = (
        ("throttle_time_ms", "int32", 0, 2, False),
        ("responses", "AlterConfigsResourceResponse", 0, 2, False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        responses: list[AlterConfigsResourceResponse] | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        """Pause the quota asks of the client, in ms; 0 when it is within quota."""
        self.responses: list[AlterConfigsResourceResponse] = [] if responses is None else responses
        """One result per resource."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "AlterConfigsResponse":
        self = cls.__new__(cls)
        self.throttle_time_ms = reader.int32()
        if version >= 2:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        responses: list[AlterConfigsResourceResponse] = []
        for _ in range(count):
            responses.append(AlterConfigsResourceResponse.read(reader, version))
        self.responses = responses
        if version >= 2:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.int32(self.throttle_time_ms)
        if version >= 2:
            writer.compact_array_count(len(self.responses))
        else:
            writer.array_count(len(self.responses))
        for alter_configs_resource_response in self.responses:
            alter_configs_resource_response.write(writer, version)
        if version >= 2:
            writer.append(b"\x00")

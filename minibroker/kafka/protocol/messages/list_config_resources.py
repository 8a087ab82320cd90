# fmt: off
# ruff: noqa: E501
"""ListConfigResources: key 74, versions 0 to 1.

Lists the resources that carry dynamic settings; in v0 only client metrics subscriptions (KIP-1000).

Versions:
1: Types can be chosen and each entry tells its type (KIP-1142).

Generated from protocol_specs/apis/74_list_config_resources.json by `python -m protocol_specs.codegen`; do not edit.
"""

from struct import Struct

from minibroker.kafka.protocol.message import JsonFields, Message, not_carried
from minibroker.kafka.protocol.primitives import Reader, Writer

_IH = Struct(">ih")


class ListConfigResourcesRequest(Message):
    """Request of ListConfigResources."""

    __slots__ = ("resource_types",)
    API_KEY = 74
    VERSIONS = (0, 1)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("resource_types", "int8", 1, 1, False),
    )

    def __init__(
        self,
        *,
        resource_types: list[int] | None = None,
    ) -> None:
        self.resource_types: list[int] = [] if resource_types is None else resource_types
        """v1+. Types wanted: 2 topic, 4 broker, 8 logger, 16 client metrics, 32 group; empty = all of them."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ListConfigResourcesRequest":
        self = cls.__new__(cls)
        if version >= 1:
            count = reader.compact_array_count()
            self.resource_types = reader.numbers(count, "b")
        else:
            self.resource_types = []
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 1:
            writer.compact_array_count(len(self.resource_types))
            writer.numbers(self.resource_types, "b")
        else:
            if self.resource_types:
                raise not_carried("ListConfigResourcesRequest", "resource_types", version)
        writer.append(b"\x00")


class ConfigResource(Message):
    """Resources found."""

    __slots__ = ("resource_name", "resource_type")
    JSON_FIELDS: JsonFields = (
        ("resource_name", "string", 0, 1, False),
        ("resource_type", "int8", 1, 1, False),
    )

    def __init__(
        self,
        *,
        resource_name: str = "",
        resource_type: int = 16,
    ) -> None:
        self.resource_name: str = resource_name
        """Name of the resource: topic, broker id, group, subscription, …."""
        self.resource_type: int = resource_type
        """v1+. Kind of resource, numbered as in the request; 16 is implied in v0."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ConfigResource":
        self = cls.__new__(cls)
        self.resource_name = reader.compact_string()
        if version >= 1:
            self.resource_type = reader.int8()
        else:
            self.resource_type = 16
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.resource_name)
        if version >= 1:
            writer.int8(self.resource_type)
        writer.append(b"\x00")


class ListConfigResourcesResponse(Message):
    """Answer of ListConfigResources."""

    __slots__ = ("throttle_time_ms", "error_code", "config_resources")
    API_KEY = 74
    VERSIONS = (0, 1)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("throttle_time_ms", "int32", 0, 1, False),
        ("error_code", "error_code", 0, 1, False),
        ("config_resources", "ConfigResource", 0, 1, False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        config_resources: list[ConfigResource] | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        """Pause the quota asks of the client, in ms; 0 when it is within quota."""
        self.error_code: int = error_code
        """Error that concerns the request as a whole; 0 (NONE) on success."""
        self.config_resources: list[ConfigResource] = [] if config_resources is None else config_resources
        """Resources found."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ListConfigResourcesResponse":
        self = cls.__new__(cls)
        self.throttle_time_ms, self.error_code = reader.fixed(_IH)
        count = reader.compact_array_count()
        config_resources: list[ConfigResource] = []
        for _ in range(count):
            config_resources.append(ConfigResource.read(reader, version))
        self.config_resources = config_resources
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.append(_IH.pack(self.throttle_time_ms, self.error_code))
        writer.compact_array_count(len(self.config_resources))
        for config_resource in self.config_resources:
            config_resource.write(writer, version)
        writer.append(b"\x00")

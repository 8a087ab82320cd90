# fmt: off
# ruff: noqa: E501
"""DescribeConfigs: key 32, versions 0 to 4.

Admin clients read the effective settings of topics, brokers, loggers, groups and client metrics.

Versions:
1: Synonyms, and the source of a value instead of a mere default flag (KIP-226).
2: Over quota, the answer goes out first and the pause follows (KIP-219).
3: Type and documentation of each key (KIP-569).
4: Flexible encoding (KIP-482).

Generated from protocol_specs/apis/32_describe_configs.json by `python -m protocol_specs.codegen`; do not edit.
"""

from struct import Struct

from minibroker.kafka.protocol.message import JsonFields, Message, not_carried
from minibroker.kafka.protocol.primitives import Reader, Writer

_ZZ = Struct(">??")
_ZZZ = Struct(">???")
_ZBZ = Struct(">?b?")


class DescribeConfigsResource(Message):
    """Things whose settings are wanted."""

    __slots__ = ("resource_type", "resource_name", "configuration_keys")
    JSON_FIELDS: JsonFields = (
        ("resource_type", "int8", 0, 4, False),
        ("resource_name", "string", 0, 4, False),
        ("configuration_keys", "string", 0, 4, False),
    )

    def __init__(
        self,
        *,
        resource_type: int = 0,
        resource_name: str = "",
        configuration_keys: list[str] | None | tuple[()] = (),
    ) -> None:
        self.resource_type: int = resource_type
        """2 = topic, 4 = broker, 8 = broker logger, 16 = client metrics, 32 = group."""
        self.resource_name: str = resource_name
        """Topic, broker id as text, group, …; empty with type 4 = cluster-wide broker defaults."""
        self.configuration_keys: list[str] | None = [] if isinstance(configuration_keys, tuple) else configuration_keys
        """Keys wanted; null = all of them."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "DescribeConfigsResource":
        self = cls.__new__(cls)
        self.resource_type = reader.int8()
        if version >= 4:
            self.resource_name = reader.compact_string()
        else:
            self.resource_name = reader.string()
        if version >= 4:
            count = reader.compact_nullable_array_count()
        else:
            count = reader.nullable_array_count()
        configuration_keys: list[str] = []
        for _ in range(count):
            if version >= 4:
                configuration_keys.append(reader.compact_string())
            else:
                configuration_keys.append(reader.string())
        self.configuration_keys = configuration_keys if count >= 0 else None
        if version >= 4:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.int8(self.resource_type)
        if version >= 4:
            writer.compact_string(self.resource_name)
        else:
            writer.string(self.resource_name)
        if version >= 4:
            writer.compact_array_count(-1 if self.configuration_keys is None else len(self.configuration_keys))
        else:
            writer.array_count(-1 if self.configuration_keys is None else len(self.configuration_keys))
        for text in self.configuration_keys or []:
            if version >= 4:
                writer.compact_string(text)
            else:
                writer.string(text)
        if version >= 4:
            writer.append(b"\x00")


class DescribeConfigsRequest(Message):
    """Request of DescribeConfigs."""

    __slots__ = ("resources", "include_synonyms", "include_documentation")
    API_KEY = 32
    VERSIONS = (0, 4)
    FLEXIBLE_FROM: int | None = 4
    JSON_FIELDS: JsonFields = (
        ("resources", "DescribeConfigsResource", 0, 4, False),
        ("include_synonyms", "bool", 1, 4, False),
        ("include_documentation", "bool", 3, 4, False),
    )

    def __init__(
        self,
        *,
        resources: list[DescribeConfigsResource] | None = None,
        include_synonyms: bool = False,
        include_documentation: bool = False,
    ) -> None:
        self.resources: list[DescribeConfigsResource] = [] if resources is None else resources
        """Things whose settings are wanted."""
        self.include_synonyms: bool = include_synonyms
        """v1+. True: list all layers that could supply each value."""
        self.include_documentation: bool = include_documentation
        """v3+. True: send the description of each key."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "DescribeConfigsRequest":
        self = cls.__new__(cls)
        if version >= 4:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        resources: list[DescribeConfigsResource] = []
        for _ in range(count):
            resources.append(DescribeConfigsResource.read(reader, version))
        self.resources = resources
        if version >= 3:
            self.include_synonyms, self.include_documentation = reader.fixed(_ZZ)
        elif version >= 1:
            self.include_synonyms = reader.boolean()
            self.include_documentation = False
        else:
            self.include_synonyms = False
            self.include_documentation = False
        if version >= 4:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 4:
            writer.compact_array_count(len(self.resources))
        else:
            writer.array_count(len(self.resources))
        for describe_configs_resource in self.resources:
            describe_configs_resource.write(writer, version)
        if version >= 3:
            writer.append(_ZZ.pack(self.include_synonyms, self.include_documentation))
        elif version >= 1:
            if self.include_documentation:
                raise not_carried("DescribeConfigsRequest", "include_documentation", version)
            writer.boolean(self.include_synonyms)
        else:
            if self.include_synonyms:
                raise not_carried("DescribeConfigsRequest", "include_synonyms", version)
            if self.include_documentation:
                raise not_carried("DescribeConfigsRequest", "include_documentation", version)
        if version >= 4:
            writer.append(b"\x00")


class DescribeConfigsSynonym(Message):
    """Layers that set this key, strongest first; empty unless asked for."""

    __slots__ = ("name", "value", "source")
    JSON_FIELDS: JsonFields = (
        ("name", "string", 1, 4, False),
        ("value", "string", 1, 4, False),
        ("source", "int8", 1, 4, False),
    )

    def __init__(
        self,
        *,
        name: str = "",
        value: str | None = "",
        source: int = 0,
    ) -> None:
        self.name: str = name
        """Key under which that layer sets it, e.g. log.retention.ms for retention.ms."""
        self.value: str | None = value
        """Value in that layer; null when sensitive."""
        self.source: int = source
        """Layer, numbered like config_source."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "DescribeConfigsSynonym":
        self = cls.__new__(cls)
        if version >= 4:
            self.name = reader.compact_string()
        else:
            self.name = reader.string()
        if version >= 4:
            self.value = reader.compact_nullable_string()
        else:
            self.value = reader.nullable_string()
        self.source = reader.int8()
        if version >= 4:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 4:
            writer.compact_string(self.name)
        else:
            writer.string(self.name)
        if version >= 4:
            writer.compact_nullable_string(self.value)
        else:
            writer.nullable_string(self.value)
        writer.int8(self.source)
        if version >= 4:
            writer.append(b"\x00")


class DescribeConfigsResourceResult(Message):
    """The settings; empty on error."""

    __slots__ = ("name", "value", "read_only", "is_default", "config_source", "is_sensitive", "synonyms", "config_type", "documentation")
    JSON_FIELDS: JsonFields = (
        ("name", "string", 0, 4, False),
        ("value", "string", 0, 4, False),
        ("read_only", "bool", 0, 4, False),
        ("is_default", "bool", 0, 0, False),
        ("config_source", "int8", 1, 4, False),
        ("is_sensitive", "bool", 0, 4, False),
        ("synonyms", "DescribeConfigsSynonym", 1, 4, False),
        ("config_type", "int8", 3, 4, False),
        ("documentation", "string", 3, 4, False),
    )

    def __init__(
        self,
        *,
        name: str = "",
        value: str | None = "",
        read_only: bool = False,
        is_default: bool = False,
        config_source: int = -1,
        is_sensitive: bool = False,
        synonyms: list[DescribeConfigsSynonym] | None = None,
        config_type: int = 0,
        documentation: str | None = "",
    ) -> None:
        self.name: str = name
        """Config key."""
        self.value: str | None = value
        """Effective value as text; null when sensitive or unset."""
        self.read_only: bool = read_only
        """True when the key cannot be altered while the broker runs."""
        self.is_default: bool = is_default
        """v0. v0: true if the key has no value of its own."""
        self.config_source: int = config_source
        """v1+. 1 topic, 2 broker, 3 cluster default, 4 file, 5 default, 6 logger, 7 metrics, 8 group; -1 = not told."""
        self.is_sensitive: bool = is_sensitive
        """True for secrets, whose value is never shown."""
        self.synonyms: list[DescribeConfigsSynonym] = [] if synonyms is None else synonyms
        """v1+. Layers that set this key, strongest first; empty unless asked for."""
        self.config_type: int = config_type
        """v3+. 1 boolean, 2 string, 3 int, 4 short, 5 long, 6 double, 7 list, 8 class, 9 password; 0 unknown."""
        self.documentation: str | None = documentation
        """v3+. Documentation of the key; null unless the request asks for it."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "DescribeConfigsResourceResult":
        self = cls.__new__(cls)
        if version >= 4:
            self.name = reader.compact_string()
        else:
            self.name = reader.string()
        if version >= 4:
            self.value = reader.compact_nullable_string()
        else:
            self.value = reader.nullable_string()
        if version >= 1:
            self.read_only, self.config_source, self.is_sensitive = reader.fixed(_ZBZ)
            self.is_default = False
        else:
            self.read_only, self.is_default, self.is_sensitive = reader.fixed(_ZZZ)
            self.config_source = -1
        if version >= 1:
            if version >= 4:
                count = reader.compact_array_count()
            else:
                count = reader.array_count()
            synonyms: list[DescribeConfigsSynonym] = []
            for _ in range(count):
                synonyms.append(DescribeConfigsSynonym.read(reader, version))
            self.synonyms = synonyms
        else:
            self.synonyms = []
        if version >= 3:
            self.config_type = reader.int8()
        else:
            self.config_type = 0
        if version >= 4:
            self.documentation = reader.compact_nullable_string()
        elif version >= 3:
            self.documentation = reader.nullable_string()
        else:
            self.documentation = ""
        if version >= 4:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 4:
            writer.compact_string(self.name)
        else:
            writer.string(self.name)
        if version >= 4:
            writer.compact_nullable_string(self.value)
        else:
            writer.nullable_string(self.value)
        if version >= 1:
            if self.is_default:
                raise not_carried("DescribeConfigsResourceResult", "is_default", version)
            writer.append(_ZBZ.pack(self.read_only, self.config_source, self.is_sensitive))
        else:
            writer.append(_ZZZ.pack(self.read_only, self.is_default, self.is_sensitive))
        if version >= 1:
            if version >= 4:
                writer.compact_array_count(len(self.synonyms))
            else:
                writer.array_count(len(self.synonyms))
            for describe_configs_synonym in self.synonyms:
                describe_configs_synonym.write(writer, version)
        if version >= 3:
            writer.int8(self.config_type)
        if version >= 4:
            writer.compact_nullable_string(self.documentation)
        elif version >= 3:
            writer.nullable_string(self.documentation)
        if version >= 4:
            writer.append(b"\x00")


class DescribeConfigsResult(Message):
    """One result per resource, in the order asked."""

    __slots__ = ("error_code", "error_message", "resource_type", "resource_name", "configs")
    JSON_FIELDS: JsonFields = (
        ("error_code", "error_code", 0, 4, False),
        ("error_message", "string", 0, 4, False),
        ("resource_type", "int8", 0, 4, False),
        ("resource_name", "string", 0, 4, False),
        ("configs", "DescribeConfigsResourceResult", 0, 4, False),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = "",
        resource_type: int = 0,
        resource_name: str = "",
        configs: list[DescribeConfigsResourceResult] | None = None,
    ) -> None:
        self.error_code: int = error_code
        """TOPIC_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_OR_PARTITION, INVALID_REQUEST, …; 0 on success."""
        self.error_message: str | None = error_message
        """Human-readable reason for this entry's error_code; null when there is nothing to add."""
        self.resource_type: int = resource_type
        """Kind of resource, as asked."""
        self.resource_name: str = resource_name
        """Resource, as asked."""
        self.configs: list[DescribeConfigsResourceResult] = [] if configs is None else configs
        """The settings; empty on error."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "DescribeConfigsResult":
        self = cls.__new__(cls)
        self.error_code = reader.int16()
        if version >= 4:
            self.error_message = reader.compact_nullable_string()
        else:
            self.error_message = reader.nullable_string()
        self.resource_type = reader.int8()
        if version >= 4:
            self.resource_name = reader.compact_string()
        else:
            self.resource_name = reader.string()
        if version >= 4:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        configs: list[DescribeConfigsResourceResult] = []
        for _ in range(count):
            configs.append(DescribeConfigsResourceResult.read(reader, version))
        self.configs = configs
        if version >= 4:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.int16(self.error_code)
        if version >= 4:
            writer.compact_nullable_string(self.error_message)
        else:
            writer.nullable_string(self.error_message)
        writer.int8(self.resource_type)
        if version >= 4:
            writer.compact_string(self.resource_name)
        else:
            writer.string(self.resource_name)
        if version >= 4:
            writer.compact_array_count(len(self.configs))
        else:
            writer.array_count(len(self.configs))
        for describe_configs_resource_result in self.configs:
            describe_configs_resource_result.write(writer, version)
        if version >= 4:
            writer.append(b"\x00")


class DescribeConfigsResponse(Message):
    """Answer of DescribeConfigs."""

    __slots__ = ("throttle_time_ms", "results")
    API_KEY = 32
    VERSIONS = (0, 4)
    FLEXIBLE_FROM: int | None = 4
    JSON_FIELDS: JsonFields = (
        ("throttle_time_ms", "int32", 0, 4, False),
        ("results", "DescribeConfigsResult", 0, 4, False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results: list[DescribeConfigsResult] | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        """Pause the quota asks of the client, in ms; 0 when it is within quota."""
        self.results: list[DescribeConfigsResult] = [] if results is None else results
        """One result per resource, in the order asked."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "DescribeConfigsResponse":
        self = cls.__new__(cls)
        self.throttle_time_ms = reader.int32()
        if version >= 4:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        results: list[DescribeConfigsResult] = []
        for _ in range(count):
            results.append(DescribeConfigsResult.read(reader, version))
        self.results = results
        if version >= 4:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.int32(self.throttle_time_ms)
        if version >= 4:
            writer.compact_array_count(len(self.results))
        else:
            writer.array_count(len(self.results))
        for describe_configs_result in self.results:
            describe_configs_result.write(writer, version)
        if version >= 4:
            writer.append(b"\x00")

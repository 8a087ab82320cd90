# fmt: off
# ruff: noqa: E501
"""CreateTopics: key 19, versions 0 to 7.

Admin clients create topics; only the controller carries it out.

Versions:
1: validate_only; a message beside each error code.
2: Throttle time in the response.
3: Over quota, the answer goes out first and the pause follows (KIP-219).
4: -1 partitions or replicas means the broker's defaults (KIP-464).
5: Flexible encoding; response tells counts and configs (KIP-525).
6: THROTTLING_QUOTA_EXCEEDED may be answered (KIP-599).
7: Topic id in the response (KIP-516).

Generated from protocol_specs/apis/19_create_topics.json by `python -m protocol_specs.codegen`; do not edit.
"""

from struct import Struct

from minibroker.kafka.protocol.message import JsonFields, Message, not_carried
from minibroker.kafka.protocol.primitives import ZERO_UUID, Reader, Writer

_ZBZ = Struct(">?b?")
_IZ = Struct(">i?")
_IH = Struct(">ih")


class CreatableReplicaAssignment(Message):
    """Replicas chosen by hand, one entry per partition without gaps; empty lets the broker choose."""

    __slots__ = ("partition_index", "broker_ids")
    JSON_FIELDS: JsonFields = (
        ("partition_index", "int32", 0, 7, False),
        ("broker_ids", "int32", 0, 7, False),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        broker_ids: list[int] | None = None,
    ) -> None:
        self.partition_index: int = partition_index
        """Partition number within the topic, counted from 0."""
        self.broker_ids: list[int] = [] if broker_ids is None else broker_ids
        """Broker ids of the replicas, preferred leader first."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "CreatableReplicaAssignment":
        self = cls.__new__(cls)
        self.partition_index = reader.int32()
        if version >= 5:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        self.broker_ids = reader.numbers(count, "i")
        if version >= 5:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.int32(self.partition_index)
        if version >= 5:
            writer.compact_array_count(len(self.broker_ids))
        else:
            writer.array_count(len(self.broker_ids))
        writer.numbers(self.broker_ids, "i")
        if version >= 5:
            writer.append(b"\x00")


class CreatableTopicConfig(Message):
    """Topic settings that differ from the defaults."""

    __slots__ = ("name", "value")
    JSON_FIELDS: JsonFields = (
        ("name", "string", 0, 7, False),
        ("value", "string", 0, 7, False),
    )

    def __init__(
        self,
        *,
        name: str = "",
        value: str | None = "",
    ) -> None:
        self.name: str = name
        """Topic config key."""
        self.value: str | None = value
        """Its value as text; null is refused with INVALID_CONFIG."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "CreatableTopicConfig":
        self = cls.__new__(cls)
        if version >= 5:
            self.name = reader.compact_string()
        else:
            self.name = reader.string()
        if version >= 5:
            self.value = reader.compact_nullable_string()
        else:
            self.value = reader.nullable_string()
        if version >= 5:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 5:
            writer.compact_string(self.name)
        else:
            writer.string(self.name)
        if version >= 5:
            writer.compact_nullable_string(self.value)
        else:
            writer.nullable_string(self.value)
        if version >= 5:
            writer.append(b"\x00")


class CreatableTopic(Message):
    """Topics to make; a name listed twice is refused with INVALID_REQUEST."""

    __slots__ = ("name", "num_partitions", "replication_factor", "assignments", "configs")
    JSON_FIELDS: JsonFields = (
        ("name", "string", 0, 7, False),
        ("num_partitions", "int32", 0, 7, False),
        ("replication_factor", "int16", 0, 7, False),
        ("assignments", "CreatableReplicaAssignment", 0, 7, False),
        ("configs", "CreatableTopicConfig", 0, 7, False),
    )

    def __init__(
        self,
        *,
        name: str = "",
        num_partitions: int = 0,
        replication_factor: int = 0,
        assignments: list[CreatableReplicaAssignment] | None = None,
        configs: list[CreatableTopicConfig] | None = None,
    ) -> None:
        self.name: str = name
        """Name of the topic to make."""
        self.num_partitions: int = num_partitions
        """Partition count; -1 = num.partitions (v4 and up), or always with a manual assignment."""
        self.replication_factor: int = replication_factor
        """Copies per partition; -1 = default.replication.factor (v4 and up), or with a manual assignment."""
        self.assignments: list[CreatableReplicaAssignment] = [] if assignments is None else assignments
        """Replicas chosen by hand, one entry per partition without gaps; empty lets the broker choose."""
        self.configs: list[CreatableTopicConfig] = [] if configs is None else configs
        """Topic settings that differ from the defaults."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "CreatableTopic":
        self = cls.__new__(cls)
        if version >= 5:
            self.name = reader.compact_string()
        else:
            self.name = reader.string()
        self.num_partitions, self.replication_factor = reader.fixed(_IH)
        if version >= 5:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        assignments: list[CreatableReplicaAssignment] = []
        for _ in range(count):
            assignments.append(CreatableReplicaAssignment.read(reader, version))
        self.assignments = assignments
        if version >= 5:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        configs: list[CreatableTopicConfig] = []
        for _ in range(count):
            configs.append(CreatableTopicConfig.read(reader, version))
        self.configs = configs
        if version >= 5:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 5:
            writer.compact_string(self.name)
        else:
            writer.string(self.name)
        writer.append(_IH.pack(self.num_partitions, self.replication_factor))
        if version >= 5:
            writer.compact_array_count(len(self.assignments))
        else:
            writer.array_count(len(self.assignments))
        for creatable_replica_assignment in self.assignments:
            creatable_replica_assignment.write(writer, version)
        if version >= 5:
            writer.compact_array_count(len(self.configs))
        else:
            writer.array_count(len(self.configs))
        for creatable_topic_config in self.configs:
            creatable_topic_config.write(writer, version)
        if version >= 5:
            writer.append(b"\x00")


class CreateTopicsRequest(Message):
    """Request of CreateTopics."""

    __slots__ = ("topics", "timeout_ms", "validate_only")
    API_KEY = 19
    VERSIONS = (0, 7)
    FLEXIBLE_FROM: int | None = 5
    JSON_FIELDS: JsonFields = (
        ("topics", "CreatableTopic", 0, 7, False),
        ("timeout_ms", "int32", 0, 7, False),
        ("validate_only", "bool", 1, 7, False),
    )

    def __init__(
        self,
        *,
        topics: list[CreatableTopic] | None = None,
        timeout_ms: int = 60000,
        validate_only: bool = False,
    ) -> None:
        self.topics: list[CreatableTopic] = [] if topics is None else topics
        """Topics to make; a name listed twice is refused with INVALID_REQUEST."""
        self.timeout_ms: int = timeout_ms
        """How long to wait until all brokers know the topics, in ms."""
        self.validate_only: bool = validate_only
        """v1+. True: check and answer as if created, but create nothing."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "CreateTopicsRequest":
        self = cls.__new__(cls)
        if version >= 5:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        topics: list[CreatableTopic] = []
        for _ in range(count):
            topics.append(CreatableTopic.read(reader, version))
        self.topics = topics
        if version >= 1:
            self.timeout_ms, self.validate_only = reader.fixed(_IZ)
        else:
            self.timeout_ms = reader.int32()
            self.validate_only = False
        if version >= 5:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 5:
            writer.compact_array_count(len(self.topics))
        else:
            writer.array_count(len(self.topics))
        for creatable_topic in self.topics:
            creatable_topic.write(writer, version)
        if version >= 1:
            writer.append(_IZ.pack(self.timeout_ms, self.validate_only))
        else:
            if self.validate_only:
                raise not_carried("CreateTopicsRequest", "validate_only", version)
            writer.int32(self.timeout_ms)
        if version >= 5:
            writer.append(b"\x00")


class CreatableTopicConfigs(Message):
    """Effective settings of the new topic; null when the caller may not see them."""

    __slots__ = ("name", "value", "read_only", "config_source", "is_sensitive")
    JSON_FIELDS: JsonFields = (
        ("name", "string", 5, 7, False),
        ("value", "string", 5, 7, False),
        ("read_only", "bool", 5, 7, False),
        ("config_source", "int8", 5, 7, False),
        ("is_sensitive", "bool", 5, 7, False),
    )

    def __init__(
        self,
        *,
        name: str = "",
        value: str | None = "",
        read_only: bool = False,
        config_source: int = -1,
        is_sensitive: bool = False,
    ) -> None:
        self.name: str = name
        """Topic config key."""
        self.value: str | None = value
        """Effective value as text; null when sensitive or unset."""
        self.read_only: bool = read_only
        """True when the key cannot be changed at run time."""
        self.config_source: int = config_source
        """Source of the value: 1 topic, 2 broker, 3 cluster default, 4 file, 5 default; -1 unknown."""
        self.is_sensitive: bool = is_sensitive
        """True for secrets, whose value is never shown."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "CreatableTopicConfigs":
        self = cls.__new__(cls)
        self.name = reader.compact_string()
        self.value = reader.compact_nullable_string()
        self.read_only, self.config_source, self.is_sensitive = reader.fixed(_ZBZ)
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.name)
        writer.compact_nullable_string(self.value)
        writer.append(_ZBZ.pack(self.read_only, self.config_source, self.is_sensitive))
        writer.append(b"\x00")


class CreatableTopicResult(Message):
    """One result per topic of the request."""

    __slots__ = ("name", "topic_id", "error_code", "error_message", "topic_config_error_code", "num_partitions", "replication_factor", "configs")
    JSON_FIELDS: JsonFields = (
        ("name", "string", 0, 7, False),
        ("topic_id", "uuid", 7, 7, False),
        ("error_code", "error_code", 0, 7, False),
        ("error_message", "string", 1, 7, False),
        ("topic_config_error_code", "error_code", 5, 7, True),
        ("num_partitions", "int32", 5, 7, False),
        ("replication_factor", "int16", 5, 7, False),
        ("configs", "CreatableTopicConfigs", 5, 7, False),
    )

    def __init__(
        self,
        *,
        name: str = "",
        topic_id: bytes = ZERO_UUID,
        error_code: int = 0,
        error_message: str | None = "",
        topic_config_error_code: int = 0,
        num_partitions: int = -1,
        replication_factor: int = -1,
        configs: list[CreatableTopicConfigs] | None | tuple[()] = (),
    ) -> None:
        self.name: str = name
        """Topic of this result."""
        self.topic_id: bytes = topic_id
        """v7+. Id given to the new topic; zero when it was not created."""
        self.error_code: int = error_code
        """TOPIC_ALREADY_EXISTS, INVALID_REPLICATION_FACTOR, INVALID_CONFIG, NOT_CONTROLLER, …; 0 = created or valid."""
        self.error_message: str | None = error_message
        """v1+. Human-readable reason for this entry's error_code; null when there is nothing to add."""
        self.topic_config_error_code: int = topic_config_error_code
        """v5+. Tagged: why configs is null, e.g. TOPIC_AUTHORIZATION_FAILED; 0 when it is filled."""
        self.num_partitions: int = num_partitions
        """v5+. Partition count it got; -1 on error."""
        self.replication_factor: int = replication_factor
        """v5+. Replication factor it got; -1 on error."""
        self.configs: list[CreatableTopicConfigs] | None = [] if isinstance(configs, tuple) else configs
        """v5+. Effective settings of the new topic; null when the caller may not see them."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "CreatableTopicResult":
        self = cls.__new__(cls)
        if version >= 5:
            self.name = reader.compact_string()
        else:
            self.name = reader.string()
        if version >= 7:
            self.topic_id = reader.uuid()
        else:
            self.topic_id = ZERO_UUID
        self.error_code = reader.int16()
        if version >= 5:
            self.error_message = reader.compact_nullable_string()
        elif version >= 1:
            self.error_message = reader.nullable_string()
        else:
            self.error_message = ""
        if version >= 5:
            self.num_partitions, self.replication_factor = reader.fixed(_IH)
        else:
            self.num_partitions = -1
            self.replication_factor = -1
        if version >= 5:
            count = reader.compact_nullable_array_count()
            configs: list[CreatableTopicConfigs] = []
            for _ in range(count):
                configs.append(CreatableTopicConfigs.read(reader, version))
            self.configs = configs if count >= 0 else None
        else:
            self.configs = []
        self.topic_config_error_code = 0
        if version >= 5:
            for _ in range(reader.tag_count()):
                tag = reader.uvarint()
                end = reader.tag_end()
                if tag == 0:
                    self.topic_config_error_code = reader.int16()
                else:
                    reader.position = end
                reader.finish_tag(end)
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 5:
            writer.compact_string(self.name)
        else:
            writer.string(self.name)
        if version >= 7:
            writer.uuid(self.topic_id)
        writer.int16(self.error_code)
        if version >= 5:
            writer.compact_nullable_string(self.error_message)
        elif version >= 1:
            writer.nullable_string(self.error_message)
        if version >= 5:
            writer.append(_IH.pack(self.num_partitions, self.replication_factor))
        if version >= 5:
            writer.compact_array_count(-1 if self.configs is None else len(self.configs))
            for creatable_topic_configs in self.configs or []:
                creatable_topic_configs.write(writer, version)
        if version >= 5:
            tagged: list[tuple[int, Writer]] = []
            if self.topic_config_error_code != 0:
                value = Writer()
                value.int16(self.topic_config_error_code)
                tagged.append((0, value))
            if tagged:
                writer.tagged_fields(tagged)
            else:
                writer.append(b"\x00")


class CreateTopicsResponse(Message):
    """Answer of CreateTopics."""

    __slots__ = ("throttle_time_ms", "topics")
    API_KEY = 19
    VERSIONS = (0, 7)
    FLEXIBLE_FROM: int | None = 5
    JSON_FIELDS: JsonFields = (
        ("throttle_time_ms", "int32", 2, 7, False),
        ("topics", "CreatableTopicResult", 0, 7, False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[CreatableTopicResult] | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        """v2+. Pause the quota asks of the client, in ms; 0 when it is within quota."""
        self.topics: list[CreatableTopicResult] = [] if topics is None else topics
        """One result per topic of the request."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "CreateTopicsResponse":
        self = cls.__new__(cls)
        if version >= 2:
            self.throttle_time_ms = reader.int32()
        else:
            self.throttle_time_ms = 0
        if version >= 5:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        topics: list[CreatableTopicResult] = []
        for _ in range(count):
            topics.append(CreatableTopicResult.read(reader, version))
        self.topics = topics
        if version >= 5:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 2:
            writer.int32(self.throttle_time_ms)
        if version >= 5:
            writer.compact_array_count(len(self.topics))
        else:
            writer.array_count(len(self.topics))
        for creatable_topic_result in self.topics:
            creatable_topic_result.write(writer, version)
        if version >= 5:
            writer.append(b"\x00")

# fmt: off
# ruff: noqa: E501
"""CreatePartitions: key 37, versions 0 to 3.

Admin clients raise the number of partitions of topics; only the controller carries it out (KIP-195).

Versions:
1: Over quota, the answer goes out first and the pause follows (KIP-219).
2: Flexible encoding (KIP-482).
3: THROTTLING_QUOTA_EXCEEDED may be answered (KIP-599).

Generated from protocol_specs/apis/37_create_partitions.json by `python -m protocol_specs.codegen`; do not edit.
"""

from struct import Struct

from minibroker.kafka.protocol.message import JsonFields, Message
from minibroker.kafka.protocol.primitives import Reader, Writer

_IZ = Struct(">i?")


class CreatePartitionsAssignment(Message):
    """Replicas of the added partitions, in order; null lets the broker choose."""

    __slots__ = ("broker_ids",)
    JSON_FIELDS: JsonFields = (
        ("broker_ids", "int32", 0, 3, False),
    )

    def __init__(
        self,
        *,
        broker_ids: list[int] | None = None,
    ) -> None:
        self.broker_ids: list[int] = [] if broker_ids is None else broker_ids
        """Broker ids of the replicas of one new partition, preferred leader first."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "CreatePartitionsAssignment":
        self = cls.__new__(cls)
        if version >= 2:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        self.broker_ids = reader.numbers(count, "i")
        if version >= 2:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 2:
            writer.compact_array_count(len(self.broker_ids))
        else:
            writer.array_count(len(self.broker_ids))
        writer.numbers(self.broker_ids, "i")
        if version >= 2:
            writer.append(b"\x00")


class CreatePartitionsTopic(Message):
    """Topics to grow."""

    __slots__ = ("name", "count", "assignments")
    JSON_FIELDS: JsonFields = (
        ("name", "string", 0, 3, False),
        ("count", "int32", 0, 3, False),
        ("assignments", "CreatePartitionsAssignment", 0, 3, False),
    )

    def __init__(
        self,
        *,
        name: str = "",
        count: int = 0,
        assignments: list[CreatePartitionsAssignment] | None | tuple[()] = (),
    ) -> None:
        self.name: str = name
        """Topic, by name."""
        self.count: int = count
        """Total number of partitions wanted, existing ones included; never fewer than now."""
        self.assignments: list[CreatePartitionsAssignment] | None = [] if isinstance(assignments, tuple) else assignments
        """Replicas of the added partitions, in order; null lets the broker choose."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "CreatePartitionsTopic":
        self = cls.__new__(cls)
        if version >= 2:
            self.name = reader.compact_string()
        else:
            self.name = reader.string()
        self.count = reader.int32()
        if version >= 2:
            count = reader.compact_nullable_array_count()
        else:
            count = reader.nullable_array_count()
        assignments: list[CreatePartitionsAssignment] = []
        for _ in range(count):
            assignments.append(CreatePartitionsAssignment.read(reader, version))
        self.assignments = assignments if count >= 0 else None
        if version >= 2:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 2:
            writer.compact_string(self.name)
        else:
            writer.string(self.name)
        writer.int32(self.count)
        if version >= 2:
            writer.compact_array_count(-1 if self.assignments is None else len(self.assignments))
        else:
            writer.array_count(-1 if self.assignments is None else len(self.assignments))
        for create_partitions_assignment in self.assignments or []:
            create_partitions_assignment.write(writer, version)
        if version >= 2:
            writer.append(b"\x00")


class CreatePartitionsRequest(Message):
    """Request of CreatePartitions."""

    __slots__ = ("topics", "timeout_ms", "validate_only")
    API_KEY = 37
    VERSIONS = (0, 3)
    FLEXIBLE_FROM: int | None = 2
    JSON_FIELDS: JsonFields = (
        ("topics", "CreatePartitionsTopic", 0, 3, False),
        ("timeout_ms", "int32", 0, 3, False),
        ("validate_only", "bool", 0, 3, False),
    )

    def __init__(
        self,
        *,
        topics: list[CreatePartitionsTopic] | None = None,
        timeout_ms: int = 0,
        validate_only: bool = False,
    ) -> None:
        self.topics: list[CreatePartitionsTopic] = [] if topics is None else topics
        """Topics to grow."""
        self.timeout_ms: int = timeout_ms
        """How long to wait until the partitions exist everywhere, in ms."""
        self.validate_only: bool = validate_only
        """True: run all checks and answer as if done, but change nothing."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "CreatePartitionsRequest":
        self = cls.__new__(cls)
        if version >= 2:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        topics: list[CreatePartitionsTopic] = []
        for _ in range(count):
            topics.append(CreatePartitionsTopic.read(reader, version))
        self.topics = topics
        self.timeout_ms, self.validate_only = reader.fixed(_IZ)
        if version >= 2:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 2:
            writer.compact_array_count(len(self.topics))
        else:
            writer.array_count(len(self.topics))
        for create_partitions_topic in self.topics:
            create_partitions_topic.write(writer, version)
        writer.append(_IZ.pack(self.timeout_ms, self.validate_only))
        if version >= 2:
            writer.append(b"\x00")


class CreatePartitionsTopicResult(Message):
    """One result per topic of the request."""

    __slots__ = ("name", "error_code", "error_message")
    JSON_FIELDS: JsonFields = (
        ("name", "string", 0, 3, False),
        ("error_code", "error_code", 0, 3, False),
        ("error_message", "string", 0, 3, False),
    )

    def __init__(
        self,
        *,
        name: str = "",
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.name: str = name
        """Topic of this result."""
        self.error_code: int = error_code
        """Result for this topic; 0 (NONE) on success."""
        self.error_message: str | None = error_message
        """Human-readable reason for this entry's error_code; null when there is nothing to add."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "CreatePartitionsTopicResult":
        self = cls.__new__(cls)
        if version >= 2:
            self.name = reader.compact_string()
        else:
            self.name = reader.string()
        self.error_code = reader.int16()
        if version >= 2:
            self.error_message = reader.compact_nullable_string()
        else:
            self.error_message = reader.nullable_string()
        if version >= 2:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 2:
            writer.compact_string(self.name)
        else:
            writer.string(self.name)
        writer.int16(self.error_code)
        if version >= 2:
            writer.compact_nullable_string(self.error_message)
        else:
            writer.nullable_string(self.error_message)
        if version >= 2:
            writer.append(b"\x00")


class CreatePartitionsResponse(Message):
    """Answer of CreatePartitions."""

    __slots__ = ("throttle_time_ms", "results")
    API_KEY = 37
    VERSIONS = (0, 3)
    FLEXIBLE_FROM: int | None = 2
    JSON_FIELDS: JsonFields = (
        ("throttle_time_ms", "int32", 0, 3, False),
        ("results", "CreatePartitionsTopicResult", 0, 3, False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results: list[CreatePartitionsTopicResult] | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        """Pause the quota asks of the client, in ms; 0 when it is within quota."""
        self.results: list[CreatePartitionsTopicResult] = [] if results is None else results
        """One result per topic of the request."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "CreatePartitionsResponse":
        self = cls.__new__(cls)
        self.throttle_time_ms = reader.int32()
        if version >= 2:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        results: list[CreatePartitionsTopicResult] = []
        for _ in range(count):
            results.append(CreatePartitionsTopicResult.read(reader, version))
        self.results = results
        if version >= 2:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.int32(self.throttle_time_ms)
        if version >= 2:
            writer.compact_array_count(len(self.results))
        else:
            writer.array_count(len(self.results))
        for create_partitions_topic_result in self.results:
            create_partitions_topic_result.write(writer, version)
        if version >= 2:
            writer.append(b"\x00")

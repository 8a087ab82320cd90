# fmt: off
# ruff: noqa: E501
"""AlterPartitionReassignments: key 45, versions 0 to 1.

Admin clients start or cancel moves of partitions to other replicas; the controller acts (KIP-455).

Versions:
1: Caller may forbid that the number of replicas changes (KIP-860).

Generated from protocol_specs/apis/45_alter_partition_reassignments.json by `python -m protocol_specs.codegen`; do not edit.
"""

from struct import Struct

from minibroker.kafka.protocol.message import JsonFields, Message, not_carried
from minibroker.kafka.protocol.primitives import Reader, Writer

_IZ = Struct(">i?")
_IZH = Struct(">i?h")
_IH = Struct(">ih")


class ReassignablePartition(Message):
    """One move per partition."""

    __slots__ = ("partition_index", "replicas")
    JSON_FIELDS: JsonFields = (
        ("partition_index", "int32", 0, 1, False),
        ("replicas", "int32", 0, 1, False),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        replicas: list[int] | None = None,
    ) -> None:
        self.partition_index: int = partition_index
        """Partition number within the topic, counted from 0."""
        self.replicas: list[int] | None = replicas
        """Broker ids of the final replicas, preferred leader first; null = cancel the running move."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ReassignablePartition":
        self = cls.__new__(cls)
        self.partition_index = reader.int32()
        count = reader.compact_nullable_array_count()
        self.replicas = reader.numbers(count, "i") if count >= 0 else None
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.int32(self.partition_index)
        writer.compact_array_count(-1 if self.replicas is None else len(self.replicas))
        writer.numbers(self.replicas or [], "i")
        writer.append(b"\x00")


class ReassignableTopic(Message):
    """Moves to start or cancel, grouped by topic."""

    __slots__ = ("name", "partitions")
    JSON_FIELDS: JsonFields = (
        ("name", "string", 0, 1, False),
        ("partitions", "ReassignablePartition", 0, 1, False),
    )

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[ReassignablePartition] | None = None,
    ) -> None:
        self.name: str = name
        """Topic, by name."""
        self.partitions: list[ReassignablePartition] = [] if partitions is None else partitions
        """One move per partition."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ReassignableTopic":
        self = cls.__new__(cls)
        self.name = reader.compact_string()
        count = reader.compact_array_count()
        partitions: list[ReassignablePartition] = []
        for _ in range(count):
            partitions.append(ReassignablePartition.read(reader, version))
        self.partitions = partitions
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.name)
        writer.compact_array_count(len(self.partitions))
        for reassignable_partition in self.partitions:
            reassignable_partition.write(writer, version)
        writer.append(b"\x00")


class AlterPartitionReassignmentsRequest(Message):
    """Request of AlterPartitionReassignments."""

    __slots__ = ("timeout_ms", "allow_replication_factor_change", "topics")
    API_KEY = 45
    VERSIONS = (0, 1)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("timeout_ms", "int32", 0, 1, False),
        ("allow_replication_factor_change", "bool", 1, 1, False),
        ("topics", "ReassignableTopic", 0, 1, False),
    )

    def __init__(
        self,
        *,
        timeout_ms: int = 60000,
        allow_replication_factor_change: bool = True,
        topics: list[ReassignableTopic] | None = None,
    ) -> None:
        self.timeout_ms: int = timeout_ms
        """How long to wait until the moves are recorded (not done), in ms."""
        self.allow_replication_factor_change: bool = allow_replication_factor_change
        """v1+. False: a move that changes the number of replicas is INVALID_REPLICATION_FACTOR."""
        self.topics: list[ReassignableTopic] = [] if topics is None else topics
        """Moves to start or cancel, grouped by topic."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "AlterPartitionReassignmentsRequest":
        self = cls.__new__(cls)
        if version >= 1:
            self.timeout_ms, self.allow_replication_factor_change = reader.fixed(_IZ)
        else:
            self.timeout_ms = reader.int32()
            self.allow_replication_factor_change = True
        count = reader.compact_array_count()
        topics: list[ReassignableTopic] = []
        for _ in range(count):
            topics.append(ReassignableTopic.read(reader, version))
        self.topics = topics
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 1:
            writer.append(_IZ.pack(self.timeout_ms, self.allow_replication_factor_change))
        else:
            if not self.allow_replication_factor_change:
                raise not_carried("AlterPartitionReassignmentsRequest", "allow_replication_factor_change", version)
            writer.int32(self.timeout_ms)
        writer.compact_array_count(len(self.topics))
        for reassignable_topic in self.topics:
            reassignable_topic.write(writer, version)
        writer.append(b"\x00")


class ReassignablePartitionResponse(Message):
    """Results by partition."""

    __slots__ = ("partition_index", "error_code", "error_message")
    JSON_FIELDS: JsonFields = (
        ("partition_index", "int32", 0, 1, False),
        ("error_code", "error_code", 0, 1, False),
        ("error_message", "string", 0, 1, False),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
    ) -> None:
        self.partition_index: int = partition_index
        """Partition number within the topic, counted from 0."""
        self.error_code: int = error_code
        """NO_REASSIGNMENT_IN_PROGRESS, INVALID_REPLICA_ASSIGNMENT, …; 0 = move recorded."""
        self.error_message: str | None = error_message
        """Human-readable reason for this entry's error_code; null when there is nothing to add."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ReassignablePartitionResponse":
        self = cls.__new__(cls)
        self.partition_index, self.error_code = reader.fixed(_IH)
        self.error_message = reader.compact_nullable_string()
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.append(_IH.pack(self.partition_index, self.error_code))
        writer.compact_nullable_string(self.error_message)
        writer.append(b"\x00")


class ReassignableTopicResponse(Message):
    """Results grouped by topic."""

    __slots__ = ("name", "partitions")
    JSON_FIELDS: JsonFields = (
        ("name", "string", 0, 1, False),
        ("partitions", "ReassignablePartitionResponse", 0, 1, False),
    )

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[ReassignablePartitionResponse] | None = None,
    ) -> None:
        self.name: str = name
        """Topic, by name."""
        self.partitions: list[ReassignablePartitionResponse] = [] if partitions is None else partitions
        """Results by partition."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ReassignableTopicResponse":
        self = cls.__new__(cls)
        self.name = reader.compact_string()
        count = reader.compact_array_count()
        partitions: list[ReassignablePartitionResponse] = []
        for _ in range(count):
            partitions.append(ReassignablePartitionResponse.read(reader, version))
        self.partitions = partitions
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.name)
        writer.compact_array_count(len(self.partitions))
        for reassignable_partition_response in self.partitions:
            reassignable_partition_response.write(writer, version)
        writer.append(b"\x00")


class AlterPartitionReassignmentsResponse(Message):
    """Answer of AlterPartitionReassignments."""

    __slots__ = ("throttle_time_ms", "allow_replication_factor_change", "error_code", "error_message", "responses")
    API_KEY = 45
    VERSIONS = (0, 1)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("throttle_time_ms", "int32", 0, 1, False),
        ("allow_replication_factor_change", "bool", 1, 1, False),
        ("error_code", "error_code", 0, 1, False),
        ("error_message", "string", 0, 1, False),
        ("responses", "ReassignableTopicResponse", 0, 1, False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        allow_replication_factor_change: bool = True,
        error_code: int = 0,
        error_message: str | None = "",
        responses: list[ReassignableTopicResponse] | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        """Pause the quota asks of the client, in ms; 0 when it is within quota."""
        self.allow_replication_factor_change: bool = allow_replication_factor_change
        """v1+. The flag of the request, as applied."""
        self.error_code: int = error_code
        """CLUSTER_AUTHORIZATION_FAILED, NOT_CONTROLLER, …; 0 = see the results."""
        self.error_message: str | None = error_message
        """Human-readable reason for error_code; null when there is nothing to add."""
        self.responses: list[ReassignableTopicResponse] = [] if responses is None else responses
        """Results grouped by topic."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "AlterPartitionReassignmentsResponse":
        self = cls.__new__(cls)
        if version >= 1:
            (
                self.throttle_time_ms,
                self.allow_replication_factor_change,
                self.error_code,
            ) = reader.fixed(_IZH)
        else:
            self.throttle_time_ms, self.error_code = reader.fixed(_IH)
            self.allow_replication_factor_change = True
        self.error_message = reader.compact_nullable_string()
        count = reader.compact_array_count()
        responses: list[ReassignableTopicResponse] = []
        for _ in range(count):
            responses.append(ReassignableTopicResponse.read(reader, version))
        self.responses = responses
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 1:
            writer.append(_IZH.pack(
                self.throttle_time_ms,
                self.allow_replication_factor_change,
                self.error_code,
            ))
        else:
            writer.append(_IH.pack(self.throttle_time_ms, self.error_code))
        writer.compact_nullable_string(self.error_message)
        writer.compact_array_count(len(self.responses))
        for reassignable_topic_response in self.responses:
            reassignable_topic_response.write(writer, version)
        writer.append(b"\x00")

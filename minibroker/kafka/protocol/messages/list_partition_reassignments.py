# fmt: off
# ruff: noqa: E501
"""ListPartitionReassignments: key 46, versions 0 to 0.

Admin clients list running moves of partitions; the controller answers (KIP-455).

Generated from protocol_specs/apis/46_list_partition_reassignments.json by `python -m protocol_specs.codegen`; do not edit.
"""

from struct import Struct

from minibroker.kafka.protocol.message import JsonFields, Message
from minibroker.kafka.protocol.primitives import Reader, Writer

_IH = Struct(">ih")


class ListPartitionReassignmentsTopics(Message):
    """Partitions to look at, grouped by topic; null = all."""

    __slots__ = ("name", "partition_indexes")
    JSON_FIELDS: JsonFields = (
        ("name", "string", 0, 0, False),
        ("partition_indexes", "int32", 0, 0, False),
    )

    def __init__(
        self,
        *,
        name: str = "",
        partition_indexes: list[int] | None = None,
    ) -> None:
        self.name: str = name
        """Topic, by name."""
        self.partition_indexes: list[int] = [] if partition_indexes is None else partition_indexes
        """Numbers of the partitions meant within that topic."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ListPartitionReassignmentsTopics":
        self = cls.__new__(cls)
        self.name = reader.compact_string()
        count = reader.compact_array_count()
        self.partition_indexes = reader.numbers(count, "i")
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.name)
        writer.compact_array_count(len(self.partition_indexes))
        writer.numbers(self.partition_indexes, "i")
        writer.append(b"\x00")


class ListPartitionReassignmentsRequest(Message):
    """Request of ListPartitionReassignments."""

    __slots__ = ("timeout_ms", "topics")
    API_KEY = 46
    VERSIONS = (0, 0)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("timeout_ms", "int32", 0, 0, False),
        ("topics", "ListPartitionReassignmentsTopics", 0, 0, False),
    )

    def __init__(
        self,
        *,
        timeout_ms: int = 60000,
        topics: list[ListPartitionReassignmentsTopics] | None = None,
    ) -> None:
        self.timeout_ms: int = timeout_ms
        """How long to wait for the answer, in ms."""
        self.topics: list[ListPartitionReassignmentsTopics] | None = topics
        """Partitions to look at, grouped by topic; null = all."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ListPartitionReassignmentsRequest":
        self = cls.__new__(cls)
        self.timeout_ms = reader.int32()
        count = reader.compact_nullable_array_count()
        topics: list[ListPartitionReassignmentsTopics] = []
        for _ in range(count):
            topics.append(ListPartitionReassignmentsTopics.read(reader, version))
        self.topics = topics if count >= 0 else None
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.int32(self.timeout_ms)
        writer.compact_array_count(-1 if self.topics is None else len(self.topics))
        for list_partition_reassignments_topics in self.topics or []:
            list_partition_reassignments_topics.write(writer, version)
        writer.append(b"\x00")


class OngoingPartitionReassignment(Message):
    """One entry per partition on the move."""

    __slots__ = ("partition_index", "replicas", "adding_replicas", "removing_replicas")
    JSON_FIELDS: JsonFields = (
        ("partition_index", "int32", 0, 0, False),
        ("replicas", "int32", 0, 0, False),
        ("adding_replicas", "int32", 0, 0, False),
        ("removing_replicas", "int32", 0, 0, False),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        replicas: list[int] | None = None,
        adding_replicas: list[int] | None = None,
        removing_replicas: list[int] | None = None,
    ) -> None:
        self.partition_index: int = partition_index
        """Partition number within the topic, counted from 0."""
        self.replicas: list[int] = [] if replicas is None else replicas
        """Broker ids of all replicas at present, old and new."""
        self.adding_replicas: list[int] = [] if adding_replicas is None else adding_replicas
        """Broker ids that are still to join the ISR."""
        self.removing_replicas: list[int] = [] if removing_replicas is None else removing_replicas
        """Broker ids that go away at the end."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "OngoingPartitionReassignment":
        self = cls.__new__(cls)
        self.partition_index = reader.int32()
        count = reader.compact_array_count()
        self.replicas = reader.numbers(count, "i")
        count = reader.compact_array_count()
        self.adding_replicas = reader.numbers(count, "i")
        count = reader.compact_array_count()
        self.removing_replicas = reader.numbers(count, "i")
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.int32(self.partition_index)
        writer.compact_array_count(len(self.replicas))
        writer.numbers(self.replicas, "i")
        writer.compact_array_count(len(self.adding_replicas))
        writer.numbers(self.adding_replicas, "i")
        writer.compact_array_count(len(self.removing_replicas))
        writer.numbers(self.removing_replicas, "i")
        writer.append(b"\x00")


class OngoingTopicReassignment(Message):
    """Running moves, grouped by topic; partitions at rest are left out."""

    __slots__ = ("name", "partitions")
    JSON_FIELDS: JsonFields = (
        ("name", "string", 0, 0, False),
        ("partitions", "OngoingPartitionReassignment", 0, 0, False),
    )

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[OngoingPartitionReassignment] | None = None,
    ) -> None:
        self.name: str = name
        """Topic, by name."""
        self.partitions: list[OngoingPartitionReassignment] = [] if partitions is None else partitions
        """One entry per partition on the move."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "OngoingTopicReassignment":
        self = cls.__new__(cls)
        self.name = reader.compact_string()
        count = reader.compact_array_count()
        partitions: list[OngoingPartitionReassignment] = []
        for _ in range(count):
            partitions.append(OngoingPartitionReassignment.read(reader, version))
        self.partitions = partitions
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.name)
        writer.compact_array_count(len(self.partitions))
        for ongoing_partition_reassignment in self.partitions:
            ongoing_partition_reassignment.write(writer, version)
        writer.append(b"\x00")


class ListPartitionReassignmentsResponse(Message):
    """Answer of ListPartitionReassignments."""

    __slots__ = ("throttle_time_ms", "error_code", "error_message", "topics")
    API_KEY = 46
    VERSIONS = (0, 0)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("throttle_time_ms", "int32", 0, 0, False),
        ("error_code", "error_code", 0, 0, False),
        ("error_message", "string", 0, 0, False),
        ("topics", "OngoingTopicReassignment", 0, 0, False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        topics: list[OngoingTopicReassignment] | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        """Pause the quota asks of the client, in ms; 0 when it is within quota."""
        self.error_code: int = error_code
        """CLUSTER_AUTHORIZATION_FAILED, NOT_CONTROLLER, …; 0 on success."""
        self.error_message: str | None = error_message
        """Human-readable reason for error_code; null when there is nothing to add."""
        self.topics: list[OngoingTopicReassignment] = [] if topics is None else topics
        """Running moves, grouped by topic; partitions at rest are left out."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ListPartitionReassignmentsResponse":
        self = cls.__new__(cls)
        self.throttle_time_ms, self.error_code = reader.fixed(_IH)
        self.error_message = reader.compact_nullable_string()
        count = reader.compact_array_count()
        topics: list[OngoingTopicReassignment] = []
        for _ in range(count):
            topics.append(OngoingTopicReassignment.read(reader, version))
        self.topics = topics
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.append(_IH.pack(self.throttle_time_ms, self.error_code))
        writer.compact_nullable_string(self.error_message)
        writer.compact_array_count(len(self.topics))
        for ongoing_topic_reassignment in self.topics:
            ongoing_topic_reassignment.write(writer, version)
        writer.append(b"\x00")

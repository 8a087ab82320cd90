# fmt: off
# ruff: noqa: E501
"""OffsetDelete: key 47, versions 0 to 0.

Admin clients delete stored offsets of partitions a group no longer subscribes to (KIP-496).

Generated from protocol_specs/apis/47_offset_delete.json by `python -m protocol_specs.codegen`; do not edit.
"""

from struct import Struct

from minibroker.kafka.protocol.message import JsonFields, Message
from minibroker.kafka.protocol.primitives import Reader, Writer

_HI = Struct(">hi")
_IH = Struct(">ih")


class OffsetDeleteRequestPartition(Message):
    """One entry per offset to delete."""

    __slots__ = ("partition_index",)
    JSON_FIELDS: JsonFields = (
        ("partition_index", "int32", 0, 0, False),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
    ) -> None:
        self.partition_index: int = partition_index
        """Partition number within the topic, counted from 0."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "OffsetDeleteRequestPartition":
        self = cls.__new__(cls)
        self.partition_index = reader.int32()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.int32(self.partition_index)


class OffsetDeleteRequestTopic(Message):
    """Offsets to delete, grouped by topic."""

    __slots__ = ("name", "partitions")
    JSON_FIELDS: JsonFields = (
        ("name", "string", 0, 0, False),
        ("partitions", "OffsetDeleteRequestPartition", 0, 0, False),
    )

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[OffsetDeleteRequestPartition] | None = None,
    ) -> None:
        self.name: str = name
        """Topic, by name."""
        self.partitions: list[OffsetDeleteRequestPartition] = [] if partitions is None else partitions
        """One entry per offset to delete."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "OffsetDeleteRequestTopic":
        self = cls.__new__(cls)
        self.name = reader.string()
        count = reader.array_count()
        partitions: list[OffsetDeleteRequestPartition] = []
        for _ in range(count):
            partitions.append(OffsetDeleteRequestPartition.read(reader, version))
        self.partitions = partitions
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.string(self.name)
        writer.array_count(len(self.partitions))
        for offset_delete_request_partition in self.partitions:
            offset_delete_request_partition.write(writer, version)


class OffsetDeleteRequest(Message):
    """Request of OffsetDelete."""

    __slots__ = ("group_id", "topics")
    API_KEY = 47
    VERSIONS = (0, 0)
    FLEXIBLE_FROM: int | None = None
    JSON_FIELDS: JsonFields = (
        ("group_id", "string", 0, 0, False),
        ("topics", "OffsetDeleteRequestTopic", 0, 0, False),
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[OffsetDeleteRequestTopic] | None = None,
    ) -> None:
        self.group_id: str = group_id
        """Group, by name."""
        self.topics: list[OffsetDeleteRequestTopic] = [] if topics is None else topics
        """Offsets to delete, grouped by topic."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "OffsetDeleteRequest":
        self = cls.__new__(cls)
        self.group_id = reader.string()
        count = reader.array_count()
        topics: list[OffsetDeleteRequestTopic] = []
        for _ in range(count):
            topics.append(OffsetDeleteRequestTopic.read(reader, version))
        self.topics = topics
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.string(self.group_id)
        writer.array_count(len(self.topics))
        for offset_delete_request_topic in self.topics:
            offset_delete_request_topic.write(writer, version)


class OffsetDeleteResponsePartition(Message):
    """Results by partition."""

    __slots__ = ("partition_index", "error_code")
    JSON_FIELDS: JsonFields = (
        ("partition_index", "int32", 0, 0, False),
        ("error_code", "error_code", 0, 0, False),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
    ) -> None:
        self.partition_index: int = partition_index
        """Partition number within the topic, counted from 0."""
        self.error_code: int = error_code
        """GROUP_SUBSCRIBED_TO_TOPIC when still in use; 0 = gone or never there."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "OffsetDeleteResponsePartition":
        self = cls.__new__(cls)
        self.partition_index, self.error_code = reader.fixed(_IH)
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.append(_IH.pack(self.partition_index, self.error_code))


class OffsetDeleteResponseTopic(Message):
    """Results grouped by topic."""

    __slots__ = ("name", "partitions")
    JSON_FIELDS: JsonFields = (
        ("name", "string", 0, 0, False),
        ("partitions", "OffsetDeleteResponsePartition", 0, 0, False),
    )

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[OffsetDeleteResponsePartition] | None = None,
    ) -> None:
        self.name: str = name
        """Topic, by name."""
        self.partitions: list[OffsetDeleteResponsePartition] = [] if partitions is None else partitions
        """Results by partition."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "OffsetDeleteResponseTopic":
        self = cls.__new__(cls)
        self.name = reader.string()
        count = reader.array_count()
        partitions: list[OffsetDeleteResponsePartition] = []
        for _ in range(count):
            partitions.append(OffsetDeleteResponsePartition.read(reader, version))
        self.partitions = partitions
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.string(self.name)
        writer.array_count(len(self.partitions))
        for offset_delete_response_partition in self.partitions:
            offset_delete_response_partition.write(writer, version)


class OffsetDeleteResponse(Message):
    """Answer of OffsetDelete."""

    __slots__ = ("error_code", "throttle_time_ms", "topics")
    API_KEY = 47
    VERSIONS = (0, 0)
    FLEXIBLE_FROM: int | None = None
    JSON_FIELDS: JsonFields = (
        ("error_code", "error_code", 0, 0, False),
        ("throttle_time_ms", "int32", 0, 0, False),
        ("topics", "OffsetDeleteResponseTopic", 0, 0, False),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        throttle_time_ms: int = 0,
        topics: list[OffsetDeleteResponseTopic] | None = None,
    ) -> None:
        self.error_code: int = error_code
        """GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP (its subscriptions cannot be read), …; 0 = see the results."""
        self.throttle_time_ms: int = throttle_time_ms
        """Pause the quota asks of the client, in ms; 0 when it is within quota."""
        self.topics: list[OffsetDeleteResponseTopic] = [] if topics is None else topics
        """Results grouped by topic."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "OffsetDeleteResponse":
        self = cls.__new__(cls)
        self.error_code, self.throttle_time_ms = reader.fixed(_HI)
        count = reader.array_count()
        topics: list[OffsetDeleteResponseTopic] = []
        for _ in range(count):
            topics.append(OffsetDeleteResponseTopic.read(reader, version))
        self.topics = topics
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.append(_HI.pack(self.error_code, self.throttle_time_ms))
        writer.array_count(len(self.topics))
        for offset_delete_response_topic in self.topics:
            offset_delete_response_topic.write(writer, version)

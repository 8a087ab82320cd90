# fmt: off
# ruff: noqa: E501
"""DeleteShareGroupState: key 86, versions 0 to 0.

The group coordinator has the share coordinator drop state of share partitions; between brokers only (KIP-932).

Generated from protocol_specs/apis/86_delete_share_group_state.json by `python -m protocol_specs.codegen`; do not edit.
"""

from struct import Struct

from minibroker.kafka.protocol.message import JsonFields, Message
from minibroker.kafka.protocol.primitives import ZERO_UUID, Reader, Writer

_IH = Struct(">ih")


class PartitionData(Message):
    """One entry per share partition."""

    __slots__ = ("partition",)
    JSON_FIELDS: JsonFields = (
        ("partition", "int32", 0, 0, False),
    )

    def __init__(
        self,
        *,
        partition: int = 0,
    ) -> None:
        self.partition: int = partition
        """Partition number within the topic, counted from 0."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "PartitionData":
        self = cls.__new__(cls)
        self.partition = reader.int32()
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.int32(self.partition)
        writer.append(b"\x00")


class DeleteStateData(Message):
    """Share partitions to drop, grouped by topic."""

    __slots__ = ("topic_id", "partitions")
    JSON_FIELDS: JsonFields = (
        ("topic_id", "uuid", 0, 0, False),
        ("partitions", "PartitionData", 0, 0, False),
    )

    def __init__(
        self,
        *,
        topic_id: bytes = ZERO_UUID,
        partitions: list[PartitionData] | None = None,
    ) -> None:
        self.topic_id: bytes = topic_id
        """Topic, by its 16-byte id (KIP-516)."""
        self.partitions: list[PartitionData] = [] if partitions is None else partitions
        """One entry per share partition."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "DeleteStateData":
        self = cls.__new__(cls)
        self.topic_id = reader.uuid()
        count = reader.compact_array_count()
        partitions: list[PartitionData] = []
        for _ in range(count):
            partitions.append(PartitionData.read(reader, version))
        self.partitions = partitions
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.uuid(self.topic_id)
        writer.compact_array_count(len(self.partitions))
        for partition_data in self.partitions:
            partition_data.write(writer, version)
        writer.append(b"\x00")


class DeleteShareGroupStateRequest(Message):
    """Request of DeleteShareGroupState."""

    __slots__ = ("group_id", "topics")
    API_KEY = 86
    VERSIONS = (0, 0)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("group_id", "string", 0, 0, False),
        ("topics", "DeleteStateData", 0, 0, False),
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[DeleteStateData] | None = None,
    ) -> None:
        self.group_id: str = group_id
        """Share group, by name."""
        self.topics: list[DeleteStateData] = [] if topics is None else topics
        """Share partitions to drop, grouped by topic."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "DeleteShareGroupStateRequest":
        self = cls.__new__(cls)
        self.group_id = reader.compact_string()
        count = reader.compact_array_count()
        topics: list[DeleteStateData] = []
        for _ in range(count):
            topics.append(DeleteStateData.read(reader, version))
        self.topics = topics
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.group_id)
        writer.compact_array_count(len(self.topics))
        for delete_state_data in self.topics:
            delete_state_data.write(writer, version)
        writer.append(b"\x00")


class PartitionResult(Message):
    """Results by partition."""

    __slots__ = ("partition", "error_code", "error_message")
    JSON_FIELDS: JsonFields = (
        ("partition", "int32", 0, 0, False),
        ("error_code", "error_code", 0, 0, False),
        ("error_message", "string", 0, 0, False),
    )

    def __init__(
        self,
        *,
        partition: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.partition: int = partition
        """Partition number within the topic, counted from 0."""
        self.error_code: int = error_code
        """Result for this partition alone; 0 (NONE) on success."""
        self.error_message: str | None = error_message
        """Human-readable reason for this entry's error_code; null when there is nothing to add."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "PartitionResult":
        self = cls.__new__(cls)
        self.partition, self.error_code = reader.fixed(_IH)
        self.error_message = reader.compact_nullable_string()
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.append(_IH.pack(self.partition, self.error_code))
        writer.compact_nullable_string(self.error_message)
        writer.append(b"\x00")


class DeleteStateResult(Message):
    """Results grouped by topic."""

    __slots__ = ("topic_id", "partitions")
    JSON_FIELDS: JsonFields = (
        ("topic_id", "uuid", 0, 0, False),
        ("partitions", "PartitionResult", 0, 0, False),
    )

    def __init__(
        self,
        *,
        topic_id: bytes = ZERO_UUID,
        partitions: list[PartitionResult] | None = None,
    ) -> None:
        self.topic_id: bytes = topic_id
        """Topic, by its 16-byte id (KIP-516)."""
        self.partitions: list[PartitionResult] = [] if partitions is None else partitions
        """Results by partition."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "DeleteStateResult":
        self = cls.__new__(cls)
        self.topic_id = reader.uuid()
        count = reader.compact_array_count()
        partitions: list[PartitionResult] = []
        for _ in range(count):
            partitions.append(PartitionResult.read(reader, version))
        self.partitions = partitions
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.uuid(self.topic_id)
        writer.compact_array_count(len(self.partitions))
        for partition_result in self.partitions:
            partition_result.write(writer, version)
        writer.append(b"\x00")


class DeleteShareGroupStateResponse(Message):
    """Answer of DeleteShareGroupState."""

    __slots__ = ("results",)
    API_KEY = 86
    VERSIONS = (0, 0)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("results", "DeleteStateResult", 0, 0, False),
    )

    def __init__(
        self,
        *,
        results: list[DeleteStateResult] | None = None,
    ) -> None:
        self.results: list[DeleteStateResult] = [] if results is None else results
        """Results grouped by topic."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "DeleteShareGroupStateResponse":
        self = cls.__new__(cls)
        count = reader.compact_array_count()
        results: list[DeleteStateResult] = []
        for _ in range(count):
            results.append(DeleteStateResult.read(reader, version))
        self.results = results
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_array_count(len(self.results))
        for delete_state_result in self.results:
            delete_state_result.write(writer, version)
        writer.append(b"\x00")

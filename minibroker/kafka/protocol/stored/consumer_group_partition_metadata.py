# fmt: off
# ruff: noqa: E501
"""Partition counts of the subscribed topics (record type 4); since 4.1 replaced by the metadata hash (KIP-1101).

Generated from protocol_specs/stored/consumer_group_partition_metadata.json by `python -m protocol_specs.codegen`; do not edit.
"""

from minibroker.kafka.protocol.message import JsonFields, Message
from minibroker.kafka.protocol.primitives import ZERO_UUID, Reader, Writer
from minibroker.kafka.protocol.versioned import VersionedMessage


class ConsumerGroupPartitionMetadataKey(VersionedMessage):
    """The record itself; its version is the int16 in front of it."""

    __slots__ = ("group_id",)
    VERSIONS = (4, 4)
    FLEXIBLE_FROM: int | None = None
    JSON_FIELDS: JsonFields = (
        ("group_id", "string", 4, 4, False),
    )

    def __init__(
        self,
        *,
        group_id: str = "",
    ) -> None:
        self.group_id: str = group_id
        """Group, by name."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ConsumerGroupPartitionMetadataKey":
        self = cls.__new__(cls)
        self.group_id = reader.string()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.string(self.group_id)


class PartitionMetadata(Message):
    """Racks of the replicas, per partition; empty when no racks are known. Unused after 4.0."""

    __slots__ = ("partition", "racks")
    JSON_FIELDS: JsonFields = (
        ("partition", "int32", 0, 0, False),
        ("racks", "string", 0, 0, False),
    )

    def __init__(
        self,
        *,
        partition: int = 0,
        racks: list[str] | None = None,
    ) -> None:
        self.partition: int = partition
        """Partition number within the topic, counted from 0."""
        self.racks: list[str] = [] if racks is None else racks
        """Racks that hold a replica of the partition."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "PartitionMetadata":
        self = cls.__new__(cls)
        self.partition = reader.int32()
        count = reader.compact_array_count()
        racks: list[str] = []
        for _ in range(count):
            racks.append(reader.compact_string())
        self.racks = racks
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.int32(self.partition)
        writer.compact_array_count(len(self.racks))
        for text in self.racks:
            writer.compact_string(text)
        writer.append(b"\x00")


class TopicMetadata(Message):
    """Subscribed topics as last seen."""

    __slots__ = ("topic_id", "topic_name", "num_partitions", "partition_metadata")
    JSON_FIELDS: JsonFields = (
        ("topic_id", "uuid", 0, 0, False),
        ("topic_name", "string", 0, 0, False),
        ("num_partitions", "int32", 0, 0, False),
        ("partition_metadata", "PartitionMetadata", 0, 0, False),
    )

    def __init__(
        self,
        *,
        topic_id: bytes = ZERO_UUID,
        topic_name: str = "",
        num_partitions: int = 0,
        partition_metadata: list[PartitionMetadata] | None = None,
    ) -> None:
        self.topic_id: bytes = topic_id
        """Topic, by its 16-byte id (KIP-516)."""
        self.topic_name: str = topic_name
        """Topic, by name."""
        self.num_partitions: int = num_partitions
        """Partition count as last seen."""
        self.partition_metadata: list[PartitionMetadata] = [] if partition_metadata is None else partition_metadata
        """Racks of the replicas, per partition; empty when no racks are known. Unused after 4.0."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "TopicMetadata":
        self = cls.__new__(cls)
        self.topic_id = reader.uuid()
        self.topic_name = reader.compact_string()
        self.num_partitions = reader.int32()
        count = reader.compact_array_count()
        partition_metadata: list[PartitionMetadata] = []
        for _ in range(count):
            partition_metadata.append(PartitionMetadata.read(reader, version))
        self.partition_metadata = partition_metadata
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.uuid(self.topic_id)
        writer.compact_string(self.topic_name)
        writer.int32(self.num_partitions)
        writer.compact_array_count(len(self.partition_metadata))
        for partition_metadata in self.partition_metadata:
            partition_metadata.write(writer, version)
        writer.append(b"\x00")


class ConsumerGroupPartitionMetadataValue(VersionedMessage):
    """The record itself; its version is the int16 in front of it."""

    __slots__ = ("topics",)
    VERSIONS = (0, 0)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("topics", "TopicMetadata", 0, 0, False),
    )

    def __init__(
        self,
        *,
        topics: list[TopicMetadata] | None = None,
    ) -> None:
        self.topics: list[TopicMetadata] = [] if topics is None else topics
        """Subscribed topics as last seen."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ConsumerGroupPartitionMetadataValue":
        self = cls.__new__(cls)
        count = reader.compact_array_count()
        topics: list[TopicMetadata] = []
        for _ in range(count):
            topics.append(TopicMetadata.read(reader, version))
        self.topics = topics
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_array_count(len(self.topics))
        for topic_metadata in self.topics:
            topic_metadata.write(writer, version)
        writer.append(b"\x00")

# fmt: off
# ruff: noqa: E501
"""Partitions a consumer-group member shall end up with (record type 7); a null value removes the member.

Generated from protocol_specs/stored/consumer_group_target_assignment_member.json by `python -m protocol_specs.codegen`; do not edit.
"""

from minibroker.kafka.protocol.message import JsonFields, Message
from minibroker.kafka.protocol.primitives import ZERO_UUID, Reader, Writer
from minibroker.kafka.protocol.versioned import VersionedMessage


class ConsumerGroupTargetAssignmentMemberKey(VersionedMessage):
    """The record itself; its version is the int16 in front of it."""

    __slots__ = ("group_id", "member_id")
    VERSIONS = (7, 7)
    FLEXIBLE_FROM: int | None = None
    JSON_FIELDS: JsonFields = (
        ("group_id", "string", 7, 7, False),
        ("member_id", "string", 7, 7, False),
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
    ) -> None:
        self.group_id: str = group_id
        """Group, by name."""
        self.member_id: str = member_id
        """Member, by the id the coordinator knows it under."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ConsumerGroupTargetAssignmentMemberKey":
        self = cls.__new__(cls)
        self.group_id = reader.string()
        self.member_id = reader.string()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.string(self.group_id)
        writer.string(self.member_id)


class TopicPartition(Message):
    """Partitions to hold, grouped by topic."""

    __slots__ = ("topic_id", "partitions")
    JSON_FIELDS: JsonFields = (
        ("topic_id", "uuid", 0, 0, False),
        ("partitions", "int32", 0, 0, False),
    )

    def __init__(
        self,
        *,
        topic_id: bytes = ZERO_UUID,
        partitions: list[int] | None = None,
    ) -> None:
        self.topic_id: bytes = topic_id
        """Topic, by its 16-byte id (KIP-516)."""
        self.partitions: list[int] = [] if partitions is None else partitions
        """Numbers of the partitions meant within that topic."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "TopicPartition":
        self = cls.__new__(cls)
        self.topic_id = reader.uuid()
        count = reader.compact_array_count()
        self.partitions = reader.numbers(count, "i")
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.uuid(self.topic_id)
        writer.compact_array_count(len(self.partitions))
        writer.numbers(self.partitions, "i")
        writer.append(b"\x00")


class ConsumerGroupTargetAssignmentMemberValue(VersionedMessage):
    """The record itself; its version is the int16 in front of it."""

    __slots__ = ("topic_partitions",)
    VERSIONS = (0, 0)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("topic_partitions", "TopicPartition", 0, 0, False),
    )

    def __init__(
        self,
        *,
        topic_partitions: list[TopicPartition] | None = None,
    ) -> None:
        self.topic_partitions: list[TopicPartition] = [] if topic_partitions is None else topic_partitions
        """Partitions to hold, grouped by topic."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ConsumerGroupTargetAssignmentMemberValue":
        self = cls.__new__(cls)
        count = reader.compact_array_count()
        topic_partitions: list[TopicPartition] = []
        for _ in range(count):
            topic_partitions.append(TopicPartition.read(reader, version))
        self.topic_partitions = topic_partitions
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_array_count(len(self.topic_partitions))
        for topic_partition in self.topic_partitions:
            topic_partition.write(writer, version)
        writer.append(b"\x00")

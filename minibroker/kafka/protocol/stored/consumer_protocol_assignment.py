# fmt: off
# ruff: noqa: E501
"""Assignment of a member of a classic consumer group, as SyncGroup carries it.


Versions:
1: No change.
2: No change.
3: No change.

Generated from protocol_specs/stored/consumer_protocol_assignment.json by `python -m protocol_specs.codegen`; do not edit.
"""

from minibroker.kafka.protocol.message import JsonFields, Message
from minibroker.kafka.protocol.primitives import Reader, Writer
from minibroker.kafka.protocol.versioned import VersionedMessage


class TopicPartition(Message):
    """Partitions the member shall read, grouped by topic."""

    __slots__ = ("topic", "partitions")
    JSON_FIELDS: JsonFields = (
        ("topic", "string", 0, 3, False),
        ("partitions", "int32", 0, 3, False),
    )

    def __init__(
        self,
        *,
        topic: str = "",
        partitions: list[int] | None = None,
    ) -> None:
        self.topic: str = topic
        """Topic, by name."""
        self.partitions: list[int] = [] if partitions is None else partitions
        """Numbers of the partitions to read."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "TopicPartition":
        self = cls.__new__(cls)
        self.topic = reader.string()
        count = reader.array_count()
        self.partitions = reader.numbers(count, "i")
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.string(self.topic)
        writer.array_count(len(self.partitions))
        writer.numbers(self.partitions, "i")


class ConsumerProtocolAssignment(VersionedMessage):
    """The record itself; its version is the int16 in front of it."""

    __slots__ = ("assigned_partitions", "user_data")
    VERSIONS = (0, 3)
    FLEXIBLE_FROM: int | None = None
    JSON_FIELDS: JsonFields = (
        ("assigned_partitions", "TopicPartition", 0, 3, False),
        ("user_data", "bytes", 0, 3, False),
    )

    def __init__(
        self,
        *,
        assigned_partitions: list[TopicPartition] | None = None,
        user_data: bytes | None = None,
    ) -> None:
        self.assigned_partitions: list[TopicPartition] = [] if assigned_partitions is None else assigned_partitions
        """Partitions the member shall read, grouped by topic."""
        self.user_data: bytes | None = user_data
        """Data of the assignor; may be null."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ConsumerProtocolAssignment":
        self = cls.__new__(cls)
        count = reader.array_count()
        assigned_partitions: list[TopicPartition] = []
        for _ in range(count):
            assigned_partitions.append(TopicPartition.read(reader, version))
        self.assigned_partitions = assigned_partitions
        self.user_data = reader.nullable_byte_string()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.array_count(len(self.assigned_partitions))
        for topic_partition in self.assigned_partitions:
            topic_partition.write(writer, version)
        writer.nullable_byte_string(self.user_data)

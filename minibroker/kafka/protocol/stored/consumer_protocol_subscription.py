# fmt: off
# ruff: noqa: E501
"""Subscription of a classic consumer, its protocol metadata in JoinGroup; brokers read the topics from it.


Versions:
1: Partitions that the member owns, for cooperative assignors (KIP-429).
2: Generation in which it owned them (KIP-792).
3: Rack of the member (KIP-881).

Generated from protocol_specs/stored/consumer_protocol_subscription.json by `python -m protocol_specs.codegen`; do not edit.
"""

from minibroker.kafka.protocol.message import JsonFields, Message
from minibroker.kafka.protocol.primitives import Reader, Writer
from minibroker.kafka.protocol.versioned import VersionedMessage


class TopicPartition(Message):
    """Partitions the member holds while it joins again, grouped by topic."""

    __slots__ = ("topic", "partitions")
    JSON_FIELDS: JsonFields = (
        ("topic", "string", 1, 3, False),
        ("partitions", "int32", 1, 3, False),
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
        """Numbers of the partitions held."""

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


class ConsumerProtocolSubscription(VersionedMessage):
    """The record itself; its version is the int16 in front of it."""

    __slots__ = ("topics", "user_data", "owned_partitions", "generation_id", "rack_id")
    VERSIONS = (0, 3)
    FLEXIBLE_FROM: int | None = None
    JSON_FIELDS: JsonFields = (
        ("topics", "string", 0, 3, False),
        ("user_data", "bytes", 0, 3, False),
        ("owned_partitions", "TopicPartition", 1, 3, False),
        ("generation_id", "int32", 2, 3, False),
        ("rack_id", "string", 3, 3, False),
    )

    def __init__(
        self,
        *,
        topics: list[str] | None = None,
        user_data: bytes | None = None,
        owned_partitions: list[TopicPartition] | None = None,
        generation_id: int = -1,
        rack_id: str | None = None,
    ) -> None:
        self.topics: list[str] = [] if topics is None else topics
        """Topics subscribed to, by name."""
        self.user_data: bytes | None = user_data
        """Data of the assignor; may be null."""
        self.owned_partitions: list[TopicPartition] = [] if owned_partitions is None else owned_partitions
        """v1+. Partitions the member holds while it joins again, grouped by topic."""
        self.generation_id: int = generation_id
        """v2+. Generation in which the member got them; -1 when it has none."""
        self.rack_id: str | None = rack_id
        """v3+. client.rack of the member; null when it is not set."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ConsumerProtocolSubscription":
        self = cls.__new__(cls)
        count = reader.array_count()
        topics: list[str] = []
        for _ in range(count):
            topics.append(reader.string())
        self.topics = topics
        self.user_data = reader.nullable_byte_string()
        if version >= 1:
            count = reader.array_count()
            owned_partitions: list[TopicPartition] = []
            for _ in range(count):
                owned_partitions.append(TopicPartition.read(reader, version))
            self.owned_partitions = owned_partitions
        else:
            self.owned_partitions = []
        if version >= 2:
            self.generation_id = reader.int32()
        else:
            self.generation_id = -1
        if version >= 3:
            self.rack_id = reader.nullable_string()
        else:
            self.rack_id = None
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.array_count(len(self.topics))
        for text in self.topics:
            writer.string(text)
        writer.nullable_byte_string(self.user_data)
        if version >= 1:
            writer.array_count(len(self.owned_partitions))
            for topic_partition in self.owned_partitions:
                topic_partition.write(writer, version)
        if version >= 2:
            writer.int32(self.generation_id)
        if version >= 3:
            writer.nullable_string(self.rack_id)

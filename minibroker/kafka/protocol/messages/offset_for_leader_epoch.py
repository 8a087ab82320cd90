# fmt: off
# ruff: noqa: E501
"""OffsetForLeaderEpoch: key 23, versions 0 to 4.

Consumers and followers ask where the log of a leader epoch ends, to find out whether and where theirs diverged.

Versions:
1: Response tells which epoch the end offset belongs to (KIP-279).
2: Leader epoch the caller believes in, for fencing; throttle time (KIP-320).
3: Replica id, so that consumers are held to the high watermark.
4: Flexible encoding (KIP-482).

Generated from protocol_specs/apis/23_offset_for_leader_epoch.json by `python -m protocol_specs.codegen`; do not edit.
"""

from struct import Struct

from minibroker.kafka.protocol.message import JsonFields, Message
from minibroker.kafka.protocol.primitives import Reader, Writer

_HIIQ = Struct(">hiiq")
_HIQ = Struct(">hiq")
_II = Struct(">ii")
_III = Struct(">iii")


class OffsetForLeaderPartition(Message):
    """One lookup per partition."""

    __slots__ = ("partition", "current_leader_epoch", "leader_epoch")
    JSON_FIELDS: JsonFields = (
        ("partition", "int32", 0, 4, False),
        ("current_leader_epoch", "int32", 2, 4, False),
        ("leader_epoch", "int32", 0, 4, False),
    )

    def __init__(
        self,
        *,
        partition: int = 0,
        current_leader_epoch: int = -1,
        leader_epoch: int = 0,
    ) -> None:
        self.partition: int = partition
        """Partition number within the topic, counted from 0."""
        self.current_leader_epoch: int = current_leader_epoch
        """v2+. Leader epoch in the caller's metadata: older is FENCED, newer UNKNOWN_LEADER_EPOCH; -1 = no check."""
        self.leader_epoch: int = leader_epoch
        """Epoch whose end is wanted."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "OffsetForLeaderPartition":
        self = cls.__new__(cls)
        if version >= 2:
            self.partition, self.current_leader_epoch, self.leader_epoch = reader.fixed(_III)
        else:
            self.partition, self.leader_epoch = reader.fixed(_II)
            self.current_leader_epoch = -1
        if version >= 4:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 2:
            writer.append(_III.pack(
                self.partition,
                self.current_leader_epoch,
                self.leader_epoch,
            ))
        else:
            writer.append(_II.pack(self.partition, self.leader_epoch))
        if version >= 4:
            writer.append(b"\x00")


class OffsetForLeaderTopic(Message):
    """Epochs to look up, grouped by topic."""

    __slots__ = ("topic", "partitions")
    JSON_FIELDS: JsonFields = (
        ("topic", "string", 0, 4, False),
        ("partitions", "OffsetForLeaderPartition", 0, 4, False),
    )

    def __init__(
        self,
        *,
        topic: str = "",
        partitions: list[OffsetForLeaderPartition] | None = None,
    ) -> None:
        self.topic: str = topic
        """Topic, by name."""
        self.partitions: list[OffsetForLeaderPartition] = [] if partitions is None else partitions
        """One lookup per partition."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "OffsetForLeaderTopic":
        self = cls.__new__(cls)
        if version >= 4:
            self.topic = reader.compact_string()
        else:
            self.topic = reader.string()
        if version >= 4:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        partitions: list[OffsetForLeaderPartition] = []
        for _ in range(count):
            partitions.append(OffsetForLeaderPartition.read(reader, version))
        self.partitions = partitions
        if version >= 4:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 4:
            writer.compact_string(self.topic)
        else:
            writer.string(self.topic)
        if version >= 4:
            writer.compact_array_count(len(self.partitions))
        else:
            writer.array_count(len(self.partitions))
        for offset_for_leader_partition in self.partitions:
            offset_for_leader_partition.write(writer, version)
        if version >= 4:
            writer.append(b"\x00")


class OffsetForLeaderEpochRequest(Message):
    """Request of OffsetForLeaderEpoch."""

    __slots__ = ("replica_id", "topics")
    API_KEY = 23
    VERSIONS = (0, 4)
    FLEXIBLE_FROM: int | None = 4
    JSON_FIELDS: JsonFields = (
        ("replica_id", "int32", 3, 4, False),
        ("topics", "OffsetForLeaderTopic", 0, 4, False),
    )

    def __init__(
        self,
        *,
        replica_id: int = -2,
        topics: list[OffsetForLeaderTopic] | None = None,
    ) -> None:
        self.replica_id: int = replica_id
        """v3+. Broker id of a follower; -1 for a consumer; -2 for a debugging client that may look past the high watermark."""
        self.topics: list[OffsetForLeaderTopic] = [] if topics is None else topics
        """Epochs to look up, grouped by topic."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "OffsetForLeaderEpochRequest":
        self = cls.__new__(cls)
        if version >= 3:
            self.replica_id = reader.int32()
        else:
            self.replica_id = -2
        if version >= 4:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        topics: list[OffsetForLeaderTopic] = []
        for _ in range(count):
            topics.append(OffsetForLeaderTopic.read(reader, version))
        self.topics = topics
        if version >= 4:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 3:
            writer.int32(self.replica_id)
        if version >= 4:
            writer.compact_array_count(len(self.topics))
        else:
            writer.array_count(len(self.topics))
        for offset_for_leader_topic in self.topics:
            offset_for_leader_topic.write(writer, version)
        if version >= 4:
            writer.append(b"\x00")


class EpochEndOffset(Message):
    """One result per lookup."""

    __slots__ = ("error_code", "partition", "leader_epoch", "end_offset")
    JSON_FIELDS: JsonFields = (
        ("error_code", "error_code", 0, 4, False),
        ("partition", "int32", 0, 4, False),
        ("leader_epoch", "int32", 1, 4, False),
        ("end_offset", "int64", 0, 4, False),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        partition: int = 0,
        leader_epoch: int = -1,
        end_offset: int = -1,
    ) -> None:
        self.error_code: int = error_code
        """FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH, NOT_LEADER_OR_FOLLOWER, …; 0 on success."""
        self.partition: int = partition
        """Partition number within the topic, counted from 0."""
        self.leader_epoch: int = leader_epoch
        """v1+. Largest epoch known that is not above the one asked; -1 when undefined."""
        self.end_offset: int = end_offset
        """Offset after the last record of that epoch; -1 when undefined."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "EpochEndOffset":
        self = cls.__new__(cls)
        if version >= 1:
            (
                self.error_code,
                self.partition,
                self.leader_epoch,
                self.end_offset,
            ) = reader.fixed(_HIIQ)
        else:
            self.error_code, self.partition, self.end_offset = reader.fixed(_HIQ)
            self.leader_epoch = -1
        if version >= 4:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 1:
            writer.append(_HIIQ.pack(
                self.error_code,
                self.partition,
                self.leader_epoch,
                self.end_offset,
            ))
        else:
            writer.append(_HIQ.pack(self.error_code, self.partition, self.end_offset))
        if version >= 4:
            writer.append(b"\x00")


class OffsetForLeaderTopicResult(Message):
    """Ends of epochs, grouped by topic."""

    __slots__ = ("topic", "partitions")
    JSON_FIELDS: JsonFields = (
        ("topic", "string", 0, 4, False),
        ("partitions", "EpochEndOffset", 0, 4, False),
    )

    def __init__(
        self,
        *,
        topic: str = "",
        partitions: list[EpochEndOffset] | None = None,
    ) -> None:
        self.topic: str = topic
        """Topic, by name."""
        self.partitions: list[EpochEndOffset] = [] if partitions is None else partitions
        """One result per lookup."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "OffsetForLeaderTopicResult":
        self = cls.__new__(cls)
        if version >= 4:
            self.topic = reader.compact_string()
        else:
            self.topic = reader.string()
        if version >= 4:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        partitions: list[EpochEndOffset] = []
        for _ in range(count):
            partitions.append(EpochEndOffset.read(reader, version))
        self.partitions = partitions
        if version >= 4:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 4:
            writer.compact_string(self.topic)
        else:
            writer.string(self.topic)
        if version >= 4:
            writer.compact_array_count(len(self.partitions))
        else:
            writer.array_count(len(self.partitions))
        for epoch_end_offset in self.partitions:
            epoch_end_offset.write(writer, version)
        if version >= 4:
            writer.append(b"\x00")


class OffsetForLeaderEpochResponse(Message):
    """Answer of OffsetForLeaderEpoch."""

    __slots__ = ("throttle_time_ms", "topics")
    API_KEY = 23
    VERSIONS = (0, 4)
    FLEXIBLE_FROM: int | None = 4
    JSON_FIELDS: JsonFields = (
        ("throttle_time_ms", "int32", 2, 4, False),
        ("topics", "OffsetForLeaderTopicResult", 0, 4, False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[OffsetForLeaderTopicResult] | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        """v2+. Pause the quota asks of the client, in ms; 0 when it is within quota."""
        self.topics: list[OffsetForLeaderTopicResult] = [] if topics is None else topics
        """Ends of epochs, grouped by topic."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "OffsetForLeaderEpochResponse":
        self = cls.__new__(cls)
        if version >= 2:
            self.throttle_time_ms = reader.int32()
        else:
            self.throttle_time_ms = 0
        if version >= 4:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        topics: list[OffsetForLeaderTopicResult] = []
        for _ in range(count):
            topics.append(OffsetForLeaderTopicResult.read(reader, version))
        self.topics = topics
        if version >= 4:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 2:
            writer.int32(self.throttle_time_ms)
        if version >= 4:
            writer.compact_array_count(len(self.topics))
        else:
            writer.array_count(len(self.topics))
        for offset_for_leader_topic_result in self.topics:
            offset_for_leader_topic_result.write(writer, version)
        if version >= 4:
            writer.append(b"\x00")

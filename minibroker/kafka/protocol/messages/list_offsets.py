# fmt: off
# ruff: noqa: E501
"""ListOffsets: key 2, versions 0 to 11.

Clients translate a timestamp, or the words earliest and latest, into an offset; the partition leader answers.

Versions:
1: One offset with its timestamp instead of a list (KIP-79).
2: Isolation level; throttle time in the response (KIP-98).
3: Over quota, the answer goes out first and the pause follows (KIP-219).
4: Leader epochs on both sides (KIP-320).
5: OFFSET_NOT_AVAILABLE may be answered while a new leader catches up (KIP-207).
6: Flexible encoding (KIP-482).
7: Timestamp -3 finds the record with the largest timestamp (KIP-734).
8: Timestamp -4 finds the first offset on local disk (KIP-405).
9: Timestamp -5 finds the last offset in tiered storage (KIP-1005).
10: Timeout for lookups that must ask remote storage (KIP-1075).
11: Timestamp -6 finds the first offset not uploaded yet (KIP-1023).

Generated from protocol_specs/apis/02_list_offsets.json by `python -m protocol_specs.codegen`; do not edit.
"""

from struct import Struct

from minibroker.kafka.protocol.message import JsonFields, Message, not_carried
from minibroker.kafka.protocol.primitives import Reader, Writer

_IB = Struct(">ib")
_IH = Struct(">ih")
_IIQ = Struct(">iiq")
_IQ = Struct(">iq")
_IQI = Struct(">iqi")
_QQ = Struct(">qq")
_QQI = Struct(">qqi")


class ListOffsetsPartition(Message):
    """One lookup per partition."""

    __slots__ = ("partition_index", "current_leader_epoch", "timestamp", "max_num_offsets")
    JSON_FIELDS: JsonFields = (
        ("partition_index", "int32", 0, 11, False),
        ("current_leader_epoch", "int32", 4, 11, False),
        ("timestamp", "int64", 0, 11, False),
        ("max_num_offsets", "int32", 0, 0, False),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        current_leader_epoch: int = -1,
        timestamp: int = 0,
        max_num_offsets: int = 1,
    ) -> None:
        self.partition_index: int = partition_index
        """Partition number within the topic, counted from 0."""
        self.current_leader_epoch: int = current_leader_epoch
        """v4+. Leader epoch the client has in its metadata, for fencing; -1 skips the check."""
        self.timestamp: int = timestamp
        """Time in ms, or -1 latest, -2 earliest, -3 max timestamp, -4 local, -5 tiered, -6 upload pending."""
        self.max_num_offsets: int = max_num_offsets
        """v0. v0: how many segment base offsets to list at most."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ListOffsetsPartition":
        self = cls.__new__(cls)
        if version >= 4:
            self.partition_index, self.current_leader_epoch, self.timestamp = reader.fixed(_IIQ)
            self.max_num_offsets = 1
        elif version >= 1:
            self.partition_index, self.timestamp = reader.fixed(_IQ)
            self.current_leader_epoch = -1
            self.max_num_offsets = 1
        else:
            self.partition_index, self.timestamp, self.max_num_offsets = reader.fixed(_IQI)
            self.current_leader_epoch = -1
        if version >= 6:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 4:
            if self.max_num_offsets != 1:
                raise not_carried("ListOffsetsPartition", "max_num_offsets", version)
            writer.append(_IIQ.pack(
                self.partition_index,
                self.current_leader_epoch,
                self.timestamp,
            ))
        elif version >= 1:
            if self.max_num_offsets != 1:
                raise not_carried("ListOffsetsPartition", "max_num_offsets", version)
            writer.append(_IQ.pack(self.partition_index, self.timestamp))
        else:
            writer.append(_IQI.pack(self.partition_index, self.timestamp, self.max_num_offsets))
        if version >= 6:
            writer.append(b"\x00")


class ListOffsetsTopic(Message):
    """Partitions to look up, grouped by topic."""

    __slots__ = ("name", "partitions")
    JSON_FIELDS: JsonFields = (
        ("name", "string", 0, 11, False),
        ("partitions", "ListOffsetsPartition", 0, 11, False),
    )

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[ListOffsetsPartition] | None = None,
    ) -> None:
        self.name: str = name
        """Topic, by name."""
        self.partitions: list[ListOffsetsPartition] = [] if partitions is None else partitions
        """One lookup per partition."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ListOffsetsTopic":
        self = cls.__new__(cls)
        if version >= 6:
            self.name = reader.compact_string()
        else:
            self.name = reader.string()
        if version >= 6:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        partitions: list[ListOffsetsPartition] = []
        for _ in range(count):
            partitions.append(ListOffsetsPartition.read(reader, version))
        self.partitions = partitions
        if version >= 6:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 6:
            writer.compact_string(self.name)
        else:
            writer.string(self.name)
        if version >= 6:
            writer.compact_array_count(len(self.partitions))
        else:
            writer.array_count(len(self.partitions))
        for list_offsets_partition in self.partitions:
            list_offsets_partition.write(writer, version)
        if version >= 6:
            writer.append(b"\x00")


class ListOffsetsRequest(Message):
    """Request of ListOffsets."""

    __slots__ = ("replica_id", "isolation_level", "topics", "timeout_ms")
    API_KEY = 2
    VERSIONS = (0, 11)
    FLEXIBLE_FROM: int | None = 6
    JSON_FIELDS: JsonFields = (
        ("replica_id", "int32", 0, 11, False),
        ("isolation_level", "int8", 2, 11, False),
        ("topics", "ListOffsetsTopic", 0, 11, False),
        ("timeout_ms", "int32", 10, 11, False),
    )

    def __init__(
        self,
        *,
        replica_id: int = 0,
        isolation_level: int = 0,
        topics: list[ListOffsetsTopic] | None = None,
        timeout_ms: int = 0,
    ) -> None:
        self.replica_id: int = replica_id
        """-1 from clients; a broker id from followers; -2 = debugging client that may look past the high watermark."""
        self.isolation_level: int = isolation_level
        """v2+. 0 = latest is the high watermark, 1 = latest is the last stable offset."""
        self.topics: list[ListOffsetsTopic] = [] if topics is None else topics
        """Partitions to look up, grouped by topic."""
        self.timeout_ms: int = timeout_ms
        """v10+. Longest wait for remote storage, in ms; ignored where nothing is tiered."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ListOffsetsRequest":
        self = cls.__new__(cls)
        if version >= 2:
            self.replica_id, self.isolation_level = reader.fixed(_IB)
        else:
            self.replica_id = reader.int32()
            self.isolation_level = 0
        if version >= 6:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        topics: list[ListOffsetsTopic] = []
        for _ in range(count):
            topics.append(ListOffsetsTopic.read(reader, version))
        self.topics = topics
        if version >= 10:
            self.timeout_ms = reader.int32()
        else:
            self.timeout_ms = 0
        if version >= 6:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 2:
            writer.append(_IB.pack(self.replica_id, self.isolation_level))
        else:
            if self.isolation_level != 0:
                raise not_carried("ListOffsetsRequest", "isolation_level", version)
            writer.int32(self.replica_id)
        if version >= 6:
            writer.compact_array_count(len(self.topics))
        else:
            writer.array_count(len(self.topics))
        for list_offsets_topic in self.topics:
            list_offsets_topic.write(writer, version)
        if version >= 10:
            writer.int32(self.timeout_ms)
        if version >= 6:
            writer.append(b"\x00")


class ListOffsetsPartitionResponse(Message):
    """One result per lookup."""

    __slots__ = ("partition_index", "error_code", "old_style_offsets", "timestamp", "offset", "leader_epoch")
    JSON_FIELDS: JsonFields = (
        ("partition_index", "int32", 0, 11, False),
        ("error_code", "error_code", 0, 11, False),
        ("old_style_offsets", "int64", 0, 0, False),
        ("timestamp", "int64", 1, 11, False),
        ("offset", "int64", 1, 11, False),
        ("leader_epoch", "int32", 4, 11, False),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        old_style_offsets: list[int] | None = None,
        timestamp: int = -1,
        offset: int = -1,
        leader_epoch: int = -1,
    ) -> None:
        self.partition_index: int = partition_index
        """Partition number within the topic, counted from 0."""
        self.error_code: int = error_code
        """NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH, OFFSET_NOT_AVAILABLE, …; 0 on success, even if none found."""
        self.old_style_offsets: list[int] = [] if old_style_offsets is None else old_style_offsets
        """v0. v0: segment base offsets (and the end) before the timestamp, largest first."""
        self.timestamp: int = timestamp
        """v1+. Timestamp of the record found, in ms; -1 for special lookups or when none matches."""
        self.offset: int = offset
        """v1+. First offset whose timestamp is at or after the one asked; -1 when none is."""
        self.leader_epoch: int = leader_epoch
        """v4+. Epoch of the batch at that offset; -1 when unknown."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ListOffsetsPartitionResponse":
        self = cls.__new__(cls)
        self.partition_index, self.error_code = reader.fixed(_IH)
        if version >= 1:
            self.old_style_offsets = []
        else:
            count = reader.array_count()
            self.old_style_offsets = reader.numbers(count, "q")
        if version >= 4:
            self.timestamp, self.offset, self.leader_epoch = reader.fixed(_QQI)
        elif version >= 1:
            self.timestamp, self.offset = reader.fixed(_QQ)
            self.leader_epoch = -1
        else:
            self.timestamp = -1
            self.offset = -1
            self.leader_epoch = -1
        if version >= 6:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.append(_IH.pack(self.partition_index, self.error_code))
        if version >= 1:
            if self.old_style_offsets:
                raise not_carried("ListOffsetsPartitionResponse", "old_style_offsets", version)
        else:
            writer.array_count(len(self.old_style_offsets))
            writer.numbers(self.old_style_offsets, "q")
        if version >= 4:
            writer.append(_QQI.pack(self.timestamp, self.offset, self.leader_epoch))
        elif version >= 1:
            if self.leader_epoch != -1:
                raise not_carried("ListOffsetsPartitionResponse", "leader_epoch", version)
            writer.append(_QQ.pack(self.timestamp, self.offset))
        else:
            if self.timestamp != -1:
                raise not_carried("ListOffsetsPartitionResponse", "timestamp", version)
            if self.offset != -1:
                raise not_carried("ListOffsetsPartitionResponse", "offset", version)
            if self.leader_epoch != -1:
                raise not_carried("ListOffsetsPartitionResponse", "leader_epoch", version)
        if version >= 6:
            writer.append(b"\x00")


class ListOffsetsTopicResponse(Message):
    """Offsets found, grouped by topic."""

    __slots__ = ("name", "partitions")
    JSON_FIELDS: JsonFields = (
        ("name", "string", 0, 11, False),
        ("partitions", "ListOffsetsPartitionResponse", 0, 11, False),
    )

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[ListOffsetsPartitionResponse] | None = None,
    ) -> None:
        self.name: str = name
        """Topic, by name."""
        self.partitions: list[ListOffsetsPartitionResponse] = [] if partitions is None else partitions
        """One result per lookup."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ListOffsetsTopicResponse":
        self = cls.__new__(cls)
        if version >= 6:
            self.name = reader.compact_string()
        else:
            self.name = reader.string()
        if version >= 6:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        partitions: list[ListOffsetsPartitionResponse] = []
        for _ in range(count):
            partitions.append(ListOffsetsPartitionResponse.read(reader, version))
        self.partitions = partitions
        if version >= 6:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 6:
            writer.compact_string(self.name)
        else:
            writer.string(self.name)
        if version >= 6:
            writer.compact_array_count(len(self.partitions))
        else:
            writer.array_count(len(self.partitions))
        for list_offsets_partition_response in self.partitions:
            list_offsets_partition_response.write(writer, version)
        if version >= 6:
            writer.append(b"\x00")


class ListOffsetsResponse(Message):
    """Answer of ListOffsets."""

    __slots__ = ("throttle_time_ms", "topics")
    API_KEY = 2
    VERSIONS = (0, 11)
    FLEXIBLE_FROM: int | None = 6
    JSON_FIELDS: JsonFields = (
        ("throttle_time_ms", "int32", 2, 11, False),
        ("topics", "ListOffsetsTopicResponse", 0, 11, False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[ListOffsetsTopicResponse] | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        """v2+. Pause the quota asks of the client, in ms; 0 when it is within quota."""
        self.topics: list[ListOffsetsTopicResponse] = [] if topics is None else topics
        """Offsets found, grouped by topic."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ListOffsetsResponse":
        self = cls.__new__(cls)
        if version >= 2:
            self.throttle_time_ms = reader.int32()
        else:
            self.throttle_time_ms = 0
        if version >= 6:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        topics: list[ListOffsetsTopicResponse] = []
        for _ in range(count):
            topics.append(ListOffsetsTopicResponse.read(reader, version))
        self.topics = topics
        if version >= 6:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 2:
            writer.int32(self.throttle_time_ms)
        if version >= 6:
            writer.compact_array_count(len(self.topics))
        else:
            writer.array_count(len(self.topics))
        for list_offsets_topic_response in self.topics:
            list_offsets_topic_response.write(writer, version)
        if version >= 6:
            writer.append(b"\x00")

# fmt: off
# ruff: noqa: E501
"""OffsetCommit: key 8, versions 0 to 10.

Consumers store how far they have read; the group's coordinator appends it to __consumer_offsets.

Versions:
1: Member and generation, and a time stamp per offset.
2: Retention time for the whole request instead of the time stamps.
3: Throttle time in the response.
4: Over quota, the answer goes out first and the pause follows (KIP-219).
5: Retention time is gone: offsets.retention.minutes of the broker rules (KIP-211).
6: Leader epoch of the last record read (KIP-320).
7: Static member name (KIP-345).
8: Flexible encoding (KIP-482).
9: Usable by members of the consumer protocol; GROUP_ID_NOT_FOUND, STALE_MEMBER_EPOCH possible (KIP-848).
10: Topics are named by id (KIP-848).

Generated from protocol_specs/apis/08_offset_commit.json by `python -m protocol_specs.codegen`; do not edit.
"""

from struct import Struct

from minibroker.kafka.protocol.message import JsonFields, Message, not_carried
from minibroker.kafka.protocol.primitives import ZERO_UUID, Reader, Writer

_IH = Struct(">ih")
_IQ = Struct(">iq")
_IQI = Struct(">iqi")
_IQQ = Struct(">iqq")


class OffsetCommitRequestPartition(Message):
    """One offset per partition."""

    __slots__ = ("partition_index", "committed_offset", "committed_leader_epoch", "commit_timestamp", "committed_metadata")
    JSON_FIELDS: JsonFields = (
        ("partition_index", "int32", 0, 10, False),
        ("committed_offset", "int64", 0, 10, False),
        ("committed_leader_epoch", "int32", 6, 10, False),
        ("commit_timestamp", "int64", 1, 1, False),
        ("committed_metadata", "string", 0, 10, False),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        committed_offset: int = 0,
        committed_leader_epoch: int = -1,
        commit_timestamp: int = -1,
        committed_metadata: str | None = "",
    ) -> None:
        self.partition_index: int = partition_index
        """Partition number within the topic, counted from 0."""
        self.committed_offset: int = committed_offset
        """Next offset the group will read."""
        self.committed_leader_epoch: int = committed_leader_epoch
        """v6+. Epoch of the last record read, to spot truncation later; -1 when unknown."""
        self.commit_timestamp: int = commit_timestamp
        """v1. v1: time of the commit in ms; -1 = the broker's clock."""
        self.committed_metadata: str | None = committed_metadata
        """Free text kept beside the offset; at most offset.metadata.max.bytes; null is kept as empty."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "OffsetCommitRequestPartition":
        self = cls.__new__(cls)
        if version >= 6:
            (
                self.partition_index,
                self.committed_offset,
                self.committed_leader_epoch,
            ) = reader.fixed(_IQI)
            self.commit_timestamp = -1
        elif version >= 2:
            self.partition_index, self.committed_offset = reader.fixed(_IQ)
            self.committed_leader_epoch = -1
            self.commit_timestamp = -1
        elif version >= 1:
            (
                self.partition_index,
                self.committed_offset,
                self.commit_timestamp,
            ) = reader.fixed(_IQQ)
            self.committed_leader_epoch = -1
        else:
            self.partition_index, self.committed_offset = reader.fixed(_IQ)
            self.committed_leader_epoch = -1
            self.commit_timestamp = -1
        if version >= 8:
            self.committed_metadata = reader.compact_nullable_string()
        else:
            self.committed_metadata = reader.nullable_string()
        if version >= 8:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 6:
            if self.commit_timestamp != -1:
                raise not_carried("OffsetCommitRequestPartition", "commit_timestamp", version)
            writer.append(_IQI.pack(
                self.partition_index,
                self.committed_offset,
                self.committed_leader_epoch,
            ))
        elif version >= 2:
            if self.commit_timestamp != -1:
                raise not_carried("OffsetCommitRequestPartition", "commit_timestamp", version)
            writer.append(_IQ.pack(self.partition_index, self.committed_offset))
        elif version >= 1:
            writer.append(_IQQ.pack(
                self.partition_index,
                self.committed_offset,
                self.commit_timestamp,
            ))
        else:
            if self.commit_timestamp != -1:
                raise not_carried("OffsetCommitRequestPartition", "commit_timestamp", version)
            writer.append(_IQ.pack(self.partition_index, self.committed_offset))
        if version >= 8:
            writer.compact_nullable_string(self.committed_metadata)
        else:
            writer.nullable_string(self.committed_metadata)
        if version >= 8:
            writer.append(b"\x00")


class OffsetCommitRequestTopic(Message):
    """Offsets to store, grouped by topic."""

    __slots__ = ("name", "topic_id", "partitions")
    JSON_FIELDS: JsonFields = (
        ("name", "string", 0, 9, False),
        ("topic_id", "uuid", 10, 10, False),
        ("partitions", "OffsetCommitRequestPartition", 0, 10, False),
    )

    def __init__(
        self,
        *,
        name: str = "",
        topic_id: bytes = ZERO_UUID,
        partitions: list[OffsetCommitRequestPartition] | None = None,
    ) -> None:
        self.name: str = name
        """v0-9. Topic, by name; up to v9."""
        self.topic_id: bytes = topic_id
        """v10+. Topic, by id; from v10 on."""
        self.partitions: list[OffsetCommitRequestPartition] = [] if partitions is None else partitions
        """One offset per partition."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "OffsetCommitRequestTopic":
        self = cls.__new__(cls)
        if version >= 10:
            self.name = ""
        elif version >= 8:
            self.name = reader.compact_string()
        else:
            self.name = reader.string()
        if version >= 10:
            self.topic_id = reader.uuid()
        else:
            self.topic_id = ZERO_UUID
        if version >= 8:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        partitions: list[OffsetCommitRequestPartition] = []
        for _ in range(count):
            partitions.append(OffsetCommitRequestPartition.read(reader, version))
        self.partitions = partitions
        if version >= 8:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 10:
            pass
        elif version >= 8:
            writer.compact_string(self.name)
        else:
            writer.string(self.name)
        if version >= 10:
            writer.uuid(self.topic_id)
        if version >= 8:
            writer.compact_array_count(len(self.partitions))
        else:
            writer.array_count(len(self.partitions))
        for offset_commit_request_partition in self.partitions:
            offset_commit_request_partition.write(writer, version)
        if version >= 8:
            writer.append(b"\x00")


class OffsetCommitRequest(Message):
    """Request of OffsetCommit."""

    __slots__ = ("group_id", "generation_id_or_member_epoch", "member_id", "group_instance_id", "retention_time_ms", "topics")
    API_KEY = 8
    VERSIONS = (0, 10)
    FLEXIBLE_FROM: int | None = 8
    JSON_FIELDS: JsonFields = (
        ("group_id", "string", 0, 10, False),
        ("generation_id_or_member_epoch", "int32", 1, 10, False),
        ("member_id", "string", 1, 10, False),
        ("group_instance_id", "string", 7, 10, False),
        ("retention_time_ms", "int64", 2, 4, False),
        ("topics", "OffsetCommitRequestTopic", 0, 10, False),
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        generation_id_or_member_epoch: int = -1,
        member_id: str = "",
        group_instance_id: str | None = None,
        retention_time_ms: int = -1,
        topics: list[OffsetCommitRequestTopic] | None = None,
    ) -> None:
        self.group_id: str = group_id
        """Group, by name."""
        self.generation_id_or_member_epoch: int = generation_id_or_member_epoch
        """v1+. Generation (classic group) or member epoch (KIP-848); -1 = commit from outside the group."""
        self.member_id: str = member_id
        """v1+. Committing member; empty for a commit from outside the group."""
        self.group_instance_id: str | None = group_instance_id
        """v7+. Static member name (group.instance.id, KIP-345); null for a dynamic member."""
        self.retention_time_ms: int = retention_time_ms
        """v2-4. Keep the offsets for this many ms; -1 = the broker's setting. v2 to v4."""
        self.topics: list[OffsetCommitRequestTopic] = [] if topics is None else topics
        """Offsets to store, grouped by topic."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "OffsetCommitRequest":
        self = cls.__new__(cls)
        if version >= 8:
            self.group_id = reader.compact_string()
        else:
            self.group_id = reader.string()
        if version >= 1:
            self.generation_id_or_member_epoch = reader.int32()
        else:
            self.generation_id_or_member_epoch = -1
        if version >= 8:
            self.member_id = reader.compact_string()
        elif version >= 1:
            self.member_id = reader.string()
        else:
            self.member_id = ""
        if version >= 8:
            self.group_instance_id = reader.compact_nullable_string()
        elif version >= 7:
            self.group_instance_id = reader.nullable_string()
        else:
            self.group_instance_id = None
        if version >= 5:
            self.retention_time_ms = -1
        elif version >= 2:
            self.retention_time_ms = reader.int64()
        else:
            self.retention_time_ms = -1
        if version >= 8:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        topics: list[OffsetCommitRequestTopic] = []
        for _ in range(count):
            topics.append(OffsetCommitRequestTopic.read(reader, version))
        self.topics = topics
        if version >= 8:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 8:
            writer.compact_string(self.group_id)
        else:
            writer.string(self.group_id)
        if version >= 1:
            writer.int32(self.generation_id_or_member_epoch)
        if version >= 8:
            writer.compact_string(self.member_id)
        elif version >= 1:
            writer.string(self.member_id)
        if version >= 8:
            writer.compact_nullable_string(self.group_instance_id)
        elif version >= 7:
            writer.nullable_string(self.group_instance_id)
        else:
            if self.group_instance_id is not None:
                raise not_carried("OffsetCommitRequest", "group_instance_id", version)
        if version >= 5:
            pass
        elif version >= 2:
            writer.int64(self.retention_time_ms)
        if version >= 8:
            writer.compact_array_count(len(self.topics))
        else:
            writer.array_count(len(self.topics))
        for offset_commit_request_topic in self.topics:
            offset_commit_request_topic.write(writer, version)
        if version >= 8:
            writer.append(b"\x00")


class OffsetCommitResponsePartition(Message):
    """One result per offset."""

    __slots__ = ("partition_index", "error_code")
    JSON_FIELDS: JsonFields = (
        ("partition_index", "int32", 0, 10, False),
        ("error_code", "error_code", 0, 10, False),
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
        """ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID, OFFSET_METADATA_TOO_LARGE, NOT_COORDINATOR, …; 0 = stored."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "OffsetCommitResponsePartition":
        self = cls.__new__(cls)
        self.partition_index, self.error_code = reader.fixed(_IH)
        if version >= 8:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.append(_IH.pack(self.partition_index, self.error_code))
        if version >= 8:
            writer.append(b"\x00")


class OffsetCommitResponseTopic(Message):
    """Results grouped by topic."""

    __slots__ = ("name", "topic_id", "partitions")
    JSON_FIELDS: JsonFields = (
        ("name", "string", 0, 9, False),
        ("topic_id", "uuid", 10, 10, False),
        ("partitions", "OffsetCommitResponsePartition", 0, 10, False),
    )

    def __init__(
        self,
        *,
        name: str = "",
        topic_id: bytes = ZERO_UUID,
        partitions: list[OffsetCommitResponsePartition] | None = None,
    ) -> None:
        self.name: str = name
        """v0-9. Topic, by name; up to v9."""
        self.topic_id: bytes = topic_id
        """v10+. Topic, by id; from v10 on."""
        self.partitions: list[OffsetCommitResponsePartition] = [] if partitions is None else partitions
        """One result per offset."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "OffsetCommitResponseTopic":
        self = cls.__new__(cls)
        if version >= 10:
            self.name = ""
        elif version >= 8:
            self.name = reader.compact_string()
        else:
            self.name = reader.string()
        if version >= 10:
            self.topic_id = reader.uuid()
        else:
            self.topic_id = ZERO_UUID
        if version >= 8:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        partitions: list[OffsetCommitResponsePartition] = []
        for _ in range(count):
            partitions.append(OffsetCommitResponsePartition.read(reader, version))
        self.partitions = partitions
        if version >= 8:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 10:
            pass
        elif version >= 8:
            writer.compact_string(self.name)
        else:
            writer.string(self.name)
        if version >= 10:
            writer.uuid(self.topic_id)
        if version >= 8:
            writer.compact_array_count(len(self.partitions))
        else:
            writer.array_count(len(self.partitions))
        for offset_commit_response_partition in self.partitions:
            offset_commit_response_partition.write(writer, version)
        if version >= 8:
            writer.append(b"\x00")


class OffsetCommitResponse(Message):
    """Answer of OffsetCommit."""

    __slots__ = ("throttle_time_ms", "topics")
    API_KEY = 8
    VERSIONS = (0, 10)
    FLEXIBLE_FROM: int | None = 8
    JSON_FIELDS: JsonFields = (
        ("throttle_time_ms", "int32", 3, 10, False),
        ("topics", "OffsetCommitResponseTopic", 0, 10, False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[OffsetCommitResponseTopic] | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        """v3+. Pause the quota asks of the client, in ms; 0 when it is within quota."""
        self.topics: list[OffsetCommitResponseTopic] = [] if topics is None else topics
        """Results grouped by topic."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "OffsetCommitResponse":
        self = cls.__new__(cls)
        if version >= 3:
            self.throttle_time_ms = reader.int32()
        else:
            self.throttle_time_ms = 0
        if version >= 8:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        topics: list[OffsetCommitResponseTopic] = []
        for _ in range(count):
            topics.append(OffsetCommitResponseTopic.read(reader, version))
        self.topics = topics
        if version >= 8:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 3:
            writer.int32(self.throttle_time_ms)
        if version >= 8:
            writer.compact_array_count(len(self.topics))
        else:
            writer.array_count(len(self.topics))
        for offset_commit_response_topic in self.topics:
            offset_commit_response_topic.write(writer, version)
        if version >= 8:
            writer.append(b"\x00")

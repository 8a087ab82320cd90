# fmt: off
# ruff: noqa: E501
"""OffsetFetch: key 9, versions 0 to 10.

Consumers and admin clients read a group's stored offsets from its coordinator.

Versions:
1: Offsets come from __consumer_offsets instead of ZooKeeper.
2: Null topics asks for all; error for the whole group.
3: Throttle time in the response.
4: Over quota, the answer goes out first and the pause follows (KIP-219).
5: Leader epoch beside each offset (KIP-320).
6: Flexible encoding (KIP-482).
7: Caller may insist on stable offsets; UNSTABLE_OFFSET_COMMIT possible (KIP-447).
8: Several groups in one request (KIP-709).
9: Member id and epoch, checked for consumer-protocol groups (KIP-848).
10: Topics are named by id (KIP-848).

Generated from protocol_specs/apis/09_offset_fetch.json by `python -m protocol_specs.codegen`; do not edit.
"""

from struct import Struct

from minibroker.kafka.protocol.message import JsonFields, Message, not_carried, null_not_carried
from minibroker.kafka.protocol.primitives import ZERO_UUID, Reader, Writer

_IQ = Struct(">iq")
_IQI = Struct(">iqi")


class OffsetFetchRequestTopic(Message):
    """Partitions wanted, grouped by topic; null (v2 and up) = all that have an offset. Up to v7."""

    __slots__ = ("name", "partition_indexes")
    JSON_FIELDS: JsonFields = (
        ("name", "string", 0, 7, False),
        ("partition_indexes", "int32", 0, 7, False),
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
        """Partition numbers wanted."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "OffsetFetchRequestTopic":
        self = cls.__new__(cls)
        if version >= 6:
            self.name = reader.compact_string()
        else:
            self.name = reader.string()
        if version >= 6:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        self.partition_indexes = reader.numbers(count, "i")
        if version >= 6:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 6:
            writer.compact_string(self.name)
        else:
            writer.string(self.name)
        if version >= 6:
            writer.compact_array_count(len(self.partition_indexes))
        else:
            writer.array_count(len(self.partition_indexes))
        writer.numbers(self.partition_indexes, "i")
        if version >= 6:
            writer.append(b"\x00")


class OffsetFetchRequestTopics(Message):
    """Partitions wanted, grouped by topic; null = all that have an offset."""

    __slots__ = ("name", "topic_id", "partition_indexes")
    JSON_FIELDS: JsonFields = (
        ("name", "string", 8, 9, False),
        ("topic_id", "uuid", 10, 10, False),
        ("partition_indexes", "int32", 8, 10, False),
    )

    def __init__(
        self,
        *,
        name: str = "",
        topic_id: bytes = ZERO_UUID,
        partition_indexes: list[int] | None = None,
    ) -> None:
        self.name: str = name
        """v8-9. Topic, by name; v8 and v9."""
        self.topic_id: bytes = topic_id
        """v10+. Topic, by id; from v10 on."""
        self.partition_indexes: list[int] = [] if partition_indexes is None else partition_indexes
        """Partition numbers wanted."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "OffsetFetchRequestTopics":
        self = cls.__new__(cls)
        if version >= 10:
            self.name = ""
        else:
            self.name = reader.compact_string()
        if version >= 10:
            self.topic_id = reader.uuid()
        else:
            self.topic_id = ZERO_UUID
        count = reader.compact_array_count()
        self.partition_indexes = reader.numbers(count, "i")
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version < 10:
            writer.compact_string(self.name)
        if version >= 10:
            writer.uuid(self.topic_id)
        writer.compact_array_count(len(self.partition_indexes))
        writer.numbers(self.partition_indexes, "i")
        writer.append(b"\x00")


class OffsetFetchRequestGroup(Message):
    """Groups whose offsets are wanted; from v8 on."""

    __slots__ = ("group_id", "member_id", "member_epoch", "topics")
    JSON_FIELDS: JsonFields = (
        ("group_id", "string", 8, 10, False),
        ("member_id", "string", 9, 10, False),
        ("member_epoch", "int32", 9, 10, False),
        ("topics", "OffsetFetchRequestTopics", 8, 10, False),
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str | None = None,
        member_epoch: int = -1,
        topics: list[OffsetFetchRequestTopics] | None | tuple[()] = (),
    ) -> None:
        self.group_id: str = group_id
        """Group whose offsets are wanted."""
        self.member_id: str | None = member_id
        """v9+. Member asking, checked for consumer-protocol groups; null for an admin client."""
        self.member_epoch: int = member_epoch
        """v9+. Epoch of that member; -1 without a member or in a classic group."""
        self.topics: list[OffsetFetchRequestTopics] | None = [] if isinstance(topics, tuple) else topics
        """Partitions wanted, grouped by topic; null = all that have an offset."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "OffsetFetchRequestGroup":
        self = cls.__new__(cls)
        self.group_id = reader.compact_string()
        if version >= 9:
            self.member_id = reader.compact_nullable_string()
        else:
            self.member_id = None
        if version >= 9:
            self.member_epoch = reader.int32()
        else:
            self.member_epoch = -1
        count = reader.compact_nullable_array_count()
        topics: list[OffsetFetchRequestTopics] = []
        for _ in range(count):
            topics.append(OffsetFetchRequestTopics.read(reader, version))
        self.topics = topics if count >= 0 else None
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.group_id)
        if version >= 9:
            writer.compact_nullable_string(self.member_id)
        if version >= 9:
            writer.int32(self.member_epoch)
        writer.compact_array_count(-1 if self.topics is None else len(self.topics))
        for offset_fetch_request_topics in self.topics or []:
            offset_fetch_request_topics.write(writer, version)
        writer.append(b"\x00")


class OffsetFetchRequest(Message):
    """Request of OffsetFetch."""

    __slots__ = ("group_id", "topics", "groups", "require_stable")
    API_KEY = 9
    VERSIONS = (0, 10)
    FLEXIBLE_FROM: int | None = 6
    JSON_FIELDS: JsonFields = (
        ("group_id", "string", 0, 7, False),
        ("topics", "OffsetFetchRequestTopic", 0, 7, False),
        ("groups", "OffsetFetchRequestGroup", 8, 10, False),
        ("require_stable", "bool", 7, 10, False),
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[OffsetFetchRequestTopic] | None | tuple[()] = (),
        groups: list[OffsetFetchRequestGroup] | None = None,
        require_stable: bool = False,
    ) -> None:
        self.group_id: str = group_id
        """v0-7. Group whose offsets are wanted; up to v7."""
        self.topics: list[OffsetFetchRequestTopic] | None = [] if isinstance(topics, tuple) else topics
        """v0-7. Partitions wanted, grouped by topic; null (v2 and up) = all that have an offset. Up to v7."""
        self.groups: list[OffsetFetchRequestGroup] = [] if groups is None else groups
        """v8+. Groups whose offsets are wanted; from v8 on."""
        self.require_stable: bool = require_stable
        """v7+. True: UNSTABLE_OFFSET_COMMIT while a transaction holds an uncommitted offset (KIP-447)."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "OffsetFetchRequest":
        self = cls.__new__(cls)
        if version >= 8:
            self.group_id = ""
        elif version >= 6:
            self.group_id = reader.compact_string()
        else:
            self.group_id = reader.string()
        if version >= 8:
            self.topics = []
        else:
            if version >= 6:
                count = reader.compact_nullable_array_count()
            elif version >= 2:
                count = reader.nullable_array_count()
            else:
                count = reader.array_count()
            topics: list[OffsetFetchRequestTopic] = []
            for _ in range(count):
                topics.append(OffsetFetchRequestTopic.read(reader, version))
            self.topics = topics if count >= 0 else None
        if version >= 8:
            count = reader.compact_array_count()
            groups: list[OffsetFetchRequestGroup] = []
            for _ in range(count):
                groups.append(OffsetFetchRequestGroup.read(reader, version))
            self.groups = groups
        else:
            self.groups = []
        if version >= 7:
            self.require_stable = reader.boolean()
        else:
            self.require_stable = False
        if version >= 6:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 8:
            if self.group_id != "":
                raise not_carried("OffsetFetchRequest", "group_id", version)
        elif version >= 6:
            writer.compact_string(self.group_id)
        else:
            writer.string(self.group_id)
        if version >= 8:
            if (self.topics is None or self.topics):
                raise not_carried("OffsetFetchRequest", "topics", version)
        else:
            if version >= 6:
                writer.compact_array_count(-1 if self.topics is None else len(self.topics))
            elif version >= 2:
                writer.array_count(-1 if self.topics is None else len(self.topics))
            else:
                if self.topics is None:
                    raise null_not_carried("topics", version)
                writer.array_count(len(self.topics))
            for offset_fetch_request_topic in self.topics or []:
                offset_fetch_request_topic.write(writer, version)
        if version >= 8:
            writer.compact_array_count(len(self.groups))
            for offset_fetch_request_group in self.groups:
                offset_fetch_request_group.write(writer, version)
        else:
            if self.groups:
                raise not_carried("OffsetFetchRequest", "groups", version)
        if version >= 7:
            writer.boolean(self.require_stable)
        else:
            if self.require_stable:
                raise not_carried("OffsetFetchRequest", "require_stable", version)
        if version >= 6:
            writer.append(b"\x00")


class OffsetFetchResponsePartition(Message):
    """Offset per partition."""

    __slots__ = ("partition_index", "committed_offset", "committed_leader_epoch", "metadata", "error_code")
    JSON_FIELDS: JsonFields = (
        ("partition_index", "int32", 0, 7, False),
        ("committed_offset", "int64", 0, 7, False),
        ("committed_leader_epoch", "int32", 5, 7, False),
        ("metadata", "string", 0, 7, False),
        ("error_code", "error_code", 0, 7, False),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        committed_offset: int = 0,
        committed_leader_epoch: int = -1,
        metadata: str | None = "",
        error_code: int = 0,
    ) -> None:
        self.partition_index: int = partition_index
        """Partition number within the topic, counted from 0."""
        self.committed_offset: int = committed_offset
        """Stored offset; -1 when the group has none for the partition."""
        self.committed_leader_epoch: int = committed_leader_epoch
        """v5+. Epoch stored with it; -1 when none was given."""
        self.metadata: str | None = metadata
        """Text stored with it; empty when there is none."""
        self.error_code: int = error_code
        """UNSTABLE_OFFSET_COMMIT, UNKNOWN_TOPIC_OR_PARTITION, …; 0 on success, also with offset -1."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "OffsetFetchResponsePartition":
        self = cls.__new__(cls)
        if version >= 5:
            (
                self.partition_index,
                self.committed_offset,
                self.committed_leader_epoch,
            ) = reader.fixed(_IQI)
        else:
            self.partition_index, self.committed_offset = reader.fixed(_IQ)
            self.committed_leader_epoch = -1
        if version >= 6:
            self.metadata = reader.compact_nullable_string()
        else:
            self.metadata = reader.nullable_string()
        self.error_code = reader.int16()
        if version >= 6:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 5:
            writer.append(_IQI.pack(
                self.partition_index,
                self.committed_offset,
                self.committed_leader_epoch,
            ))
        else:
            writer.append(_IQ.pack(self.partition_index, self.committed_offset))
        if version >= 6:
            writer.compact_nullable_string(self.metadata)
        else:
            writer.nullable_string(self.metadata)
        writer.int16(self.error_code)
        if version >= 6:
            writer.append(b"\x00")


class OffsetFetchResponseTopic(Message):
    """Offsets grouped by topic; up to v7."""

    __slots__ = ("name", "partitions")
    JSON_FIELDS: JsonFields = (
        ("name", "string", 0, 7, False),
        ("partitions", "OffsetFetchResponsePartition", 0, 7, False),
    )

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[OffsetFetchResponsePartition] | None = None,
    ) -> None:
        self.name: str = name
        """Topic, by name."""
        self.partitions: list[OffsetFetchResponsePartition] = [] if partitions is None else partitions
        """Offset per partition."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "OffsetFetchResponseTopic":
        self = cls.__new__(cls)
        if version >= 6:
            self.name = reader.compact_string()
        else:
            self.name = reader.string()
        if version >= 6:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        partitions: list[OffsetFetchResponsePartition] = []
        for _ in range(count):
            partitions.append(OffsetFetchResponsePartition.read(reader, version))
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
        for offset_fetch_response_partition in self.partitions:
            offset_fetch_response_partition.write(writer, version)
        if version >= 6:
            writer.append(b"\x00")


class OffsetFetchResponsePartitions(Message):
    """Offset per partition."""

    __slots__ = ("partition_index", "committed_offset", "committed_leader_epoch", "metadata", "error_code")
    JSON_FIELDS: JsonFields = (
        ("partition_index", "int32", 8, 10, False),
        ("committed_offset", "int64", 8, 10, False),
        ("committed_leader_epoch", "int32", 8, 10, False),
        ("metadata", "string", 8, 10, False),
        ("error_code", "error_code", 8, 10, False),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        committed_offset: int = 0,
        committed_leader_epoch: int = -1,
        metadata: str | None = "",
        error_code: int = 0,
    ) -> None:
        self.partition_index: int = partition_index
        """Partition number within the topic, counted from 0."""
        self.committed_offset: int = committed_offset
        """Stored offset; -1 when the group has none for the partition."""
        self.committed_leader_epoch: int = committed_leader_epoch
        """Epoch stored with it; -1 when none was given."""
        self.metadata: str | None = metadata
        """Text stored with it; empty when there is none."""
        self.error_code: int = error_code
        """UNSTABLE_OFFSET_COMMIT, UNKNOWN_TOPIC_OR_PARTITION, …; 0 on success, also with offset -1."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "OffsetFetchResponsePartitions":
        self = cls.__new__(cls)
        (
            self.partition_index,
            self.committed_offset,
            self.committed_leader_epoch,
        ) = reader.fixed(_IQI)
        self.metadata = reader.compact_nullable_string()
        self.error_code = reader.int16()
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.append(_IQI.pack(
            self.partition_index,
            self.committed_offset,
            self.committed_leader_epoch,
        ))
        writer.compact_nullable_string(self.metadata)
        writer.int16(self.error_code)
        writer.append(b"\x00")


class OffsetFetchResponseTopics(Message):
    """Offsets grouped by topic."""

    __slots__ = ("name", "topic_id", "partitions")
    JSON_FIELDS: JsonFields = (
        ("name", "string", 8, 9, False),
        ("topic_id", "uuid", 10, 10, False),
        ("partitions", "OffsetFetchResponsePartitions", 8, 10, False),
    )

    def __init__(
        self,
        *,
        name: str = "",
        topic_id: bytes = ZERO_UUID,
        partitions: list[OffsetFetchResponsePartitions] | None = None,
    ) -> None:
        self.name: str = name
        """v8-9. Topic, by name; v8 and v9."""
        self.topic_id: bytes = topic_id
        """v10+. Topic, by id; from v10 on."""
        self.partitions: list[OffsetFetchResponsePartitions] = [] if partitions is None else partitions
        """Offset per partition."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "OffsetFetchResponseTopics":
        self = cls.__new__(cls)
        if version >= 10:
            self.name = ""
        else:
            self.name = reader.compact_string()
        if version >= 10:
            self.topic_id = reader.uuid()
        else:
            self.topic_id = ZERO_UUID
        count = reader.compact_array_count()
        partitions: list[OffsetFetchResponsePartitions] = []
        for _ in range(count):
            partitions.append(OffsetFetchResponsePartitions.read(reader, version))
        self.partitions = partitions
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version < 10:
            writer.compact_string(self.name)
        if version >= 10:
            writer.uuid(self.topic_id)
        writer.compact_array_count(len(self.partitions))
        for offset_fetch_response_partitions in self.partitions:
            offset_fetch_response_partitions.write(writer, version)
        writer.append(b"\x00")


class OffsetFetchResponseGroup(Message):
    """Offsets by group; from v8 on."""

    __slots__ = ("group_id", "topics", "error_code")
    JSON_FIELDS: JsonFields = (
        ("group_id", "string", 8, 10, False),
        ("topics", "OffsetFetchResponseTopics", 8, 10, False),
        ("error_code", "error_code", 8, 10, False),
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[OffsetFetchResponseTopics] | None = None,
        error_code: int = 0,
    ) -> None:
        self.group_id: str = group_id
        """Group, by name."""
        self.topics: list[OffsetFetchResponseTopics] = [] if topics is None else topics
        """Offsets grouped by topic."""
        self.error_code: int = error_code
        """Group-level error, e.g. NOT_COORDINATOR or STALE_MEMBER_EPOCH; 0 on success."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "OffsetFetchResponseGroup":
        self = cls.__new__(cls)
        self.group_id = reader.compact_string()
        count = reader.compact_array_count()
        topics: list[OffsetFetchResponseTopics] = []
        for _ in range(count):
            topics.append(OffsetFetchResponseTopics.read(reader, version))
        self.topics = topics
        self.error_code = reader.int16()
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.group_id)
        writer.compact_array_count(len(self.topics))
        for offset_fetch_response_topics in self.topics:
            offset_fetch_response_topics.write(writer, version)
        writer.int16(self.error_code)
        writer.append(b"\x00")


class OffsetFetchResponse(Message):
    """Answer of OffsetFetch."""

    __slots__ = ("throttle_time_ms", "topics", "error_code", "groups")
    API_KEY = 9
    VERSIONS = (0, 10)
    FLEXIBLE_FROM: int | None = 6
    JSON_FIELDS: JsonFields = (
        ("throttle_time_ms", "int32", 3, 10, False),
        ("topics", "OffsetFetchResponseTopic", 0, 7, False),
        ("error_code", "error_code", 2, 7, False),
        ("groups", "OffsetFetchResponseGroup", 8, 10, False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[OffsetFetchResponseTopic] | None = None,
        error_code: int = 0,
        groups: list[OffsetFetchResponseGroup] | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        """v3+. Pause the quota asks of the client, in ms; 0 when it is within quota."""
        self.topics: list[OffsetFetchResponseTopic] = [] if topics is None else topics
        """v0-7. Offsets grouped by topic; up to v7."""
        self.error_code: int = error_code
        """v2-7. Group-level error, v2 to v7; 0 (NONE) on success."""
        self.groups: list[OffsetFetchResponseGroup] = [] if groups is None else groups
        """v8+. Offsets by group; from v8 on."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "OffsetFetchResponse":
        self = cls.__new__(cls)
        if version >= 3:
            self.throttle_time_ms = reader.int32()
        else:
            self.throttle_time_ms = 0
        if version >= 8:
            self.topics = []
        else:
            if version >= 6:
                count = reader.compact_array_count()
            else:
                count = reader.array_count()
            topics: list[OffsetFetchResponseTopic] = []
            for _ in range(count):
                topics.append(OffsetFetchResponseTopic.read(reader, version))
            self.topics = topics
        if version >= 8:
            self.error_code = 0
        elif version >= 2:
            self.error_code = reader.int16()
        else:
            self.error_code = 0
        if version >= 8:
            count = reader.compact_array_count()
            groups: list[OffsetFetchResponseGroup] = []
            for _ in range(count):
                groups.append(OffsetFetchResponseGroup.read(reader, version))
            self.groups = groups
        else:
            self.groups = []
        if version >= 6:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 3:
            writer.int32(self.throttle_time_ms)
        if version >= 8:
            if self.topics:
                raise not_carried("OffsetFetchResponse", "topics", version)
        else:
            if version >= 6:
                writer.compact_array_count(len(self.topics))
            else:
                writer.array_count(len(self.topics))
            for offset_fetch_response_topic in self.topics:
                offset_fetch_response_topic.write(writer, version)
        if version >= 8:
            pass
        elif version >= 2:
            writer.int16(self.error_code)
        if version >= 8:
            writer.compact_array_count(len(self.groups))
            for offset_fetch_response_group in self.groups:
                offset_fetch_response_group.write(writer, version)
        else:
            if self.groups:
                raise not_carried("OffsetFetchResponse", "groups", version)
        if version >= 6:
            writer.append(b"\x00")

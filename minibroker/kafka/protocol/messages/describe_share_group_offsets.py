# fmt: off
# ruff: noqa: E501
"""DescribeShareGroupOffsets: key 90, versions 0 to 1.

Admin clients read the start offsets of share groups from the coordinator (KIP-932).

Versions:
1: Lag in the response (KIP-1226).

Generated from protocol_specs/apis/90_describe_share_group_offsets.json by `python -m protocol_specs.codegen`; do not edit.
"""

from struct import Struct

from minibroker.kafka.protocol.message import JsonFields, Message
from minibroker.kafka.protocol.primitives import ZERO_UUID, Reader, Writer

_IQIH = Struct(">iqih")
_IQIQH = Struct(">iqiqh")


class DescribeShareGroupOffsetsRequestTopic(Message):
    """Partitions wanted, grouped by topic; null = all the group has state for."""

    __slots__ = ("topic_name", "partitions")
    JSON_FIELDS: JsonFields = (
        ("topic_name", "string", 0, 1, False),
        ("partitions", "int32", 0, 1, False),
    )

    def __init__(
        self,
        *,
        topic_name: str = "",
        partitions: list[int] | None = None,
    ) -> None:
        self.topic_name: str = topic_name
        """Topic, by name."""
        self.partitions: list[int] = [] if partitions is None else partitions
        """Numbers of the partitions meant within that topic."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "DescribeShareGroupOffsetsRequestTopic":
        self = cls.__new__(cls)
        self.topic_name = reader.compact_string()
        count = reader.compact_array_count()
        self.partitions = reader.numbers(count, "i")
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.topic_name)
        writer.compact_array_count(len(self.partitions))
        writer.numbers(self.partitions, "i")
        writer.append(b"\x00")


class DescribeShareGroupOffsetsRequestGroup(Message):
    """Groups wanted."""

    __slots__ = ("group_id", "topics")
    JSON_FIELDS: JsonFields = (
        ("group_id", "string", 0, 1, False),
        ("topics", "DescribeShareGroupOffsetsRequestTopic", 0, 1, False),
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[DescribeShareGroupOffsetsRequestTopic] | None | tuple[()] = (),
    ) -> None:
        self.group_id: str = group_id
        """Share group, by name."""
        self.topics: list[DescribeShareGroupOffsetsRequestTopic] | None = [] if isinstance(topics, tuple) else topics
        """Partitions wanted, grouped by topic; null = all the group has state for."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "DescribeShareGroupOffsetsRequestGroup":
        self = cls.__new__(cls)
        self.group_id = reader.compact_string()
        count = reader.compact_nullable_array_count()
        topics: list[DescribeShareGroupOffsetsRequestTopic] = []
        for _ in range(count):
            topics.append(DescribeShareGroupOffsetsRequestTopic.read(reader, version))
        self.topics = topics if count >= 0 else None
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.group_id)
        writer.compact_array_count(-1 if self.topics is None else len(self.topics))
        for describe_share_group_offsets_request_topic in self.topics or []:
            describe_share_group_offsets_request_topic.write(writer, version)
        writer.append(b"\x00")


class DescribeShareGroupOffsetsRequest(Message):
    """Request of DescribeShareGroupOffsets."""

    __slots__ = ("groups",)
    API_KEY = 90
    VERSIONS = (0, 1)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("groups", "DescribeShareGroupOffsetsRequestGroup", 0, 1, False),
    )

    def __init__(
        self,
        *,
        groups: list[DescribeShareGroupOffsetsRequestGroup] | None = None,
    ) -> None:
        self.groups: list[DescribeShareGroupOffsetsRequestGroup] = [] if groups is None else groups
        """Groups wanted."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "DescribeShareGroupOffsetsRequest":
        self = cls.__new__(cls)
        count = reader.compact_array_count()
        groups: list[DescribeShareGroupOffsetsRequestGroup] = []
        for _ in range(count):
            groups.append(DescribeShareGroupOffsetsRequestGroup.read(reader, version))
        self.groups = groups
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_array_count(len(self.groups))
        for describe_share_group_offsets_request_group in self.groups:
            describe_share_group_offsets_request_group.write(writer, version)
        writer.append(b"\x00")


class DescribeShareGroupOffsetsResponsePartition(Message):
    """Offsets by partition."""

    __slots__ = ("partition_index", "start_offset", "leader_epoch", "lag", "error_code", "error_message")
    JSON_FIELDS: JsonFields = (
        ("partition_index", "int32", 0, 1, False),
        ("start_offset", "int64", 0, 1, False),
        ("leader_epoch", "int32", 0, 1, False),
        ("lag", "int64", 1, 1, False),
        ("error_code", "error_code", 0, 1, False),
        ("error_message", "string", 0, 1, False),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        start_offset: int = 0,
        leader_epoch: int = 0,
        lag: int = -1,
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.partition_index: int = partition_index
        """Partition number within the topic, counted from 0."""
        self.start_offset: int = start_offset
        """First offset not finished yet; -1 when never set."""
        self.leader_epoch: int = leader_epoch
        """Leader epoch stored with it."""
        self.lag: int = lag
        """v1+. Records still to be delivered; -1 when unknown (KIP-1226)."""
        self.error_code: int = error_code
        """Result for this partition alone; 0 (NONE) on success."""
        self.error_message: str | None = error_message
        """Human-readable reason for this entry's error_code; null when there is nothing to add."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "DescribeShareGroupOffsetsResponsePartition":
        self = cls.__new__(cls)
        if version >= 1:
            (
                self.partition_index,
                self.start_offset,
                self.leader_epoch,
                self.lag,
                self.error_code,
            ) = reader.fixed(_IQIQH)
        else:
            (
                self.partition_index,
                self.start_offset,
                self.leader_epoch,
                self.error_code,
            ) = reader.fixed(_IQIH)
            self.lag = -1
        self.error_message = reader.compact_nullable_string()
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 1:
            writer.append(_IQIQH.pack(
                self.partition_index,
                self.start_offset,
                self.leader_epoch,
                self.lag,
                self.error_code,
            ))
        else:
            writer.append(_IQIH.pack(
                self.partition_index,
                self.start_offset,
                self.leader_epoch,
                self.error_code,
            ))
        writer.compact_nullable_string(self.error_message)
        writer.append(b"\x00")


class DescribeShareGroupOffsetsResponseTopic(Message):
    """Offsets grouped by topic."""

    __slots__ = ("topic_name", "topic_id", "partitions")
    JSON_FIELDS: JsonFields = (
        ("topic_name", "string", 0, 1, False),
        ("topic_id", "uuid", 0, 1, False),
        ("partitions", "DescribeShareGroupOffsetsResponsePartition", 0, 1, False),
    )

    def __init__(
        self,
        *,
        topic_name: str = "",
        topic_id: bytes = ZERO_UUID,
        partitions: list[DescribeShareGroupOffsetsResponsePartition] | None = None,
    ) -> None:
        self.topic_name: str = topic_name
        """Topic, by name."""
        self.topic_id: bytes = topic_id
        """Topic, by its 16-byte id (KIP-516)."""
        self.partitions: list[DescribeShareGroupOffsetsResponsePartition] = [] if partitions is None else partitions
        """Offsets by partition."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "DescribeShareGroupOffsetsResponseTopic":
        self = cls.__new__(cls)
        self.topic_name = reader.compact_string()
        self.topic_id = reader.uuid()
        count = reader.compact_array_count()
        partitions: list[DescribeShareGroupOffsetsResponsePartition] = []
        for _ in range(count):
            partitions.append(DescribeShareGroupOffsetsResponsePartition.read(reader, version))
        self.partitions = partitions
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.topic_name)
        writer.uuid(self.topic_id)
        writer.compact_array_count(len(self.partitions))
        for describe_share_group_offsets_response_partition in self.partitions:
            describe_share_group_offsets_response_partition.write(writer, version)
        writer.append(b"\x00")


class DescribeShareGroupOffsetsResponseGroup(Message):
    """One result per group."""

    __slots__ = ("group_id", "topics", "error_code", "error_message")
    JSON_FIELDS: JsonFields = (
        ("group_id", "string", 0, 1, False),
        ("topics", "DescribeShareGroupOffsetsResponseTopic", 0, 1, False),
        ("error_code", "error_code", 0, 1, False),
        ("error_message", "string", 0, 1, False),
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[DescribeShareGroupOffsetsResponseTopic] | None = None,
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.group_id: str = group_id
        """Share group, by name."""
        self.topics: list[DescribeShareGroupOffsetsResponseTopic] = [] if topics is None else topics
        """Offsets grouped by topic."""
        self.error_code: int = error_code
        """Result for this group alone; 0 (NONE) on success."""
        self.error_message: str | None = error_message
        """Human-readable reason for this entry's error_code; null when there is nothing to add."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "DescribeShareGroupOffsetsResponseGroup":
        self = cls.__new__(cls)
        self.group_id = reader.compact_string()
        count = reader.compact_array_count()
        topics: list[DescribeShareGroupOffsetsResponseTopic] = []
        for _ in range(count):
            topics.append(DescribeShareGroupOffsetsResponseTopic.read(reader, version))
        self.topics = topics
        self.error_code = reader.int16()
        self.error_message = reader.compact_nullable_string()
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.group_id)
        writer.compact_array_count(len(self.topics))
        for describe_share_group_offsets_response_topic in self.topics:
            describe_share_group_offsets_response_topic.write(writer, version)
        writer.int16(self.error_code)
        writer.compact_nullable_string(self.error_message)
        writer.append(b"\x00")


class DescribeShareGroupOffsetsResponse(Message):
    """Answer of DescribeShareGroupOffsets."""

    __slots__ = ("throttle_time_ms", "groups")
    API_KEY = 90
    VERSIONS = (0, 1)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("throttle_time_ms", "int32", 0, 1, False),
        ("groups", "DescribeShareGroupOffsetsResponseGroup", 0, 1, False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        groups: list[DescribeShareGroupOffsetsResponseGroup] | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        """Pause the quota asks of the client, in ms; 0 when it is within quota."""
        self.groups: list[DescribeShareGroupOffsetsResponseGroup] = [] if groups is None else groups
        """One result per group."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "DescribeShareGroupOffsetsResponse":
        self = cls.__new__(cls)
        self.throttle_time_ms = reader.int32()
        count = reader.compact_array_count()
        groups: list[DescribeShareGroupOffsetsResponseGroup] = []
        for _ in range(count):
            groups.append(DescribeShareGroupOffsetsResponseGroup.read(reader, version))
        self.groups = groups
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.int32(self.throttle_time_ms)
        writer.compact_array_count(len(self.groups))
        for describe_share_group_offsets_response_group in self.groups:
            describe_share_group_offsets_response_group.write(writer, version)
        writer.append(b"\x00")

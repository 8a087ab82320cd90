# fmt: off
# ruff: noqa: E501
"""AlterShareGroupOffsets: key 91, versions 0 to 0.

Admin clients move the start offsets of an empty share group (KIP-932).

Generated from protocol_specs/apis/91_alter_share_group_offsets.json by `python -m protocol_specs.codegen`; do not edit.
"""

from struct import Struct

from minibroker.kafka.protocol.message import JsonFields, Message
from minibroker.kafka.protocol.primitives import ZERO_UUID, Reader, Writer

_IH = Struct(">ih")
_IQ = Struct(">iq")


class AlterShareGroupOffsetsRequestPartition(Message):
    """New offset by partition."""

    __slots__ = ("partition_index", "start_offset")
    JSON_FIELDS: JsonFields = (
        ("partition_index", "int32", 0, 0, False),
        ("start_offset", "int64", 0, 0, False),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        start_offset: int = 0,
    ) -> None:
        self.partition_index: int = partition_index
        """Partition number within the topic, counted from 0."""
        self.start_offset: int = start_offset
        """First offset to deliver from now on."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "AlterShareGroupOffsetsRequestPartition":
        self = cls.__new__(cls)
        self.partition_index, self.start_offset = reader.fixed(_IQ)
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.append(_IQ.pack(self.partition_index, self.start_offset))
        writer.append(b"\x00")


class AlterShareGroupOffsetsRequestTopic(Message):
    """New offsets grouped by topic."""

    __slots__ = ("topic_name", "partitions")
    JSON_FIELDS: JsonFields = (
        ("topic_name", "string", 0, 0, False),
        ("partitions", "AlterShareGroupOffsetsRequestPartition", 0, 0, False),
    )

    def __init__(
        self,
        *,
        topic_name: str = "",
        partitions: list[AlterShareGroupOffsetsRequestPartition] | None = None,
    ) -> None:
        self.topic_name: str = topic_name
        """Topic, by name."""
        self.partitions: list[AlterShareGroupOffsetsRequestPartition] = [] if partitions is None else partitions
        """New offset by partition."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "AlterShareGroupOffsetsRequestTopic":
        self = cls.__new__(cls)
        self.topic_name = reader.compact_string()
        count = reader.compact_array_count()
        partitions: list[AlterShareGroupOffsetsRequestPartition] = []
        for _ in range(count):
            partitions.append(AlterShareGroupOffsetsRequestPartition.read(reader, version))
        self.partitions = partitions
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.topic_name)
        writer.compact_array_count(len(self.partitions))
        for alter_share_group_offsets_request_partition in self.partitions:
            alter_share_group_offsets_request_partition.write(writer, version)
        writer.append(b"\x00")


class AlterShareGroupOffsetsRequest(Message):
    """Request of AlterShareGroupOffsets."""

    __slots__ = ("group_id", "topics")
    API_KEY = 91
    VERSIONS = (0, 0)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("group_id", "string", 0, 0, False),
        ("topics", "AlterShareGroupOffsetsRequestTopic", 0, 0, False),
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[AlterShareGroupOffsetsRequestTopic] | None = None,
    ) -> None:
        self.group_id: str = group_id
        """Share group, by name; it must have no members."""
        self.topics: list[AlterShareGroupOffsetsRequestTopic] = [] if topics is None else topics
        """New offsets grouped by topic."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "AlterShareGroupOffsetsRequest":
        self = cls.__new__(cls)
        self.group_id = reader.compact_string()
        count = reader.compact_array_count()
        topics: list[AlterShareGroupOffsetsRequestTopic] = []
        for _ in range(count):
            topics.append(AlterShareGroupOffsetsRequestTopic.read(reader, version))
        self.topics = topics
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.group_id)
        writer.compact_array_count(len(self.topics))
        for alter_share_group_offsets_request_topic in self.topics:
            alter_share_group_offsets_request_topic.write(writer, version)
        writer.append(b"\x00")


class AlterShareGroupOffsetsResponsePartition(Message):
    """Results by partition."""

    __slots__ = ("partition_index", "error_code", "error_message")
    JSON_FIELDS: JsonFields = (
        ("partition_index", "int32", 0, 0, False),
        ("error_code", "error_code", 0, 0, False),
        ("error_message", "string", 0, 0, False),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.partition_index: int = partition_index
        """Partition number within the topic, counted from 0."""
        self.error_code: int = error_code
        """GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP, NOT_COORDINATOR, …; 0 = see the results."""
        self.error_message: str | None = error_message
        """Human-readable reason for this entry's error_code; null when there is nothing to add."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "AlterShareGroupOffsetsResponsePartition":
        self = cls.__new__(cls)
        self.partition_index, self.error_code = reader.fixed(_IH)
        self.error_message = reader.compact_nullable_string()
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.append(_IH.pack(self.partition_index, self.error_code))
        writer.compact_nullable_string(self.error_message)
        writer.append(b"\x00")


class AlterShareGroupOffsetsResponseTopic(Message):
    """Results grouped by topic."""

    __slots__ = ("topic_name", "topic_id", "partitions")
    JSON_FIELDS: JsonFields = (
        ("topic_name", "string", 0, 0, False),
        ("topic_id", "uuid", 0, 0, False),
        ("partitions", "AlterShareGroupOffsetsResponsePartition", 0, 0, False),
    )

    def __init__(
        self,
        *,
        topic_name: str = "",
        topic_id: bytes = ZERO_UUID,
        partitions: list[AlterShareGroupOffsetsResponsePartition] | None = None,
    ) -> None:
        self.topic_name: str = topic_name
        """Topic, by name."""
        self.topic_id: bytes = topic_id
        """Topic, by its 16-byte id (KIP-516)."""
        self.partitions: list[AlterShareGroupOffsetsResponsePartition] = [] if partitions is None else partitions
        """Results by partition."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "AlterShareGroupOffsetsResponseTopic":
        self = cls.__new__(cls)
        self.topic_name = reader.compact_string()
        self.topic_id = reader.uuid()
        count = reader.compact_array_count()
        partitions: list[AlterShareGroupOffsetsResponsePartition] = []
        for _ in range(count):
            partitions.append(AlterShareGroupOffsetsResponsePartition.read(reader, version))
        self.partitions = partitions
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.topic_name)
        writer.uuid(self.topic_id)
        writer.compact_array_count(len(self.partitions))
        for alter_share_group_offsets_response_partition in self.partitions:
            alter_share_group_offsets_response_partition.write(writer, version)
        writer.append(b"\x00")


class AlterShareGroupOffsetsResponse(Message):
    """Answer of AlterShareGroupOffsets."""

    __slots__ = ("throttle_time_ms", "error_code", "error_message", "responses")
    API_KEY = 91
    VERSIONS = (0, 0)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("throttle_time_ms", "int32", 0, 0, False),
        ("error_code", "error_code", 0, 0, False),
        ("error_message", "string", 0, 0, False),
        ("responses", "AlterShareGroupOffsetsResponseTopic", 0, 0, False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        responses: list[AlterShareGroupOffsetsResponseTopic] | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        """Pause the quota asks of the client, in ms; 0 when it is within quota."""
        self.error_code: int = error_code
        """GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP, NOT_COORDINATOR, …; 0 = see the results."""
        self.error_message: str | None = error_message
        """Human-readable reason for error_code; null when there is nothing to add."""
        self.responses: list[AlterShareGroupOffsetsResponseTopic] = [] if responses is None else responses
        """Results grouped by topic."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "AlterShareGroupOffsetsResponse":
        self = cls.__new__(cls)
        self.throttle_time_ms, self.error_code = reader.fixed(_IH)
        self.error_message = reader.compact_nullable_string()
        count = reader.compact_array_count()
        responses: list[AlterShareGroupOffsetsResponseTopic] = []
        for _ in range(count):
            responses.append(AlterShareGroupOffsetsResponseTopic.read(reader, version))
        self.responses = responses
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.append(_IH.pack(self.throttle_time_ms, self.error_code))
        writer.compact_nullable_string(self.error_message)
        writer.compact_array_count(len(self.responses))
        for alter_share_group_offsets_response_topic in self.responses:
            alter_share_group_offsets_response_topic.write(writer, version)
        writer.append(b"\x00")

# fmt: off
# ruff: noqa: E501
"""DeleteRecords: key 21, versions 0 to 2.

Admin clients move the log start forward, so that older records vanish; the partition leader answers (KIP-107).

Versions:
1: Over quota, the answer goes out first and the pause follows (KIP-219).
2: Flexible encoding (KIP-482).

Generated from protocol_specs/apis/21_delete_records.json by `python -m protocol_specs.codegen`; do not edit.
"""

from struct import Struct

from minibroker.kafka.protocol.message import JsonFields, Message
from minibroker.kafka.protocol.primitives import Reader, Writer

_IQ = Struct(">iq")
_IQH = Struct(">iqh")


class DeleteRecordsPartition(Message):
    """New start per partition."""

    __slots__ = ("partition_index", "offset")
    JSON_FIELDS: JsonFields = (
        ("partition_index", "int32", 0, 2, False),
        ("offset", "int64", 0, 2, False),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        offset: int = 0,
    ) -> None:
        self.partition_index: int = partition_index
        """Partition number within the topic, counted from 0."""
        self.offset: int = offset
        """First offset to keep; -1 = the high watermark, so all readable records go."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "DeleteRecordsPartition":
        self = cls.__new__(cls)
        self.partition_index, self.offset = reader.fixed(_IQ)
        if version >= 2:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.append(_IQ.pack(self.partition_index, self.offset))
        if version >= 2:
            writer.append(b"\x00")


class DeleteRecordsTopic(Message):
    """Partitions to shorten, grouped by topic."""

    __slots__ = ("name", "partitions")
    JSON_FIELDS: JsonFields = (
        ("name", "string", 0, 2, False),
        ("partitions", "DeleteRecordsPartition", 0, 2, False),
    )

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[DeleteRecordsPartition] | None = None,
    ) -> None:
        self.name: str = name
        """Topic, by name."""
        self.partitions: list[DeleteRecordsPartition] = [] if partitions is None else partitions
        """New start per partition."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "DeleteRecordsTopic":
        self = cls.__new__(cls)
        if version >= 2:
            self.name = reader.compact_string()
        else:
            self.name = reader.string()
        if version >= 2:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        partitions: list[DeleteRecordsPartition] = []
        for _ in range(count):
            partitions.append(DeleteRecordsPartition.read(reader, version))
        self.partitions = partitions
        if version >= 2:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 2:
            writer.compact_string(self.name)
        else:
            writer.string(self.name)
        if version >= 2:
            writer.compact_array_count(len(self.partitions))
        else:
            writer.array_count(len(self.partitions))
        for delete_records_partition in self.partitions:
            delete_records_partition.write(writer, version)
        if version >= 2:
            writer.append(b"\x00")


class DeleteRecordsRequest(Message):
    """Request of DeleteRecords."""

    __slots__ = ("topics", "timeout_ms")
    API_KEY = 21
    VERSIONS = (0, 2)
    FLEXIBLE_FROM: int | None = 2
    JSON_FIELDS: JsonFields = (
        ("topics", "DeleteRecordsTopic", 0, 2, False),
        ("timeout_ms", "int32", 0, 2, False),
    )

    def __init__(
        self,
        *,
        topics: list[DeleteRecordsTopic] | None = None,
        timeout_ms: int = 0,
    ) -> None:
        self.topics: list[DeleteRecordsTopic] = [] if topics is None else topics
        """Partitions to shorten, grouped by topic."""
        self.timeout_ms: int = timeout_ms
        """How long to wait until all live replicas followed, in ms."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "DeleteRecordsRequest":
        self = cls.__new__(cls)
        if version >= 2:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        topics: list[DeleteRecordsTopic] = []
        for _ in range(count):
            topics.append(DeleteRecordsTopic.read(reader, version))
        self.topics = topics
        self.timeout_ms = reader.int32()
        if version >= 2:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 2:
            writer.compact_array_count(len(self.topics))
        else:
            writer.array_count(len(self.topics))
        for delete_records_topic in self.topics:
            delete_records_topic.write(writer, version)
        writer.int32(self.timeout_ms)
        if version >= 2:
            writer.append(b"\x00")


class DeleteRecordsPartitionResult(Message):
    """One entry per partition answered."""

    __slots__ = ("partition_index", "low_watermark", "error_code")
    JSON_FIELDS: JsonFields = (
        ("partition_index", "int32", 0, 2, False),
        ("low_watermark", "int64", 0, 2, False),
        ("error_code", "error_code", 0, 2, False),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        low_watermark: int = 0,
        error_code: int = 0,
    ) -> None:
        self.partition_index: int = partition_index
        """Partition number within the topic, counted from 0."""
        self.low_watermark: int = low_watermark
        """Smallest log start offset among the live replicas; -1 on error."""
        self.error_code: int = error_code
        """OFFSET_OUT_OF_RANGE beyond the high watermark, POLICY_VIOLATION on compacted topics, …; 0 = done."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "DeleteRecordsPartitionResult":
        self = cls.__new__(cls)
        self.partition_index, self.low_watermark, self.error_code = reader.fixed(_IQH)
        if version >= 2:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.append(_IQH.pack(self.partition_index, self.low_watermark, self.error_code))
        if version >= 2:
            writer.append(b"\x00")


class DeleteRecordsTopicResult(Message):
    """Answers grouped by topic."""

    __slots__ = ("name", "partitions")
    JSON_FIELDS: JsonFields = (
        ("name", "string", 0, 2, False),
        ("partitions", "DeleteRecordsPartitionResult", 0, 2, False),
    )

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[DeleteRecordsPartitionResult] | None = None,
    ) -> None:
        self.name: str = name
        """Topic, by name."""
        self.partitions: list[DeleteRecordsPartitionResult] = [] if partitions is None else partitions
        """One entry per partition answered."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "DeleteRecordsTopicResult":
        self = cls.__new__(cls)
        if version >= 2:
            self.name = reader.compact_string()
        else:
            self.name = reader.string()
        if version >= 2:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        partitions: list[DeleteRecordsPartitionResult] = []
        for _ in range(count):
            partitions.append(DeleteRecordsPartitionResult.read(reader, version))
        self.partitions = partitions
        if version >= 2:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 2:
            writer.compact_string(self.name)
        else:
            writer.string(self.name)
        if version >= 2:
            writer.compact_array_count(len(self.partitions))
        else:
            writer.array_count(len(self.partitions))
        for delete_records_partition_result in self.partitions:
            delete_records_partition_result.write(writer, version)
        if version >= 2:
            writer.append(b"\x00")


class DeleteRecordsResponse(Message):
    """Answer of DeleteRecords."""

    __slots__ = ("throttle_time_ms", "topics")
    API_KEY = 21
    VERSIONS = (0, 2)
    FLEXIBLE_FROM: int | None = 2
    JSON_FIELDS: JsonFields = (
        ("throttle_time_ms", "int32", 0, 2, False),
        ("topics", "DeleteRecordsTopicResult", 0, 2, False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[DeleteRecordsTopicResult] | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        """Pause the quota asks of the client, in ms; 0 when it is within quota."""
        self.topics: list[DeleteRecordsTopicResult] = [] if topics is None else topics
        """Answers grouped by topic."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "DeleteRecordsResponse":
        self = cls.__new__(cls)
        self.throttle_time_ms = reader.int32()
        if version >= 2:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        topics: list[DeleteRecordsTopicResult] = []
        for _ in range(count):
            topics.append(DeleteRecordsTopicResult.read(reader, version))
        self.topics = topics
        if version >= 2:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.int32(self.throttle_time_ms)
        if version >= 2:
            writer.compact_array_count(len(self.topics))
        else:
            writer.array_count(len(self.topics))
        for delete_records_topic_result in self.topics:
            delete_records_topic_result.write(writer, version)
        if version >= 2:
            writer.append(b"\x00")

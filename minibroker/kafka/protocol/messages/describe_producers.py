# fmt: off
# ruff: noqa: E501
"""DescribeProducers: key 61, versions 0 to 0.

Admin clients ask a partition leader which producers it remembers, to find hanging transactions (KIP-664).

Generated from protocol_specs/apis/61_describe_producers.json by `python -m protocol_specs.codegen`; do not edit.
"""

from struct import Struct

from minibroker.kafka.protocol.message import JsonFields, Message
from minibroker.kafka.protocol.primitives import Reader, Writer

_IH = Struct(">ih")
_QIIQIQ = Struct(">qiiqiq")


class TopicRequest(Message):
    """Partitions to look at, grouped by topic."""

    __slots__ = ("name", "partition_indexes")
    JSON_FIELDS: JsonFields = (
        ("name", "string", 0, 0, False),
        ("partition_indexes", "int32", 0, 0, False),
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
        """Numbers of the partitions meant within that topic."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "TopicRequest":
        self = cls.__new__(cls)
        self.name = reader.compact_string()
        count = reader.compact_array_count()
        self.partition_indexes = reader.numbers(count, "i")
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.name)
        writer.compact_array_count(len(self.partition_indexes))
        writer.numbers(self.partition_indexes, "i")
        writer.append(b"\x00")


class DescribeProducersRequest(Message):
    """Request of DescribeProducers."""

    __slots__ = ("topics",)
    API_KEY = 61
    VERSIONS = (0, 0)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("topics", "TopicRequest", 0, 0, False),
    )

    def __init__(
        self,
        *,
        topics: list[TopicRequest] | None = None,
    ) -> None:
        self.topics: list[TopicRequest] = [] if topics is None else topics
        """Partitions to look at, grouped by topic."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "DescribeProducersRequest":
        self = cls.__new__(cls)
        count = reader.compact_array_count()
        topics: list[TopicRequest] = []
        for _ in range(count):
            topics.append(TopicRequest.read(reader, version))
        self.topics = topics
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_array_count(len(self.topics))
        for topic_request in self.topics:
            topic_request.write(writer, version)
        writer.append(b"\x00")


class ProducerState(Message):
    """Producers not expired yet."""

    __slots__ = ("producer_id", "producer_epoch", "last_sequence", "last_timestamp", "coordinator_epoch", "current_txn_start_offset")
    JSON_FIELDS: JsonFields = (
        ("producer_id", "int64", 0, 0, False),
        ("producer_epoch", "int32", 0, 0, False),
        ("last_sequence", "int32", 0, 0, False),
        ("last_timestamp", "int64", 0, 0, False),
        ("coordinator_epoch", "int32", 0, 0, False),
        ("current_txn_start_offset", "int64", 0, 0, False),
    )

    def __init__(
        self,
        *,
        producer_id: int = 0,
        producer_epoch: int = 0,
        last_sequence: int = -1,
        last_timestamp: int = -1,
        coordinator_epoch: int = 0,
        current_txn_start_offset: int = -1,
    ) -> None:
        self.producer_id: int = producer_id
        """Producer id (64 bits, unique in the cluster)."""
        self.producer_epoch: int = producer_epoch
        """Latest epoch seen (32 bits here, 16 elsewhere)."""
        self.last_sequence: int = last_sequence
        """Sequence number of its latest record; -1 when it has none."""
        self.last_timestamp: int = last_timestamp
        """Timestamp of its latest batch or marker, in ms; -1 when unknown."""
        self.coordinator_epoch: int = coordinator_epoch
        """Coordinator epoch in its latest marker; -1 before the first one."""
        self.current_txn_start_offset: int = current_txn_start_offset
        """First offset of its open transaction; -1 when none is open."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ProducerState":
        self = cls.__new__(cls)
        (
            self.producer_id,
            self.producer_epoch,
            self.last_sequence,
            self.last_timestamp,
            self.coordinator_epoch,
            self.current_txn_start_offset,
        ) = reader.fixed(_QIIQIQ)
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.append(_QIIQIQ.pack(
            self.producer_id,
            self.producer_epoch,
            self.last_sequence,
            self.last_timestamp,
            self.coordinator_epoch,
            self.current_txn_start_offset,
        ))
        writer.append(b"\x00")


class PartitionResponse(Message):
    """One entry per partition answered."""

    __slots__ = ("partition_index", "error_code", "error_message", "active_producers")
    JSON_FIELDS: JsonFields = (
        ("partition_index", "int32", 0, 0, False),
        ("error_code", "error_code", 0, 0, False),
        ("error_message", "string", 0, 0, False),
        ("active_producers", "ProducerState", 0, 0, False),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        active_producers: list[ProducerState] | None = None,
    ) -> None:
        self.partition_index: int = partition_index
        """Partition number within the topic, counted from 0."""
        self.error_code: int = error_code
        """NOT_LEADER_OR_FOLLOWER, UNKNOWN_TOPIC_OR_PARTITION, TOPIC_AUTHORIZATION_FAILED, …; 0 on success."""
        self.error_message: str | None = error_message
        """Human-readable reason for this entry's error_code; null when there is nothing to add."""
        self.active_producers: list[ProducerState] = [] if active_producers is None else active_producers
        """Producers not expired yet."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "PartitionResponse":
        self = cls.__new__(cls)
        self.partition_index, self.error_code = reader.fixed(_IH)
        self.error_message = reader.compact_nullable_string()
        count = reader.compact_array_count()
        active_producers: list[ProducerState] = []
        for _ in range(count):
            active_producers.append(ProducerState.read(reader, version))
        self.active_producers = active_producers
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.append(_IH.pack(self.partition_index, self.error_code))
        writer.compact_nullable_string(self.error_message)
        writer.compact_array_count(len(self.active_producers))
        for producer_state in self.active_producers:
            producer_state.write(writer, version)
        writer.append(b"\x00")


class TopicResponse(Message):
    """Answers grouped by topic."""

    __slots__ = ("name", "partitions")
    JSON_FIELDS: JsonFields = (
        ("name", "string", 0, 0, False),
        ("partitions", "PartitionResponse", 0, 0, False),
    )

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[PartitionResponse] | None = None,
    ) -> None:
        self.name: str = name
        """Topic, by name."""
        self.partitions: list[PartitionResponse] = [] if partitions is None else partitions
        """One entry per partition answered."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "TopicResponse":
        self = cls.__new__(cls)
        self.name = reader.compact_string()
        count = reader.compact_array_count()
        partitions: list[PartitionResponse] = []
        for _ in range(count):
            partitions.append(PartitionResponse.read(reader, version))
        self.partitions = partitions
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.name)
        writer.compact_array_count(len(self.partitions))
        for partition_response in self.partitions:
            partition_response.write(writer, version)
        writer.append(b"\x00")


class DescribeProducersResponse(Message):
    """Answer of DescribeProducers."""

    __slots__ = ("throttle_time_ms", "topics")
    API_KEY = 61
    VERSIONS = (0, 0)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("throttle_time_ms", "int32", 0, 0, False),
        ("topics", "TopicResponse", 0, 0, False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[TopicResponse] | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        """Pause the quota asks of the client, in ms; 0 when it is within quota."""
        self.topics: list[TopicResponse] = [] if topics is None else topics
        """Answers grouped by topic."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "DescribeProducersResponse":
        self = cls.__new__(cls)
        self.throttle_time_ms = reader.int32()
        count = reader.compact_array_count()
        topics: list[TopicResponse] = []
        for _ in range(count):
            topics.append(TopicResponse.read(reader, version))
        self.topics = topics
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.int32(self.throttle_time_ms)
        writer.compact_array_count(len(self.topics))
        for topic_response in self.topics:
            topic_response.write(writer, version)
        writer.append(b"\x00")

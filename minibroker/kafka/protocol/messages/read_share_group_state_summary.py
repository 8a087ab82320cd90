# fmt: off
# ruff: noqa: E501
"""ReadShareGroupStateSummary: key 87, versions 0 to 1.

The group coordinator asks the share coordinator for start offsets, without the batches; between brokers only (KIP-932).

Versions:
1: Count of finished offsets, so that lag can be told (KIP-1226).

Generated from protocol_specs/apis/87_read_share_group_state_summary.json by `python -m protocol_specs.codegen`; do not edit.
"""

from struct import Struct

from minibroker.kafka.protocol.message import JsonFields, Message
from minibroker.kafka.protocol.primitives import ZERO_UUID, Reader, Writer

_IH = Struct(">ih")
_II = Struct(">ii")
_IIQ = Struct(">iiq")
_IIQI = Struct(">iiqi")


class PartitionData(Message):
    """One entry per share partition."""

    __slots__ = ("partition", "leader_epoch")
    JSON_FIELDS: JsonFields = (
        ("partition", "int32", 0, 1, False),
        ("leader_epoch", "int32", 0, 1, False),
    )

    def __init__(
        self,
        *,
        partition: int = 0,
        leader_epoch: int = 0,
    ) -> None:
        self.partition: int = partition
        """Partition number within the topic, counted from 0."""
        self.leader_epoch: int = leader_epoch
        """Leader epoch the asker knows, for fencing."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "PartitionData":
        self = cls.__new__(cls)
        self.partition, self.leader_epoch = reader.fixed(_II)
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.append(_II.pack(self.partition, self.leader_epoch))
        writer.append(b"\x00")


class ReadStateSummaryData(Message):
    """Share partitions to ask about, grouped by topic."""

    __slots__ = ("topic_id", "partitions")
    JSON_FIELDS: JsonFields = (
        ("topic_id", "uuid", 0, 1, False),
        ("partitions", "PartitionData", 0, 1, False),
    )

    def __init__(
        self,
        *,
        topic_id: bytes = ZERO_UUID,
        partitions: list[PartitionData] | None = None,
    ) -> None:
        self.topic_id: bytes = topic_id
        """Topic, by its 16-byte id (KIP-516)."""
        self.partitions: list[PartitionData] = [] if partitions is None else partitions
        """One entry per share partition."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ReadStateSummaryData":
        self = cls.__new__(cls)
        self.topic_id = reader.uuid()
        count = reader.compact_array_count()
        partitions: list[PartitionData] = []
        for _ in range(count):
            partitions.append(PartitionData.read(reader, version))
        self.partitions = partitions
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.uuid(self.topic_id)
        writer.compact_array_count(len(self.partitions))
        for partition_data in self.partitions:
            partition_data.write(writer, version)
        writer.append(b"\x00")


class ReadShareGroupStateSummaryRequest(Message):
    """Request of ReadShareGroupStateSummary."""

    __slots__ = ("group_id", "topics")
    API_KEY = 87
    VERSIONS = (0, 1)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("group_id", "string", 0, 1, False),
        ("topics", "ReadStateSummaryData", 0, 1, False),
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[ReadStateSummaryData] | None = None,
    ) -> None:
        self.group_id: str = group_id
        """Share group, by name."""
        self.topics: list[ReadStateSummaryData] = [] if topics is None else topics
        """Share partitions to ask about, grouped by topic."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ReadShareGroupStateSummaryRequest":
        self = cls.__new__(cls)
        self.group_id = reader.compact_string()
        count = reader.compact_array_count()
        topics: list[ReadStateSummaryData] = []
        for _ in range(count):
            topics.append(ReadStateSummaryData.read(reader, version))
        self.topics = topics
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.group_id)
        writer.compact_array_count(len(self.topics))
        for read_state_summary_data in self.topics:
            read_state_summary_data.write(writer, version)
        writer.append(b"\x00")


class PartitionResult(Message):
    """Summaries by partition."""

    __slots__ = ("partition", "error_code", "error_message", "state_epoch", "leader_epoch", "start_offset", "delivery_complete_count")
    JSON_FIELDS: JsonFields = (
        ("partition", "int32", 0, 1, False),
        ("error_code", "error_code", 0, 1, False),
        ("error_message", "string", 0, 1, False),
        ("state_epoch", "int32", 0, 1, False),
        ("leader_epoch", "int32", 0, 1, False),
        ("start_offset", "int64", 0, 1, False),
        ("delivery_complete_count", "int32", 1, 1, False),
    )

    def __init__(
        self,
        *,
        partition: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        state_epoch: int = 0,
        leader_epoch: int = 0,
        start_offset: int = 0,
        delivery_complete_count: int = -1,
    ) -> None:
        self.partition: int = partition
        """Partition number within the topic, counted from 0."""
        self.error_code: int = error_code
        """Result for this partition alone; 0 (NONE) on success."""
        self.error_message: str | None = error_message
        """Human-readable reason for this entry's error_code; null when there is nothing to add."""
        self.state_epoch: int = state_epoch
        """Generation of the state."""
        self.leader_epoch: int = leader_epoch
        """Leader epoch of the last writer."""
        self.start_offset: int = start_offset
        """First offset not finished yet; -1 when never set."""
        self.delivery_complete_count: int = delivery_complete_count
        """v1+. Offsets at or after start_offset that are finished; -1 = not known (KIP-1226)."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "PartitionResult":
        self = cls.__new__(cls)
        self.partition, self.error_code = reader.fixed(_IH)
        self.error_message = reader.compact_nullable_string()
        if version >= 1:
            (
                self.state_epoch,
                self.leader_epoch,
                self.start_offset,
                self.delivery_complete_count,
            ) = reader.fixed(_IIQI)
        else:
            self.state_epoch, self.leader_epoch, self.start_offset = reader.fixed(_IIQ)
            self.delivery_complete_count = -1
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.append(_IH.pack(self.partition, self.error_code))
        writer.compact_nullable_string(self.error_message)
        if version >= 1:
            writer.append(_IIQI.pack(
                self.state_epoch,
                self.leader_epoch,
                self.start_offset,
                self.delivery_complete_count,
            ))
        else:
            writer.append(_IIQ.pack(self.state_epoch, self.leader_epoch, self.start_offset))
        writer.append(b"\x00")


class ReadStateSummaryResult(Message):
    """Summaries grouped by topic."""

    __slots__ = ("topic_id", "partitions")
    JSON_FIELDS: JsonFields = (
        ("topic_id", "uuid", 0, 1, False),
        ("partitions", "PartitionResult", 0, 1, False),
    )

    def __init__(
        self,
        *,
        topic_id: bytes = ZERO_UUID,
        partitions: list[PartitionResult] | None = None,
    ) -> None:
        self.topic_id: bytes = topic_id
        """Topic, by its 16-byte id (KIP-516)."""
        self.partitions: list[PartitionResult] = [] if partitions is None else partitions
        """Summaries by partition."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ReadStateSummaryResult":
        self = cls.__new__(cls)
        self.topic_id = reader.uuid()
        count = reader.compact_array_count()
        partitions: list[PartitionResult] = []
        for _ in range(count):
            partitions.append(PartitionResult.read(reader, version))
        self.partitions = partitions
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.uuid(self.topic_id)
        writer.compact_array_count(len(self.partitions))
        for partition_result in self.partitions:
            partition_result.write(writer, version)
        writer.append(b"\x00")


class ReadShareGroupStateSummaryResponse(Message):
    """Answer of ReadShareGroupStateSummary."""

    __slots__ = ("results",)
    API_KEY = 87
    VERSIONS = (0, 1)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("results", "ReadStateSummaryResult", 0, 1, False),
    )

    def __init__(
        self,
        *,
        results: list[ReadStateSummaryResult] | None = None,
    ) -> None:
        self.results: list[ReadStateSummaryResult] = [] if results is None else results
        """Summaries grouped by topic."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ReadShareGroupStateSummaryResponse":
        self = cls.__new__(cls)
        count = reader.compact_array_count()
        results: list[ReadStateSummaryResult] = []
        for _ in range(count):
            results.append(ReadStateSummaryResult.read(reader, version))
        self.results = results
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_array_count(len(self.results))
        for read_state_summary_result in self.results:
            read_state_summary_result.write(writer, version)
        writer.append(b"\x00")

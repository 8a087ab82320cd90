# fmt: off
# ruff: noqa: E501
"""WriteShareGroupState: key 85, versions 0 to 1.

A partition leader saves changed state of share partitions at the share coordinator; between brokers only (KIP-932).

Versions:
1: Count of finished offsets, so that lag can be told (KIP-1226).

Generated from protocol_specs/apis/85_write_share_group_state.json by `python -m protocol_specs.codegen`; do not edit.
"""

from struct import Struct

from minibroker.kafka.protocol.message import JsonFields, Message
from minibroker.kafka.protocol.primitives import ZERO_UUID, Reader, Writer

_IH = Struct(">ih")
_IIIQ = Struct(">iiiq")
_IIIQI = Struct(">iiiqi")
_QQBH = Struct(">qqbh")


class StateBatch(Message):
    """Ranges whose state changed."""

    __slots__ = ("first_offset", "last_offset", "delivery_state", "delivery_count")
    JSON_FIELDS: JsonFields = (
        ("first_offset", "int64", 0, 1, False),
        ("last_offset", "int64", 0, 1, False),
        ("delivery_state", "int8", 0, 1, False),
        ("delivery_count", "int16", 0, 1, False),
    )

    def __init__(
        self,
        *,
        first_offset: int = 0,
        last_offset: int = 0,
        delivery_state: int = 0,
        delivery_count: int = 0,
    ) -> None:
        self.first_offset: int = first_offset
        """Offset the range begins with."""
        self.last_offset: int = last_offset
        """Offset the range ends with, itself included."""
        self.delivery_state: int = delivery_state
        """0 = available, 2 = acknowledged, 4 = archived (rejected or tried too often)."""
        self.delivery_count: int = delivery_count
        """How often the records have been handed out."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "StateBatch":
        self = cls.__new__(cls)
        (
            self.first_offset,
            self.last_offset,
            self.delivery_state,
            self.delivery_count,
        ) = reader.fixed(_QQBH)
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.append(_QQBH.pack(
            self.first_offset,
            self.last_offset,
            self.delivery_state,
            self.delivery_count,
        ))
        writer.append(b"\x00")


class PartitionData(Message):
    """State to save, by partition."""

    __slots__ = ("partition", "state_epoch", "leader_epoch", "start_offset", "delivery_complete_count", "state_batches")
    JSON_FIELDS: JsonFields = (
        ("partition", "int32", 0, 1, False),
        ("state_epoch", "int32", 0, 1, False),
        ("leader_epoch", "int32", 0, 1, False),
        ("start_offset", "int64", 0, 1, False),
        ("delivery_complete_count", "int32", 1, 1, False),
        ("state_batches", "StateBatch", 0, 1, False),
    )

    def __init__(
        self,
        *,
        partition: int = 0,
        state_epoch: int = 0,
        leader_epoch: int = 0,
        start_offset: int = 0,
        delivery_complete_count: int = -1,
        state_batches: list[StateBatch] | None = None,
    ) -> None:
        self.partition: int = partition
        """Partition number within the topic, counted from 0."""
        self.state_epoch: int = state_epoch
        """Generation of the state the leader loaded; a stale one is FENCED_STATE_EPOCH."""
        self.leader_epoch: int = leader_epoch
        """Leader epoch of the sender; a stale one is FENCED_LEADER_EPOCH."""
        self.start_offset: int = start_offset
        """New first unfinished offset; -1 = unchanged."""
        self.delivery_complete_count: int = delivery_complete_count
        """v1+. Offsets at or after start_offset that are finished; -1 = not told (KIP-1226)."""
        self.state_batches: list[StateBatch] = [] if state_batches is None else state_batches
        """Ranges whose state changed."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "PartitionData":
        self = cls.__new__(cls)
        if version >= 1:
            (
                self.partition,
                self.state_epoch,
                self.leader_epoch,
                self.start_offset,
                self.delivery_complete_count,
            ) = reader.fixed(_IIIQI)
        else:
            (
                self.partition,
                self.state_epoch,
                self.leader_epoch,
                self.start_offset,
            ) = reader.fixed(_IIIQ)
            self.delivery_complete_count = -1
        count = reader.compact_array_count()
        state_batches: list[StateBatch] = []
        for _ in range(count):
            state_batches.append(StateBatch.read(reader, version))
        self.state_batches = state_batches
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 1:
            writer.append(_IIIQI.pack(
                self.partition,
                self.state_epoch,
                self.leader_epoch,
                self.start_offset,
                self.delivery_complete_count,
            ))
        else:
            writer.append(_IIIQ.pack(
                self.partition,
                self.state_epoch,
                self.leader_epoch,
                self.start_offset,
            ))
        writer.compact_array_count(len(self.state_batches))
        for state_batch in self.state_batches:
            state_batch.write(writer, version)
        writer.append(b"\x00")


class WriteStateData(Message):
    """State to save, grouped by topic."""

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
        """State to save, by partition."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "WriteStateData":
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


class WriteShareGroupStateRequest(Message):
    """Request of WriteShareGroupState."""

    __slots__ = ("group_id", "topics")
    API_KEY = 85
    VERSIONS = (0, 1)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("group_id", "string", 0, 1, False),
        ("topics", "WriteStateData", 0, 1, False),
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[WriteStateData] | None = None,
    ) -> None:
        self.group_id: str = group_id
        """Share group, by name."""
        self.topics: list[WriteStateData] = [] if topics is None else topics
        """State to save, grouped by topic."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "WriteShareGroupStateRequest":
        self = cls.__new__(cls)
        self.group_id = reader.compact_string()
        count = reader.compact_array_count()
        topics: list[WriteStateData] = []
        for _ in range(count):
            topics.append(WriteStateData.read(reader, version))
        self.topics = topics
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.group_id)
        writer.compact_array_count(len(self.topics))
        for write_state_data in self.topics:
            write_state_data.write(writer, version)
        writer.append(b"\x00")


class PartitionResult(Message):
    """Results by partition."""

    __slots__ = ("partition", "error_code", "error_message")
    JSON_FIELDS: JsonFields = (
        ("partition", "int32", 0, 1, False),
        ("error_code", "error_code", 0, 1, False),
        ("error_message", "string", 0, 1, False),
    )

    def __init__(
        self,
        *,
        partition: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.partition: int = partition
        """Partition number within the topic, counted from 0."""
        self.error_code: int = error_code
        """FENCED_LEADER_EPOCH, FENCED_STATE_EPOCH, NOT_COORDINATOR, …; 0 = saved."""
        self.error_message: str | None = error_message
        """Human-readable reason for this entry's error_code; null when there is nothing to add."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "PartitionResult":
        self = cls.__new__(cls)
        self.partition, self.error_code = reader.fixed(_IH)
        self.error_message = reader.compact_nullable_string()
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.append(_IH.pack(self.partition, self.error_code))
        writer.compact_nullable_string(self.error_message)
        writer.append(b"\x00")


class WriteStateResult(Message):
    """Results grouped by topic."""

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
        """Results by partition."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "WriteStateResult":
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


class WriteShareGroupStateResponse(Message):
    """Answer of WriteShareGroupState."""

    __slots__ = ("results",)
    API_KEY = 85
    VERSIONS = (0, 1)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("results", "WriteStateResult", 0, 1, False),
    )

    def __init__(
        self,
        *,
        results: list[WriteStateResult] | None = None,
    ) -> None:
        self.results: list[WriteStateResult] = [] if results is None else results
        """Results grouped by topic."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "WriteShareGroupStateResponse":
        self = cls.__new__(cls)
        count = reader.compact_array_count()
        results: list[WriteStateResult] = []
        for _ in range(count):
            results.append(WriteStateResult.read(reader, version))
        self.results = results
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_array_count(len(self.results))
        for write_state_result in self.results:
            write_state_result.write(writer, version)
        writer.append(b"\x00")

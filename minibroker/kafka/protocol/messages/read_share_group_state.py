# fmt: off
# ruff: noqa: E501
"""ReadShareGroupState: key 84, versions 0 to 0.

A partition leader loads the state of share partitions from the share coordinator; between brokers only (KIP-932).

Generated from protocol_specs/apis/84_read_share_group_state.json by `python -m protocol_specs.codegen`; do not edit.
"""

from struct import Struct

from minibroker.kafka.protocol.message import JsonFields, Message
from minibroker.kafka.protocol.primitives import ZERO_UUID, Reader, Writer

_IH = Struct(">ih")
_II = Struct(">ii")
_IQ = Struct(">iq")
_QQBH = Struct(">qqbh")


class PartitionData(Message):
    """One entry per share partition."""

    __slots__ = ("partition", "leader_epoch")
    JSON_FIELDS: JsonFields = (
        ("partition", "int32", 0, 0, False),
        ("leader_epoch", "int32", 0, 0, False),
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
        """Leader epoch of the asking partition leader; older leaders are fenced from then on."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "PartitionData":
        self = cls.__new__(cls)
        self.partition, self.leader_epoch = reader.fixed(_II)
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.append(_II.pack(self.partition, self.leader_epoch))
        writer.append(b"\x00")


class ReadStateData(Message):
    """Share partitions to load, grouped by topic."""

    __slots__ = ("topic_id", "partitions")
    JSON_FIELDS: JsonFields = (
        ("topic_id", "uuid", 0, 0, False),
        ("partitions", "PartitionData", 0, 0, False),
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
    def read(cls, reader: Reader, version: int) -> "ReadStateData":
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


class ReadShareGroupStateRequest(Message):
    """Request of ReadShareGroupState."""

    __slots__ = ("group_id", "topics")
    API_KEY = 84
    VERSIONS = (0, 0)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("group_id", "string", 0, 0, False),
        ("topics", "ReadStateData", 0, 0, False),
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[ReadStateData] | None = None,
    ) -> None:
        self.group_id: str = group_id
        """Share group, by name."""
        self.topics: list[ReadStateData] = [] if topics is None else topics
        """Share partitions to load, grouped by topic."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ReadShareGroupStateRequest":
        self = cls.__new__(cls)
        self.group_id = reader.compact_string()
        count = reader.compact_array_count()
        topics: list[ReadStateData] = []
        for _ in range(count):
            topics.append(ReadStateData.read(reader, version))
        self.topics = topics
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.group_id)
        writer.compact_array_count(len(self.topics))
        for read_state_data in self.topics:
            read_state_data.write(writer, version)
        writer.append(b"\x00")


class StateBatch(Message):
    """States of offsets from there on; other offsets are available."""

    __slots__ = ("first_offset", "last_offset", "delivery_state", "delivery_count")
    JSON_FIELDS: JsonFields = (
        ("first_offset", "int64", 0, 0, False),
        ("last_offset", "int64", 0, 0, False),
        ("delivery_state", "int8", 0, 0, False),
        ("delivery_count", "int16", 0, 0, False),
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


class PartitionResult(Message):
    """State by partition."""

    __slots__ = ("partition", "error_code", "error_message", "state_epoch", "start_offset", "state_batches")
    JSON_FIELDS: JsonFields = (
        ("partition", "int32", 0, 0, False),
        ("error_code", "error_code", 0, 0, False),
        ("error_message", "string", 0, 0, False),
        ("state_epoch", "int32", 0, 0, False),
        ("start_offset", "int64", 0, 0, False),
        ("state_batches", "StateBatch", 0, 0, False),
    )

    def __init__(
        self,
        *,
        partition: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        state_epoch: int = 0,
        start_offset: int = 0,
        state_batches: list[StateBatch] | None = None,
    ) -> None:
        self.partition: int = partition
        """Partition number within the topic, counted from 0."""
        self.error_code: int = error_code
        """FENCED_LEADER_EPOCH, NOT_COORDINATOR, …; 0 on success, also when nothing was stored."""
        self.error_message: str | None = error_message
        """Human-readable reason for this entry's error_code; null when there is nothing to add."""
        self.state_epoch: int = state_epoch
        """Generation of the state, to be sent with every write."""
        self.start_offset: int = start_offset
        """First offset not finished yet; -1 when never set."""
        self.state_batches: list[StateBatch] = [] if state_batches is None else state_batches
        """States of offsets from there on; other offsets are available."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "PartitionResult":
        self = cls.__new__(cls)
        self.partition, self.error_code = reader.fixed(_IH)
        self.error_message = reader.compact_nullable_string()
        self.state_epoch, self.start_offset = reader.fixed(_IQ)
        count = reader.compact_array_count()
        state_batches: list[StateBatch] = []
        for _ in range(count):
            state_batches.append(StateBatch.read(reader, version))
        self.state_batches = state_batches
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.append(_IH.pack(self.partition, self.error_code))
        writer.compact_nullable_string(self.error_message)
        writer.append(_IQ.pack(self.state_epoch, self.start_offset))
        writer.compact_array_count(len(self.state_batches))
        for state_batch in self.state_batches:
            state_batch.write(writer, version)
        writer.append(b"\x00")


class ReadStateResult(Message):
    """State grouped by topic."""

    __slots__ = ("topic_id", "partitions")
    JSON_FIELDS: JsonFields = (
        ("topic_id", "uuid", 0, 0, False),
        ("partitions", "PartitionResult", 0, 0, False),
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
        """State by partition."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ReadStateResult":
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


class ReadShareGroupStateResponse(Message):
    """Answer of ReadShareGroupState."""

    __slots__ = ("results",)
    API_KEY = 84
    VERSIONS = (0, 0)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("results", "ReadStateResult", 0, 0, False),
    )

    def __init__(
        self,
        *,
        results: list[ReadStateResult] | None = None,
    ) -> None:
        self.results: list[ReadStateResult] = [] if results is None else results
        """State grouped by topic."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ReadShareGroupStateResponse":
        self = cls.__new__(cls)
        count = reader.compact_array_count()
        results: list[ReadStateResult] = []
        for _ in range(count):
            results.append(ReadStateResult.read(reader, version))
        self.results = results
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_array_count(len(self.results))
        for read_state_result in self.results:
            read_state_result.write(writer, version)
        writer.append(b"\x00")

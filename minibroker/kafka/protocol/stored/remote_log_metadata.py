# fmt: off
# ruff: noqa: E501
"""Records of __remote_log_metadata: segments in tiered storage (KIP-405).

Generated from protocol_specs/stored/remote_log_metadata.json by `python -m protocol_specs.codegen`; do not edit.
"""

from struct import Struct

from minibroker.kafka.protocol.message import JsonFields, Message
from minibroker.kafka.protocol.primitives import ZERO_UUID, Reader, Writer

_IQ = Struct(">iq")
_IQB = Struct(">iqb")
_QQIQQ = Struct(">qqiqq")


class TopicIdPartitionEntry(Message):
    """Partition of the segment."""

    __slots__ = ("name", "id", "partition")
    JSON_FIELDS: JsonFields = (
        ("name", "string", 0, 0, False),
        ("id", "uuid", 0, 0, False),
        ("partition", "int32", 0, 0, False),
    )

    def __init__(
        self,
        *,
        name: str = "",
        id: bytes = ZERO_UUID,
        partition: int = 0,
    ) -> None:
        self.name: str = name
        """Topic, by name."""
        self.id: bytes = id
        """Topic, by id."""
        self.partition: int = partition
        """Partition number within the topic, counted from 0."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "TopicIdPartitionEntry":
        self = cls.__new__(cls)
        self.name = reader.compact_string()
        self.id = reader.uuid()
        self.partition = reader.int32()
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.name)
        writer.uuid(self.id)
        writer.int32(self.partition)
        writer.append(b"\x00")


class RemoteLogSegmentIdEntry(Message):
    """Segment, by its partition and id."""

    __slots__ = ("topic_id_partition", "id")
    JSON_FIELDS: JsonFields = (
        ("topic_id_partition", "TopicIdPartitionEntry", 0, 0, False),
        ("id", "uuid", 0, 0, False),
    )

    def __init__(
        self,
        *,
        topic_id_partition: TopicIdPartitionEntry | None = None,
        id: bytes = ZERO_UUID,
    ) -> None:
        self.topic_id_partition: TopicIdPartitionEntry = TopicIdPartitionEntry() if topic_id_partition is None else topic_id_partition
        """Partition of the segment."""
        self.id: bytes = id
        """Segment, by id."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "RemoteLogSegmentIdEntry":
        self = cls.__new__(cls)
        self.topic_id_partition = TopicIdPartitionEntry.read(reader, version)
        self.id = reader.uuid()
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        self.topic_id_partition.write(writer, version)
        writer.uuid(self.id)
        writer.append(b"\x00")


class SegmentLeaderEpochEntry(Message):
    """First offset of each leader epoch in the segment."""

    __slots__ = ("leader_epoch", "offset")
    JSON_FIELDS: JsonFields = (
        ("leader_epoch", "int32", 0, 0, False),
        ("offset", "int64", 0, 0, False),
    )

    def __init__(
        self,
        *,
        leader_epoch: int = 0,
        offset: int = 0,
    ) -> None:
        self.leader_epoch: int = leader_epoch
        """Leader epoch."""
        self.offset: int = offset
        """First offset of the epoch."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "SegmentLeaderEpochEntry":
        self = cls.__new__(cls)
        self.leader_epoch, self.offset = reader.fixed(_IQ)
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.append(_IQ.pack(self.leader_epoch, self.offset))
        writer.append(b"\x00")


class RemoteLogSegmentMetadataRecord(Message):
    """A segment is copied to remote storage."""

    __slots__ = ("remote_log_segment_id", "start_offset", "end_offset", "broker_id", "max_timestamp_ms", "event_timestamp_ms", "segment_leader_epochs", "segment_size_in_bytes", "custom_metadata", "remote_log_segment_state", "txn_index_empty")
    VERSIONS = (0, 0)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("remote_log_segment_id", "RemoteLogSegmentIdEntry", 0, 0, False),
        ("start_offset", "int64", 0, 0, False),
        ("end_offset", "int64", 0, 0, False),
        ("broker_id", "int32", 0, 0, False),
        ("max_timestamp_ms", "int64", 0, 0, False),
        ("event_timestamp_ms", "int64", 0, 0, False),
        ("segment_leader_epochs", "SegmentLeaderEpochEntry", 0, 0, False),
        ("segment_size_in_bytes", "int32", 0, 0, False),
        ("custom_metadata", "bytes", 0, 0, False),
        ("remote_log_segment_state", "int8", 0, 0, False),
        ("txn_index_empty", "bool", 0, 0, True),
    )

    def __init__(
        self,
        *,
        remote_log_segment_id: RemoteLogSegmentIdEntry | None = None,
        start_offset: int = 0,
        end_offset: int = 0,
        broker_id: int = 0,
        max_timestamp_ms: int = 0,
        event_timestamp_ms: int = 0,
        segment_leader_epochs: list[SegmentLeaderEpochEntry] | None = None,
        segment_size_in_bytes: int = 0,
        custom_metadata: bytes | None = None,
        remote_log_segment_state: int = 0,
        txn_index_empty: bool = False,
    ) -> None:
        self.remote_log_segment_id: RemoteLogSegmentIdEntry = RemoteLogSegmentIdEntry() if remote_log_segment_id is None else remote_log_segment_id
        """Segment, by its partition and id."""
        self.start_offset: int = start_offset
        """First offset of the segment."""
        self.end_offset: int = end_offset
        """Last offset of the segment, included."""
        self.broker_id: int = broker_id
        """Broker, by id."""
        self.max_timestamp_ms: int = max_timestamp_ms
        """Newest timestamp in the segment, ms since the epoch."""
        self.event_timestamp_ms: int = event_timestamp_ms
        """When this record was made, ms since the epoch."""
        self.segment_leader_epochs: list[SegmentLeaderEpochEntry] = [] if segment_leader_epochs is None else segment_leader_epochs
        """First offset of each leader epoch in the segment."""
        self.segment_size_in_bytes: int = segment_size_in_bytes
        """Size of the segment in bytes."""
        self.custom_metadata: bytes | None = custom_metadata
        """Bytes of the remote storage's plugin, opaque; null = none."""
        self.remote_log_segment_state: int = remote_log_segment_state
        """0 copy started, 1 copy finished, 2 delete started, 3 delete finished."""
        self.txn_index_empty: bool = txn_index_empty
        """Whether the segment has no aborted transaction."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "RemoteLogSegmentMetadataRecord":
        self = cls.__new__(cls)
        self.remote_log_segment_id = RemoteLogSegmentIdEntry.read(reader, version)
        (
            self.start_offset,
            self.end_offset,
            self.broker_id,
            self.max_timestamp_ms,
            self.event_timestamp_ms,
        ) = reader.fixed(_QQIQQ)
        count = reader.compact_array_count()
        segment_leader_epochs: list[SegmentLeaderEpochEntry] = []
        for _ in range(count):
            segment_leader_epochs.append(SegmentLeaderEpochEntry.read(reader, version))
        self.segment_leader_epochs = segment_leader_epochs
        self.segment_size_in_bytes = reader.int32()
        self.custom_metadata = reader.compact_nullable_byte_string()
        self.remote_log_segment_state = reader.int8()
        self.txn_index_empty = False
        for _ in range(reader.tag_count()):
            tag = reader.uvarint()
            end = reader.tag_end()
            if tag == 0:
                self.txn_index_empty = reader.boolean()
            else:
                reader.position = end
            reader.finish_tag(end)
        return self

    def write(self, writer: Writer, version: int) -> None:
        self.remote_log_segment_id.write(writer, version)
        writer.append(_QQIQQ.pack(
            self.start_offset,
            self.end_offset,
            self.broker_id,
            self.max_timestamp_ms,
            self.event_timestamp_ms,
        ))
        writer.compact_array_count(len(self.segment_leader_epochs))
        for segment_leader_epoch_entry in self.segment_leader_epochs:
            segment_leader_epoch_entry.write(writer, version)
        writer.int32(self.segment_size_in_bytes)
        writer.compact_nullable_byte_string(self.custom_metadata)
        writer.int8(self.remote_log_segment_state)
        tagged: list[tuple[int, Writer]] = []
        if self.txn_index_empty:
            value = Writer()
            value.boolean(self.txn_index_empty)
            tagged.append((0, value))
        if tagged:
            writer.tagged_fields(tagged)
        else:
            writer.append(b"\x00")


class RemoteLogSegmentMetadataUpdateRecord(Message):
    """The state of a segment changes."""

    __slots__ = ("remote_log_segment_id", "broker_id", "event_timestamp_ms", "custom_metadata", "remote_log_segment_state")
    VERSIONS = (0, 0)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("remote_log_segment_id", "RemoteLogSegmentIdEntry", 0, 0, False),
        ("broker_id", "int32", 0, 0, False),
        ("event_timestamp_ms", "int64", 0, 0, False),
        ("custom_metadata", "bytes", 0, 0, False),
        ("remote_log_segment_state", "int8", 0, 0, False),
    )

    def __init__(
        self,
        *,
        remote_log_segment_id: RemoteLogSegmentIdEntry | None = None,
        broker_id: int = 0,
        event_timestamp_ms: int = 0,
        custom_metadata: bytes | None = None,
        remote_log_segment_state: int = 0,
    ) -> None:
        self.remote_log_segment_id: RemoteLogSegmentIdEntry = RemoteLogSegmentIdEntry() if remote_log_segment_id is None else remote_log_segment_id
        """Segment, by its partition and id."""
        self.broker_id: int = broker_id
        """Broker, by id."""
        self.event_timestamp_ms: int = event_timestamp_ms
        """When this record was made, ms since the epoch."""
        self.custom_metadata: bytes | None = custom_metadata
        """Bytes of the remote storage's plugin, opaque; null = none."""
        self.remote_log_segment_state: int = remote_log_segment_state
        """0 copy started, 1 copy finished, 2 delete started, 3 delete finished."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "RemoteLogSegmentMetadataUpdateRecord":
        self = cls.__new__(cls)
        self.remote_log_segment_id = RemoteLogSegmentIdEntry.read(reader, version)
        self.broker_id, self.event_timestamp_ms = reader.fixed(_IQ)
        self.custom_metadata = reader.compact_nullable_byte_string()
        self.remote_log_segment_state = reader.int8()
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        self.remote_log_segment_id.write(writer, version)
        writer.append(_IQ.pack(self.broker_id, self.event_timestamp_ms))
        writer.compact_nullable_byte_string(self.custom_metadata)
        writer.int8(self.remote_log_segment_state)
        writer.append(b"\x00")


class RemotePartitionDeleteMetadataRecord(Message):
    """A partition is deleted from remote storage."""

    __slots__ = ("topic_id_partition", "broker_id", "event_timestamp_ms", "remote_partition_delete_state")
    VERSIONS = (0, 0)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("topic_id_partition", "TopicIdPartitionEntry", 0, 0, False),
        ("broker_id", "int32", 0, 0, False),
        ("event_timestamp_ms", "int64", 0, 0, False),
        ("remote_partition_delete_state", "int8", 0, 0, False),
    )

    def __init__(
        self,
        *,
        topic_id_partition: TopicIdPartitionEntry | None = None,
        broker_id: int = 0,
        event_timestamp_ms: int = 0,
        remote_partition_delete_state: int = 0,
    ) -> None:
        self.topic_id_partition: TopicIdPartitionEntry = TopicIdPartitionEntry() if topic_id_partition is None else topic_id_partition
        """Partition of the segment."""
        self.broker_id: int = broker_id
        """Broker, by id."""
        self.event_timestamp_ms: int = event_timestamp_ms
        """When this record was made, ms since the epoch."""
        self.remote_partition_delete_state: int = remote_partition_delete_state
        """0 marked, 1 started, 2 finished."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "RemotePartitionDeleteMetadataRecord":
        self = cls.__new__(cls)
        self.topic_id_partition = TopicIdPartitionEntry.read(reader, version)
        (
            self.broker_id,
            self.event_timestamp_ms,
            self.remote_partition_delete_state,
        ) = reader.fixed(_IQB)
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        self.topic_id_partition.write(writer, version)
        writer.append(_IQB.pack(
            self.broker_id,
            self.event_timestamp_ms,
            self.remote_partition_delete_state,
        ))
        writer.append(b"\x00")


class RemoteLogSegmentMetadataSnapshotRecord(Message):
    """A segment, in the snapshot of a partition's metadata."""

    __slots__ = ("segment_id", "start_offset", "end_offset", "broker_id", "max_timestamp_ms", "event_timestamp_ms", "segment_leader_epochs", "segment_size_in_bytes", "custom_metadata", "remote_log_segment_state", "txn_index_empty")
    VERSIONS = (0, 0)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("segment_id", "uuid", 0, 0, False),
        ("start_offset", "int64", 0, 0, False),
        ("end_offset", "int64", 0, 0, False),
        ("broker_id", "int32", 0, 0, False),
        ("max_timestamp_ms", "int64", 0, 0, False),
        ("event_timestamp_ms", "int64", 0, 0, False),
        ("segment_leader_epochs", "SegmentLeaderEpochEntry", 0, 0, False),
        ("segment_size_in_bytes", "int32", 0, 0, False),
        ("custom_metadata", "bytes", 0, 0, False),
        ("remote_log_segment_state", "int8", 0, 0, False),
        ("txn_index_empty", "bool", 0, 0, True),
    )

    def __init__(
        self,
        *,
        segment_id: bytes = ZERO_UUID,
        start_offset: int = 0,
        end_offset: int = 0,
        broker_id: int = 0,
        max_timestamp_ms: int = 0,
        event_timestamp_ms: int = 0,
        segment_leader_epochs: list[SegmentLeaderEpochEntry] | None = None,
        segment_size_in_bytes: int = 0,
        custom_metadata: bytes | None = None,
        remote_log_segment_state: int = 0,
        txn_index_empty: bool = False,
    ) -> None:
        self.segment_id: bytes = segment_id
        """Segment, by id."""
        self.start_offset: int = start_offset
        """First offset of the segment."""
        self.end_offset: int = end_offset
        """Last offset of the segment, included."""
        self.broker_id: int = broker_id
        """Broker, by id."""
        self.max_timestamp_ms: int = max_timestamp_ms
        """Newest timestamp in the segment, ms since the epoch."""
        self.event_timestamp_ms: int = event_timestamp_ms
        """When this record was made, ms since the epoch."""
        self.segment_leader_epochs: list[SegmentLeaderEpochEntry] = [] if segment_leader_epochs is None else segment_leader_epochs
        """First offset of each leader epoch in the segment."""
        self.segment_size_in_bytes: int = segment_size_in_bytes
        """Size of the segment in bytes."""
        self.custom_metadata: bytes | None = custom_metadata
        """Bytes of the remote storage's plugin, opaque; null = none."""
        self.remote_log_segment_state: int = remote_log_segment_state
        """0 copy started, 1 copy finished, 2 delete started, 3 delete finished."""
        self.txn_index_empty: bool = txn_index_empty
        """Whether the segment has no aborted transaction."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "RemoteLogSegmentMetadataSnapshotRecord":
        self = cls.__new__(cls)
        self.segment_id = reader.uuid()
        (
            self.start_offset,
            self.end_offset,
            self.broker_id,
            self.max_timestamp_ms,
            self.event_timestamp_ms,
        ) = reader.fixed(_QQIQQ)
        count = reader.compact_array_count()
        segment_leader_epochs: list[SegmentLeaderEpochEntry] = []
        for _ in range(count):
            segment_leader_epochs.append(SegmentLeaderEpochEntry.read(reader, version))
        self.segment_leader_epochs = segment_leader_epochs
        self.segment_size_in_bytes = reader.int32()
        self.custom_metadata = reader.compact_nullable_byte_string()
        self.remote_log_segment_state = reader.int8()
        self.txn_index_empty = False
        for _ in range(reader.tag_count()):
            tag = reader.uvarint()
            end = reader.tag_end()
            if tag == 0:
                self.txn_index_empty = reader.boolean()
            else:
                reader.position = end
            reader.finish_tag(end)
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.uuid(self.segment_id)
        writer.append(_QQIQQ.pack(
            self.start_offset,
            self.end_offset,
            self.broker_id,
            self.max_timestamp_ms,
            self.event_timestamp_ms,
        ))
        writer.compact_array_count(len(self.segment_leader_epochs))
        for segment_leader_epoch_entry in self.segment_leader_epochs:
            segment_leader_epoch_entry.write(writer, version)
        writer.int32(self.segment_size_in_bytes)
        writer.compact_nullable_byte_string(self.custom_metadata)
        writer.int8(self.remote_log_segment_state)
        tagged: list[tuple[int, Writer]] = []
        if self.txn_index_empty:
            value = Writer()
            value.boolean(self.txn_index_empty)
            tagged.append((0, value))
        if tagged:
            writer.tagged_fields(tagged)
        else:
            writer.append(b"\x00")


RECORDS = {
    0: RemoteLogSegmentMetadataRecord,
    1: RemoteLogSegmentMetadataUpdateRecord,
    2: RemotePartitionDeleteMetadataRecord,
    3: RemoteLogSegmentMetadataSnapshotRecord,
}
"""Type → class."""

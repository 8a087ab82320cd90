# fmt: off
# ruff: noqa: E501
"""Whole state of a share-partition in __share_group_state (record type 0); a null value deletes it.

Generated from protocol_specs/stored/share_snapshot.json by `python -m protocol_specs.codegen`; do not edit.
"""

from struct import Struct

from minibroker.kafka.protocol.message import JsonFields, Message
from minibroker.kafka.protocol.primitives import ZERO_UUID, Reader, Writer
from minibroker.kafka.protocol.versioned import VersionedMessage

_IIIQQQ = Struct(">iiiqqq")
_QQBH = Struct(">qqbh")


class ShareSnapshotKey(VersionedMessage):
    """The record itself; its version is the int16 in front of it."""

    __slots__ = ("group_id", "topic_id", "partition")
    VERSIONS = (0, 0)
    FLEXIBLE_FROM: int | None = None
    JSON_FIELDS: JsonFields = (
        ("group_id", "string", 0, 0, False),
        ("topic_id", "uuid", 0, 0, False),
        ("partition", "int32", 0, 0, False),
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        topic_id: bytes = ZERO_UUID,
        partition: int = 0,
    ) -> None:
        self.group_id: str = group_id
        """Share group, by name."""
        self.topic_id: bytes = topic_id
        """Topic, by id."""
        self.partition: int = partition
        """Partition number within the topic, counted from 0."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ShareSnapshotKey":
        self = cls.__new__(cls)
        self.group_id = reader.string()
        self.topic_id = reader.uuid()
        self.partition = reader.int32()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.string(self.group_id)
        writer.uuid(self.topic_id)
        writer.int32(self.partition)


class StateBatch(Message):
    """Ranges of offsets and their state of delivery."""

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
        """First offset of the range."""
        self.last_offset: int = last_offset
        """Last offset of the range, included."""
        self.delivery_state: int = delivery_state
        """0 available, 2 acknowledged, 4 archived."""
        self.delivery_count: int = delivery_count
        """How often the records were delivered."""

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


class ShareSnapshotValue(VersionedMessage):
    """The record itself; its version is the int16 in front of it."""

    __slots__ = ("snapshot_epoch", "state_epoch", "leader_epoch", "start_offset", "delivery_complete_count", "create_timestamp", "write_timestamp", "state_batches")
    VERSIONS = (0, 0)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("snapshot_epoch", "int32", 0, 0, False),
        ("state_epoch", "int32", 0, 0, False),
        ("leader_epoch", "int32", 0, 0, False),
        ("start_offset", "int64", 0, 0, False),
        ("delivery_complete_count", "int32", 0, 0, True),
        ("create_timestamp", "int64", 0, 0, False),
        ("write_timestamp", "int64", 0, 0, False),
        ("state_batches", "StateBatch", 0, 0, False),
    )

    def __init__(
        self,
        *,
        snapshot_epoch: int = 0,
        state_epoch: int = 0,
        leader_epoch: int = 0,
        start_offset: int = 0,
        delivery_complete_count: int = -1,
        create_timestamp: int = 0,
        write_timestamp: int = 0,
        state_batches: list[StateBatch] | None = None,
    ) -> None:
        self.snapshot_epoch: int = snapshot_epoch
        """Number of the snapshot; it grows with each."""
        self.state_epoch: int = state_epoch
        """Epoch of the share-partition's state."""
        self.leader_epoch: int = leader_epoch
        """Leader epoch of the share-partition."""
        self.start_offset: int = start_offset
        """First offset that is not done."""
        self.delivery_complete_count: int = delivery_complete_count
        """Records behind the start offset that are done; -1 when unknown."""
        self.create_timestamp: int = create_timestamp
        """When the first snapshot was made, ms since the epoch."""
        self.write_timestamp: int = write_timestamp
        """When this snapshot was made, ms since the epoch."""
        self.state_batches: list[StateBatch] = [] if state_batches is None else state_batches
        """Ranges of offsets and their state of delivery."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ShareSnapshotValue":
        self = cls.__new__(cls)
        (
            self.snapshot_epoch,
            self.state_epoch,
            self.leader_epoch,
            self.start_offset,
            self.create_timestamp,
            self.write_timestamp,
        ) = reader.fixed(_IIIQQQ)
        count = reader.compact_array_count()
        state_batches: list[StateBatch] = []
        for _ in range(count):
            state_batches.append(StateBatch.read(reader, version))
        self.state_batches = state_batches
        self.delivery_complete_count = -1
        for _ in range(reader.tag_count()):
            tag = reader.uvarint()
            end = reader.tag_end()
            if tag == 0:
                self.delivery_complete_count = reader.int32()
            else:
                reader.position = end
            reader.finish_tag(end)
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.append(_IIIQQQ.pack(
            self.snapshot_epoch,
            self.state_epoch,
            self.leader_epoch,
            self.start_offset,
            self.create_timestamp,
            self.write_timestamp,
        ))
        writer.compact_array_count(len(self.state_batches))
        for state_batch in self.state_batches:
            state_batch.write(writer, version)
        tagged: list[tuple[int, Writer]] = []
        if self.delivery_complete_count != -1:
            value = Writer()
            value.int32(self.delivery_complete_count)
            tagged.append((0, value))
        if tagged:
            writer.tagged_fields(tagged)
        else:
            writer.append(b"\x00")

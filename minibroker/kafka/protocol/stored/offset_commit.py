# fmt: off
# ruff: noqa: E501
"""One committed offset in __consumer_offsets (record type 1, in 3.9 also 0); a null value deletes it.


Versions:
1: Value: explicit expiry time. Key: 3.9's name for record type 1.
2: Value: no expiry time; offsets.retention.minutes counts.
3: Value: leader epoch (KIP-320).
4: Value: flexible encoding, new fields only as tags (KIP-915).

Generated from protocol_specs/stored/offset_commit.json by `python -m protocol_specs.codegen`; do not edit.
"""

from struct import Struct

from minibroker.kafka.protocol.message import JsonFields
from minibroker.kafka.protocol.primitives import ZERO_UUID, Reader, Writer
from minibroker.kafka.protocol.versioned import VersionedMessage

_QI = Struct(">qi")
_QQ = Struct(">qq")


class OffsetCommitKey(VersionedMessage):
    """The record itself; its version is the int16 in front of it."""

    __slots__ = ("group", "topic", "partition")
    VERSIONS = (0, 1)
    FLEXIBLE_FROM: int | None = None
    JSON_FIELDS: JsonFields = (
        ("group", "string", 0, 1, False),
        ("topic", "string", 0, 1, False),
        ("partition", "int32", 0, 1, False),
    )

    def __init__(
        self,
        *,
        group: str = "",
        topic: str = "",
        partition: int = 0,
    ) -> None:
        self.group: str = group
        """Group that committed."""
        self.topic: str = topic
        """Topic, by name."""
        self.partition: int = partition
        """Partition number within the topic, counted from 0."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "OffsetCommitKey":
        self = cls.__new__(cls)
        self.group = reader.string()
        self.topic = reader.string()
        self.partition = reader.int32()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.string(self.group)
        writer.string(self.topic)
        writer.int32(self.partition)


class OffsetCommitValue(VersionedMessage):
    """The record itself; its version is the int16 in front of it."""

    __slots__ = ("offset", "leader_epoch", "metadata", "commit_timestamp", "expire_timestamp", "topic_id")
    VERSIONS = (0, 4)
    FLEXIBLE_FROM: int | None = 4
    JSON_FIELDS: JsonFields = (
        ("offset", "int64", 0, 4, False),
        ("leader_epoch", "int32", 3, 4, False),
        ("metadata", "string", 0, 4, False),
        ("commit_timestamp", "int64", 0, 4, False),
        ("expire_timestamp", "int64", 1, 1, False),
        ("topic_id", "uuid", 4, 4, True),
    )

    def __init__(
        self,
        *,
        offset: int = 0,
        leader_epoch: int = -1,
        metadata: str = "",
        commit_timestamp: int = 0,
        expire_timestamp: int = -1,
        topic_id: bytes = ZERO_UUID,
    ) -> None:
        self.offset: int = offset
        """Next offset the group will read."""
        self.leader_epoch: int = leader_epoch
        """v3+. Epoch of the last record read; -1 when unknown."""
        self.metadata: str = metadata
        """Free text the client committed; may be empty."""
        self.commit_timestamp: int = commit_timestamp
        """When the coordinator stored it, ms since the epoch."""
        self.expire_timestamp: int = expire_timestamp
        """v1. v1: when it may be dropped, ms since the epoch; -1 = retention setting."""
        self.topic_id: bytes = topic_id
        """v4+. Tagged: topic, by id (KIP-848); zero when committed by name."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "OffsetCommitValue":
        self = cls.__new__(cls)
        if version >= 3:
            self.offset, self.leader_epoch = reader.fixed(_QI)
        else:
            self.offset = reader.int64()
            self.leader_epoch = -1
        if version >= 4:
            self.metadata = reader.compact_string()
        else:
            self.metadata = reader.string()
        if version >= 2:
            self.commit_timestamp = reader.int64()
            self.expire_timestamp = -1
        elif version >= 1:
            self.commit_timestamp, self.expire_timestamp = reader.fixed(_QQ)
        else:
            self.commit_timestamp = reader.int64()
            self.expire_timestamp = -1
        self.topic_id = ZERO_UUID
        if version >= 4:
            for _ in range(reader.tag_count()):
                tag = reader.uvarint()
                end = reader.tag_end()
                if tag == 0:
                    self.topic_id = reader.uuid()
                else:
                    reader.position = end
                reader.finish_tag(end)
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 3:
            writer.append(_QI.pack(self.offset, self.leader_epoch))
        else:
            writer.int64(self.offset)
        if version >= 4:
            writer.compact_string(self.metadata)
        else:
            writer.string(self.metadata)
        if version >= 2:
            writer.int64(self.commit_timestamp)
        elif version >= 1:
            writer.append(_QQ.pack(self.commit_timestamp, self.expire_timestamp))
        else:
            writer.int64(self.commit_timestamp)
        if version >= 4:
            tagged: list[tuple[int, Writer]] = []
            if self.topic_id != ZERO_UUID:
                value = Writer()
                value.uuid(self.topic_id)
                tagged.append((0, value))
            if tagged:
                writer.tagged_fields(tagged)
            else:
                writer.append(b"\x00")

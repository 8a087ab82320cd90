# fmt: off
# ruff: noqa: E501
"""Epoch of a KIP-848 consumer group (record type 3); a null value deletes the group.

Generated from protocol_specs/stored/consumer_group_metadata.json by `python -m protocol_specs.codegen`; do not edit.
"""

from minibroker.kafka.protocol.message import JsonFields
from minibroker.kafka.protocol.primitives import Reader, Writer
from minibroker.kafka.protocol.versioned import VersionedMessage


class ConsumerGroupMetadataKey(VersionedMessage):
    """The record itself; its version is the int16 in front of it."""

    __slots__ = ("group_id",)
    VERSIONS = (3, 3)
    FLEXIBLE_FROM: int | None = None
    JSON_FIELDS: JsonFields = (
        ("group_id", "string", 3, 3, False),
    )

    def __init__(
        self,
        *,
        group_id: str = "",
    ) -> None:
        self.group_id: str = group_id
        """Group, by name."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ConsumerGroupMetadataKey":
        self = cls.__new__(cls)
        self.group_id = reader.string()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.string(self.group_id)


class ConsumerGroupMetadataValue(VersionedMessage):
    """The record itself; its version is the int16 in front of it."""

    __slots__ = ("epoch", "metadata_hash")
    VERSIONS = (0, 0)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("epoch", "int32", 0, 0, False),
        ("metadata_hash", "int64", 0, 0, True),
    )

    def __init__(
        self,
        *,
        epoch: int = 0,
        metadata_hash: int = 0,
    ) -> None:
        self.epoch: int = epoch
        """Counter raised whenever members or metadata change."""
        self.metadata_hash: int = metadata_hash
        """Tagged: hash over the subscribed topics' layout; a change triggers a rebalance; 0 = unset (KIP-1101)."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ConsumerGroupMetadataValue":
        self = cls.__new__(cls)
        self.epoch = reader.int32()
        self.metadata_hash = 0
        for _ in range(reader.tag_count()):
            tag = reader.uvarint()
            end = reader.tag_end()
            if tag == 0:
                self.metadata_hash = reader.int64()
            else:
                reader.position = end
            reader.finish_tag(end)
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.int32(self.epoch)
        tagged: list[tuple[int, Writer]] = []
        if self.metadata_hash != 0:
            value = Writer()
            value.int64(self.metadata_hash)
            tagged.append((0, value))
        if tagged:
            writer.tagged_fields(tagged)
        else:
            writer.append(b"\x00")

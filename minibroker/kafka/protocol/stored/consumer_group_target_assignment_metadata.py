# fmt: off
# ruff: noqa: E501
"""Epoch of the target assignment of a consumer group (record type 6).

Generated from protocol_specs/stored/consumer_group_target_assignment_metadata.json by `python -m protocol_specs.codegen`; do not edit.
"""

from minibroker.kafka.protocol.message import JsonFields
from minibroker.kafka.protocol.primitives import Reader, Writer
from minibroker.kafka.protocol.versioned import VersionedMessage


class ConsumerGroupTargetAssignmentMetadataKey(VersionedMessage):
    """The record itself; its version is the int16 in front of it."""

    __slots__ = ("group_id",)
    VERSIONS = (6, 6)
    FLEXIBLE_FROM: int | None = None
    JSON_FIELDS: JsonFields = (
        ("group_id", "string", 6, 6, False),
    )

    def __init__(
        self,
        *,
        group_id: str = "",
    ) -> None:
        self.group_id: str = group_id
        """Group, by name."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ConsumerGroupTargetAssignmentMetadataKey":
        self = cls.__new__(cls)
        self.group_id = reader.string()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.string(self.group_id)


class ConsumerGroupTargetAssignmentMetadataValue(VersionedMessage):
    """The record itself; its version is the int16 in front of it."""

    __slots__ = ("assignment_epoch", "assignment_timestamp")
    VERSIONS = (0, 0)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("assignment_epoch", "int32", 0, 0, False),
        ("assignment_timestamp", "int64", 0, 0, True),
    )

    def __init__(
        self,
        *,
        assignment_epoch: int = 0,
        assignment_timestamp: int = 0,
    ) -> None:
        self.assignment_epoch: int = assignment_epoch
        """Group epoch the target assignment was computed for."""
        self.assignment_timestamp: int = assignment_timestamp
        """Tagged: when it was computed, ms since the epoch; 0 = not recorded (KIP-1263)."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ConsumerGroupTargetAssignmentMetadataValue":
        self = cls.__new__(cls)
        self.assignment_epoch = reader.int32()
        self.assignment_timestamp = 0
        for _ in range(reader.tag_count()):
            tag = reader.uvarint()
            end = reader.tag_end()
            if tag == 0:
                self.assignment_timestamp = reader.int64()
            else:
                reader.position = end
            reader.finish_tag(end)
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.int32(self.assignment_epoch)
        tagged: list[tuple[int, Writer]] = []
        if self.assignment_timestamp != 0:
            value = Writer()
            value.int64(self.assignment_timestamp)
            tagged.append((0, value))
        if tagged:
            writer.tagged_fields(tagged)
        else:
            writer.append(b"\x00")

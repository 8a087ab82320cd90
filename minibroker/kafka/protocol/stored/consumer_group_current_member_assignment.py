# fmt: off
# ruff: noqa: E501
"""How far a consumer-group member has come towards its target (record type 8); a null value removes it.

Generated from protocol_specs/stored/consumer_group_current_member_assignment.json by `python -m protocol_specs.codegen`; do not edit.
"""

from struct import Struct

from minibroker.kafka.protocol.message import JsonFields, Message
from minibroker.kafka.protocol.primitives import ZERO_UUID, Reader, Writer
from minibroker.kafka.protocol.versioned import VersionedMessage

_IIB = Struct(">iib")


class ConsumerGroupCurrentMemberAssignmentKey(VersionedMessage):
    """The record itself; its version is the int16 in front of it."""

    __slots__ = ("group_id", "member_id")
    VERSIONS = (8, 8)
    FLEXIBLE_FROM: int | None = None
    JSON_FIELDS: JsonFields = (
        ("group_id", "string", 8, 8, False),
        ("member_id", "string", 8, 8, False),
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
    ) -> None:
        self.group_id: str = group_id
        """Group, by name."""
        self.member_id: str = member_id
        """Member, by the id the coordinator knows it under."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ConsumerGroupCurrentMemberAssignmentKey":
        self = cls.__new__(cls)
        self.group_id = reader.string()
        self.member_id = reader.string()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.string(self.group_id)
        writer.string(self.member_id)


class TopicPartitions(Message):
    """Partitions the member holds, grouped by topic."""

    __slots__ = ("topic_id", "partitions", "assignment_epochs")
    JSON_FIELDS: JsonFields = (
        ("topic_id", "uuid", 0, 0, False),
        ("partitions", "int32", 0, 0, False),
        ("assignment_epochs", "int32", 0, 0, True),
    )

    def __init__(
        self,
        *,
        topic_id: bytes = ZERO_UUID,
        partitions: list[int] | None = None,
        assignment_epochs: list[int] | None | tuple[()] = (),
    ) -> None:
        self.topic_id: bytes = topic_id
        """Topic, by its 16-byte id (KIP-516)."""
        self.partitions: list[int] = [] if partitions is None else partitions
        """Numbers of the partitions meant within that topic."""
        self.assignment_epochs: list[int] | None = [] if isinstance(assignment_epochs, tuple) else assignment_epochs
        """Tagged: epoch each partition was given at, parallel to partitions; null = not tracked."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "TopicPartitions":
        self = cls.__new__(cls)
        self.topic_id = reader.uuid()
        count = reader.compact_array_count()
        self.partitions = reader.numbers(count, "i")
        self.assignment_epochs = []
        for _ in range(reader.tag_count()):
            tag = reader.uvarint()
            end = reader.tag_end()
            if tag == 0:
                count = reader.compact_nullable_array_count()
                self.assignment_epochs = reader.numbers(count, "i") if count >= 0 else None
            else:
                reader.position = end
            reader.finish_tag(end)
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.uuid(self.topic_id)
        writer.compact_array_count(len(self.partitions))
        writer.numbers(self.partitions, "i")
        tagged: list[tuple[int, Writer]] = []
        if (self.assignment_epochs is None or self.assignment_epochs):
            value = Writer()
            value.compact_array_count(-1 if self.assignment_epochs is None else len(self.assignment_epochs))
            value.numbers(self.assignment_epochs or [], "i")
            tagged.append((0, value))
        if tagged:
            writer.tagged_fields(tagged)
        else:
            writer.append(b"\x00")


class ConsumerGroupCurrentMemberAssignmentValue(VersionedMessage):
    """The record itself; its version is the int16 in front of it."""

    __slots__ = ("member_epoch", "previous_member_epoch", "state", "assigned_partitions", "partitions_pending_revocation")
    VERSIONS = (0, 0)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("member_epoch", "int32", 0, 0, False),
        ("previous_member_epoch", "int32", 0, 0, False),
        ("state", "int8", 0, 0, False),
        ("assigned_partitions", "TopicPartitions", 0, 0, False),
        ("partitions_pending_revocation", "TopicPartitions", 0, 0, False),
    )

    def __init__(
        self,
        *,
        member_epoch: int = 0,
        previous_member_epoch: int = 0,
        state: int = 0,
        assigned_partitions: list[TopicPartitions] | None = None,
        partitions_pending_revocation: list[TopicPartitions] | None = None,
    ) -> None:
        self.member_epoch: int = member_epoch
        """Epoch the member must show in its next heartbeat."""
        self.previous_member_epoch: int = previous_member_epoch
        """Epoch before; still accepted in case the answer with the new one was lost."""
        self.state: int = state
        """0 = stable, 1 = has partitions to give up, 2 = waits for others to give up, 127 = unknown."""
        self.assigned_partitions: list[TopicPartitions] = [] if assigned_partitions is None else assigned_partitions
        """Partitions the member holds, grouped by topic."""
        self.partitions_pending_revocation: list[TopicPartitions] = [] if partitions_pending_revocation is None else partitions_pending_revocation
        """Partitions the member still has to give up, grouped by topic."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ConsumerGroupCurrentMemberAssignmentValue":
        self = cls.__new__(cls)
        self.member_epoch, self.previous_member_epoch, self.state = reader.fixed(_IIB)
        count = reader.compact_array_count()
        assigned_partitions: list[TopicPartitions] = []
        for _ in range(count):
            assigned_partitions.append(TopicPartitions.read(reader, version))
        self.assigned_partitions = assigned_partitions
        count = reader.compact_array_count()
        partitions_pending_revocation: list[TopicPartitions] = []
        for _ in range(count):
            partitions_pending_revocation.append(TopicPartitions.read(reader, version))
        self.partitions_pending_revocation = partitions_pending_revocation
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.append(_IIB.pack(self.member_epoch, self.previous_member_epoch, self.state))
        writer.compact_array_count(len(self.assigned_partitions))
        for topic_partitions in self.assigned_partitions:
            topic_partitions.write(writer, version)
        writer.compact_array_count(len(self.partitions_pending_revocation))
        for topic_partitions in self.partitions_pending_revocation:
            topic_partitions.write(writer, version)
        writer.append(b"\x00")

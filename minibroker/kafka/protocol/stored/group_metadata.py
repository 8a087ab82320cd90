# fmt: off
# ruff: noqa: E501
"""Whole state of a classic group in __consumer_offsets (record type 2); a null value deletes the group.


Versions:
1: Value: rebalance timeout per member.
2: Value: time of the last state change (KIP-211).
3: Value: static member names (KIP-345).
4: Value: flexible encoding, new fields only as tags (KIP-915).

Generated from protocol_specs/stored/group_metadata.json by `python -m protocol_specs.codegen`; do not edit.
"""

from struct import Struct

from minibroker.kafka.protocol.message import JsonFields, Message
from minibroker.kafka.protocol.primitives import Reader, Writer
from minibroker.kafka.protocol.versioned import VersionedMessage

_II = Struct(">ii")


class GroupMetadataKey(VersionedMessage):
    """The record itself; its version is the int16 in front of it."""

    __slots__ = ("group",)
    VERSIONS = (2, 2)
    FLEXIBLE_FROM: int | None = None
    JSON_FIELDS: JsonFields = (
        ("group", "string", 2, 2, False),
    )

    def __init__(
        self,
        *,
        group: str = "",
    ) -> None:
        self.group: str = group
        """Group, by name."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "GroupMetadataKey":
        self = cls.__new__(cls)
        self.group = reader.string()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.string(self.group)


class MemberMetadata(Message):
    """Members of the generation."""

    __slots__ = ("member_id", "group_instance_id", "client_id", "client_host", "rebalance_timeout", "session_timeout", "subscription", "assignment")
    JSON_FIELDS: JsonFields = (
        ("member_id", "string", 0, 4, False),
        ("group_instance_id", "string", 3, 4, False),
        ("client_id", "string", 0, 4, False),
        ("client_host", "string", 0, 4, False),
        ("rebalance_timeout", "int32", 1, 4, False),
        ("session_timeout", "int32", 0, 4, False),
        ("subscription", "bytes", 0, 4, False),
        ("assignment", "bytes", 0, 4, False),
    )

    def __init__(
        self,
        *,
        member_id: str = "",
        group_instance_id: str | None = None,
        client_id: str = "",
        client_host: str = "",
        rebalance_timeout: int = -1,
        session_timeout: int = 0,
        subscription: bytes = b"",
        assignment: bytes = b"",
    ) -> None:
        self.member_id: str = member_id
        """Member, by the id the coordinator knows it under."""
        self.group_instance_id: str | None = group_instance_id
        """v3+. Static member name (group.instance.id, KIP-345); null for a dynamic member."""
        self.client_id: str = client_id
        """client_id of the request header the member last joined with."""
        self.client_host: str = client_host
        """Address the member connected from, as text."""
        self.rebalance_timeout: int = rebalance_timeout
        """v1+. How long a join phase waits for the member, in ms; -1 = its session timeout."""
        self.session_timeout: int = session_timeout
        """Silence after which the member is expelled, in ms."""
        self.subscription: bytes = subscription
        """Metadata the member sent for the chosen assignor, opaque."""
        self.assignment: bytes = assignment
        """Share the leader gave the member, opaque."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "MemberMetadata":
        self = cls.__new__(cls)
        if version >= 4:
            self.member_id = reader.compact_string()
        else:
            self.member_id = reader.string()
        if version >= 4:
            self.group_instance_id = reader.compact_nullable_string()
        elif version >= 3:
            self.group_instance_id = reader.nullable_string()
        else:
            self.group_instance_id = None
        if version >= 4:
            self.client_id = reader.compact_string()
        else:
            self.client_id = reader.string()
        if version >= 4:
            self.client_host = reader.compact_string()
        else:
            self.client_host = reader.string()
        if version >= 1:
            self.rebalance_timeout, self.session_timeout = reader.fixed(_II)
        else:
            self.session_timeout = reader.int32()
            self.rebalance_timeout = -1
        if version >= 4:
            self.subscription = reader.compact_byte_string()
        else:
            self.subscription = reader.byte_string()
        if version >= 4:
            self.assignment = reader.compact_byte_string()
        else:
            self.assignment = reader.byte_string()
        if version >= 4:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 4:
            writer.compact_string(self.member_id)
        else:
            writer.string(self.member_id)
        if version >= 4:
            writer.compact_nullable_string(self.group_instance_id)
        elif version >= 3:
            writer.nullable_string(self.group_instance_id)
        if version >= 4:
            writer.compact_string(self.client_id)
        else:
            writer.string(self.client_id)
        if version >= 4:
            writer.compact_string(self.client_host)
        else:
            writer.string(self.client_host)
        if version >= 1:
            writer.append(_II.pack(self.rebalance_timeout, self.session_timeout))
        else:
            writer.int32(self.session_timeout)
        if version >= 4:
            writer.compact_byte_string(self.subscription)
        else:
            writer.byte_string(self.subscription)
        if version >= 4:
            writer.compact_byte_string(self.assignment)
        else:
            writer.byte_string(self.assignment)
        if version >= 4:
            writer.append(b"\x00")


class GroupMetadataValue(VersionedMessage):
    """The record itself; its version is the int16 in front of it."""

    __slots__ = ("protocol_type", "generation", "protocol", "leader", "current_state_timestamp", "members")
    VERSIONS = (0, 4)
    FLEXIBLE_FROM: int | None = 4
    JSON_FIELDS: JsonFields = (
        ("protocol_type", "string", 0, 4, False),
        ("generation", "int32", 0, 4, False),
        ("protocol", "string", 0, 4, False),
        ("leader", "string", 0, 4, False),
        ("current_state_timestamp", "int64", 2, 4, False),
        ("members", "MemberMetadata", 0, 4, False),
    )

    def __init__(
        self,
        *,
        protocol_type: str = "",
        generation: int = 0,
        protocol: str | None = "",
        leader: str | None = "",
        current_state_timestamp: int = -1,
        members: list[MemberMetadata] | None = None,
    ) -> None:
        self.protocol_type: str = protocol_type
        """Protocol type, 'consumer' for consumers; empty when only offsets are stored."""
        self.generation: int = generation
        """Generation reached."""
        self.protocol: str | None = protocol
        """Assignor of the generation; null while the group is empty."""
        self.leader: str | None = leader
        """Member id of the group leader; null while the group is empty."""
        self.current_state_timestamp: int = current_state_timestamp
        """v2+. When the state last changed, ms since the epoch; -1 when unknown. Starts offset expiry."""
        self.members: list[MemberMetadata] = [] if members is None else members
        """Members of the generation."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "GroupMetadataValue":
        self = cls.__new__(cls)
        if version >= 4:
            self.protocol_type = reader.compact_string()
        else:
            self.protocol_type = reader.string()
        self.generation = reader.int32()
        if version >= 4:
            self.protocol = reader.compact_nullable_string()
        else:
            self.protocol = reader.nullable_string()
        if version >= 4:
            self.leader = reader.compact_nullable_string()
        else:
            self.leader = reader.nullable_string()
        if version >= 2:
            self.current_state_timestamp = reader.int64()
        else:
            self.current_state_timestamp = -1
        if version >= 4:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        members: list[MemberMetadata] = []
        for _ in range(count):
            members.append(MemberMetadata.read(reader, version))
        self.members = members
        if version >= 4:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 4:
            writer.compact_string(self.protocol_type)
        else:
            writer.string(self.protocol_type)
        writer.int32(self.generation)
        if version >= 4:
            writer.compact_nullable_string(self.protocol)
        else:
            writer.nullable_string(self.protocol)
        if version >= 4:
            writer.compact_nullable_string(self.leader)
        else:
            writer.nullable_string(self.leader)
        if version >= 2:
            writer.int64(self.current_state_timestamp)
        if version >= 4:
            writer.compact_array_count(len(self.members))
        else:
            writer.array_count(len(self.members))
        for member_metadata in self.members:
            member_metadata.write(writer, version)
        if version >= 4:
            writer.append(b"\x00")

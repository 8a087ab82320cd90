# fmt: off
# ruff: noqa: E501
"""SyncGroup: key 14, versions 0 to 5.

After joining, the leader hands in the assignment and every member picks up its share; held until the leader's is in.

Versions:
1: Throttle time in the response.
2: Over quota, the answer goes out first and the pause follows (KIP-219).
3: Static member name (KIP-345).
4: Flexible encoding (KIP-482).
5: Protocol type and name on both sides, to catch mix-ups (KIP-559).

Generated from protocol_specs/apis/14_sync_group.json by `python -m protocol_specs.codegen`; do not edit.
"""

from struct import Struct

from minibroker.kafka.protocol.message import JsonFields, Message, not_carried
from minibroker.kafka.protocol.primitives import Reader, Writer

_IH = Struct(">ih")


class SyncGroupRequestAssignment(Message):
    """Shares of all members, from the leader; empty from everybody else."""

    __slots__ = ("member_id", "assignment")
    JSON_FIELDS: JsonFields = (
        ("member_id", "string", 0, 5, False),
        ("assignment", "bytes", 0, 5, False),
    )

    def __init__(
        self,
        *,
        member_id: str = "",
        assignment: bytes = b"",
    ) -> None:
        self.member_id: str = member_id
        """Member the share is for."""
        self.assignment: bytes = assignment
        """Share of this member, opaque to the broker."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "SyncGroupRequestAssignment":
        self = cls.__new__(cls)
        if version >= 4:
            self.member_id = reader.compact_string()
        else:
            self.member_id = reader.string()
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
            writer.compact_byte_string(self.assignment)
        else:
            writer.byte_string(self.assignment)
        if version >= 4:
            writer.append(b"\x00")


class SyncGroupRequest(Message):
    """Request of SyncGroup."""

    __slots__ = ("group_id", "generation_id", "member_id", "group_instance_id", "protocol_type", "protocol_name", "assignments")
    API_KEY = 14
    VERSIONS = (0, 5)
    FLEXIBLE_FROM: int | None = 4
    JSON_FIELDS: JsonFields = (
        ("group_id", "string", 0, 5, False),
        ("generation_id", "int32", 0, 5, False),
        ("member_id", "string", 0, 5, False),
        ("group_instance_id", "string", 3, 5, False),
        ("protocol_type", "string", 5, 5, False),
        ("protocol_name", "string", 5, 5, False),
        ("assignments", "SyncGroupRequestAssignment", 0, 5, False),
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        generation_id: int = 0,
        member_id: str = "",
        group_instance_id: str | None = None,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
        assignments: list[SyncGroupRequestAssignment] | None = None,
    ) -> None:
        self.group_id: str = group_id
        """Group, by name."""
        self.generation_id: int = generation_id
        """Generation the assignment is for; another is ILLEGAL_GENERATION."""
        self.member_id: str = member_id
        """Member asking for its share."""
        self.group_instance_id: str | None = group_instance_id
        """v3+. Static member name (group.instance.id, KIP-345); null for a dynamic member."""
        self.protocol_type: str | None = protocol_type
        """v5+. Protocol type the member joined with; differs from the group's = INCONSISTENT_GROUP_PROTOCOL."""
        self.protocol_name: str | None = protocol_name
        """v5+. Assignor the member was told; differs from the group's = INCONSISTENT_GROUP_PROTOCOL."""
        self.assignments: list[SyncGroupRequestAssignment] = [] if assignments is None else assignments
        """Shares of all members, from the leader; empty from everybody else."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "SyncGroupRequest":
        self = cls.__new__(cls)
        if version >= 4:
            self.group_id = reader.compact_string()
        else:
            self.group_id = reader.string()
        self.generation_id = reader.int32()
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
        if version >= 5:
            self.protocol_type = reader.compact_nullable_string()
        else:
            self.protocol_type = None
        if version >= 5:
            self.protocol_name = reader.compact_nullable_string()
        else:
            self.protocol_name = None
        if version >= 4:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        assignments: list[SyncGroupRequestAssignment] = []
        for _ in range(count):
            assignments.append(SyncGroupRequestAssignment.read(reader, version))
        self.assignments = assignments
        if version >= 4:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 4:
            writer.compact_string(self.group_id)
        else:
            writer.string(self.group_id)
        writer.int32(self.generation_id)
        if version >= 4:
            writer.compact_string(self.member_id)
        else:
            writer.string(self.member_id)
        if version >= 4:
            writer.compact_nullable_string(self.group_instance_id)
        elif version >= 3:
            writer.nullable_string(self.group_instance_id)
        else:
            if self.group_instance_id is not None:
                raise not_carried("SyncGroupRequest", "group_instance_id", version)
        if version >= 5:
            writer.compact_nullable_string(self.protocol_type)
        if version >= 5:
            writer.compact_nullable_string(self.protocol_name)
        if version >= 4:
            writer.compact_array_count(len(self.assignments))
        else:
            writer.array_count(len(self.assignments))
        for sync_group_request_assignment in self.assignments:
            sync_group_request_assignment.write(writer, version)
        if version >= 4:
            writer.append(b"\x00")


class SyncGroupResponse(Message):
    """Answer of SyncGroup."""

    __slots__ = ("throttle_time_ms", "error_code", "protocol_type", "protocol_name", "assignment")
    API_KEY = 14
    VERSIONS = (0, 5)
    FLEXIBLE_FROM: int | None = 4
    JSON_FIELDS: JsonFields = (
        ("throttle_time_ms", "int32", 1, 5, False),
        ("error_code", "error_code", 0, 5, False),
        ("protocol_type", "string", 5, 5, False),
        ("protocol_name", "string", 5, 5, False),
        ("assignment", "bytes", 0, 5, False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
        assignment: bytes = b"",
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        """v1+. Pause the quota asks of the client, in ms; 0 when it is within quota."""
        self.error_code: int = error_code
        """REBALANCE_IN_PROGRESS = join again; ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID, …; 0 = assignment follows."""
        self.protocol_type: str | None = protocol_type
        """v5+. Protocol type of the group; null on error."""
        self.protocol_name: str | None = protocol_name
        """v5+. Assignor of the generation; null on error."""
        self.assignment: bytes = assignment
        """Share of the member that asked, opaque to the broker; empty on error."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "SyncGroupResponse":
        self = cls.__new__(cls)
        if version >= 1:
            self.throttle_time_ms, self.error_code = reader.fixed(_IH)
        else:
            self.error_code = reader.int16()
            self.throttle_time_ms = 0
        if version >= 5:
            self.protocol_type = reader.compact_nullable_string()
        else:
            self.protocol_type = None
        if version >= 5:
            self.protocol_name = reader.compact_nullable_string()
        else:
            self.protocol_name = None
        if version >= 4:
            self.assignment = reader.compact_byte_string()
        else:
            self.assignment = reader.byte_string()
        if version >= 4:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 1:
            writer.append(_IH.pack(self.throttle_time_ms, self.error_code))
        else:
            writer.int16(self.error_code)
        if version >= 5:
            writer.compact_nullable_string(self.protocol_type)
        if version >= 5:
            writer.compact_nullable_string(self.protocol_name)
        if version >= 4:
            writer.compact_byte_string(self.assignment)
        else:
            writer.byte_string(self.assignment)
        if version >= 4:
            writer.append(b"\x00")

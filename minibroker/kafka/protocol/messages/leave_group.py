# fmt: off
# ruff: noqa: E501
"""LeaveGroup: key 13, versions 0 to 5.

Members leave a classic group, or an admin client removes them.

Versions:
1: Throttle time in the response.
2: Over quota, the answer goes out first and the pause follows (KIP-219).
3: Several members at once, also by static name (KIP-345).
4: Flexible encoding (KIP-482).
5: Reason for leaving (KIP-800).

Generated from protocol_specs/apis/13_leave_group.json by `python -m protocol_specs.codegen`; do not edit.
"""

from struct import Struct

from minibroker.kafka.protocol.message import JsonFields, Message, not_carried
from minibroker.kafka.protocol.primitives import Reader, Writer

_IH = Struct(">ih")


class MemberIdentity(Message):
    """Members that leave; from v3 on."""

    __slots__ = ("member_id", "group_instance_id", "reason")
    JSON_FIELDS: JsonFields = (
        ("member_id", "string", 3, 5, False),
        ("group_instance_id", "string", 3, 5, False),
        ("reason", "string", 5, 5, False),
    )

    def __init__(
        self,
        *,
        member_id: str = "",
        group_instance_id: str | None = None,
        reason: str | None = None,
    ) -> None:
        self.member_id: str = member_id
        """Member that leaves; empty when it is named by its static name only."""
        self.group_instance_id: str | None = group_instance_id
        """Static name of the leaving member; null = named by member id."""
        self.reason: str | None = reason
        """v5+. Why it leaves, for the log; null = not told."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "MemberIdentity":
        self = cls.__new__(cls)
        if version >= 4:
            self.member_id = reader.compact_string()
        else:
            self.member_id = reader.string()
        if version >= 4:
            self.group_instance_id = reader.compact_nullable_string()
        else:
            self.group_instance_id = reader.nullable_string()
        if version >= 5:
            self.reason = reader.compact_nullable_string()
        else:
            self.reason = None
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
        else:
            writer.nullable_string(self.group_instance_id)
        if version >= 5:
            writer.compact_nullable_string(self.reason)
        if version >= 4:
            writer.append(b"\x00")


class LeaveGroupRequest(Message):
    """Request of LeaveGroup."""

    __slots__ = ("group_id", "member_id", "members")
    API_KEY = 13
    VERSIONS = (0, 5)
    FLEXIBLE_FROM: int | None = 4
    JSON_FIELDS: JsonFields = (
        ("group_id", "string", 0, 5, False),
        ("member_id", "string", 0, 2, False),
        ("members", "MemberIdentity", 3, 5, False),
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
        members: list[MemberIdentity] | None = None,
    ) -> None:
        self.group_id: str = group_id
        """Group, by name."""
        self.member_id: str = member_id
        """v0-2. Member that leaves; up to v2."""
        self.members: list[MemberIdentity] = [] if members is None else members
        """v3+. Members that leave; from v3 on."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "LeaveGroupRequest":
        self = cls.__new__(cls)
        if version >= 4:
            self.group_id = reader.compact_string()
        else:
            self.group_id = reader.string()
        if version >= 3:
            self.member_id = ""
        else:
            self.member_id = reader.string()
        if version >= 3:
            if version >= 4:
                count = reader.compact_array_count()
            else:
                count = reader.array_count()
            members: list[MemberIdentity] = []
            for _ in range(count):
                members.append(MemberIdentity.read(reader, version))
            self.members = members
        else:
            self.members = []
        if version >= 4:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 4:
            writer.compact_string(self.group_id)
        else:
            writer.string(self.group_id)
        if version >= 3:
            if self.member_id != "":
                raise not_carried("LeaveGroupRequest", "member_id", version)
        else:
            writer.string(self.member_id)
        if version >= 3:
            if version >= 4:
                writer.compact_array_count(len(self.members))
            else:
                writer.array_count(len(self.members))
            for member_identity in self.members:
                member_identity.write(writer, version)
        else:
            if self.members:
                raise not_carried("LeaveGroupRequest", "members", version)
        if version >= 4:
            writer.append(b"\x00")


class MemberResponse(Message):
    """One result per member of the request."""

    __slots__ = ("member_id", "group_instance_id", "error_code")
    JSON_FIELDS: JsonFields = (
        ("member_id", "string", 3, 5, False),
        ("group_instance_id", "string", 3, 5, False),
        ("error_code", "error_code", 3, 5, False),
    )

    def __init__(
        self,
        *,
        member_id: str = "",
        group_instance_id: str | None = "",
        error_code: int = 0,
    ) -> None:
        self.member_id: str = member_id
        """Member of this result, as it was asked for."""
        self.group_instance_id: str | None = group_instance_id
        """Static name of this result, as it was asked for."""
        self.error_code: int = error_code
        """UNKNOWN_MEMBER_ID or FENCED_INSTANCE_ID for this member; 0 = it has left."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "MemberResponse":
        self = cls.__new__(cls)
        if version >= 4:
            self.member_id = reader.compact_string()
        else:
            self.member_id = reader.string()
        if version >= 4:
            self.group_instance_id = reader.compact_nullable_string()
        else:
            self.group_instance_id = reader.nullable_string()
        self.error_code = reader.int16()
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
        else:
            writer.nullable_string(self.group_instance_id)
        writer.int16(self.error_code)
        if version >= 4:
            writer.append(b"\x00")


class LeaveGroupResponse(Message):
    """Answer of LeaveGroup."""

    __slots__ = ("throttle_time_ms", "error_code", "members")
    API_KEY = 13
    VERSIONS = (0, 5)
    FLEXIBLE_FROM: int | None = 4
    JSON_FIELDS: JsonFields = (
        ("throttle_time_ms", "int32", 1, 5, False),
        ("error_code", "error_code", 0, 5, False),
        ("members", "MemberResponse", 3, 5, False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        members: list[MemberResponse] | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        """v1+. Pause the quota asks of the client, in ms; 0 when it is within quota."""
        self.error_code: int = error_code
        """Group-level error such as NOT_COORDINATOR; up to v2 also the member's own result; 0 on success."""
        self.members: list[MemberResponse] = [] if members is None else members
        """v3+. One result per member of the request."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "LeaveGroupResponse":
        self = cls.__new__(cls)
        if version >= 1:
            self.throttle_time_ms, self.error_code = reader.fixed(_IH)
        else:
            self.error_code = reader.int16()
            self.throttle_time_ms = 0
        if version >= 3:
            if version >= 4:
                count = reader.compact_array_count()
            else:
                count = reader.array_count()
            members: list[MemberResponse] = []
            for _ in range(count):
                members.append(MemberResponse.read(reader, version))
            self.members = members
        else:
            self.members = []
        if version >= 4:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 1:
            writer.append(_IH.pack(self.throttle_time_ms, self.error_code))
        else:
            writer.int16(self.error_code)
        if version >= 3:
            if version >= 4:
                writer.compact_array_count(len(self.members))
            else:
                writer.array_count(len(self.members))
            for member_response in self.members:
                member_response.write(writer, version)
        else:
            if self.members:
                raise not_carried("LeaveGroupResponse", "members", version)
        if version >= 4:
            writer.append(b"\x00")

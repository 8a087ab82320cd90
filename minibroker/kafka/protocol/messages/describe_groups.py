# fmt: off
# ruff: noqa: E501
"""DescribeGroups: key 15, versions 0 to 6.

Admin clients ask a coordinator about classic groups: state, members, assignments.

Versions:
1: Throttle time in the response.
2: Over quota, the answer goes out first and the pause follows (KIP-219).
3: Authorized operations can be asked for (KIP-430).
4: Static member names (KIP-345).
5: Flexible encoding (KIP-482).
6: GROUP_ID_NOT_FOUND with a text, instead of a Dead group (KIP-1043).

Generated from protocol_specs/apis/15_describe_groups.json by `python -m protocol_specs.codegen`; do not edit.
"""

from minibroker.kafka.protocol.message import JsonFields, Message, not_carried
from minibroker.kafka.protocol.primitives import Reader, Writer


class DescribeGroupsRequest(Message):
    """Request of DescribeGroups."""

    __slots__ = ("groups", "include_authorized_operations")
    API_KEY = 15
    VERSIONS = (0, 6)
    FLEXIBLE_FROM: int | None = 5
    JSON_FIELDS: JsonFields = (
        ("groups", "string", 0, 6, False),
        ("include_authorized_operations", "bool", 3, 6, False),
    )

    def __init__(
        self,
        *,
        groups: list[str] | None = None,
        include_authorized_operations: bool = False,
    ) -> None:
        self.groups: list[str] = [] if groups is None else groups
        """Names of the groups wanted."""
        self.include_authorized_operations: bool = include_authorized_operations
        """v3+. True: also answer which ACL operations the caller may do on each group."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "DescribeGroupsRequest":
        self = cls.__new__(cls)
        if version >= 5:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        groups: list[str] = []
        for _ in range(count):
            if version >= 5:
                groups.append(reader.compact_string())
            else:
                groups.append(reader.string())
        self.groups = groups
        if version >= 3:
            self.include_authorized_operations = reader.boolean()
        else:
            self.include_authorized_operations = False
        if version >= 5:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 5:
            writer.compact_array_count(len(self.groups))
        else:
            writer.array_count(len(self.groups))
        for text in self.groups:
            if version >= 5:
                writer.compact_string(text)
            else:
                writer.string(text)
        if version >= 3:
            writer.boolean(self.include_authorized_operations)
        else:
            if self.include_authorized_operations:
                raise not_carried("DescribeGroupsRequest", "include_authorized_operations", version)
        if version >= 5:
            writer.append(b"\x00")


class DescribedGroupMember(Message):
    """Members of the group; none when it is Dead."""

    __slots__ = ("member_id", "group_instance_id", "client_id", "client_host", "member_metadata", "member_assignment")
    JSON_FIELDS: JsonFields = (
        ("member_id", "string", 0, 6, False),
        ("group_instance_id", "string", 4, 6, False),
        ("client_id", "string", 0, 6, False),
        ("client_host", "string", 0, 6, False),
        ("member_metadata", "bytes", 0, 6, False),
        ("member_assignment", "bytes", 0, 6, False),
    )

    def __init__(
        self,
        *,
        member_id: str = "",
        group_instance_id: str | None = None,
        client_id: str = "",
        client_host: str = "",
        member_metadata: bytes = b"",
        member_assignment: bytes = b"",
    ) -> None:
        self.member_id: str = member_id
        """Member, by the id the coordinator knows it under."""
        self.group_instance_id: str | None = group_instance_id
        """v4+. Static member name (group.instance.id, KIP-345); null for a dynamic member."""
        self.client_id: str = client_id
        """client_id of the request header the member last joined with."""
        self.client_host: str = client_host
        """Address the member connected from, as text."""
        self.member_metadata: bytes = member_metadata
        """Subscription for the assignor in use, opaque; empty unless Stable."""
        self.member_assignment: bytes = member_assignment
        """Share the leader gave the member, opaque; empty unless Stable."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "DescribedGroupMember":
        self = cls.__new__(cls)
        if version >= 5:
            self.member_id = reader.compact_string()
        else:
            self.member_id = reader.string()
        if version >= 5:
            self.group_instance_id = reader.compact_nullable_string()
        elif version >= 4:
            self.group_instance_id = reader.nullable_string()
        else:
            self.group_instance_id = None
        if version >= 5:
            self.client_id = reader.compact_string()
        else:
            self.client_id = reader.string()
        if version >= 5:
            self.client_host = reader.compact_string()
        else:
            self.client_host = reader.string()
        if version >= 5:
            self.member_metadata = reader.compact_byte_string()
        else:
            self.member_metadata = reader.byte_string()
        if version >= 5:
            self.member_assignment = reader.compact_byte_string()
        else:
            self.member_assignment = reader.byte_string()
        if version >= 5:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 5:
            writer.compact_string(self.member_id)
        else:
            writer.string(self.member_id)
        if version >= 5:
            writer.compact_nullable_string(self.group_instance_id)
        elif version >= 4:
            writer.nullable_string(self.group_instance_id)
        if version >= 5:
            writer.compact_string(self.client_id)
        else:
            writer.string(self.client_id)
        if version >= 5:
            writer.compact_string(self.client_host)
        else:
            writer.string(self.client_host)
        if version >= 5:
            writer.compact_byte_string(self.member_metadata)
        else:
            writer.byte_string(self.member_metadata)
        if version >= 5:
            writer.compact_byte_string(self.member_assignment)
        else:
            writer.byte_string(self.member_assignment)
        if version >= 5:
            writer.append(b"\x00")


class DescribedGroup(Message):
    """One description per group asked for."""

    __slots__ = ("error_code", "error_message", "group_id", "group_state", "protocol_type", "protocol_data", "members", "authorized_operations")
    JSON_FIELDS: JsonFields = (
        ("error_code", "error_code", 0, 6, False),
        ("error_message", "string", 6, 6, False),
        ("group_id", "string", 0, 6, False),
        ("group_state", "string", 0, 6, False),
        ("protocol_type", "string", 0, 6, False),
        ("protocol_data", "string", 0, 6, False),
        ("members", "DescribedGroupMember", 0, 6, False),
        ("authorized_operations", "int32", 3, 6, False),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = None,
        group_id: str = "",
        group_state: str = "",
        protocol_type: str = "",
        protocol_data: str = "",
        members: list[DescribedGroupMember] | None = None,
        authorized_operations: int = -2147483648,
    ) -> None:
        self.error_code: int = error_code
        """NOT_COORDINATOR, GROUP_AUTHORIZATION_FAILED, from v6 GROUP_ID_NOT_FOUND; 0 on success."""
        self.error_message: str | None = error_message
        """v6+. Human-readable reason for this entry's error_code; null when there is nothing to add."""
        self.group_id: str = group_id
        """Group, by name."""
        self.group_state: str = group_state
        """Empty, PreparingRebalance, CompletingRebalance, Stable or Dead; empty string on error."""
        self.protocol_type: str = protocol_type
        """Protocol type, 'consumer' for consumers; empty string when there is none."""
        self.protocol_data: str = protocol_data
        """Assignor in use while Stable; else the empty string."""
        self.members: list[DescribedGroupMember] = [] if members is None else members
        """Members of the group; none when it is Dead."""
        self.authorized_operations: int = authorized_operations
        """v3+. Bit set of ACL operations the caller may do on the group; -2147483648 = not asked for."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "DescribedGroup":
        self = cls.__new__(cls)
        self.error_code = reader.int16()
        if version >= 6:
            self.error_message = reader.compact_nullable_string()
        else:
            self.error_message = None
        if version >= 5:
            self.group_id = reader.compact_string()
        else:
            self.group_id = reader.string()
        if version >= 5:
            self.group_state = reader.compact_string()
        else:
            self.group_state = reader.string()
        if version >= 5:
            self.protocol_type = reader.compact_string()
        else:
            self.protocol_type = reader.string()
        if version >= 5:
            self.protocol_data = reader.compact_string()
        else:
            self.protocol_data = reader.string()
        if version >= 5:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        members: list[DescribedGroupMember] = []
        for _ in range(count):
            members.append(DescribedGroupMember.read(reader, version))
        self.members = members
        if version >= 3:
            self.authorized_operations = reader.int32()
        else:
            self.authorized_operations = -2147483648
        if version >= 5:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.int16(self.error_code)
        if version >= 6:
            writer.compact_nullable_string(self.error_message)
        else:
            if self.error_message is not None:
                raise not_carried("DescribedGroup", "error_message", version)
        if version >= 5:
            writer.compact_string(self.group_id)
        else:
            writer.string(self.group_id)
        if version >= 5:
            writer.compact_string(self.group_state)
        else:
            writer.string(self.group_state)
        if version >= 5:
            writer.compact_string(self.protocol_type)
        else:
            writer.string(self.protocol_type)
        if version >= 5:
            writer.compact_string(self.protocol_data)
        else:
            writer.string(self.protocol_data)
        if version >= 5:
            writer.compact_array_count(len(self.members))
        else:
            writer.array_count(len(self.members))
        for described_group_member in self.members:
            described_group_member.write(writer, version)
        if version >= 3:
            writer.int32(self.authorized_operations)
        else:
            if self.authorized_operations != -2147483648:
                raise not_carried("DescribedGroup", "authorized_operations", version)
        if version >= 5:
            writer.append(b"\x00")


class DescribeGroupsResponse(Message):
    """Answer of DescribeGroups."""

    __slots__ = ("throttle_time_ms", "groups")
    API_KEY = 15
    VERSIONS = (0, 6)
    FLEXIBLE_FROM: int | None = 5
    JSON_FIELDS: JsonFields = (
        ("throttle_time_ms", "int32", 1, 6, False),
        ("groups", "DescribedGroup", 0, 6, False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        groups: list[DescribedGroup] | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        """v1+. Pause the quota asks of the client, in ms; 0 when it is within quota."""
        self.groups: list[DescribedGroup] = [] if groups is None else groups
        """One description per group asked for."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "DescribeGroupsResponse":
        self = cls.__new__(cls)
        if version >= 1:
            self.throttle_time_ms = reader.int32()
        else:
            self.throttle_time_ms = 0
        if version >= 5:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        groups: list[DescribedGroup] = []
        for _ in range(count):
            groups.append(DescribedGroup.read(reader, version))
        self.groups = groups
        if version >= 5:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 1:
            writer.int32(self.throttle_time_ms)
        if version >= 5:
            writer.compact_array_count(len(self.groups))
        else:
            writer.array_count(len(self.groups))
        for described_group in self.groups:
            described_group.write(writer, version)
        if version >= 5:
            writer.append(b"\x00")

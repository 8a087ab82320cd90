# fmt: off
# ruff: noqa: E501
"""JoinGroup: key 11, versions 0 to 9.

A classic-group member (re)joins; held by the coordinator until all members are in or the rebalance times out.

Versions:
1: Rebalance timeout of its own (KIP-62).
2: Throttle time in the response.
3: Over quota, the answer goes out first and the pause follows (KIP-219).
4: A new member first gets MEMBER_ID_REQUIRED with its id, then joins with it (KIP-394).
5: Static member name (KIP-345).
6: Flexible encoding (KIP-482).
7: Protocol type in the response (KIP-559).
8: Reason for joining (KIP-800).
9: The leader can be told to skip assigning (KIP-814).

Generated from protocol_specs/apis/11_join_group.json by `python -m protocol_specs.codegen`; do not edit.
"""

from struct import Struct

from minibroker.kafka.protocol.message import JsonFields, Message, not_carried, null_not_carried
from minibroker.kafka.protocol.primitives import Reader, Writer

_HI = Struct(">hi")
_IHI = Struct(">ihi")
_II = Struct(">ii")


class JoinGroupRequestProtocol(Message):
    """Assignors the member can work with, favourite first; all members must share one."""

    __slots__ = ("name", "metadata")
    JSON_FIELDS: JsonFields = (
        ("name", "string", 0, 9, False),
        ("metadata", "bytes", 0, 9, False),
    )

    def __init__(
        self,
        *,
        name: str = "",
        metadata: bytes = b"",
    ) -> None:
        self.name: str = name
        """Assignor, e.g. range or cooperative-sticky."""
        self.metadata: bytes = metadata
        """Subscription of the member, opaque to the broker."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "JoinGroupRequestProtocol":
        self = cls.__new__(cls)
        if version >= 6:
            self.name = reader.compact_string()
        else:
            self.name = reader.string()
        if version >= 6:
            self.metadata = reader.compact_byte_string()
        else:
            self.metadata = reader.byte_string()
        if version >= 6:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 6:
            writer.compact_string(self.name)
        else:
            writer.string(self.name)
        if version >= 6:
            writer.compact_byte_string(self.metadata)
        else:
            writer.byte_string(self.metadata)
        if version >= 6:
            writer.append(b"\x00")


class JoinGroupRequest(Message):
    """Request of JoinGroup."""

    __slots__ = ("group_id", "session_timeout_ms", "rebalance_timeout_ms", "member_id", "group_instance_id", "protocol_type", "protocols", "reason")
    API_KEY = 11
    VERSIONS = (0, 9)
    FLEXIBLE_FROM: int | None = 6
    JSON_FIELDS: JsonFields = (
        ("group_id", "string", 0, 9, False),
        ("session_timeout_ms", "int32", 0, 9, False),
        ("rebalance_timeout_ms", "int32", 1, 9, False),
        ("member_id", "string", 0, 9, False),
        ("group_instance_id", "string", 5, 9, False),
        ("protocol_type", "string", 0, 9, False),
        ("protocols", "JoinGroupRequestProtocol", 0, 9, False),
        ("reason", "string", 8, 9, False),
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        session_timeout_ms: int = 0,
        rebalance_timeout_ms: int = -1,
        member_id: str = "",
        group_instance_id: str | None = None,
        protocol_type: str = "",
        protocols: list[JoinGroupRequestProtocol] | None = None,
        reason: str | None = None,
    ) -> None:
        self.group_id: str = group_id
        """Group, by name."""
        self.session_timeout_ms: int = session_timeout_ms
        """Silence after which the member is expelled, in ms; bounded by group.{min,max}.session.timeout.ms."""
        self.rebalance_timeout_ms: int = rebalance_timeout_ms
        """v1+. How long the join phase waits for this member, in ms; v0 uses the session timeout."""
        self.member_id: str = member_id
        """Id given earlier; empty on the first join."""
        self.group_instance_id: str | None = group_instance_id
        """v5+. Static member name (group.instance.id, KIP-345); null for a dynamic member."""
        self.protocol_type: str = protocol_type
        """Family of the protocols, 'consumer' for consumers; must equal the group's."""
        self.protocols: list[JoinGroupRequestProtocol] = [] if protocols is None else protocols
        """Assignors the member can work with, favourite first; all members must share one."""
        self.reason: str | None = reason
        """v8+. Why it joins, for the log; null = not told. Kafka cuts it to 255 characters."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "JoinGroupRequest":
        self = cls.__new__(cls)
        if version >= 6:
            self.group_id = reader.compact_string()
        else:
            self.group_id = reader.string()
        if version >= 1:
            self.session_timeout_ms, self.rebalance_timeout_ms = reader.fixed(_II)
        else:
            self.session_timeout_ms = reader.int32()
            self.rebalance_timeout_ms = -1
        if version >= 6:
            self.member_id = reader.compact_string()
        else:
            self.member_id = reader.string()
        if version >= 6:
            self.group_instance_id = reader.compact_nullable_string()
        elif version >= 5:
            self.group_instance_id = reader.nullable_string()
        else:
            self.group_instance_id = None
        if version >= 6:
            self.protocol_type = reader.compact_string()
        else:
            self.protocol_type = reader.string()
        if version >= 6:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        protocols: list[JoinGroupRequestProtocol] = []
        for _ in range(count):
            protocols.append(JoinGroupRequestProtocol.read(reader, version))
        self.protocols = protocols
        if version >= 8:
            self.reason = reader.compact_nullable_string()
        else:
            self.reason = None
        if version >= 6:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 6:
            writer.compact_string(self.group_id)
        else:
            writer.string(self.group_id)
        if version >= 1:
            writer.append(_II.pack(self.session_timeout_ms, self.rebalance_timeout_ms))
        else:
            writer.int32(self.session_timeout_ms)
        if version >= 6:
            writer.compact_string(self.member_id)
        else:
            writer.string(self.member_id)
        if version >= 6:
            writer.compact_nullable_string(self.group_instance_id)
        elif version >= 5:
            writer.nullable_string(self.group_instance_id)
        else:
            if self.group_instance_id is not None:
                raise not_carried("JoinGroupRequest", "group_instance_id", version)
        if version >= 6:
            writer.compact_string(self.protocol_type)
        else:
            writer.string(self.protocol_type)
        if version >= 6:
            writer.compact_array_count(len(self.protocols))
        else:
            writer.array_count(len(self.protocols))
        for join_group_request_protocol in self.protocols:
            join_group_request_protocol.write(writer, version)
        if version >= 8:
            writer.compact_nullable_string(self.reason)
        if version >= 6:
            writer.append(b"\x00")


class JoinGroupResponseMember(Message):
    """All members with their subscriptions; filled for the leader only."""

    __slots__ = ("member_id", "group_instance_id", "metadata")
    JSON_FIELDS: JsonFields = (
        ("member_id", "string", 0, 9, False),
        ("group_instance_id", "string", 5, 9, False),
        ("metadata", "bytes", 0, 9, False),
    )

    def __init__(
        self,
        *,
        member_id: str = "",
        group_instance_id: str | None = None,
        metadata: bytes = b"",
    ) -> None:
        self.member_id: str = member_id
        """Id of one member of the group."""
        self.group_instance_id: str | None = group_instance_id
        """v5+. Static member name (group.instance.id, KIP-345); null for a dynamic member."""
        self.metadata: bytes = metadata
        """Subscription this member sent for the chosen assignor."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "JoinGroupResponseMember":
        self = cls.__new__(cls)
        if version >= 6:
            self.member_id = reader.compact_string()
        else:
            self.member_id = reader.string()
        if version >= 6:
            self.group_instance_id = reader.compact_nullable_string()
        elif version >= 5:
            self.group_instance_id = reader.nullable_string()
        else:
            self.group_instance_id = None
        if version >= 6:
            self.metadata = reader.compact_byte_string()
        else:
            self.metadata = reader.byte_string()
        if version >= 6:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 6:
            writer.compact_string(self.member_id)
        else:
            writer.string(self.member_id)
        if version >= 6:
            writer.compact_nullable_string(self.group_instance_id)
        elif version >= 5:
            writer.nullable_string(self.group_instance_id)
        if version >= 6:
            writer.compact_byte_string(self.metadata)
        else:
            writer.byte_string(self.metadata)
        if version >= 6:
            writer.append(b"\x00")


class JoinGroupResponse(Message):
    """Answer of JoinGroup."""

    __slots__ = ("throttle_time_ms", "error_code", "generation_id", "protocol_type", "protocol_name", "leader", "skip_assignment", "member_id", "members")
    API_KEY = 11
    VERSIONS = (0, 9)
    FLEXIBLE_FROM: int | None = 6
    JSON_FIELDS: JsonFields = (
        ("throttle_time_ms", "int32", 2, 9, False),
        ("error_code", "error_code", 0, 9, False),
        ("generation_id", "int32", 0, 9, False),
        ("protocol_type", "string", 7, 9, False),
        ("protocol_name", "string", 0, 9, False),
        ("leader", "string", 0, 9, False),
        ("skip_assignment", "bool", 9, 9, False),
        ("member_id", "string", 0, 9, False),
        ("members", "JoinGroupResponseMember", 0, 9, False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        generation_id: int = -1,
        protocol_type: str | None = None,
        protocol_name: str | None = "",
        leader: str = "",
        skip_assignment: bool = False,
        member_id: str = "",
        members: list[JoinGroupResponseMember] | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        """v2+. Pause the quota asks of the client, in ms; 0 when it is within quota."""
        self.error_code: int = error_code
        """MEMBER_ID_REQUIRED, UNKNOWN_MEMBER_ID, INCONSISTENT_GROUP_PROTOCOL, INVALID_SESSION_TIMEOUT, …; 0 = joined."""
        self.generation_id: int = generation_id
        """Generation that begins with this rebalance; -1 on error."""
        self.protocol_type: str | None = protocol_type
        """v7+. Protocol type of the group; null on error."""
        self.protocol_name: str | None = protocol_name
        """Assignor chosen by vote; null on error (empty up to v6)."""
        self.leader: str = leader
        """Member id of the group leader, which computes the assignment."""
        self.skip_assignment: bool = skip_assignment
        """v9+. True: the leader sends no assignment, the old one stays valid (static leader, KIP-814)."""
        self.member_id: str = member_id
        """Id of the member that asked, also with MEMBER_ID_REQUIRED."""
        self.members: list[JoinGroupResponseMember] = [] if members is None else members
        """All members with their subscriptions; filled for the leader only."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "JoinGroupResponse":
        self = cls.__new__(cls)
        if version >= 2:
            self.throttle_time_ms, self.error_code, self.generation_id = reader.fixed(_IHI)
        else:
            self.error_code, self.generation_id = reader.fixed(_HI)
            self.throttle_time_ms = 0
        if version >= 7:
            self.protocol_type = reader.compact_nullable_string()
        else:
            self.protocol_type = None
        if version >= 7:
            self.protocol_name = reader.compact_nullable_string()
        elif version >= 6:
            self.protocol_name = reader.compact_string()
        else:
            self.protocol_name = reader.string()
        if version >= 6:
            self.leader = reader.compact_string()
        else:
            self.leader = reader.string()
        if version >= 9:
            self.skip_assignment = reader.boolean()
        else:
            self.skip_assignment = False
        if version >= 6:
            self.member_id = reader.compact_string()
        else:
            self.member_id = reader.string()
        if version >= 6:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        members: list[JoinGroupResponseMember] = []
        for _ in range(count):
            members.append(JoinGroupResponseMember.read(reader, version))
        self.members = members
        if version >= 6:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 2:
            writer.append(_IHI.pack(self.throttle_time_ms, self.error_code, self.generation_id))
        else:
            writer.append(_HI.pack(self.error_code, self.generation_id))
        if version >= 7:
            writer.compact_nullable_string(self.protocol_type)
        if version >= 7:
            writer.compact_nullable_string(self.protocol_name)
        elif version >= 6:
            if self.protocol_name is None:
                raise null_not_carried("protocol_name", version)
            writer.compact_string(self.protocol_name)
        else:
            if self.protocol_name is None:
                raise null_not_carried("protocol_name", version)
            writer.string(self.protocol_name)
        if version >= 6:
            writer.compact_string(self.leader)
        else:
            writer.string(self.leader)
        if version >= 9:
            writer.boolean(self.skip_assignment)
        else:
            if self.skip_assignment:
                raise not_carried("JoinGroupResponse", "skip_assignment", version)
        if version >= 6:
            writer.compact_string(self.member_id)
        else:
            writer.string(self.member_id)
        if version >= 6:
            writer.compact_array_count(len(self.members))
        else:
            writer.array_count(len(self.members))
        for join_group_response_member in self.members:
            join_group_response_member.write(writer, version)
        if version >= 6:
            writer.append(b"\x00")

# fmt: off
# ruff: noqa: E501
"""ShareGroupDescribe: key 77, versions 0 to 1.

Admin clients ask a coordinator about share groups (KIP-932).

Versions:
1: First stable version; v0 was early access and is gone.

Generated from protocol_specs/apis/77_share_group_describe.json by `python -m protocol_specs.codegen`; do not edit.
"""

from struct import Struct

from minibroker.kafka.protocol.message import JsonFields, Message
from minibroker.kafka.protocol.primitives import ZERO_UUID, Reader, Writer

_II = Struct(">ii")


class ShareGroupDescribeRequest(Message):
    """Request of ShareGroupDescribe."""

    __slots__ = ("group_ids", "include_authorized_operations")
    API_KEY = 77
    VERSIONS = (0, 1)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("group_ids", "string", 0, 1, False),
        ("include_authorized_operations", "bool", 0, 1, False),
    )

    def __init__(
        self,
        *,
        group_ids: list[str] | None = None,
        include_authorized_operations: bool = False,
    ) -> None:
        self.group_ids: list[str] = [] if group_ids is None else group_ids
        """Names of the groups wanted."""
        self.include_authorized_operations: bool = include_authorized_operations
        """True: also answer which ACL operations the caller may do on each group."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ShareGroupDescribeRequest":
        self = cls.__new__(cls)
        count = reader.compact_array_count()
        group_ids: list[str] = []
        for _ in range(count):
            group_ids.append(reader.compact_string())
        self.group_ids = group_ids
        self.include_authorized_operations = reader.boolean()
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_array_count(len(self.group_ids))
        for text in self.group_ids:
            writer.compact_string(text)
        writer.boolean(self.include_authorized_operations)
        writer.append(b"\x00")


class TopicPartitions(Message):
    """Those partitions, grouped by topic."""

    __slots__ = ("topic_id", "topic_name", "partitions")
    JSON_FIELDS: JsonFields = (
        ("topic_id", "uuid", 0, 1, False),
        ("topic_name", "string", 0, 1, False),
        ("partitions", "int32", 0, 1, False),
    )

    def __init__(
        self,
        *,
        topic_id: bytes = ZERO_UUID,
        topic_name: str = "",
        partitions: list[int] | None = None,
    ) -> None:
        self.topic_id: bytes = topic_id
        """Topic, by its 16-byte id (KIP-516)."""
        self.topic_name: str = topic_name
        """Topic, by name."""
        self.partitions: list[int] = [] if partitions is None else partitions
        """Numbers of the partitions meant within that topic."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "TopicPartitions":
        self = cls.__new__(cls)
        self.topic_id = reader.uuid()
        self.topic_name = reader.compact_string()
        count = reader.compact_array_count()
        self.partitions = reader.numbers(count, "i")
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.uuid(self.topic_id)
        writer.compact_string(self.topic_name)
        writer.compact_array_count(len(self.partitions))
        writer.numbers(self.partitions, "i")
        writer.append(b"\x00")


class Assignment(Message):
    """Partitions the member may fetch from."""

    __slots__ = ("topic_partitions",)
    JSON_FIELDS: JsonFields = (
        ("topic_partitions", "TopicPartitions", 0, 1, False),
    )

    def __init__(
        self,
        *,
        topic_partitions: list[TopicPartitions] | None = None,
    ) -> None:
        self.topic_partitions: list[TopicPartitions] = [] if topic_partitions is None else topic_partitions
        """Those partitions, grouped by topic."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "Assignment":
        self = cls.__new__(cls)
        count = reader.compact_array_count()
        topic_partitions: list[TopicPartitions] = []
        for _ in range(count):
            topic_partitions.append(TopicPartitions.read(reader, version))
        self.topic_partitions = topic_partitions
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_array_count(len(self.topic_partitions))
        for topic_partitions in self.topic_partitions:
            topic_partitions.write(writer, version)
        writer.append(b"\x00")


class Member(Message):
    """Members of the group."""

    __slots__ = ("member_id", "rack_id", "member_epoch", "client_id", "client_host", "subscribed_topic_names", "assignment")
    JSON_FIELDS: JsonFields = (
        ("member_id", "string", 0, 1, False),
        ("rack_id", "string", 0, 1, False),
        ("member_epoch", "int32", 0, 1, False),
        ("client_id", "string", 0, 1, False),
        ("client_host", "string", 0, 1, False),
        ("subscribed_topic_names", "string", 0, 1, False),
        ("assignment", "Assignment", 0, 1, False),
    )

    def __init__(
        self,
        *,
        member_id: str = "",
        rack_id: str | None = None,
        member_epoch: int = 0,
        client_id: str = "",
        client_host: str = "",
        subscribed_topic_names: list[str] | None = None,
        assignment: Assignment | None = None,
    ) -> None:
        self.member_id: str = member_id
        """Member, by the id the coordinator knows it under."""
        self.rack_id: str | None = rack_id
        """client.rack of the member; null = none."""
        self.member_epoch: int = member_epoch
        """Epoch the member has reached."""
        self.client_id: str = client_id
        """client_id of the request header the member last joined with."""
        self.client_host: str = client_host
        """Address the member connected from, as text."""
        self.subscribed_topic_names: list[str] = [] if subscribed_topic_names is None else subscribed_topic_names
        """Topics the member subscribes to."""
        self.assignment: Assignment = Assignment() if assignment is None else assignment
        """Partitions the member may fetch from."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "Member":
        self = cls.__new__(cls)
        self.member_id = reader.compact_string()
        self.rack_id = reader.compact_nullable_string()
        self.member_epoch = reader.int32()
        self.client_id = reader.compact_string()
        self.client_host = reader.compact_string()
        count = reader.compact_array_count()
        subscribed_topic_names: list[str] = []
        for _ in range(count):
            subscribed_topic_names.append(reader.compact_string())
        self.subscribed_topic_names = subscribed_topic_names
        self.assignment = Assignment.read(reader, version)
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.member_id)
        writer.compact_nullable_string(self.rack_id)
        writer.int32(self.member_epoch)
        writer.compact_string(self.client_id)
        writer.compact_string(self.client_host)
        writer.compact_array_count(len(self.subscribed_topic_names))
        for text in self.subscribed_topic_names:
            writer.compact_string(text)
        self.assignment.write(writer, version)
        writer.append(b"\x00")


class DescribedGroup(Message):
    """One description per group asked for."""

    __slots__ = ("error_code", "error_message", "group_id", "group_state", "group_epoch", "assignment_epoch", "assignor_name", "members", "authorized_operations")
    JSON_FIELDS: JsonFields = (
        ("error_code", "error_code", 0, 1, False),
        ("error_message", "string", 0, 1, False),
        ("group_id", "string", 0, 1, False),
        ("group_state", "string", 0, 1, False),
        ("group_epoch", "int32", 0, 1, False),
        ("assignment_epoch", "int32", 0, 1, False),
        ("assignor_name", "string", 0, 1, False),
        ("members", "Member", 0, 1, False),
        ("authorized_operations", "int32", 0, 1, False),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = None,
        group_id: str = "",
        group_state: str = "",
        group_epoch: int = 0,
        assignment_epoch: int = 0,
        assignor_name: str = "",
        members: list[Member] | None = None,
        authorized_operations: int = -2147483648,
    ) -> None:
        self.error_code: int = error_code
        """Result for this group alone; 0 (NONE) on success."""
        self.error_message: str | None = error_message
        """Human-readable reason for this entry's error_code; null when there is nothing to add."""
        self.group_id: str = group_id
        """Group, by name."""
        self.group_state: str = group_state
        """Empty, Stable or Dead; empty string on error."""
        self.group_epoch: int = group_epoch
        """Counter raised whenever members or metadata change."""
        self.assignment_epoch: int = assignment_epoch
        """Group epoch the assignment was computed for."""
        self.assignor_name: str = assignor_name
        """Assignor in use, e.g. simple."""
        self.members: list[Member] = [] if members is None else members
        """Members of the group."""
        self.authorized_operations: int = authorized_operations
        """Bit set of ACL operations the caller may do on the group; -2147483648 = not asked for."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "DescribedGroup":
        self = cls.__new__(cls)
        self.error_code = reader.int16()
        self.error_message = reader.compact_nullable_string()
        self.group_id = reader.compact_string()
        self.group_state = reader.compact_string()
        self.group_epoch, self.assignment_epoch = reader.fixed(_II)
        self.assignor_name = reader.compact_string()
        count = reader.compact_array_count()
        members: list[Member] = []
        for _ in range(count):
            members.append(Member.read(reader, version))
        self.members = members
        self.authorized_operations = reader.int32()
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.int16(self.error_code)
        writer.compact_nullable_string(self.error_message)
        writer.compact_string(self.group_id)
        writer.compact_string(self.group_state)
        writer.append(_II.pack(self.group_epoch, self.assignment_epoch))
        writer.compact_string(self.assignor_name)
        writer.compact_array_count(len(self.members))
        for member in self.members:
            member.write(writer, version)
        writer.int32(self.authorized_operations)
        writer.append(b"\x00")


class ShareGroupDescribeResponse(Message):
    """Answer of ShareGroupDescribe."""

    __slots__ = ("throttle_time_ms", "groups")
    API_KEY = 77
    VERSIONS = (0, 1)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("throttle_time_ms", "int32", 0, 1, False),
        ("groups", "DescribedGroup", 0, 1, False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        groups: list[DescribedGroup] | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        """Pause the quota asks of the client, in ms; 0 when it is within quota."""
        self.groups: list[DescribedGroup] = [] if groups is None else groups
        """One description per group asked for."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ShareGroupDescribeResponse":
        self = cls.__new__(cls)
        self.throttle_time_ms = reader.int32()
        count = reader.compact_array_count()
        groups: list[DescribedGroup] = []
        for _ in range(count):
            groups.append(DescribedGroup.read(reader, version))
        self.groups = groups
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.int32(self.throttle_time_ms)
        writer.compact_array_count(len(self.groups))
        for described_group in self.groups:
            described_group.write(writer, version)
        writer.append(b"\x00")

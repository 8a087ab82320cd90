# fmt: off
# ruff: noqa: E501
"""ConsumerGroupHeartbeat: key 68, versions 0 to 1.

A KIP-848 consumer joins, stays in, acknowledges its assignment and leaves: all in one heartbeat.

Versions:
1: Regular expression subscription; the client makes its own member id (KIP-1082).

Generated from protocol_specs/apis/68_consumer_group_heartbeat.json by `python -m protocol_specs.codegen`; do not edit.
"""

from struct import Struct

from minibroker.kafka.protocol.message import JsonFields, Message, not_carried
from minibroker.kafka.protocol.primitives import ZERO_UUID, Reader, Writer

_IH = Struct(">ih")
_II = Struct(">ii")


class TopicPartitions(Message):
    """Partitions the member holds now, grouped by topic; null = as before."""

    __slots__ = ("topic_id", "partitions")
    JSON_FIELDS: JsonFields = (
        ("topic_id", "uuid", 0, 1, False),
        ("partitions", "int32", 0, 1, False),
    )

    def __init__(
        self,
        *,
        topic_id: bytes = ZERO_UUID,
        partitions: list[int] | None = None,
    ) -> None:
        self.topic_id: bytes = topic_id
        """Topic, by its 16-byte id (KIP-516)."""
        self.partitions: list[int] = [] if partitions is None else partitions
        """Numbers of the partitions meant within that topic."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "TopicPartitions":
        self = cls.__new__(cls)
        self.topic_id = reader.uuid()
        count = reader.compact_array_count()
        self.partitions = reader.numbers(count, "i")
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.uuid(self.topic_id)
        writer.compact_array_count(len(self.partitions))
        writer.numbers(self.partitions, "i")
        writer.append(b"\x00")


class ConsumerGroupHeartbeatRequest(Message):
    """Request of ConsumerGroupHeartbeat."""

    __slots__ = ("group_id", "member_id", "member_epoch", "instance_id", "rack_id", "rebalance_timeout_ms", "subscribed_topic_names", "subscribed_topic_regex", "server_assignor", "topic_partitions")
    API_KEY = 68
    VERSIONS = (0, 1)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("group_id", "string", 0, 1, False),
        ("member_id", "string", 0, 1, False),
        ("member_epoch", "int32", 0, 1, False),
        ("instance_id", "string", 0, 1, False),
        ("rack_id", "string", 0, 1, False),
        ("rebalance_timeout_ms", "int32", 0, 1, False),
        ("subscribed_topic_names", "string", 0, 1, False),
        ("subscribed_topic_regex", "string", 1, 1, False),
        ("server_assignor", "string", 0, 1, False),
        ("topic_partitions", "TopicPartitions", 0, 1, False),
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
        member_epoch: int = 0,
        instance_id: str | None = None,
        rack_id: str | None = None,
        rebalance_timeout_ms: int = -1,
        subscribed_topic_names: list[str] | None = None,
        subscribed_topic_regex: str | None = None,
        server_assignor: str | None = None,
        topic_partitions: list[TopicPartitions] | None = None,
    ) -> None:
        self.group_id: str = group_id
        """Group, by name."""
        self.member_id: str = member_id
        """Id of the member, made by the client (v0: empty on joining lets the coordinator make it)."""
        self.member_epoch: int = member_epoch
        """Epoch told by the coordinator; 0 = join, -1 = leave, -2 = static member leaves for a while."""
        self.instance_id: str | None = instance_id
        """Static member name; null = none, or as before."""
        self.rack_id: str | None = rack_id
        """client.rack of the consumer; null = none, or as before."""
        self.rebalance_timeout_ms: int = rebalance_timeout_ms
        """Time the member gets to give up partitions, in ms; -1 = as before."""
        self.subscribed_topic_names: list[str] | None = subscribed_topic_names
        """Topics subscribed by name; null = as before."""
        self.subscribed_topic_regex: str | None = subscribed_topic_regex
        """v1+. RE2 pattern of subscribed topics; null = as before, empty = none."""
        self.server_assignor: str | None = server_assignor
        """Assignor to run at the coordinator, e.g. uniform; null = its choice, or as before."""
        self.topic_partitions: list[TopicPartitions] | None = topic_partitions
        """Partitions the member holds now, grouped by topic; null = as before."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ConsumerGroupHeartbeatRequest":
        self = cls.__new__(cls)
        self.group_id = reader.compact_string()
        self.member_id = reader.compact_string()
        self.member_epoch = reader.int32()
        self.instance_id = reader.compact_nullable_string()
        self.rack_id = reader.compact_nullable_string()
        self.rebalance_timeout_ms = reader.int32()
        count = reader.compact_nullable_array_count()
        subscribed_topic_names: list[str] = []
        for _ in range(count):
            subscribed_topic_names.append(reader.compact_string())
        self.subscribed_topic_names = subscribed_topic_names if count >= 0 else None
        if version >= 1:
            self.subscribed_topic_regex = reader.compact_nullable_string()
        else:
            self.subscribed_topic_regex = None
        self.server_assignor = reader.compact_nullable_string()
        count = reader.compact_nullable_array_count()
        topic_partitions: list[TopicPartitions] = []
        for _ in range(count):
            topic_partitions.append(TopicPartitions.read(reader, version))
        self.topic_partitions = topic_partitions if count >= 0 else None
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.group_id)
        writer.compact_string(self.member_id)
        writer.int32(self.member_epoch)
        writer.compact_nullable_string(self.instance_id)
        writer.compact_nullable_string(self.rack_id)
        writer.int32(self.rebalance_timeout_ms)
        writer.compact_array_count(-1 if self.subscribed_topic_names is None else len(self.subscribed_topic_names))
        for text in self.subscribed_topic_names or []:
            writer.compact_string(text)
        if version >= 1:
            writer.compact_nullable_string(self.subscribed_topic_regex)
        else:
            if self.subscribed_topic_regex is not None:
                raise not_carried("ConsumerGroupHeartbeatRequest", "subscribed_topic_regex", version)
        writer.compact_nullable_string(self.server_assignor)
        writer.compact_array_count(-1 if self.topic_partitions is None else len(self.topic_partitions))
        for topic_partitions in self.topic_partitions or []:
            topic_partitions.write(writer, version)
        writer.append(b"\x00")


class Assignment(Message):
    """Partitions the member shall hold; null = as before."""

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
        """Partitions it may read at once, grouped by topic."""

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


class ConsumerGroupHeartbeatResponse(Message):
    """Answer of ConsumerGroupHeartbeat."""

    __slots__ = ("throttle_time_ms", "error_code", "error_message", "member_id", "member_epoch", "heartbeat_interval_ms", "assignment")
    API_KEY = 68
    VERSIONS = (0, 1)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("throttle_time_ms", "int32", 0, 1, False),
        ("error_code", "error_code", 0, 1, False),
        ("error_message", "string", 0, 1, False),
        ("member_id", "string", 0, 1, False),
        ("member_epoch", "int32", 0, 1, False),
        ("heartbeat_interval_ms", "int32", 0, 1, False),
        ("assignment", "Assignment", 0, 1, False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        member_id: str | None = None,
        member_epoch: int = 0,
        heartbeat_interval_ms: int = 0,
        assignment: Assignment | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        """Pause the quota asks of the client, in ms; 0 when it is within quota."""
        self.error_code: int = error_code
        """FENCED_MEMBER_EPOCH, UNRELEASED_INSTANCE_ID, …; 0 on success."""
        self.error_message: str | None = error_message
        """Human-readable reason for error_code; null when there is nothing to add."""
        self.member_id: str | None = member_id
        """Id of the member, to be sent from now on."""
        self.member_epoch: int = member_epoch
        """Epoch to send in the next heartbeat; -1 or -2 confirms leaving."""
        self.heartbeat_interval_ms: int = heartbeat_interval_ms
        """Time until the next heartbeat, in ms."""
        self.assignment: Assignment | None = assignment
        """Partitions the member shall hold; null = as before."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ConsumerGroupHeartbeatResponse":
        self = cls.__new__(cls)
        self.throttle_time_ms, self.error_code = reader.fixed(_IH)
        self.error_message = reader.compact_nullable_string()
        self.member_id = reader.compact_nullable_string()
        self.member_epoch, self.heartbeat_interval_ms = reader.fixed(_II)
        self.assignment = Assignment.read(reader, version) if reader.int8() >= 0 else None
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.append(_IH.pack(self.throttle_time_ms, self.error_code))
        writer.compact_nullable_string(self.error_message)
        writer.compact_nullable_string(self.member_id)
        writer.append(_II.pack(self.member_epoch, self.heartbeat_interval_ms))
        if self.assignment is None:
            writer.int8(-1)
        else:
            writer.int8(1)
            self.assignment.write(writer, version)
        writer.append(b"\x00")

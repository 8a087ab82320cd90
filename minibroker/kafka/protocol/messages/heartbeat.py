# fmt: off
# ruff: noqa: E501
"""Heartbeat: key 12, versions 0 to 4.

A classic-group member shows it is alive and learns whether to rejoin (REBALANCE_IN_PROGRESS).

Versions:
1: Throttle time in the response.
2: Over quota, the answer goes out first and the pause follows (KIP-219).
3: Static member name (KIP-345).
4: Flexible encoding (KIP-482).

Generated from protocol_specs/apis/12_heartbeat.json by `python -m protocol_specs.codegen`; do not edit.
"""

from struct import Struct

from minibroker.kafka.protocol.message import JsonFields, Message, not_carried
from minibroker.kafka.protocol.primitives import Reader, Writer

_IH = Struct(">ih")


class HeartbeatRequest(Message):
    """Request of Heartbeat."""

    __slots__ = ("group_id", "generation_id", "member_id", "group_instance_id")
    API_KEY = 12
    VERSIONS = (0, 4)
    FLEXIBLE_FROM: int | None = 4
    JSON_FIELDS: JsonFields = (
        ("group_id", "string", 0, 4, False),
        ("generation_id", "int32", 0, 4, False),
        ("member_id", "string", 0, 4, False),
        ("group_instance_id", "string", 3, 4, False),
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        generation_id: int = 0,
        member_id: str = "",
        group_instance_id: str | None = None,
    ) -> None:
        self.group_id: str = group_id
        """Group, by name."""
        self.generation_id: int = generation_id
        """Generation the member believes in; another is ILLEGAL_GENERATION."""
        self.member_id: str = member_id
        """Member that is alive."""
        self.group_instance_id: str | None = group_instance_id
        """v3+. Static member name (group.instance.id, KIP-345); null for a dynamic member."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "HeartbeatRequest":
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
                raise not_carried("HeartbeatRequest", "group_instance_id", version)
        if version >= 4:
            writer.append(b"\x00")


class HeartbeatResponse(Message):
    """Answer of Heartbeat."""

    __slots__ = ("throttle_time_ms", "error_code")
    API_KEY = 12
    VERSIONS = (0, 4)
    FLEXIBLE_FROM: int | None = 4
    JSON_FIELDS: JsonFields = (
        ("throttle_time_ms", "int32", 1, 4, False),
        ("error_code", "error_code", 0, 4, False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        """v1+. Pause the quota asks of the client, in ms; 0 when it is within quota."""
        self.error_code: int = error_code
        """0 = go on; REBALANCE_IN_PROGRESS = rejoin; UNKNOWN_MEMBER_ID = start anew."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "HeartbeatResponse":
        self = cls.__new__(cls)
        if version >= 1:
            self.throttle_time_ms, self.error_code = reader.fixed(_IH)
        else:
            self.error_code = reader.int16()
            self.throttle_time_ms = 0
        if version >= 4:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 1:
            writer.append(_IH.pack(self.throttle_time_ms, self.error_code))
        else:
            writer.int16(self.error_code)
        if version >= 4:
            writer.append(b"\x00")

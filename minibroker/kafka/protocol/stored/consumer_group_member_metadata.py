# fmt: off
# ruff: noqa: E501
"""Metadata of a consumer-group member (record type 5); a null value removes the member.

Generated from protocol_specs/stored/consumer_group_member_metadata.json by `python -m protocol_specs.codegen`; do not edit.
"""

from minibroker.kafka.protocol.message import JsonFields, Message
from minibroker.kafka.protocol.primitives import Reader, Writer
from minibroker.kafka.protocol.versioned import VersionedMessage


class ConsumerGroupMemberMetadataKey(VersionedMessage):
    """The record itself; its version is the int16 in front of it."""

    __slots__ = ("group_id", "member_id")
    VERSIONS = (5, 5)
    FLEXIBLE_FROM: int | None = None
    JSON_FIELDS: JsonFields = (
        ("group_id", "string", 5, 5, False),
        ("member_id", "string", 5, 5, False),
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
    def read(cls, reader: Reader, version: int) -> "ConsumerGroupMemberMetadataKey":
        self = cls.__new__(cls)
        self.group_id = reader.string()
        self.member_id = reader.string()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.string(self.group_id)
        writer.string(self.member_id)


class ClassicProtocol(Message):
    """Assignors the classic member joined with, favourite first."""

    __slots__ = ("name", "metadata")
    JSON_FIELDS: JsonFields = (
        ("name", "string", 0, 0, False),
        ("metadata", "bytes", 0, 0, False),
    )

    def __init__(
        self,
        *,
        name: str = "",
        metadata: bytes = b"",
    ) -> None:
        self.name: str = name
        """Assignor, by name."""
        self.metadata: bytes = metadata
        """Subscription for that assignor, opaque."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ClassicProtocol":
        self = cls.__new__(cls)
        self.name = reader.compact_string()
        self.metadata = reader.compact_byte_string()
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.name)
        writer.compact_byte_string(self.metadata)
        writer.append(b"\x00")


class ClassicMemberMetadata(Message):
    """Tagged: facts of a member that speaks the classic protocol; null for others, and that is written."""

    __slots__ = ("session_timeout_ms", "supported_protocols")
    JSON_FIELDS: JsonFields = (
        ("session_timeout_ms", "int32", 0, 0, False),
        ("supported_protocols", "ClassicProtocol", 0, 0, False),
    )

    def __init__(
        self,
        *,
        session_timeout_ms: int = 0,
        supported_protocols: list[ClassicProtocol] | None = None,
    ) -> None:
        self.session_timeout_ms: int = session_timeout_ms
        """Silence after which the classic member is expelled, in ms."""
        self.supported_protocols: list[ClassicProtocol] = [] if supported_protocols is None else supported_protocols
        """Assignors the classic member joined with, favourite first."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ClassicMemberMetadata":
        self = cls.__new__(cls)
        self.session_timeout_ms = reader.int32()
        count = reader.compact_array_count()
        supported_protocols: list[ClassicProtocol] = []
        for _ in range(count):
            supported_protocols.append(ClassicProtocol.read(reader, version))
        self.supported_protocols = supported_protocols
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.int32(self.session_timeout_ms)
        writer.compact_array_count(len(self.supported_protocols))
        for classic_protocol in self.supported_protocols:
            classic_protocol.write(writer, version)
        writer.append(b"\x00")


class ConsumerGroupMemberMetadataValue(VersionedMessage):
    """The record itself; its version is the int16 in front of it."""

    __slots__ = ("instance_id", "rack_id", "client_id", "client_host", "subscribed_topic_names", "subscribed_topic_regex", "rebalance_timeout_ms", "server_assignor", "classic_member_metadata")
    VERSIONS = (0, 0)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("instance_id", "string", 0, 0, False),
        ("rack_id", "string", 0, 0, False),
        ("client_id", "string", 0, 0, False),
        ("client_host", "string", 0, 0, False),
        ("subscribed_topic_names", "string", 0, 0, False),
        ("subscribed_topic_regex", "string", 0, 0, False),
        ("rebalance_timeout_ms", "int32", 0, 0, False),
        ("server_assignor", "string", 0, 0, False),
        ("classic_member_metadata", "ClassicMemberMetadata", 0, 0, True),
    )

    def __init__(
        self,
        *,
        instance_id: str | None = "",
        rack_id: str | None = "",
        client_id: str = "",
        client_host: str = "",
        subscribed_topic_names: list[str] | None = None,
        subscribed_topic_regex: str | None = "",
        rebalance_timeout_ms: int = -1,
        server_assignor: str | None = "",
        classic_member_metadata: ClassicMemberMetadata | None | tuple[()] = (),
    ) -> None:
        self.instance_id: str | None = instance_id
        """Static member name (group.instance.id, KIP-345); null for a dynamic member."""
        self.rack_id: str | None = rack_id
        """client.rack of the member; null = none."""
        self.client_id: str = client_id
        """client_id of the request header the member last joined with."""
        self.client_host: str = client_host
        """Address the member connected from, as text."""
        self.subscribed_topic_names: list[str] = [] if subscribed_topic_names is None else subscribed_topic_names
        """Topics subscribed by name."""
        self.subscribed_topic_regex: str | None = subscribed_topic_regex
        """RE2 pattern of subscribed topics; null = none."""
        self.rebalance_timeout_ms: int = rebalance_timeout_ms
        """Time the member gets to give up partitions, in ms; -1 = not told."""
        self.server_assignor: str | None = server_assignor
        """Assignor the member asks for; null = the coordinator's choice."""
        self.classic_member_metadata: ClassicMemberMetadata | None = ClassicMemberMetadata() if isinstance(classic_member_metadata, tuple) else classic_member_metadata
        """Tagged: facts of a member that speaks the classic protocol; null for others, and that is written."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ConsumerGroupMemberMetadataValue":
        self = cls.__new__(cls)
        self.instance_id = reader.compact_nullable_string()
        self.rack_id = reader.compact_nullable_string()
        self.client_id = reader.compact_string()
        self.client_host = reader.compact_string()
        count = reader.compact_array_count()
        subscribed_topic_names: list[str] = []
        for _ in range(count):
            subscribed_topic_names.append(reader.compact_string())
        self.subscribed_topic_names = subscribed_topic_names
        self.subscribed_topic_regex = reader.compact_nullable_string()
        self.rebalance_timeout_ms = reader.int32()
        self.server_assignor = reader.compact_nullable_string()
        self.classic_member_metadata = ClassicMemberMetadata()
        for _ in range(reader.tag_count()):
            tag = reader.uvarint()
            end = reader.tag_end()
            if tag == 0:
                self.classic_member_metadata = ClassicMemberMetadata.read(reader, version) if reader.int8() > 0 else None
            else:
                reader.position = end
            reader.finish_tag(end)
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_nullable_string(self.instance_id)
        writer.compact_nullable_string(self.rack_id)
        writer.compact_string(self.client_id)
        writer.compact_string(self.client_host)
        writer.compact_array_count(len(self.subscribed_topic_names))
        for text in self.subscribed_topic_names:
            writer.compact_string(text)
        writer.compact_nullable_string(self.subscribed_topic_regex)
        writer.int32(self.rebalance_timeout_ms)
        writer.compact_nullable_string(self.server_assignor)
        tagged: list[tuple[int, Writer]] = []
        if self.classic_member_metadata != ClassicMemberMetadata():
            value = Writer()
            if self.classic_member_metadata is None:
                value.int8(0)
            else:
                value.int8(1)
                self.classic_member_metadata.write(value, version)
            tagged.append((0, value))
        if tagged:
            writer.tagged_fields(tagged)
        else:
            writer.append(b"\x00")

# fmt: off
# ruff: noqa: E501
"""DeleteShareGroupOffsets: key 92, versions 0 to 0.

Admin clients drop the offsets an empty share group has on topics (KIP-932).

Generated from protocol_specs/apis/92_delete_share_group_offsets.json by `python -m protocol_specs.codegen`; do not edit.
"""

from struct import Struct

from minibroker.kafka.protocol.message import JsonFields, Message
from minibroker.kafka.protocol.primitives import ZERO_UUID, Reader, Writer

_IH = Struct(">ih")


class DeleteShareGroupOffsetsRequestTopic(Message):
    """Topics whose offsets shall go, all partitions of each."""

    __slots__ = ("topic_name",)
    JSON_FIELDS: JsonFields = (
        ("topic_name", "string", 0, 0, False),
    )

    def __init__(
        self,
        *,
        topic_name: str = "",
    ) -> None:
        self.topic_name: str = topic_name
        """Topic, by name."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "DeleteShareGroupOffsetsRequestTopic":
        self = cls.__new__(cls)
        self.topic_name = reader.compact_string()
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.topic_name)
        writer.append(b"\x00")


class DeleteShareGroupOffsetsRequest(Message):
    """Request of DeleteShareGroupOffsets."""

    __slots__ = ("group_id", "topics")
    API_KEY = 92
    VERSIONS = (0, 0)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("group_id", "string", 0, 0, False),
        ("topics", "DeleteShareGroupOffsetsRequestTopic", 0, 0, False),
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[DeleteShareGroupOffsetsRequestTopic] | None = None,
    ) -> None:
        self.group_id: str = group_id
        """Share group, by name; it must have no members."""
        self.topics: list[DeleteShareGroupOffsetsRequestTopic] = [] if topics is None else topics
        """Topics whose offsets shall go, all partitions of each."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "DeleteShareGroupOffsetsRequest":
        self = cls.__new__(cls)
        self.group_id = reader.compact_string()
        count = reader.compact_array_count()
        topics: list[DeleteShareGroupOffsetsRequestTopic] = []
        for _ in range(count):
            topics.append(DeleteShareGroupOffsetsRequestTopic.read(reader, version))
        self.topics = topics
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.group_id)
        writer.compact_array_count(len(self.topics))
        for delete_share_group_offsets_request_topic in self.topics:
            delete_share_group_offsets_request_topic.write(writer, version)
        writer.append(b"\x00")


class DeleteShareGroupOffsetsResponseTopic(Message):
    """One result per topic."""

    __slots__ = ("topic_name", "topic_id", "error_code", "error_message")
    JSON_FIELDS: JsonFields = (
        ("topic_name", "string", 0, 0, False),
        ("topic_id", "uuid", 0, 0, False),
        ("error_code", "error_code", 0, 0, False),
        ("error_message", "string", 0, 0, False),
    )

    def __init__(
        self,
        *,
        topic_name: str = "",
        topic_id: bytes = ZERO_UUID,
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.topic_name: str = topic_name
        """Topic, by name."""
        self.topic_id: bytes = topic_id
        """Topic, by its 16-byte id (KIP-516)."""
        self.error_code: int = error_code
        """Result for this topic; 0 (NONE) on success."""
        self.error_message: str | None = error_message
        """Human-readable reason for this entry's error_code; null when there is nothing to add."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "DeleteShareGroupOffsetsResponseTopic":
        self = cls.__new__(cls)
        self.topic_name = reader.compact_string()
        self.topic_id = reader.uuid()
        self.error_code = reader.int16()
        self.error_message = reader.compact_nullable_string()
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.topic_name)
        writer.uuid(self.topic_id)
        writer.int16(self.error_code)
        writer.compact_nullable_string(self.error_message)
        writer.append(b"\x00")


class DeleteShareGroupOffsetsResponse(Message):
    """Answer of DeleteShareGroupOffsets."""

    __slots__ = ("throttle_time_ms", "error_code", "error_message", "responses")
    API_KEY = 92
    VERSIONS = (0, 0)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("throttle_time_ms", "int32", 0, 0, False),
        ("error_code", "error_code", 0, 0, False),
        ("error_message", "string", 0, 0, False),
        ("responses", "DeleteShareGroupOffsetsResponseTopic", 0, 0, False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        responses: list[DeleteShareGroupOffsetsResponseTopic] | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        """Pause the quota asks of the client, in ms; 0 when it is within quota."""
        self.error_code: int = error_code
        """GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP, NOT_COORDINATOR, …; 0 = see the results."""
        self.error_message: str | None = error_message
        """Human-readable reason for error_code; null when there is nothing to add."""
        self.responses: list[DeleteShareGroupOffsetsResponseTopic] = [] if responses is None else responses
        """One result per topic."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "DeleteShareGroupOffsetsResponse":
        self = cls.__new__(cls)
        self.throttle_time_ms, self.error_code = reader.fixed(_IH)
        self.error_message = reader.compact_nullable_string()
        count = reader.compact_array_count()
        responses: list[DeleteShareGroupOffsetsResponseTopic] = []
        for _ in range(count):
            responses.append(DeleteShareGroupOffsetsResponseTopic.read(reader, version))
        self.responses = responses
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.append(_IH.pack(self.throttle_time_ms, self.error_code))
        writer.compact_nullable_string(self.error_message)
        writer.compact_array_count(len(self.responses))
        for delete_share_group_offsets_response_topic in self.responses:
            delete_share_group_offsets_response_topic.write(writer, version)
        writer.append(b"\x00")

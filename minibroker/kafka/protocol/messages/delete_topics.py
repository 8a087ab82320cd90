# fmt: off
# ruff: noqa: E501
"""DeleteTopics: key 20, versions 0 to 6.

Admin clients delete topics; only the controller carries it out.

Versions:
1: Throttle time in the response.
2: Over quota, the answer goes out first and the pause follows (KIP-219).
3: TOPIC_DELETION_DISABLED may be answered; before, INVALID_REQUEST (KIP-322).
4: Flexible encoding (KIP-482).
5: Message beside each error code; THROTTLING_QUOTA_EXCEEDED may be answered (KIP-599).
6: Topics can be named by id (KIP-516).

Generated from protocol_specs/apis/20_delete_topics.json by `python -m protocol_specs.codegen`; do not edit.
"""

from minibroker.kafka.protocol.message import JsonFields, Message, not_carried, null_not_carried
from minibroker.kafka.protocol.primitives import ZERO_UUID, Reader, Writer


class DeleteTopicState(Message):
    """Topics to delete, each by name or by id, not both."""

    __slots__ = ("name", "topic_id")
    JSON_FIELDS: JsonFields = (
        ("name", "string", 6, 6, False),
        ("topic_id", "uuid", 6, 6, False),
    )

    def __init__(
        self,
        *,
        name: str | None = None,
        topic_id: bytes = ZERO_UUID,
    ) -> None:
        self.name: str | None = name
        """Topic to delete, by name; null when given by id."""
        self.topic_id: bytes = topic_id
        """Topic to delete, by id; zero when given by name."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "DeleteTopicState":
        self = cls.__new__(cls)
        self.name = reader.compact_nullable_string()
        self.topic_id = reader.uuid()
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_nullable_string(self.name)
        writer.uuid(self.topic_id)
        writer.append(b"\x00")


class DeleteTopicsRequest(Message):
    """Request of DeleteTopics."""

    __slots__ = ("topics", "topic_names", "timeout_ms")
    API_KEY = 20
    VERSIONS = (0, 6)
    FLEXIBLE_FROM: int | None = 4
    JSON_FIELDS: JsonFields = (
        ("topics", "DeleteTopicState", 6, 6, False),
        ("topic_names", "string", 0, 5, False),
        ("timeout_ms", "int32", 0, 6, False),
    )

    def __init__(
        self,
        *,
        topics: list[DeleteTopicState] | None = None,
        topic_names: list[str] | None = None,
        timeout_ms: int = 0,
    ) -> None:
        self.topics: list[DeleteTopicState] = [] if topics is None else topics
        """v6+. Topics to delete, each by name or by id, not both."""
        self.topic_names: list[str] = [] if topic_names is None else topic_names
        """v0-5. Topics to delete, by name; up to v5."""
        self.timeout_ms: int = timeout_ms
        """How long to wait until the topics are gone everywhere, in ms."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "DeleteTopicsRequest":
        self = cls.__new__(cls)
        if version >= 6:
            count = reader.compact_array_count()
            topics: list[DeleteTopicState] = []
            for _ in range(count):
                topics.append(DeleteTopicState.read(reader, version))
            self.topics = topics
        else:
            self.topics = []
        if version >= 6:
            self.topic_names = []
        else:
            if version >= 4:
                count = reader.compact_array_count()
            else:
                count = reader.array_count()
            topic_names: list[str] = []
            for _ in range(count):
                if version >= 4:
                    topic_names.append(reader.compact_string())
                else:
                    topic_names.append(reader.string())
            self.topic_names = topic_names
        self.timeout_ms = reader.int32()
        if version >= 4:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 6:
            writer.compact_array_count(len(self.topics))
            for delete_topic_state in self.topics:
                delete_topic_state.write(writer, version)
        else:
            if self.topics:
                raise not_carried("DeleteTopicsRequest", "topics", version)
        if version < 6:
            if version >= 4:
                writer.compact_array_count(len(self.topic_names))
            else:
                writer.array_count(len(self.topic_names))
            for text in self.topic_names:
                if version >= 4:
                    writer.compact_string(text)
                else:
                    writer.string(text)
        writer.int32(self.timeout_ms)
        if version >= 4:
            writer.append(b"\x00")


class DeletableTopicResult(Message):
    """One result per topic of the request."""

    __slots__ = ("name", "topic_id", "error_code", "error_message")
    JSON_FIELDS: JsonFields = (
        ("name", "string", 0, 6, False),
        ("topic_id", "uuid", 6, 6, False),
        ("error_code", "error_code", 0, 6, False),
        ("error_message", "string", 5, 6, False),
    )

    def __init__(
        self,
        *,
        name: str | None = "",
        topic_id: bytes = ZERO_UUID,
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.name: str | None = name
        """Topic of this result; null when an id was asked for that is unknown or may not be seen."""
        self.topic_id: bytes = topic_id
        """v6+. Its id; zero when unknown."""
        self.error_code: int = error_code
        """Result for this topic; 0 (NONE) once it is marked for deletion."""
        self.error_message: str | None = error_message
        """v5+. Human-readable reason for this entry's error_code; null when there is nothing to add."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "DeletableTopicResult":
        self = cls.__new__(cls)
        if version >= 6:
            self.name = reader.compact_nullable_string()
        elif version >= 4:
            self.name = reader.compact_string()
        else:
            self.name = reader.string()
        if version >= 6:
            self.topic_id = reader.uuid()
        else:
            self.topic_id = ZERO_UUID
        self.error_code = reader.int16()
        if version >= 5:
            self.error_message = reader.compact_nullable_string()
        else:
            self.error_message = None
        if version >= 4:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 6:
            writer.compact_nullable_string(self.name)
        elif version >= 4:
            if self.name is None:
                raise null_not_carried("name", version)
            writer.compact_string(self.name)
        else:
            if self.name is None:
                raise null_not_carried("name", version)
            writer.string(self.name)
        if version >= 6:
            writer.uuid(self.topic_id)
        writer.int16(self.error_code)
        if version >= 5:
            writer.compact_nullable_string(self.error_message)
        if version >= 4:
            writer.append(b"\x00")


class DeleteTopicsResponse(Message):
    """Answer of DeleteTopics."""

    __slots__ = ("throttle_time_ms", "responses")
    API_KEY = 20
    VERSIONS = (0, 6)
    FLEXIBLE_FROM: int | None = 4
    JSON_FIELDS: JsonFields = (
        ("throttle_time_ms", "int32", 1, 6, False),
        ("responses", "DeletableTopicResult", 0, 6, False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        responses: list[DeletableTopicResult] | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        """v1+. Pause the quota asks of the client, in ms; 0 when it is within quota."""
        self.responses: list[DeletableTopicResult] = [] if responses is None else responses
        """One result per topic of the request."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "DeleteTopicsResponse":
        self = cls.__new__(cls)
        if version >= 1:
            self.throttle_time_ms = reader.int32()
        else:
            self.throttle_time_ms = 0
        if version >= 4:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        responses: list[DeletableTopicResult] = []
        for _ in range(count):
            responses.append(DeletableTopicResult.read(reader, version))
        self.responses = responses
        if version >= 4:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 1:
            writer.int32(self.throttle_time_ms)
        if version >= 4:
            writer.compact_array_count(len(self.responses))
        else:
            writer.array_count(len(self.responses))
        for deletable_topic_result in self.responses:
            deletable_topic_result.write(writer, version)
        if version >= 4:
            writer.append(b"\x00")

# fmt: off
# ruff: noqa: E501
"""Topics a subscription pattern resolved to (record type 16); a null value drops the pattern.

Generated from protocol_specs/stored/consumer_group_regular_expression.json by `python -m protocol_specs.codegen`; do not edit.
"""

from struct import Struct

from minibroker.kafka.protocol.message import JsonFields
from minibroker.kafka.protocol.primitives import Reader, Writer
from minibroker.kafka.protocol.versioned import VersionedMessage

_QQ = Struct(">qq")


class ConsumerGroupRegularExpressionKey(VersionedMessage):
    """The record itself; its version is the int16 in front of it."""

    __slots__ = ("group_id", "regular_expression")
    VERSIONS = (16, 16)
    FLEXIBLE_FROM: int | None = None
    JSON_FIELDS: JsonFields = (
        ("group_id", "string", 16, 16, False),
        ("regular_expression", "string", 16, 16, False),
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        regular_expression: str = "",
    ) -> None:
        self.group_id: str = group_id
        """Group, by name."""
        self.regular_expression: str = regular_expression
        """RE2 pattern some members subscribe with."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ConsumerGroupRegularExpressionKey":
        self = cls.__new__(cls)
        self.group_id = reader.string()
        self.regular_expression = reader.string()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.string(self.group_id)
        writer.string(self.regular_expression)


class ConsumerGroupRegularExpressionValue(VersionedMessage):
    """The record itself; its version is the int16 in front of it."""

    __slots__ = ("topics", "version", "timestamp")
    VERSIONS = (0, 0)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("topics", "string", 0, 0, False),
        ("version", "int64", 0, 0, False),
        ("timestamp", "int64", 0, 0, False),
    )

    def __init__(
        self,
        *,
        topics: list[str] | None = None,
        version: int = 0,
        timestamp: int = 0,
    ) -> None:
        self.topics: list[str] = [] if topics is None else topics
        """Names of the topics that matched."""
        self.version: int = version
        """Version of the metadata image the pattern was resolved against."""
        self.timestamp: int = timestamp
        """When it was resolved, ms since the epoch."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ConsumerGroupRegularExpressionValue":
        self = cls.__new__(cls)
        count = reader.compact_array_count()
        topics: list[str] = []
        for _ in range(count):
            topics.append(reader.compact_string())
        self.topics = topics
        self.version, self.timestamp = reader.fixed(_QQ)
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_array_count(len(self.topics))
        for text in self.topics:
            writer.compact_string(text)
        writer.append(_QQ.pack(self.version, self.timestamp))
        writer.append(b"\x00")

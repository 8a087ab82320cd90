# fmt: off
# ruff: noqa: E501
"""DeleteGroups: key 42, versions 0 to 3.

Admin clients delete empty groups with their offsets; the coordinator answers (KIP-229).

Versions:
1: Over quota, the answer goes out first and the pause follows (KIP-219).
2: Flexible encoding (KIP-482).
3: Message beside each error code; GROUP_DELETION_FAILED may be answered.

Generated from protocol_specs/apis/42_delete_groups.json by `python -m protocol_specs.codegen`; do not edit.
"""

from minibroker.kafka.protocol.message import JsonFields, Message
from minibroker.kafka.protocol.primitives import Reader, Writer


class DeleteGroupsRequest(Message):
    """Request of DeleteGroups."""

    __slots__ = ("groups_names",)
    API_KEY = 42
    VERSIONS = (0, 3)
    FLEXIBLE_FROM: int | None = 2
    JSON_FIELDS: JsonFields = (
        ("groups_names", "string", 0, 3, False),
    )

    def __init__(
        self,
        *,
        groups_names: list[str] | None = None,
    ) -> None:
        self.groups_names: list[str] = [] if groups_names is None else groups_names
        """Groups to delete."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "DeleteGroupsRequest":
        self = cls.__new__(cls)
        if version >= 2:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        groups_names: list[str] = []
        for _ in range(count):
            if version >= 2:
                groups_names.append(reader.compact_string())
            else:
                groups_names.append(reader.string())
        self.groups_names = groups_names
        if version >= 2:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 2:
            writer.compact_array_count(len(self.groups_names))
        else:
            writer.array_count(len(self.groups_names))
        for text in self.groups_names:
            if version >= 2:
                writer.compact_string(text)
            else:
                writer.string(text)
        if version >= 2:
            writer.append(b"\x00")


class DeletableGroupResult(Message):
    """One result per group."""

    __slots__ = ("group_id", "error_code", "error_message")
    JSON_FIELDS: JsonFields = (
        ("group_id", "string", 0, 3, False),
        ("error_code", "error_code", 0, 3, False),
        ("error_message", "string", 3, 3, False),
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.group_id: str = group_id
        """Group of this result."""
        self.error_code: int = error_code
        """NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND, …; 0 = deleted."""
        self.error_message: str | None = error_message
        """v3+. Human-readable reason for this entry's error_code; null when there is nothing to add."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "DeletableGroupResult":
        self = cls.__new__(cls)
        if version >= 2:
            self.group_id = reader.compact_string()
        else:
            self.group_id = reader.string()
        self.error_code = reader.int16()
        if version >= 3:
            self.error_message = reader.compact_nullable_string()
        else:
            self.error_message = None
        if version >= 2:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 2:
            writer.compact_string(self.group_id)
        else:
            writer.string(self.group_id)
        writer.int16(self.error_code)
        if version >= 3:
            writer.compact_nullable_string(self.error_message)
        if version >= 2:
            writer.append(b"\x00")


class DeleteGroupsResponse(Message):
    """Answer of DeleteGroups."""

    __slots__ = ("throttle_time_ms", "results")
    API_KEY = 42
    VERSIONS = (0, 3)
    FLEXIBLE_FROM: int | None = 2
    JSON_FIELDS: JsonFields = (
        ("throttle_time_ms", "int32", 0, 3, False),
        ("results", "DeletableGroupResult", 0, 3, False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results: list[DeletableGroupResult] | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        """Pause the quota asks of the client, in ms; 0 when it is within quota."""
        self.results: list[DeletableGroupResult] = [] if results is None else results
        """One result per group."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "DeleteGroupsResponse":
        self = cls.__new__(cls)
        self.throttle_time_ms = reader.int32()
        if version >= 2:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        results: list[DeletableGroupResult] = []
        for _ in range(count):
            results.append(DeletableGroupResult.read(reader, version))
        self.results = results
        if version >= 2:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.int32(self.throttle_time_ms)
        if version >= 2:
            writer.compact_array_count(len(self.results))
        else:
            writer.array_count(len(self.results))
        for deletable_group_result in self.results:
            deletable_group_result.write(writer, version)
        if version >= 2:
            writer.append(b"\x00")

# fmt: off
# ruff: noqa: E501
"""ListGroups: key 16, versions 0 to 5.

Admin clients list the groups one broker coordinates; the client merges the answers of all brokers.

Versions:
1: Throttle time in the response.
2: Over quota, the answer goes out first and the pause follows (KIP-219).
3: Flexible encoding (KIP-482).
4: State in the response and as a filter (KIP-518).
5: Type in the response and as a filter (KIP-848).

Generated from protocol_specs/apis/16_list_groups.json by `python -m protocol_specs.codegen`; do not edit.
"""

from struct import Struct

from minibroker.kafka.protocol.message import JsonFields, Message, not_carried
from minibroker.kafka.protocol.primitives import Reader, Writer

_IH = Struct(">ih")


class ListGroupsRequest(Message):
    """Request of ListGroups."""

    __slots__ = ("states_filter", "types_filter")
    API_KEY = 16
    VERSIONS = (0, 5)
    FLEXIBLE_FROM: int | None = 3
    JSON_FIELDS: JsonFields = (
        ("states_filter", "string", 4, 5, False),
        ("types_filter", "string", 5, 5, False),
    )

    def __init__(
        self,
        *,
        states_filter: list[str] | None = None,
        types_filter: list[str] | None = None,
    ) -> None:
        self.states_filter: list[str] = [] if states_filter is None else states_filter
        """v4+. States to list, compared without case; empty = any."""
        self.types_filter: list[str] = [] if types_filter is None else types_filter
        """v5+. Types to list (classic, consumer, share, streams), without case; empty = any."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ListGroupsRequest":
        self = cls.__new__(cls)
        if version >= 4:
            count = reader.compact_array_count()
            states_filter: list[str] = []
            for _ in range(count):
                states_filter.append(reader.compact_string())
            self.states_filter = states_filter
        else:
            self.states_filter = []
        if version >= 5:
            count = reader.compact_array_count()
            types_filter: list[str] = []
            for _ in range(count):
                types_filter.append(reader.compact_string())
            self.types_filter = types_filter
        else:
            self.types_filter = []
        if version >= 3:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 4:
            writer.compact_array_count(len(self.states_filter))
            for text in self.states_filter:
                writer.compact_string(text)
        else:
            if self.states_filter:
                raise not_carried("ListGroupsRequest", "states_filter", version)
        if version >= 5:
            writer.compact_array_count(len(self.types_filter))
            for text in self.types_filter:
                writer.compact_string(text)
        else:
            if self.types_filter:
                raise not_carried("ListGroupsRequest", "types_filter", version)
        if version >= 3:
            writer.append(b"\x00")


class ListedGroup(Message):
    """Groups found here that the caller may describe."""

    __slots__ = ("group_id", "protocol_type", "group_state", "group_type")
    JSON_FIELDS: JsonFields = (
        ("group_id", "string", 0, 5, False),
        ("protocol_type", "string", 0, 5, False),
        ("group_state", "string", 4, 5, False),
        ("group_type", "string", 5, 5, False),
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        protocol_type: str = "",
        group_state: str = "",
        group_type: str = "",
    ) -> None:
        self.group_id: str = group_id
        """Group, by name."""
        self.protocol_type: str = protocol_type
        """Protocol type, 'consumer' for consumers; empty for a group that only stores offsets."""
        self.group_state: str = group_state
        """v4+. State, by name, e.g. Stable or Empty."""
        self.group_type: str = group_type
        """v5+. classic, consumer, share or streams."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ListedGroup":
        self = cls.__new__(cls)
        if version >= 3:
            self.group_id = reader.compact_string()
        else:
            self.group_id = reader.string()
        if version >= 3:
            self.protocol_type = reader.compact_string()
        else:
            self.protocol_type = reader.string()
        if version >= 4:
            self.group_state = reader.compact_string()
        else:
            self.group_state = ""
        if version >= 5:
            self.group_type = reader.compact_string()
        else:
            self.group_type = ""
        if version >= 3:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 3:
            writer.compact_string(self.group_id)
        else:
            writer.string(self.group_id)
        if version >= 3:
            writer.compact_string(self.protocol_type)
        else:
            writer.string(self.protocol_type)
        if version >= 4:
            writer.compact_string(self.group_state)
        if version >= 5:
            writer.compact_string(self.group_type)
        if version >= 3:
            writer.append(b"\x00")


class ListGroupsResponse(Message):
    """Answer of ListGroups."""

    __slots__ = ("throttle_time_ms", "error_code", "groups")
    API_KEY = 16
    VERSIONS = (0, 5)
    FLEXIBLE_FROM: int | None = 3
    JSON_FIELDS: JsonFields = (
        ("throttle_time_ms", "int32", 1, 5, False),
        ("error_code", "error_code", 0, 5, False),
        ("groups", "ListedGroup", 0, 5, False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        groups: list[ListedGroup] | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        """v1+. Pause the quota asks of the client, in ms; 0 when it is within quota."""
        self.error_code: int = error_code
        """COORDINATOR_LOAD_IN_PROGRESS while groups are still read from disk; 0 on success."""
        self.groups: list[ListedGroup] = [] if groups is None else groups
        """Groups found here that the caller may describe."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ListGroupsResponse":
        self = cls.__new__(cls)
        if version >= 1:
            self.throttle_time_ms, self.error_code = reader.fixed(_IH)
        else:
            self.error_code = reader.int16()
            self.throttle_time_ms = 0
        if version >= 3:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        groups: list[ListedGroup] = []
        for _ in range(count):
            groups.append(ListedGroup.read(reader, version))
        self.groups = groups
        if version >= 3:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 1:
            writer.append(_IH.pack(self.throttle_time_ms, self.error_code))
        else:
            writer.int16(self.error_code)
        if version >= 3:
            writer.compact_array_count(len(self.groups))
        else:
            writer.array_count(len(self.groups))
        for listed_group in self.groups:
            listed_group.write(writer, version)
        if version >= 3:
            writer.append(b"\x00")

# fmt: off
# ruff: noqa: E501
"""DeleteAcls: key 31, versions 0 to 3.

Admin clients remove the ACL entries that match filters (KIP-140).

Versions:
1: Pattern type: prefixed resources (KIP-290).
2: Flexible encoding (KIP-482).
3: Resource type user (KIP-373).

Generated from protocol_specs/apis/31_delete_acls.json by `python -m protocol_specs.codegen`; do not edit.
"""

from struct import Struct

from minibroker.kafka.protocol.message import JsonFields, Message, not_carried
from minibroker.kafka.protocol.primitives import Reader, Writer

_BB = Struct(">bb")


class DeleteAclsFilter(Message):
    """Filters; an entry that matches any of them is removed."""

    __slots__ = ("resource_type_filter", "resource_name_filter", "pattern_type_filter", "principal_filter", "host_filter", "operation", "permission_type")
    JSON_FIELDS: JsonFields = (
        ("resource_type_filter", "int8", 0, 3, False),
        ("resource_name_filter", "string", 0, 3, False),
        ("pattern_type_filter", "int8", 1, 3, False),
        ("principal_filter", "string", 0, 3, False),
        ("host_filter", "string", 0, 3, False),
        ("operation", "int8", 0, 3, False),
        ("permission_type", "int8", 0, 3, False),
    )

    def __init__(
        self,
        *,
        resource_type_filter: int = 0,
        resource_name_filter: str | None = "",
        pattern_type_filter: int = 3,
        principal_filter: str | None = "",
        host_filter: str | None = "",
        operation: int = 0,
        permission_type: int = 0,
    ) -> None:
        self.resource_type_filter: int = resource_type_filter
        """1 any, 2 topic, 3 group, 4 cluster, 5 transactional id, 6 delegation token, 7 user."""
        self.resource_name_filter: str | None = resource_name_filter
        """Name to find; null = any."""
        self.pattern_type_filter: int = pattern_type_filter
        """v1+. 1 any, 2 all entries that would apply to the name, 3 literal, 4 prefixed."""
        self.principal_filter: str | None = principal_filter
        """Principal such as User:alice; null = any."""
        self.host_filter: str | None = host_filter
        """Client address; null = any."""
        self.operation: int = operation
        """1 any, 2 all, 3 read, 4 write, 5 create, 6 delete, 7 alter, 8 describe, 9 cluster action, …."""
        self.permission_type: int = permission_type
        """1 any, 2 deny, 3 allow."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "DeleteAclsFilter":
        self = cls.__new__(cls)
        self.resource_type_filter = reader.int8()
        if version >= 2:
            self.resource_name_filter = reader.compact_nullable_string()
        else:
            self.resource_name_filter = reader.nullable_string()
        if version >= 1:
            self.pattern_type_filter = reader.int8()
        else:
            self.pattern_type_filter = 3
        if version >= 2:
            self.principal_filter = reader.compact_nullable_string()
        else:
            self.principal_filter = reader.nullable_string()
        if version >= 2:
            self.host_filter = reader.compact_nullable_string()
        else:
            self.host_filter = reader.nullable_string()
        self.operation, self.permission_type = reader.fixed(_BB)
        if version >= 2:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.int8(self.resource_type_filter)
        if version >= 2:
            writer.compact_nullable_string(self.resource_name_filter)
        else:
            writer.nullable_string(self.resource_name_filter)
        if version >= 1:
            writer.int8(self.pattern_type_filter)
        else:
            if self.pattern_type_filter != 3:
                raise not_carried("DeleteAclsFilter", "pattern_type_filter", version)
        if version >= 2:
            writer.compact_nullable_string(self.principal_filter)
        else:
            writer.nullable_string(self.principal_filter)
        if version >= 2:
            writer.compact_nullable_string(self.host_filter)
        else:
            writer.nullable_string(self.host_filter)
        writer.append(_BB.pack(self.operation, self.permission_type))
        if version >= 2:
            writer.append(b"\x00")


class DeleteAclsRequest(Message):
    """Request of DeleteAcls."""

    __slots__ = ("filters",)
    API_KEY = 31
    VERSIONS = (0, 3)
    FLEXIBLE_FROM: int | None = 2
    JSON_FIELDS: JsonFields = (
        ("filters", "DeleteAclsFilter", 0, 3, False),
    )

    def __init__(
        self,
        *,
        filters: list[DeleteAclsFilter] | None = None,
    ) -> None:
        self.filters: list[DeleteAclsFilter] = [] if filters is None else filters
        """Filters; an entry that matches any of them is removed."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "DeleteAclsRequest":
        self = cls.__new__(cls)
        if version >= 2:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        filters: list[DeleteAclsFilter] = []
        for _ in range(count):
            filters.append(DeleteAclsFilter.read(reader, version))
        self.filters = filters
        if version >= 2:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 2:
            writer.compact_array_count(len(self.filters))
        else:
            writer.array_count(len(self.filters))
        for delete_acls_filter in self.filters:
            delete_acls_filter.write(writer, version)
        if version >= 2:
            writer.append(b"\x00")


class DeleteAclsMatchingAcl(Message):
    """Entries this filter hit."""

    __slots__ = ("error_code", "error_message", "resource_type", "resource_name", "pattern_type", "principal", "host", "operation", "permission_type")
    JSON_FIELDS: JsonFields = (
        ("error_code", "error_code", 0, 3, False),
        ("error_message", "string", 0, 3, False),
        ("resource_type", "int8", 0, 3, False),
        ("resource_name", "string", 0, 3, False),
        ("pattern_type", "int8", 1, 3, False),
        ("principal", "string", 0, 3, False),
        ("host", "string", 0, 3, False),
        ("operation", "int8", 0, 3, False),
        ("permission_type", "int8", 0, 3, False),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = "",
        resource_type: int = 0,
        resource_name: str = "",
        pattern_type: int = 3,
        principal: str = "",
        host: str = "",
        operation: int = 0,
        permission_type: int = 0,
    ) -> None:
        self.error_code: int = error_code
        """Error of the removal of this entry; 0 if it is removed."""
        self.error_message: str | None = error_message
        """Human-readable reason for this entry's error_code; null when there is nothing to add."""
        self.resource_type: int = resource_type
        """2 topic, 3 group, 4 cluster, 5 transactional id, 6 delegation token, 7 user."""
        self.resource_name: str = resource_name
        """Name or prefix of the removed entry."""
        self.pattern_type: int = pattern_type
        """v1+. 3 literal, 4 prefixed."""
        self.principal: str = principal
        """Principal of the removed entry."""
        self.host: str = host
        """Client address the removed entry was limited to."""
        self.operation: int = operation
        """Operation of the removed entry, numbered as in the request."""
        self.permission_type: int = permission_type
        """2 deny, 3 allow."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "DeleteAclsMatchingAcl":
        self = cls.__new__(cls)
        self.error_code = reader.int16()
        if version >= 2:
            self.error_message = reader.compact_nullable_string()
        else:
            self.error_message = reader.nullable_string()
        self.resource_type = reader.int8()
        if version >= 2:
            self.resource_name = reader.compact_string()
        else:
            self.resource_name = reader.string()
        if version >= 1:
            self.pattern_type = reader.int8()
        else:
            self.pattern_type = 3
        if version >= 2:
            self.principal = reader.compact_string()
        else:
            self.principal = reader.string()
        if version >= 2:
            self.host = reader.compact_string()
        else:
            self.host = reader.string()
        self.operation, self.permission_type = reader.fixed(_BB)
        if version >= 2:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.int16(self.error_code)
        if version >= 2:
            writer.compact_nullable_string(self.error_message)
        else:
            writer.nullable_string(self.error_message)
        writer.int8(self.resource_type)
        if version >= 2:
            writer.compact_string(self.resource_name)
        else:
            writer.string(self.resource_name)
        if version >= 1:
            writer.int8(self.pattern_type)
        else:
            if self.pattern_type != 3:
                raise not_carried("DeleteAclsMatchingAcl", "pattern_type", version)
        if version >= 2:
            writer.compact_string(self.principal)
        else:
            writer.string(self.principal)
        if version >= 2:
            writer.compact_string(self.host)
        else:
            writer.string(self.host)
        writer.append(_BB.pack(self.operation, self.permission_type))
        if version >= 2:
            writer.append(b"\x00")


class DeleteAclsFilterResult(Message):
    """One result per filter, in the same order."""

    __slots__ = ("error_code", "error_message", "matching_acls")
    JSON_FIELDS: JsonFields = (
        ("error_code", "error_code", 0, 3, False),
        ("error_message", "string", 0, 3, False),
        ("matching_acls", "DeleteAclsMatchingAcl", 0, 3, False),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = "",
        matching_acls: list[DeleteAclsMatchingAcl] | None = None,
    ) -> None:
        self.error_code: int = error_code
        """Result of applying this filter; 0 also when nothing matched."""
        self.error_message: str | None = error_message
        """Human-readable reason for this entry's error_code; null when there is nothing to add."""
        self.matching_acls: list[DeleteAclsMatchingAcl] = [] if matching_acls is None else matching_acls
        """Entries this filter hit."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "DeleteAclsFilterResult":
        self = cls.__new__(cls)
        self.error_code = reader.int16()
        if version >= 2:
            self.error_message = reader.compact_nullable_string()
        else:
            self.error_message = reader.nullable_string()
        if version >= 2:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        matching_acls: list[DeleteAclsMatchingAcl] = []
        for _ in range(count):
            matching_acls.append(DeleteAclsMatchingAcl.read(reader, version))
        self.matching_acls = matching_acls
        if version >= 2:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.int16(self.error_code)
        if version >= 2:
            writer.compact_nullable_string(self.error_message)
        else:
            writer.nullable_string(self.error_message)
        if version >= 2:
            writer.compact_array_count(len(self.matching_acls))
        else:
            writer.array_count(len(self.matching_acls))
        for delete_acls_matching_acl in self.matching_acls:
            delete_acls_matching_acl.write(writer, version)
        if version >= 2:
            writer.append(b"\x00")


class DeleteAclsResponse(Message):
    """Answer of DeleteAcls."""

    __slots__ = ("throttle_time_ms", "filter_results")
    API_KEY = 31
    VERSIONS = (0, 3)
    FLEXIBLE_FROM: int | None = 2
    JSON_FIELDS: JsonFields = (
        ("throttle_time_ms", "int32", 0, 3, False),
        ("filter_results", "DeleteAclsFilterResult", 0, 3, False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        filter_results: list[DeleteAclsFilterResult] | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        """Pause the quota asks of the client, in ms; 0 when it is within quota."""
        self.filter_results: list[DeleteAclsFilterResult] = [] if filter_results is None else filter_results
        """One result per filter, in the same order."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "DeleteAclsResponse":
        self = cls.__new__(cls)
        self.throttle_time_ms = reader.int32()
        if version >= 2:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        filter_results: list[DeleteAclsFilterResult] = []
        for _ in range(count):
            filter_results.append(DeleteAclsFilterResult.read(reader, version))
        self.filter_results = filter_results
        if version >= 2:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.int32(self.throttle_time_ms)
        if version >= 2:
            writer.compact_array_count(len(self.filter_results))
        else:
            writer.array_count(len(self.filter_results))
        for delete_acls_filter_result in self.filter_results:
            delete_acls_filter_result.write(writer, version)
        if version >= 2:
            writer.append(b"\x00")

# fmt: off
# ruff: noqa: E501
"""DescribeAcls: key 29, versions 0 to 3.

Admin clients list the ACL entries that match a filter (KIP-140).

Versions:
1: Pattern type: prefixed resources (KIP-290).
2: Flexible encoding (KIP-482).
3: Resource type user (KIP-373).

Generated from protocol_specs/apis/29_describe_acls.json by `python -m protocol_specs.codegen`; do not edit.
"""

from struct import Struct

from minibroker.kafka.protocol.message import JsonFields, Message, not_carried
from minibroker.kafka.protocol.primitives import Reader, Writer

_BB = Struct(">bb")
_IH = Struct(">ih")


class DescribeAclsRequest(Message):
    """Request of DescribeAcls."""

    __slots__ = ("resource_type_filter", "resource_name_filter", "pattern_type_filter", "principal_filter", "host_filter", "operation", "permission_type")
    API_KEY = 29
    VERSIONS = (0, 3)
    FLEXIBLE_FROM: int | None = 2
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
    def read(cls, reader: Reader, version: int) -> "DescribeAclsRequest":
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
                raise not_carried("DescribeAclsRequest", "pattern_type_filter", version)
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


class AclDescription(Message):
    """Entries on that pattern."""

    __slots__ = ("principal", "host", "operation", "permission_type")
    JSON_FIELDS: JsonFields = (
        ("principal", "string", 0, 3, False),
        ("host", "string", 0, 3, False),
        ("operation", "int8", 0, 3, False),
        ("permission_type", "int8", 0, 3, False),
    )

    def __init__(
        self,
        *,
        principal: str = "",
        host: str = "",
        operation: int = 0,
        permission_type: int = 0,
    ) -> None:
        self.principal: str = principal
        """Principal of the entry, e.g. User:alice or User:*."""
        self.host: str = host
        """Client address the entry is limited to; '*' = all."""
        self.operation: int = operation
        """Operation that is allowed or denied, numbered as in the request."""
        self.permission_type: int = permission_type
        """2 deny, 3 allow."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "AclDescription":
        self = cls.__new__(cls)
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


class DescribeAclsResource(Message):
    """Entries found, grouped by resource pattern."""

    __slots__ = ("resource_type", "resource_name", "pattern_type", "acls")
    JSON_FIELDS: JsonFields = (
        ("resource_type", "int8", 0, 3, False),
        ("resource_name", "string", 0, 3, False),
        ("pattern_type", "int8", 1, 3, False),
        ("acls", "AclDescription", 0, 3, False),
    )

    def __init__(
        self,
        *,
        resource_type: int = 0,
        resource_name: str = "",
        pattern_type: int = 3,
        acls: list[AclDescription] | None = None,
    ) -> None:
        self.resource_type: int = resource_type
        """2 topic, 3 group, 4 cluster, 5 transactional id, 6 delegation token, 7 user."""
        self.resource_name: str = resource_name
        """Name or prefix the entries speak of; '*' = all names."""
        self.pattern_type: int = pattern_type
        """v1+. 3 literal, 4 prefixed."""
        self.acls: list[AclDescription] = [] if acls is None else acls
        """Entries on that pattern."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "DescribeAclsResource":
        self = cls.__new__(cls)
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
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        acls: list[AclDescription] = []
        for _ in range(count):
            acls.append(AclDescription.read(reader, version))
        self.acls = acls
        if version >= 2:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.int8(self.resource_type)
        if version >= 2:
            writer.compact_string(self.resource_name)
        else:
            writer.string(self.resource_name)
        if version >= 1:
            writer.int8(self.pattern_type)
        else:
            if self.pattern_type != 3:
                raise not_carried("DescribeAclsResource", "pattern_type", version)
        if version >= 2:
            writer.compact_array_count(len(self.acls))
        else:
            writer.array_count(len(self.acls))
        for acl_description in self.acls:
            acl_description.write(writer, version)
        if version >= 2:
            writer.append(b"\x00")


class DescribeAclsResponse(Message):
    """Answer of DescribeAcls."""

    __slots__ = ("throttle_time_ms", "error_code", "error_message", "resources")
    API_KEY = 29
    VERSIONS = (0, 3)
    FLEXIBLE_FROM: int | None = 2
    JSON_FIELDS: JsonFields = (
        ("throttle_time_ms", "int32", 0, 3, False),
        ("error_code", "error_code", 0, 3, False),
        ("error_message", "string", 0, 3, False),
        ("resources", "DescribeAclsResource", 0, 3, False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        resources: list[DescribeAclsResource] | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        """Pause the quota asks of the client, in ms; 0 when it is within quota."""
        self.error_code: int = error_code
        """SECURITY_DISABLED when no authorizer is configured, CLUSTER_AUTHORIZATION_FAILED, …; 0 on success."""
        self.error_message: str | None = error_message
        """Human-readable reason for error_code; null when there is nothing to add."""
        self.resources: list[DescribeAclsResource] = [] if resources is None else resources
        """Entries found, grouped by resource pattern."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "DescribeAclsResponse":
        self = cls.__new__(cls)
        self.throttle_time_ms, self.error_code = reader.fixed(_IH)
        if version >= 2:
            self.error_message = reader.compact_nullable_string()
        else:
            self.error_message = reader.nullable_string()
        if version >= 2:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        resources: list[DescribeAclsResource] = []
        for _ in range(count):
            resources.append(DescribeAclsResource.read(reader, version))
        self.resources = resources
        if version >= 2:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.append(_IH.pack(self.throttle_time_ms, self.error_code))
        if version >= 2:
            writer.compact_nullable_string(self.error_message)
        else:
            writer.nullable_string(self.error_message)
        if version >= 2:
            writer.compact_array_count(len(self.resources))
        else:
            writer.array_count(len(self.resources))
        for describe_acls_resource in self.resources:
            describe_acls_resource.write(writer, version)
        if version >= 2:
            writer.append(b"\x00")

# fmt: off
# ruff: noqa: E501
"""CreateAcls: key 30, versions 0 to 3.

Admin clients add ACL entries (KIP-140).

Versions:
1: Pattern type: prefixed resources (KIP-290).
2: Flexible encoding (KIP-482).
3: Resource type user (KIP-373).

Generated from protocol_specs/apis/30_create_acls.json by `python -m protocol_specs.codegen`; do not edit.
"""

from struct import Struct

from minibroker.kafka.protocol.message import JsonFields, Message, not_carried
from minibroker.kafka.protocol.primitives import Reader, Writer

_BB = Struct(">bb")


class AclCreation(Message):
    """Entries to add; an existing one counts as added."""

    __slots__ = ("resource_type", "resource_name", "resource_pattern_type", "principal", "host", "operation", "permission_type")
    JSON_FIELDS: JsonFields = (
        ("resource_type", "int8", 0, 3, False),
        ("resource_name", "string", 0, 3, False),
        ("resource_pattern_type", "int8", 1, 3, False),
        ("principal", "string", 0, 3, False),
        ("host", "string", 0, 3, False),
        ("operation", "int8", 0, 3, False),
        ("permission_type", "int8", 0, 3, False),
    )

    def __init__(
        self,
        *,
        resource_type: int = 0,
        resource_name: str = "",
        resource_pattern_type: int = 3,
        principal: str = "",
        host: str = "",
        operation: int = 0,
        permission_type: int = 0,
    ) -> None:
        self.resource_type: int = resource_type
        """2 topic, 3 group, 4 cluster, 5 transactional id, 6 delegation token, 7 user."""
        self.resource_name: str = resource_name
        """Name or prefix; '*' = all names; kafka-cluster for the cluster."""
        self.resource_pattern_type: int = resource_pattern_type
        """v1+. 3 literal, 4 prefixed; others cannot be stored."""
        self.principal: str = principal
        """Principal of the entry, e.g. User:alice or User:*."""
        self.host: str = host
        """Client address it is limited to; '*' = all."""
        self.operation: int = operation
        """2 all, 3 read, 4 write, 5 create, 6 delete, 7 alter, 8 describe, 9 cluster action, …."""
        self.permission_type: int = permission_type
        """2 deny, 3 allow."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "AclCreation":
        self = cls.__new__(cls)
        self.resource_type = reader.int8()
        if version >= 2:
            self.resource_name = reader.compact_string()
        else:
            self.resource_name = reader.string()
        if version >= 1:
            self.resource_pattern_type = reader.int8()
        else:
            self.resource_pattern_type = 3
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
        writer.int8(self.resource_type)
        if version >= 2:
            writer.compact_string(self.resource_name)
        else:
            writer.string(self.resource_name)
        if version >= 1:
            writer.int8(self.resource_pattern_type)
        else:
            if self.resource_pattern_type != 3:
                raise not_carried("AclCreation", "resource_pattern_type", version)
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


class CreateAclsRequest(Message):
    """Request of CreateAcls."""

    __slots__ = ("creations",)
    API_KEY = 30
    VERSIONS = (0, 3)
    FLEXIBLE_FROM: int | None = 2
    JSON_FIELDS: JsonFields = (
        ("creations", "AclCreation", 0, 3, False),
    )

    def __init__(
        self,
        *,
        creations: list[AclCreation] | None = None,
    ) -> None:
        self.creations: list[AclCreation] = [] if creations is None else creations
        """Entries to add; an existing one counts as added."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "CreateAclsRequest":
        self = cls.__new__(cls)
        if version >= 2:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        creations: list[AclCreation] = []
        for _ in range(count):
            creations.append(AclCreation.read(reader, version))
        self.creations = creations
        if version >= 2:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 2:
            writer.compact_array_count(len(self.creations))
        else:
            writer.array_count(len(self.creations))
        for acl_creation in self.creations:
            acl_creation.write(writer, version)
        if version >= 2:
            writer.append(b"\x00")


class AclCreationResult(Message):
    """One result per entry, in the same order."""

    __slots__ = ("error_code", "error_message")
    JSON_FIELDS: JsonFields = (
        ("error_code", "error_code", 0, 3, False),
        ("error_message", "string", 0, 3, False),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = "",
    ) -> None:
        self.error_code: int = error_code
        """SECURITY_DISABLED, INVALID_REQUEST, CLUSTER_AUTHORIZATION_FAILED, …; 0 = entry stored."""
        self.error_message: str | None = error_message
        """Human-readable reason for this entry's error_code; null when there is nothing to add."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "AclCreationResult":
        self = cls.__new__(cls)
        self.error_code = reader.int16()
        if version >= 2:
            self.error_message = reader.compact_nullable_string()
        else:
            self.error_message = reader.nullable_string()
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
            writer.append(b"\x00")


class CreateAclsResponse(Message):
    """Answer of CreateAcls."""

    __slots__ = ("throttle_time_ms", "results")
    API_KEY = 30
    VERSIONS = (0, 3)
    FLEXIBLE_FROM: int | None = 2
    JSON_FIELDS: JsonFields = (
        ("throttle_time_ms", "int32", 0, 3, False),
        ("results", "AclCreationResult", 0, 3, False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results: list[AclCreationResult] | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        """Pause the quota asks of the client, in ms; 0 when it is within quota."""
        self.results: list[AclCreationResult] = [] if results is None else results
        """One result per entry, in the same order."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "CreateAclsResponse":
        self = cls.__new__(cls)
        self.throttle_time_ms = reader.int32()
        if version >= 2:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        results: list[AclCreationResult] = []
        for _ in range(count):
            results.append(AclCreationResult.read(reader, version))
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
        for acl_creation_result in self.results:
            acl_creation_result.write(writer, version)
        if version >= 2:
            writer.append(b"\x00")

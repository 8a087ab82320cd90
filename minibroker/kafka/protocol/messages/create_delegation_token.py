# fmt: off
# ruff: noqa: E501
"""CreateDelegationToken: key 38, versions 0 to 3.

Creates a delegation token for the caller or, if allowed, another user (KIP-48).

Versions:
1: Over quota, the answer goes out first and the pause follows (KIP-219).
2: Flexible encoding (KIP-482).
3: Token for another owner; response tells who requested it (KIP-373).

Generated from protocol_specs/apis/38_create_delegation_token.json by `python -m protocol_specs.codegen`; do not edit.
"""

from struct import Struct

from minibroker.kafka.protocol.message import JsonFields, Message, not_carried
from minibroker.kafka.protocol.primitives import Reader, Writer

_QQQ = Struct(">qqq")


class CreatableRenewers(Message):
    """Principals besides the owner that may prolong the token."""

    __slots__ = ("principal_type", "principal_name")
    JSON_FIELDS: JsonFields = (
        ("principal_type", "string", 0, 3, False),
        ("principal_name", "string", 0, 3, False),
    )

    def __init__(
        self,
        *,
        principal_type: str = "",
        principal_name: str = "",
    ) -> None:
        self.principal_type: str = principal_type
        """Principal type of a renewer, e.g. User."""
        self.principal_name: str = principal_name
        """Name of a renewer."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "CreatableRenewers":
        self = cls.__new__(cls)
        if version >= 2:
            self.principal_type = reader.compact_string()
        else:
            self.principal_type = reader.string()
        if version >= 2:
            self.principal_name = reader.compact_string()
        else:
            self.principal_name = reader.string()
        if version >= 2:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 2:
            writer.compact_string(self.principal_type)
        else:
            writer.string(self.principal_type)
        if version >= 2:
            writer.compact_string(self.principal_name)
        else:
            writer.string(self.principal_name)
        if version >= 2:
            writer.append(b"\x00")


class CreateDelegationTokenRequest(Message):
    """Request of CreateDelegationToken."""

    __slots__ = ("owner_principal_type", "owner_principal_name", "renewers", "max_lifetime_ms")
    API_KEY = 38
    VERSIONS = (0, 3)
    FLEXIBLE_FROM: int | None = 2
    JSON_FIELDS: JsonFields = (
        ("owner_principal_type", "string", 3, 3, False),
        ("owner_principal_name", "string", 3, 3, False),
        ("renewers", "CreatableRenewers", 0, 3, False),
        ("max_lifetime_ms", "int64", 0, 3, False),
    )

    def __init__(
        self,
        *,
        owner_principal_type: str | None = "",
        owner_principal_name: str | None = "",
        renewers: list[CreatableRenewers] | None = None,
        max_lifetime_ms: int = 0,
    ) -> None:
        self.owner_principal_type: str | None = owner_principal_type
        """v3+. Principal type of the owner, e.g. User; null (or empty) = the caller."""
        self.owner_principal_name: str | None = owner_principal_name
        """v3+. Name of the owner; null (or empty) = the caller."""
        self.renewers: list[CreatableRenewers] = [] if renewers is None else renewers
        """Principals besides the owner that may prolong the token."""
        self.max_lifetime_ms: int = max_lifetime_ms
        """Latest end of life counted from now, in ms; -1 = delegation.token.max.lifetime.ms."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "CreateDelegationTokenRequest":
        self = cls.__new__(cls)
        if version >= 3:
            self.owner_principal_type = reader.compact_nullable_string()
        else:
            self.owner_principal_type = ""
        if version >= 3:
            self.owner_principal_name = reader.compact_nullable_string()
        else:
            self.owner_principal_name = ""
        if version >= 2:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        renewers: list[CreatableRenewers] = []
        for _ in range(count):
            renewers.append(CreatableRenewers.read(reader, version))
        self.renewers = renewers
        self.max_lifetime_ms = reader.int64()
        if version >= 2:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 3:
            writer.compact_nullable_string(self.owner_principal_type)
        else:
            if self.owner_principal_type != "":
                raise not_carried("CreateDelegationTokenRequest", "owner_principal_type", version)
        if version >= 3:
            writer.compact_nullable_string(self.owner_principal_name)
        else:
            if self.owner_principal_name != "":
                raise not_carried("CreateDelegationTokenRequest", "owner_principal_name", version)
        if version >= 2:
            writer.compact_array_count(len(self.renewers))
        else:
            writer.array_count(len(self.renewers))
        for creatable_renewers in self.renewers:
            creatable_renewers.write(writer, version)
        writer.int64(self.max_lifetime_ms)
        if version >= 2:
            writer.append(b"\x00")


class CreateDelegationTokenResponse(Message):
    """Answer of CreateDelegationToken."""

    __slots__ = ("error_code", "principal_type", "principal_name", "token_requester_principal_type", "token_requester_principal_name", "issue_timestamp_ms", "expiry_timestamp_ms", "max_timestamp_ms", "token_id", "hmac", "throttle_time_ms")
    API_KEY = 38
    VERSIONS = (0, 3)
    FLEXIBLE_FROM: int | None = 2
    JSON_FIELDS: JsonFields = (
        ("error_code", "error_code", 0, 3, False),
        ("principal_type", "string", 0, 3, False),
        ("principal_name", "string", 0, 3, False),
        ("token_requester_principal_type", "string", 3, 3, False),
        ("token_requester_principal_name", "string", 3, 3, False),
        ("issue_timestamp_ms", "int64", 0, 3, False),
        ("expiry_timestamp_ms", "int64", 0, 3, False),
        ("max_timestamp_ms", "int64", 0, 3, False),
        ("token_id", "string", 0, 3, False),
        ("hmac", "bytes", 0, 3, False),
        ("throttle_time_ms", "int32", 0, 3, False),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        principal_type: str = "",
        principal_name: str = "",
        token_requester_principal_type: str = "",
        token_requester_principal_name: str = "",
        issue_timestamp_ms: int = 0,
        expiry_timestamp_ms: int = 0,
        max_timestamp_ms: int = 0,
        token_id: str = "",
        hmac: bytes = b"",
        throttle_time_ms: int = 0,
    ) -> None:
        self.error_code: int = error_code
        """DELEGATION_TOKEN_AUTH_DISABLED, DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, INVALID_PRINCIPAL_TYPE, …; 0 = created."""
        self.principal_type: str = principal_type
        """Kind of principal the token speaks for, mostly User."""
        self.principal_name: str = principal_name
        """User the token speaks for."""
        self.token_requester_principal_type: str = token_requester_principal_type
        """v3+. Kind of principal that had the token made; differs from the owner under KIP-373."""
        self.token_requester_principal_name: str = token_requester_principal_name
        """v3+. Principal that requested the token; it may differ from the owner (KIP-373)."""
        self.issue_timestamp_ms: int = issue_timestamp_ms
        """Time of creation, ms since the epoch."""
        self.expiry_timestamp_ms: int = expiry_timestamp_ms
        """End of validity unless renewed, ms since the epoch."""
        self.max_timestamp_ms: int = max_timestamp_ms
        """No renewal reaches beyond this time, ms since the epoch."""
        self.token_id: str = token_id
        """Token, by id: the user name when logging in by SCRAM with it."""
        self.hmac: bytes = hmac
        """Secret of the token; its base64 form is the password."""
        self.throttle_time_ms: int = throttle_time_ms
        """Pause the quota asks of the client, in ms; 0 when it is within quota."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "CreateDelegationTokenResponse":
        self = cls.__new__(cls)
        self.error_code = reader.int16()
        if version >= 2:
            self.principal_type = reader.compact_string()
        else:
            self.principal_type = reader.string()
        if version >= 2:
            self.principal_name = reader.compact_string()
        else:
            self.principal_name = reader.string()
        if version >= 3:
            self.token_requester_principal_type = reader.compact_string()
        else:
            self.token_requester_principal_type = ""
        if version >= 3:
            self.token_requester_principal_name = reader.compact_string()
        else:
            self.token_requester_principal_name = ""
        (
            self.issue_timestamp_ms,
            self.expiry_timestamp_ms,
            self.max_timestamp_ms,
        ) = reader.fixed(_QQQ)
        if version >= 2:
            self.token_id = reader.compact_string()
        else:
            self.token_id = reader.string()
        if version >= 2:
            self.hmac = reader.compact_byte_string()
        else:
            self.hmac = reader.byte_string()
        self.throttle_time_ms = reader.int32()
        if version >= 2:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.int16(self.error_code)
        if version >= 2:
            writer.compact_string(self.principal_type)
        else:
            writer.string(self.principal_type)
        if version >= 2:
            writer.compact_string(self.principal_name)
        else:
            writer.string(self.principal_name)
        if version >= 3:
            writer.compact_string(self.token_requester_principal_type)
        else:
            if self.token_requester_principal_type != "":
                raise not_carried("CreateDelegationTokenResponse", "token_requester_principal_type", version)
        if version >= 3:
            writer.compact_string(self.token_requester_principal_name)
        else:
            if self.token_requester_principal_name != "":
                raise not_carried("CreateDelegationTokenResponse", "token_requester_principal_name", version)
        writer.append(_QQQ.pack(
            self.issue_timestamp_ms,
            self.expiry_timestamp_ms,
            self.max_timestamp_ms,
        ))
        if version >= 2:
            writer.compact_string(self.token_id)
        else:
            writer.string(self.token_id)
        if version >= 2:
            writer.compact_byte_string(self.hmac)
        else:
            writer.byte_string(self.hmac)
        writer.int32(self.throttle_time_ms)
        if version >= 2:
            writer.append(b"\x00")

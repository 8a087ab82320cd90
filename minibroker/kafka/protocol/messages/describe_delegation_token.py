# fmt: off
# ruff: noqa: E501
"""DescribeDelegationToken: key 41, versions 0 to 3.

Lists delegation tokens the caller owns, may renew or may describe (KIP-48).

Versions:
1: Over quota, the answer goes out first and the pause follows (KIP-219).
2: Flexible encoding (KIP-482).
3: Response tells who requested each token (KIP-373).

Generated from protocol_specs/apis/41_describe_delegation_token.json by `python -m protocol_specs.codegen`; do not edit.
"""

from struct import Struct

from minibroker.kafka.protocol.message import JsonFields, Message, not_carried
from minibroker.kafka.protocol.primitives import Reader, Writer

_QQQ = Struct(">qqq")


class DescribeDelegationTokenOwner(Message):
    """Owners whose tokens are wanted; null = whatever the caller may see."""

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
        """Principal type of an owner, e.g. User."""
        self.principal_name: str = principal_name
        """Name of an owner."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "DescribeDelegationTokenOwner":
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


class DescribeDelegationTokenRequest(Message):
    """Request of DescribeDelegationToken."""

    __slots__ = ("owners",)
    API_KEY = 41
    VERSIONS = (0, 3)
    FLEXIBLE_FROM: int | None = 2
    JSON_FIELDS: JsonFields = (
        ("owners", "DescribeDelegationTokenOwner", 0, 3, False),
    )

    def __init__(
        self,
        *,
        owners: list[DescribeDelegationTokenOwner] | None | tuple[()] = (),
    ) -> None:
        self.owners: list[DescribeDelegationTokenOwner] | None = [] if isinstance(owners, tuple) else owners
        """Owners whose tokens are wanted; null = whatever the caller may see."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "DescribeDelegationTokenRequest":
        self = cls.__new__(cls)
        if version >= 2:
            count = reader.compact_nullable_array_count()
        else:
            count = reader.nullable_array_count()
        owners: list[DescribeDelegationTokenOwner] = []
        for _ in range(count):
            owners.append(DescribeDelegationTokenOwner.read(reader, version))
        self.owners = owners if count >= 0 else None
        if version >= 2:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 2:
            writer.compact_array_count(-1 if self.owners is None else len(self.owners))
        else:
            writer.array_count(-1 if self.owners is None else len(self.owners))
        for describe_delegation_token_owner in self.owners or []:
            describe_delegation_token_owner.write(writer, version)
        if version >= 2:
            writer.append(b"\x00")


class DescribedDelegationTokenRenewer(Message):
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
        """Principal type of a renewer."""
        self.principal_name: str = principal_name
        """Name of a renewer."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "DescribedDelegationTokenRenewer":
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


class DescribedDelegationToken(Message):
    """Tokens found."""

    __slots__ = ("principal_type", "principal_name", "token_requester_principal_type", "token_requester_principal_name", "issue_timestamp", "expiry_timestamp", "max_timestamp", "token_id", "hmac", "renewers")
    JSON_FIELDS: JsonFields = (
        ("principal_type", "string", 0, 3, False),
        ("principal_name", "string", 0, 3, False),
        ("token_requester_principal_type", "string", 3, 3, False),
        ("token_requester_principal_name", "string", 3, 3, False),
        ("issue_timestamp", "int64", 0, 3, False),
        ("expiry_timestamp", "int64", 0, 3, False),
        ("max_timestamp", "int64", 0, 3, False),
        ("token_id", "string", 0, 3, False),
        ("hmac", "bytes", 0, 3, False),
        ("renewers", "DescribedDelegationTokenRenewer", 0, 3, False),
    )

    def __init__(
        self,
        *,
        principal_type: str = "",
        principal_name: str = "",
        token_requester_principal_type: str = "",
        token_requester_principal_name: str = "",
        issue_timestamp: int = 0,
        expiry_timestamp: int = 0,
        max_timestamp: int = 0,
        token_id: str = "",
        hmac: bytes = b"",
        renewers: list[DescribedDelegationTokenRenewer] | None = None,
    ) -> None:
        self.principal_type: str = principal_type
        """Kind of principal the token speaks for, mostly User."""
        self.principal_name: str = principal_name
        """User the token speaks for."""
        self.token_requester_principal_type: str = token_requester_principal_type
        """v3+. Kind of principal that had the token made; differs from the owner under KIP-373."""
        self.token_requester_principal_name: str = token_requester_principal_name
        """v3+. Principal that requested the token; it may differ from the owner (KIP-373)."""
        self.issue_timestamp: int = issue_timestamp
        """Time of creation, ms since the epoch."""
        self.expiry_timestamp: int = expiry_timestamp
        """End of validity unless renewed, ms since the epoch."""
        self.max_timestamp: int = max_timestamp
        """No renewal reaches beyond this time, ms since the epoch."""
        self.token_id: str = token_id
        """Token, by id: the user name when logging in by SCRAM with it."""
        self.hmac: bytes = hmac
        """Secret of the token; its base64 form is the password."""
        self.renewers: list[DescribedDelegationTokenRenewer] = [] if renewers is None else renewers
        """Principals besides the owner that may prolong the token."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "DescribedDelegationToken":
        self = cls.__new__(cls)
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
        self.issue_timestamp, self.expiry_timestamp, self.max_timestamp = reader.fixed(_QQQ)
        if version >= 2:
            self.token_id = reader.compact_string()
        else:
            self.token_id = reader.string()
        if version >= 2:
            self.hmac = reader.compact_byte_string()
        else:
            self.hmac = reader.byte_string()
        if version >= 2:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        renewers: list[DescribedDelegationTokenRenewer] = []
        for _ in range(count):
            renewers.append(DescribedDelegationTokenRenewer.read(reader, version))
        self.renewers = renewers
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
        if version >= 3:
            writer.compact_string(self.token_requester_principal_type)
        else:
            if self.token_requester_principal_type != "":
                raise not_carried("DescribedDelegationToken", "token_requester_principal_type", version)
        if version >= 3:
            writer.compact_string(self.token_requester_principal_name)
        else:
            if self.token_requester_principal_name != "":
                raise not_carried("DescribedDelegationToken", "token_requester_principal_name", version)
        writer.append(_QQQ.pack(
            self.issue_timestamp,
            self.expiry_timestamp,
            self.max_timestamp,
        ))
        if version >= 2:
            writer.compact_string(self.token_id)
        else:
            writer.string(self.token_id)
        if version >= 2:
            writer.compact_byte_string(self.hmac)
        else:
            writer.byte_string(self.hmac)
        if version >= 2:
            writer.compact_array_count(len(self.renewers))
        else:
            writer.array_count(len(self.renewers))
        for described_delegation_token_renewer in self.renewers:
            described_delegation_token_renewer.write(writer, version)
        if version >= 2:
            writer.append(b"\x00")


class DescribeDelegationTokenResponse(Message):
    """Answer of DescribeDelegationToken."""

    __slots__ = ("error_code", "tokens", "throttle_time_ms")
    API_KEY = 41
    VERSIONS = (0, 3)
    FLEXIBLE_FROM: int | None = 2
    JSON_FIELDS: JsonFields = (
        ("error_code", "error_code", 0, 3, False),
        ("tokens", "DescribedDelegationToken", 0, 3, False),
        ("throttle_time_ms", "int32", 0, 3, False),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        tokens: list[DescribedDelegationToken] | None = None,
        throttle_time_ms: int = 0,
    ) -> None:
        self.error_code: int = error_code
        """DELEGATION_TOKEN_AUTH_DISABLED, DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, …; 0 on success, even if none is found."""
        self.tokens: list[DescribedDelegationToken] = [] if tokens is None else tokens
        """Tokens found."""
        self.throttle_time_ms: int = throttle_time_ms
        """Pause the quota asks of the client, in ms; 0 when it is within quota."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "DescribeDelegationTokenResponse":
        self = cls.__new__(cls)
        self.error_code = reader.int16()
        if version >= 2:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        tokens: list[DescribedDelegationToken] = []
        for _ in range(count):
            tokens.append(DescribedDelegationToken.read(reader, version))
        self.tokens = tokens
        self.throttle_time_ms = reader.int32()
        if version >= 2:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.int16(self.error_code)
        if version >= 2:
            writer.compact_array_count(len(self.tokens))
        else:
            writer.array_count(len(self.tokens))
        for described_delegation_token in self.tokens:
            described_delegation_token.write(writer, version)
        writer.int32(self.throttle_time_ms)
        if version >= 2:
            writer.append(b"\x00")

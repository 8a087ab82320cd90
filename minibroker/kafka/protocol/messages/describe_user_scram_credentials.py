# fmt: off
# ruff: noqa: E501
"""DescribeUserScramCredentials: key 50, versions 0 to 0.

Admin clients list which SCRAM credentials users have, without the secrets (KIP-554).

Generated from protocol_specs/apis/50_describe_user_scram_credentials.json by `python -m protocol_specs.codegen`; do not edit.
"""

from struct import Struct

from minibroker.kafka.protocol.message import JsonFields, Message
from minibroker.kafka.protocol.primitives import Reader, Writer

_BI = Struct(">bi")
_IH = Struct(">ih")


class UserName(Message):
    """Users whose credentials to list; null or empty for all users."""

    __slots__ = ("name",)
    JSON_FIELDS: JsonFields = (
        ("name", "string", 0, 0, False),
    )

    def __init__(
        self,
        *,
        name: str = "",
    ) -> None:
        self.name: str = name
        """User, by name."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "UserName":
        self = cls.__new__(cls)
        self.name = reader.compact_string()
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.name)
        writer.append(b"\x00")


class DescribeUserScramCredentialsRequest(Message):
    """Request of DescribeUserScramCredentials."""

    __slots__ = ("users",)
    API_KEY = 50
    VERSIONS = (0, 0)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("users", "UserName", 0, 0, False),
    )

    def __init__(
        self,
        *,
        users: list[UserName] | None | tuple[()] = (),
    ) -> None:
        self.users: list[UserName] | None = [] if isinstance(users, tuple) else users
        """Users whose credentials to list; null or empty for all users."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "DescribeUserScramCredentialsRequest":
        self = cls.__new__(cls)
        count = reader.compact_nullable_array_count()
        users: list[UserName] = []
        for _ in range(count):
            users.append(UserName.read(reader, version))
        self.users = users if count >= 0 else None
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_array_count(-1 if self.users is None else len(self.users))
        for user_name in self.users or []:
            user_name.write(writer, version)
        writer.append(b"\x00")


class CredentialInfo(Message):
    """Credentials of the user, one per mechanism."""

    __slots__ = ("mechanism", "iterations")
    JSON_FIELDS: JsonFields = (
        ("mechanism", "int8", 0, 0, False),
        ("iterations", "int32", 0, 0, False),
    )

    def __init__(
        self,
        *,
        mechanism: int = 0,
        iterations: int = 0,
    ) -> None:
        self.mechanism: int = mechanism
        """1 = SCRAM-SHA-256, 2 = SCRAM-SHA-512."""
        self.iterations: int = iterations
        """Rounds of PBKDF2 the password went through."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "CredentialInfo":
        self = cls.__new__(cls)
        self.mechanism, self.iterations = reader.fixed(_BI)
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.append(_BI.pack(self.mechanism, self.iterations))
        writer.append(b"\x00")


class DescribeUserScramCredentialsResult(Message):
    """Answers, each about one user."""

    __slots__ = ("user", "error_code", "error_message", "credential_infos")
    JSON_FIELDS: JsonFields = (
        ("user", "string", 0, 0, False),
        ("error_code", "error_code", 0, 0, False),
        ("error_message", "string", 0, 0, False),
        ("credential_infos", "CredentialInfo", 0, 0, False),
    )

    def __init__(
        self,
        *,
        user: str = "",
        error_code: int = 0,
        error_message: str | None = "",
        credential_infos: list[CredentialInfo] | None = None,
    ) -> None:
        self.user: str = user
        """User of this result."""
        self.error_code: int = error_code
        """RESOURCE_NOT_FOUND, DUPLICATE_RESOURCE (asked for twice), …; 0 on success."""
        self.error_message: str | None = error_message
        """Human-readable reason for this entry's error_code; null when there is nothing to add."""
        self.credential_infos: list[CredentialInfo] = [] if credential_infos is None else credential_infos
        """Credentials of the user, one per mechanism."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "DescribeUserScramCredentialsResult":
        self = cls.__new__(cls)
        self.user = reader.compact_string()
        self.error_code = reader.int16()
        self.error_message = reader.compact_nullable_string()
        count = reader.compact_array_count()
        credential_infos: list[CredentialInfo] = []
        for _ in range(count):
            credential_infos.append(CredentialInfo.read(reader, version))
        self.credential_infos = credential_infos
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.user)
        writer.int16(self.error_code)
        writer.compact_nullable_string(self.error_message)
        writer.compact_array_count(len(self.credential_infos))
        for credential_info in self.credential_infos:
            credential_info.write(writer, version)
        writer.append(b"\x00")


class DescribeUserScramCredentialsResponse(Message):
    """Answer of DescribeUserScramCredentials."""

    __slots__ = ("throttle_time_ms", "error_code", "error_message", "results")
    API_KEY = 50
    VERSIONS = (0, 0)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("throttle_time_ms", "int32", 0, 0, False),
        ("error_code", "error_code", 0, 0, False),
        ("error_message", "string", 0, 0, False),
        ("results", "DescribeUserScramCredentialsResult", 0, 0, False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        results: list[DescribeUserScramCredentialsResult] | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        """Pause the quota asks of the client, in ms; 0 when it is within quota."""
        self.error_code: int = error_code
        """Error that concerns the request as a whole; 0 (NONE) on success."""
        self.error_message: str | None = error_message
        """Human-readable reason for error_code; null when there is nothing to add."""
        self.results: list[DescribeUserScramCredentialsResult] = [] if results is None else results
        """Answers, each about one user."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "DescribeUserScramCredentialsResponse":
        self = cls.__new__(cls)
        self.throttle_time_ms, self.error_code = reader.fixed(_IH)
        self.error_message = reader.compact_nullable_string()
        count = reader.compact_array_count()
        results: list[DescribeUserScramCredentialsResult] = []
        for _ in range(count):
            results.append(DescribeUserScramCredentialsResult.read(reader, version))
        self.results = results
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.append(_IH.pack(self.throttle_time_ms, self.error_code))
        writer.compact_nullable_string(self.error_message)
        writer.compact_array_count(len(self.results))
        for describe_user_scram_credentials_result in self.results:
            describe_user_scram_credentials_result.write(writer, version)
        writer.append(b"\x00")

# fmt: off
# ruff: noqa: E501
"""AlterUserScramCredentials: key 51, versions 0 to 0.

Admin clients set or delete SCRAM credentials of users; the controller acts (KIP-554).

Generated from protocol_specs/apis/51_alter_user_scram_credentials.json by `python -m protocol_specs.codegen`; do not edit.
"""

from struct import Struct

from minibroker.kafka.protocol.message import JsonFields, Message
from minibroker.kafka.protocol.primitives import Reader, Writer

_BI = Struct(">bi")


class ScramCredentialDeletion(Message):
    """Credentials to take away."""

    __slots__ = ("name", "mechanism")
    JSON_FIELDS: JsonFields = (
        ("name", "string", 0, 0, False),
        ("mechanism", "int8", 0, 0, False),
    )

    def __init__(
        self,
        *,
        name: str = "",
        mechanism: int = 0,
    ) -> None:
        self.name: str = name
        """User that loses the credential."""
        self.mechanism: int = mechanism
        """1 = SCRAM-SHA-256, 2 = SCRAM-SHA-512."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ScramCredentialDeletion":
        self = cls.__new__(cls)
        self.name = reader.compact_string()
        self.mechanism = reader.int8()
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.name)
        writer.int8(self.mechanism)
        writer.append(b"\x00")


class ScramCredentialUpsertion(Message):
    """Credentials to add or replace."""

    __slots__ = ("name", "mechanism", "iterations", "salt", "salted_password")
    JSON_FIELDS: JsonFields = (
        ("name", "string", 0, 0, False),
        ("mechanism", "int8", 0, 0, False),
        ("iterations", "int32", 0, 0, False),
        ("salt", "bytes", 0, 0, False),
        ("salted_password", "bytes", 0, 0, False),
    )

    def __init__(
        self,
        *,
        name: str = "",
        mechanism: int = 0,
        iterations: int = 0,
        salt: bytes = b"",
        salted_password: bytes = b"",
    ) -> None:
        self.name: str = name
        """User that gets the credential."""
        self.mechanism: int = mechanism
        """1 = SCRAM-SHA-256, 2 = SCRAM-SHA-512."""
        self.iterations: int = iterations
        """Rounds of PBKDF2 used; 4096 to 16384 are accepted."""
        self.salt: bytes = salt
        """Salt the client drew."""
        self.salted_password: bytes = salted_password
        """Password after PBKDF2: the clear text never travels."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ScramCredentialUpsertion":
        self = cls.__new__(cls)
        self.name = reader.compact_string()
        self.mechanism, self.iterations = reader.fixed(_BI)
        self.salt = reader.compact_byte_string()
        self.salted_password = reader.compact_byte_string()
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.name)
        writer.append(_BI.pack(self.mechanism, self.iterations))
        writer.compact_byte_string(self.salt)
        writer.compact_byte_string(self.salted_password)
        writer.append(b"\x00")


class AlterUserScramCredentialsRequest(Message):
    """Request of AlterUserScramCredentials."""

    __slots__ = ("deletions", "upsertions")
    API_KEY = 51
    VERSIONS = (0, 0)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("deletions", "ScramCredentialDeletion", 0, 0, False),
        ("upsertions", "ScramCredentialUpsertion", 0, 0, False),
    )

    def __init__(
        self,
        *,
        deletions: list[ScramCredentialDeletion] | None = None,
        upsertions: list[ScramCredentialUpsertion] | None = None,
    ) -> None:
        self.deletions: list[ScramCredentialDeletion] = [] if deletions is None else deletions
        """Credentials to take away."""
        self.upsertions: list[ScramCredentialUpsertion] = [] if upsertions is None else upsertions
        """Credentials to add or replace."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "AlterUserScramCredentialsRequest":
        self = cls.__new__(cls)
        count = reader.compact_array_count()
        deletions: list[ScramCredentialDeletion] = []
        for _ in range(count):
            deletions.append(ScramCredentialDeletion.read(reader, version))
        self.deletions = deletions
        count = reader.compact_array_count()
        upsertions: list[ScramCredentialUpsertion] = []
        for _ in range(count):
            upsertions.append(ScramCredentialUpsertion.read(reader, version))
        self.upsertions = upsertions
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_array_count(len(self.deletions))
        for scram_credential_deletion in self.deletions:
            scram_credential_deletion.write(writer, version)
        writer.compact_array_count(len(self.upsertions))
        for scram_credential_upsertion in self.upsertions:
            scram_credential_upsertion.write(writer, version)
        writer.append(b"\x00")


class AlterUserScramCredentialsResult(Message):
    """One result per user touched."""

    __slots__ = ("user", "error_code", "error_message")
    JSON_FIELDS: JsonFields = (
        ("user", "string", 0, 0, False),
        ("error_code", "error_code", 0, 0, False),
        ("error_message", "string", 0, 0, False),
    )

    def __init__(
        self,
        *,
        user: str = "",
        error_code: int = 0,
        error_message: str | None = "",
    ) -> None:
        self.user: str = user
        """User of this result."""
        self.error_code: int = error_code
        """UNACCEPTABLE_CREDENTIAL, UNSUPPORTED_SASL_MECHANISM, RESOURCE_NOT_FOUND, DUPLICATE_RESOURCE, …; 0 = done."""
        self.error_message: str | None = error_message
        """Human-readable reason for this entry's error_code; null when there is nothing to add."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "AlterUserScramCredentialsResult":
        self = cls.__new__(cls)
        self.user = reader.compact_string()
        self.error_code = reader.int16()
        self.error_message = reader.compact_nullable_string()
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.user)
        writer.int16(self.error_code)
        writer.compact_nullable_string(self.error_message)
        writer.append(b"\x00")


class AlterUserScramCredentialsResponse(Message):
    """Answer of AlterUserScramCredentials."""

    __slots__ = ("throttle_time_ms", "results")
    API_KEY = 51
    VERSIONS = (0, 0)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("throttle_time_ms", "int32", 0, 0, False),
        ("results", "AlterUserScramCredentialsResult", 0, 0, False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results: list[AlterUserScramCredentialsResult] | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        """Pause the quota asks of the client, in ms; 0 when it is within quota."""
        self.results: list[AlterUserScramCredentialsResult] = [] if results is None else results
        """One result per user touched."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "AlterUserScramCredentialsResponse":
        self = cls.__new__(cls)
        self.throttle_time_ms = reader.int32()
        count = reader.compact_array_count()
        results: list[AlterUserScramCredentialsResult] = []
        for _ in range(count):
            results.append(AlterUserScramCredentialsResult.read(reader, version))
        self.results = results
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.int32(self.throttle_time_ms)
        writer.compact_array_count(len(self.results))
        for alter_user_scram_credentials_result in self.results:
            alter_user_scram_credentials_result.write(writer, version)
        writer.append(b"\x00")

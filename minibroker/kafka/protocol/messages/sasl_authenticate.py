# fmt: off
# ruff: noqa: E501
"""SaslAuthenticate: key 36, versions 0 to 2.

Carries one SASL message of the mechanism chosen by SaslHandshake; also re-authenticates (KIP-152, KIP-368).

Versions:
1: Lifetime of the session in the response (KIP-368).
2: Flexible encoding (KIP-482).

Generated from protocol_specs/apis/36_sasl_authenticate.json by `python -m protocol_specs.codegen`; do not edit.
"""

from minibroker.kafka.protocol.message import JsonFields, Message
from minibroker.kafka.protocol.primitives import Reader, Writer


class SaslAuthenticateRequest(Message):
    """Request of SaslAuthenticate."""

    __slots__ = ("auth_bytes",)
    API_KEY = 36
    VERSIONS = (0, 2)
    FLEXIBLE_FROM: int | None = 2
    JSON_FIELDS: JsonFields = (
        ("auth_bytes", "bytes", 0, 2, False),
    )

    def __init__(
        self,
        *,
        auth_bytes: bytes = b"",
    ) -> None:
        self.auth_bytes: bytes = auth_bytes
        """The client's SASL message, opaque at this layer."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "SaslAuthenticateRequest":
        self = cls.__new__(cls)
        if version >= 2:
            self.auth_bytes = reader.compact_byte_string()
        else:
            self.auth_bytes = reader.byte_string()
        if version >= 2:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 2:
            writer.compact_byte_string(self.auth_bytes)
        else:
            writer.byte_string(self.auth_bytes)
        if version >= 2:
            writer.append(b"\x00")


class SaslAuthenticateResponse(Message):
    """Answer of SaslAuthenticate."""

    __slots__ = ("error_code", "error_message", "auth_bytes", "session_lifetime_ms")
    API_KEY = 36
    VERSIONS = (0, 2)
    FLEXIBLE_FROM: int | None = 2
    JSON_FIELDS: JsonFields = (
        ("error_code", "error_code", 0, 2, False),
        ("error_message", "string", 0, 2, False),
        ("auth_bytes", "bytes", 0, 2, False),
        ("session_lifetime_ms", "int64", 1, 2, False),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = "",
        auth_bytes: bytes = b"",
        session_lifetime_ms: int = 0,
    ) -> None:
        self.error_code: int = error_code
        """SASL_AUTHENTICATION_FAILED closes the connection after this answer; 0 = go on or done."""
        self.error_message: str | None = error_message
        """Human-readable reason for error_code; null when there is nothing to add."""
        self.auth_bytes: bytes = auth_bytes
        """The server's SASL message, opaque at this layer."""
        self.session_lifetime_ms: int = session_lifetime_ms
        """v1+. The client must re-authenticate within this many ms; 0 = never."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "SaslAuthenticateResponse":
        self = cls.__new__(cls)
        self.error_code = reader.int16()
        if version >= 2:
            self.error_message = reader.compact_nullable_string()
        else:
            self.error_message = reader.nullable_string()
        if version >= 2:
            self.auth_bytes = reader.compact_byte_string()
        else:
            self.auth_bytes = reader.byte_string()
        if version >= 1:
            self.session_lifetime_ms = reader.int64()
        else:
            self.session_lifetime_ms = 0
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
            writer.compact_byte_string(self.auth_bytes)
        else:
            writer.byte_string(self.auth_bytes)
        if version >= 1:
            writer.int64(self.session_lifetime_ms)
        if version >= 2:
            writer.append(b"\x00")

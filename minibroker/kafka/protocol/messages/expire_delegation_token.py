# fmt: off
# ruff: noqa: E501
"""ExpireDelegationToken: key 40, versions 0 to 2.

Sets the end of a delegation token, or ends it now (KIP-48).

Versions:
1: Over quota, the answer goes out first and the pause follows (KIP-219).
2: Flexible encoding (KIP-482).

Generated from protocol_specs/apis/40_expire_delegation_token.json by `python -m protocol_specs.codegen`; do not edit.
"""

from struct import Struct

from minibroker.kafka.protocol.message import JsonFields, Message
from minibroker.kafka.protocol.primitives import Reader, Writer

_HQI = Struct(">hqi")


class ExpireDelegationTokenRequest(Message):
    """Request of ExpireDelegationToken."""

    __slots__ = ("hmac", "expiry_time_period_ms")
    API_KEY = 40
    VERSIONS = (0, 2)
    FLEXIBLE_FROM: int | None = 2
    JSON_FIELDS: JsonFields = (
        ("hmac", "bytes", 0, 2, False),
        ("expiry_time_period_ms", "int64", 0, 2, False),
    )

    def __init__(
        self,
        *,
        hmac: bytes = b"",
        expiry_time_period_ms: int = 0,
    ) -> None:
        self.hmac: bytes = hmac
        """Secret that tells which token to change."""
        self.expiry_time_period_ms: int = expiry_time_period_ms
        """Valid for so many ms from now; negative = delete it at once."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ExpireDelegationTokenRequest":
        self = cls.__new__(cls)
        if version >= 2:
            self.hmac = reader.compact_byte_string()
        else:
            self.hmac = reader.byte_string()
        self.expiry_time_period_ms = reader.int64()
        if version >= 2:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 2:
            writer.compact_byte_string(self.hmac)
        else:
            writer.byte_string(self.hmac)
        writer.int64(self.expiry_time_period_ms)
        if version >= 2:
            writer.append(b"\x00")


class ExpireDelegationTokenResponse(Message):
    """Answer of ExpireDelegationToken."""

    __slots__ = ("error_code", "expiry_timestamp_ms", "throttle_time_ms")
    API_KEY = 40
    VERSIONS = (0, 2)
    FLEXIBLE_FROM: int | None = 2
    JSON_FIELDS: JsonFields = (
        ("error_code", "error_code", 0, 2, False),
        ("expiry_timestamp_ms", "int64", 0, 2, False),
        ("throttle_time_ms", "int32", 0, 2, False),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        expiry_timestamp_ms: int = 0,
        throttle_time_ms: int = 0,
    ) -> None:
        self.error_code: int = error_code
        """DELEGATION_TOKEN_NOT_FOUND, DELEGATION_TOKEN_EXPIRED, DELEGATION_TOKEN_OWNER_MISMATCH, …; 0 = changed."""
        self.expiry_timestamp_ms: int = expiry_timestamp_ms
        """End of validity now in force, ms since the epoch."""
        self.throttle_time_ms: int = throttle_time_ms
        """Pause the quota asks of the client, in ms; 0 when it is within quota."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ExpireDelegationTokenResponse":
        self = cls.__new__(cls)
        (
            self.error_code,
            self.expiry_timestamp_ms,
            self.throttle_time_ms,
        ) = reader.fixed(_HQI)
        if version >= 2:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.append(_HQI.pack(
            self.error_code,
            self.expiry_timestamp_ms,
            self.throttle_time_ms,
        ))
        if version >= 2:
            writer.append(b"\x00")

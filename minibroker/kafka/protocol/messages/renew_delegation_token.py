# fmt: off
# ruff: noqa: E501
"""RenewDelegationToken: key 39, versions 0 to 2.

Prolongs a delegation token (KIP-48).

Versions:
1: Over quota, the answer goes out first and the pause follows (KIP-219).
2: Flexible encoding (KIP-482).

Generated from protocol_specs/apis/39_renew_delegation_token.json by `python -m protocol_specs.codegen`; do not edit.
"""

from struct import Struct

from minibroker.kafka.protocol.message import JsonFields, Message
from minibroker.kafka.protocol.primitives import Reader, Writer

_HQI = Struct(">hqi")


class RenewDelegationTokenRequest(Message):
    """Request of RenewDelegationToken."""

    __slots__ = ("hmac", "renew_period_ms")
    API_KEY = 39
    VERSIONS = (0, 2)
    FLEXIBLE_FROM: int | None = 2
    JSON_FIELDS: JsonFields = (
        ("hmac", "bytes", 0, 2, False),
        ("renew_period_ms", "int64", 0, 2, False),
    )

    def __init__(
        self,
        *,
        hmac: bytes = b"",
        renew_period_ms: int = 0,
    ) -> None:
        self.hmac: bytes = hmac
        """Secret that tells which token to renew."""
        self.renew_period_ms: int = renew_period_ms
        """Valid for so many ms from now, but not past its max timestamp; negative = the default time."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "RenewDelegationTokenRequest":
        self = cls.__new__(cls)
        if version >= 2:
            self.hmac = reader.compact_byte_string()
        else:
            self.hmac = reader.byte_string()
        self.renew_period_ms = reader.int64()
        if version >= 2:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 2:
            writer.compact_byte_string(self.hmac)
        else:
            writer.byte_string(self.hmac)
        writer.int64(self.renew_period_ms)
        if version >= 2:
            writer.append(b"\x00")


class RenewDelegationTokenResponse(Message):
    """Answer of RenewDelegationToken."""

    __slots__ = ("error_code", "expiry_timestamp_ms", "throttle_time_ms")
    API_KEY = 39
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
        """DELEGATION_TOKEN_NOT_FOUND, DELEGATION_TOKEN_EXPIRED, DELEGATION_TOKEN_OWNER_MISMATCH, …; 0 = renewed."""
        self.expiry_timestamp_ms: int = expiry_timestamp_ms
        """New end of validity, ms since the epoch."""
        self.throttle_time_ms: int = throttle_time_ms
        """Pause the quota asks of the client, in ms; 0 when it is within quota."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "RenewDelegationTokenResponse":
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

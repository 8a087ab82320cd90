# fmt: off
# ruff: noqa: E501
"""PushTelemetry: key 72, versions 0 to 0.

A client pushes the metrics it was asked for (KIP-714).

Generated from protocol_specs/apis/72_push_telemetry.json by `python -m protocol_specs.codegen`; do not edit.
"""

from struct import Struct

from minibroker.kafka.protocol.message import JsonFields, Message
from minibroker.kafka.protocol.primitives import ZERO_UUID, Reader, Writer

_IZB = Struct(">i?b")
_IH = Struct(">ih")


class PushTelemetryRequest(Message):
    """Request of PushTelemetry."""

    __slots__ = ("client_instance_id", "subscription_id", "terminating", "compression_type", "metrics")
    API_KEY = 72
    VERSIONS = (0, 0)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("client_instance_id", "uuid", 0, 0, False),
        ("subscription_id", "int32", 0, 0, False),
        ("terminating", "bool", 0, 0, False),
        ("compression_type", "int8", 0, 0, False),
        ("metrics", "bytes", 0, 0, False),
    )

    def __init__(
        self,
        *,
        client_instance_id: bytes = ZERO_UUID,
        subscription_id: int = 0,
        terminating: bool = False,
        compression_type: int = 0,
        metrics: bytes = b"",
    ) -> None:
        self.client_instance_id: bytes = client_instance_id
        """Id the client was given by GetTelemetrySubscriptions."""
        self.subscription_id: int = subscription_id
        """Subscription the push answers; a stale one is UNKNOWN_SUBSCRIPTION_ID."""
        self.terminating: bool = terminating
        """True for the last push before the client closes; allowed before the interval is over."""
        self.compression_type: int = compression_type
        """Codec of the payload: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd."""
        self.metrics: bytes = metrics
        """OpenTelemetry MetricsData v1 (protobuf), compressed as told."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "PushTelemetryRequest":
        self = cls.__new__(cls)
        self.client_instance_id = reader.uuid()
        self.subscription_id, self.terminating, self.compression_type = reader.fixed(_IZB)
        self.metrics = reader.compact_byte_string()
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.uuid(self.client_instance_id)
        writer.append(_IZB.pack(
            self.subscription_id,
            self.terminating,
            self.compression_type,
        ))
        writer.compact_byte_string(self.metrics)
        writer.append(b"\x00")


class PushTelemetryResponse(Message):
    """Answer of PushTelemetry."""

    __slots__ = ("throttle_time_ms", "error_code")
    API_KEY = 72
    VERSIONS = (0, 0)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("throttle_time_ms", "int32", 0, 0, False),
        ("error_code", "error_code", 0, 0, False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        """Pause the quota asks of the client, in ms; 0 when it is within quota."""
        self.error_code: int = error_code
        """UNKNOWN_SUBSCRIPTION_ID, TELEMETRY_TOO_LARGE, THROTTLING_QUOTA_EXCEEDED (too soon), …; 0 = taken in."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "PushTelemetryResponse":
        self = cls.__new__(cls)
        self.throttle_time_ms, self.error_code = reader.fixed(_IH)
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.append(_IH.pack(self.throttle_time_ms, self.error_code))
        writer.append(b"\x00")

# fmt: off
# ruff: noqa: E501
"""GetTelemetrySubscriptions: key 71, versions 0 to 0.

A client asks which of its own metrics the cluster operator wants pushed (KIP-714).

Generated from protocol_specs/apis/71_get_telemetry_subscriptions.json by `python -m protocol_specs.codegen`; do not edit.
"""

from struct import Struct

from minibroker.kafka.protocol.message import JsonFields, Message
from minibroker.kafka.protocol.primitives import ZERO_UUID, Reader, Writer

_IH = Struct(">ih")
_IIZ = Struct(">ii?")


class GetTelemetrySubscriptionsRequest(Message):
    """Request of GetTelemetrySubscriptions."""

    __slots__ = ("client_instance_id",)
    API_KEY = 71
    VERSIONS = (0, 0)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("client_instance_id", "uuid", 0, 0, False),
    )

    def __init__(
        self,
        *,
        client_instance_id: bytes = ZERO_UUID,
    ) -> None:
        self.client_instance_id: bytes = client_instance_id
        """Id the client got before; zero on first contact, to be given one."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "GetTelemetrySubscriptionsRequest":
        self = cls.__new__(cls)
        self.client_instance_id = reader.uuid()
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.uuid(self.client_instance_id)
        writer.append(b"\x00")


class GetTelemetrySubscriptionsResponse(Message):
    """Answer of GetTelemetrySubscriptions."""

    __slots__ = ("throttle_time_ms", "error_code", "client_instance_id", "subscription_id", "accepted_compression_types", "push_interval_ms", "telemetry_max_bytes", "delta_temporality", "requested_metrics")
    API_KEY = 71
    VERSIONS = (0, 0)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("throttle_time_ms", "int32", 0, 0, False),
        ("error_code", "error_code", 0, 0, False),
        ("client_instance_id", "uuid", 0, 0, False),
        ("subscription_id", "int32", 0, 0, False),
        ("accepted_compression_types", "int8", 0, 0, False),
        ("push_interval_ms", "int32", 0, 0, False),
        ("telemetry_max_bytes", "int32", 0, 0, False),
        ("delta_temporality", "bool", 0, 0, False),
        ("requested_metrics", "string", 0, 0, False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        client_instance_id: bytes = ZERO_UUID,
        subscription_id: int = 0,
        accepted_compression_types: list[int] | None = None,
        push_interval_ms: int = 0,
        telemetry_max_bytes: int = 0,
        delta_temporality: bool = False,
        requested_metrics: list[str] | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        """Pause the quota asks of the client, in ms; 0 when it is within quota."""
        self.error_code: int = error_code
        """THROTTLING_QUOTA_EXCEEDED when asked again too soon, INVALID_REQUEST, …; 0 on success."""
        self.client_instance_id: bytes = client_instance_id
        """Id to use: a new one when the client sent zero, else (as Kafka does it) its own again."""
        self.subscription_id: int = subscription_id
        """Fingerprint of what this client shall push; it must be sent back with every push."""
        self.accepted_compression_types: list[int] = [] if accepted_compression_types is None else accepted_compression_types
        """Codecs a push may use, best first: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd."""
        self.push_interval_ms: int = push_interval_ms
        """Time between pushes in ms: the shortest interval.ms of the subscriptions that match."""
        self.telemetry_max_bytes: int = telemetry_max_bytes
        """Largest push accepted, in bytes; larger is TELEMETRY_TOO_LARGE."""
        self.delta_temporality: bool = delta_temporality
        """True: push counters as differences since the last push; false: as running totals."""
        self.requested_metrics: list[str] = [] if requested_metrics is None else requested_metrics
        """Prefixes of metric names wanted; empty = nothing, one empty string = everything."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "GetTelemetrySubscriptionsResponse":
        self = cls.__new__(cls)
        self.throttle_time_ms, self.error_code = reader.fixed(_IH)
        self.client_instance_id = reader.uuid()
        self.subscription_id = reader.int32()
        count = reader.compact_array_count()
        self.accepted_compression_types = reader.numbers(count, "b")
        (
            self.push_interval_ms,
            self.telemetry_max_bytes,
            self.delta_temporality,
        ) = reader.fixed(_IIZ)
        count = reader.compact_array_count()
        requested_metrics: list[str] = []
        for _ in range(count):
            requested_metrics.append(reader.compact_string())
        self.requested_metrics = requested_metrics
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.append(_IH.pack(self.throttle_time_ms, self.error_code))
        writer.uuid(self.client_instance_id)
        writer.int32(self.subscription_id)
        writer.compact_array_count(len(self.accepted_compression_types))
        writer.numbers(self.accepted_compression_types, "b")
        writer.append(_IIZ.pack(
            self.push_interval_ms,
            self.telemetry_max_bytes,
            self.delta_temporality,
        ))
        writer.compact_array_count(len(self.requested_metrics))
        for text in self.requested_metrics:
            writer.compact_string(text)
        writer.append(b"\x00")

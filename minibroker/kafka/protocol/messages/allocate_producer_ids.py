# fmt: off
# ruff: noqa: E501
"""AllocateProducerIds: key 67, versions 0 to 0.

A broker asks the controller for a block of producer ids; between brokers only (KIP-730).

Generated from protocol_specs/apis/67_allocate_producer_ids.json by `python -m protocol_specs.codegen`; do not edit.
"""

from struct import Struct

from minibroker.kafka.protocol.message import JsonFields, Message
from minibroker.kafka.protocol.primitives import Reader, Writer

_IHQI = Struct(">ihqi")
_IQ = Struct(">iq")


class AllocateProducerIdsRequest(Message):
    """Request of AllocateProducerIds."""

    __slots__ = ("broker_id", "broker_epoch")
    API_KEY = 67
    VERSIONS = (0, 0)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("broker_id", "int32", 0, 0, False),
        ("broker_epoch", "int64", 0, 0, False),
    )

    def __init__(
        self,
        *,
        broker_id: int = 0,
        broker_epoch: int = -1,
    ) -> None:
        self.broker_id: int = broker_id
        """Broker that asks."""
        self.broker_epoch: int = broker_epoch
        """Epoch of its registration; a stale one is STALE_BROKER_EPOCH."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "AllocateProducerIdsRequest":
        self = cls.__new__(cls)
        self.broker_id, self.broker_epoch = reader.fixed(_IQ)
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.append(_IQ.pack(self.broker_id, self.broker_epoch))
        writer.append(b"\x00")


class AllocateProducerIdsResponse(Message):
    """Answer of AllocateProducerIds."""

    __slots__ = ("throttle_time_ms", "error_code", "producer_id_start", "producer_id_len")
    API_KEY = 67
    VERSIONS = (0, 0)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("throttle_time_ms", "int32", 0, 0, False),
        ("error_code", "error_code", 0, 0, False),
        ("producer_id_start", "int64", 0, 0, False),
        ("producer_id_len", "int32", 0, 0, False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        producer_id_start: int = 0,
        producer_id_len: int = 0,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        """Pause the quota asks of the client, in ms; 0 when it is within quota."""
        self.error_code: int = error_code
        """NOT_CONTROLLER, STALE_BROKER_EPOCH, BROKER_ID_NOT_REGISTERED, …; 0 on success."""
        self.producer_id_start: int = producer_id_start
        """First producer id of the block."""
        self.producer_id_len: int = producer_id_len
        """Number of ids in the block."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "AllocateProducerIdsResponse":
        self = cls.__new__(cls)
        (
            self.throttle_time_ms,
            self.error_code,
            self.producer_id_start,
            self.producer_id_len,
        ) = reader.fixed(_IHQI)
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.append(_IHQI.pack(
            self.throttle_time_ms,
            self.error_code,
            self.producer_id_start,
            self.producer_id_len,
        ))
        writer.append(b"\x00")

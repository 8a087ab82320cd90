# fmt: off
# ruff: noqa: E501
"""UnregisterBroker: key 64, versions 0 to 0.

Admin clients make a KRaft cluster forget a broker. A ZooKeeper-mode broker does not serve it.

Generated from protocol_specs/apis/64_unregister_broker.json by `python -m protocol_specs.codegen`; do not edit.
"""

from struct import Struct

from minibroker.kafka.protocol.message import JsonFields, Message
from minibroker.kafka.protocol.primitives import Reader, Writer

_IH = Struct(">ih")


class UnregisterBrokerRequest(Message):
    """Request of UnregisterBroker."""

    __slots__ = ("broker_id",)
    API_KEY = 64
    VERSIONS = (0, 0)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("broker_id", "int32", 0, 0, False),
    )

    def __init__(
        self,
        *,
        broker_id: int = 0,
    ) -> None:
        self.broker_id: int = broker_id
        """Broker to forget; it should be down."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "UnregisterBrokerRequest":
        self = cls.__new__(cls)
        self.broker_id = reader.int32()
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.int32(self.broker_id)
        writer.append(b"\x00")


class UnregisterBrokerResponse(Message):
    """Answer of UnregisterBroker."""

    __slots__ = ("throttle_time_ms", "error_code", "error_message")
    API_KEY = 64
    VERSIONS = (0, 0)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("throttle_time_ms", "int32", 0, 0, False),
        ("error_code", "error_code", 0, 0, False),
        ("error_message", "string", 0, 0, False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        """Pause the quota asks of the client, in ms; 0 when it is within quota."""
        self.error_code: int = error_code
        """BROKER_ID_NOT_REGISTERED, NOT_CONTROLLER, …; 0 = forgotten."""
        self.error_message: str | None = error_message
        """Human-readable reason for error_code; null when there is nothing to add."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "UnregisterBrokerResponse":
        self = cls.__new__(cls)
        self.throttle_time_ms, self.error_code = reader.fixed(_IH)
        self.error_message = reader.compact_nullable_string()
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.append(_IH.pack(self.throttle_time_ms, self.error_code))
        writer.compact_nullable_string(self.error_message)
        writer.append(b"\x00")

# fmt: off
# ruff: noqa: E501
"""AddOffsetsToTxn: key 25, versions 0 to 4.

A transactional producer announces that it will commit offsets of a group inside its transaction (KIP-98).

Versions:
1: Over quota, the answer goes out first and the pause follows (KIP-219).
2: PRODUCER_FENCED may be answered (KIP-588).
3: Flexible encoding (KIP-482).
4: TRANSACTION_ABORTABLE may be answered (KIP-890).

Generated from protocol_specs/apis/25_add_offsets_to_txn.json by `python -m protocol_specs.codegen`; do not edit.
"""

from struct import Struct

from minibroker.kafka.protocol.message import JsonFields, Message
from minibroker.kafka.protocol.primitives import Reader, Writer

_IH = Struct(">ih")
_QH = Struct(">qh")


class AddOffsetsToTxnRequest(Message):
    """Request of AddOffsetsToTxn."""

    __slots__ = ("transactional_id", "producer_id", "producer_epoch", "group_id")
    API_KEY = 25
    VERSIONS = (0, 4)
    FLEXIBLE_FROM: int | None = 3
    JSON_FIELDS: JsonFields = (
        ("transactional_id", "string", 0, 4, False),
        ("producer_id", "int64", 0, 4, False),
        ("producer_epoch", "int16", 0, 4, False),
        ("group_id", "string", 0, 4, False),
    )

    def __init__(
        self,
        *,
        transactional_id: str = "",
        producer_id: int = 0,
        producer_epoch: int = 0,
        group_id: str = "",
    ) -> None:
        self.transactional_id: str = transactional_id
        """The producer's transactional.id."""
        self.producer_id: int = producer_id
        """Producer id (64 bits, unique in the cluster)."""
        self.producer_epoch: int = producer_epoch
        """Epoch of that producer id; a lower one than the known epoch is fenced off."""
        self.group_id: str = group_id
        """Group whose partition of __consumer_offsets joins the transaction."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "AddOffsetsToTxnRequest":
        self = cls.__new__(cls)
        if version >= 3:
            self.transactional_id = reader.compact_string()
        else:
            self.transactional_id = reader.string()
        self.producer_id, self.producer_epoch = reader.fixed(_QH)
        if version >= 3:
            self.group_id = reader.compact_string()
        else:
            self.group_id = reader.string()
        if version >= 3:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 3:
            writer.compact_string(self.transactional_id)
        else:
            writer.string(self.transactional_id)
        writer.append(_QH.pack(self.producer_id, self.producer_epoch))
        if version >= 3:
            writer.compact_string(self.group_id)
        else:
            writer.string(self.group_id)
        if version >= 3:
            writer.append(b"\x00")


class AddOffsetsToTxnResponse(Message):
    """Answer of AddOffsetsToTxn."""

    __slots__ = ("throttle_time_ms", "error_code")
    API_KEY = 25
    VERSIONS = (0, 4)
    FLEXIBLE_FROM: int | None = 3
    JSON_FIELDS: JsonFields = (
        ("throttle_time_ms", "int32", 0, 4, False),
        ("error_code", "error_code", 0, 4, False),
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
        """INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED, CONCURRENT_TRANSACTIONS, NOT_COORDINATOR, …; 0 on success."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "AddOffsetsToTxnResponse":
        self = cls.__new__(cls)
        self.throttle_time_ms, self.error_code = reader.fixed(_IH)
        if version >= 3:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.append(_IH.pack(self.throttle_time_ms, self.error_code))
        if version >= 3:
            writer.append(b"\x00")

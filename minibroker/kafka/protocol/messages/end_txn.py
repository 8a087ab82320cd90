# fmt: off
# ruff: noqa: E501
"""EndTxn: key 26, versions 0 to 5.

A transactional producer commits or aborts; the coordinator then writes markers to all partitions touched (KIP-98).

Versions:
1: Over quota, the answer goes out first and the pause follows (KIP-219).
2: PRODUCER_FENCED may be answered (KIP-588).
3: Flexible encoding (KIP-482).
4: TRANSACTION_ABORTABLE may be answered (KIP-890).
5: Epoch is raised by every transaction and comes back with the answer (KIP-890 part 2).

Generated from protocol_specs/apis/26_end_txn.json by `python -m protocol_specs.codegen`; do not edit.
"""

from struct import Struct

from minibroker.kafka.protocol.message import JsonFields, Message
from minibroker.kafka.protocol.primitives import Reader, Writer

_IH = Struct(">ih")
_IHQH = Struct(">ihqh")
_QHZ = Struct(">qh?")


class EndTxnRequest(Message):
    """Request of EndTxn."""

    __slots__ = ("transactional_id", "producer_id", "producer_epoch", "committed")
    API_KEY = 26
    VERSIONS = (0, 5)
    FLEXIBLE_FROM: int | None = 3
    JSON_FIELDS: JsonFields = (
        ("transactional_id", "string", 0, 5, False),
        ("producer_id", "int64", 0, 5, False),
        ("producer_epoch", "int16", 0, 5, False),
        ("committed", "bool", 0, 5, False),
    )

    def __init__(
        self,
        *,
        transactional_id: str = "",
        producer_id: int = 0,
        producer_epoch: int = 0,
        committed: bool = False,
    ) -> None:
        self.transactional_id: str = transactional_id
        """The producer's transactional.id."""
        self.producer_id: int = producer_id
        """Producer id (64 bits, unique in the cluster)."""
        self.producer_epoch: int = producer_epoch
        """Epoch of that producer id; a lower one than the known epoch is fenced off."""
        self.committed: bool = committed
        """True = commit, false = abort."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "EndTxnRequest":
        self = cls.__new__(cls)
        if version >= 3:
            self.transactional_id = reader.compact_string()
        else:
            self.transactional_id = reader.string()
        self.producer_id, self.producer_epoch, self.committed = reader.fixed(_QHZ)
        if version >= 3:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 3:
            writer.compact_string(self.transactional_id)
        else:
            writer.string(self.transactional_id)
        writer.append(_QHZ.pack(self.producer_id, self.producer_epoch, self.committed))
        if version >= 3:
            writer.append(b"\x00")


class EndTxnResponse(Message):
    """Answer of EndTxn."""

    __slots__ = ("throttle_time_ms", "error_code", "producer_id", "producer_epoch")
    API_KEY = 26
    VERSIONS = (0, 5)
    FLEXIBLE_FROM: int | None = 3
    JSON_FIELDS: JsonFields = (
        ("throttle_time_ms", "int32", 0, 5, False),
        ("error_code", "error_code", 0, 5, False),
        ("producer_id", "int64", 5, 5, False),
        ("producer_epoch", "int16", 5, 5, False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        producer_id: int = -1,
        producer_epoch: int = -1,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        """Pause the quota asks of the client, in ms; 0 when it is within quota."""
        self.error_code: int = error_code
        """INVALID_TXN_STATE, PRODUCER_FENCED, CONCURRENT_TRANSACTIONS, …; 0 = decision is on disk, markers follow."""
        self.producer_id: int = producer_id
        """v5+. Producer id for the next transaction; -1 on error. It changes when epochs run out."""
        self.producer_epoch: int = producer_epoch
        """v5+. Producer epoch for the next transaction; -1 on error."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "EndTxnResponse":
        self = cls.__new__(cls)
        if version >= 5:
            (
                self.throttle_time_ms,
                self.error_code,
                self.producer_id,
                self.producer_epoch,
            ) = reader.fixed(_IHQH)
        else:
            self.throttle_time_ms, self.error_code = reader.fixed(_IH)
            self.producer_id = -1
            self.producer_epoch = -1
        if version >= 3:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 5:
            writer.append(_IHQH.pack(
                self.throttle_time_ms,
                self.error_code,
                self.producer_id,
                self.producer_epoch,
            ))
        else:
            writer.append(_IH.pack(self.throttle_time_ms, self.error_code))
        if version >= 3:
            writer.append(b"\x00")

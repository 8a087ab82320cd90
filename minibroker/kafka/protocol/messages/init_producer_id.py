# fmt: off
# ruff: noqa: E501
"""InitProducerId: key 22, versions 0 to 6.

Idempotent and transactional producers get their producer id; with a transactional id, from its coordinator.

Versions:
1: Over quota, the answer goes out first and the pause follows (KIP-219).
2: Flexible encoding (KIP-482).
3: Producer sends its id and epoch, to recover from an epoch error without losing its place (KIP-360).
4: PRODUCER_FENCED may be answered (KIP-588).
5: TRANSACTION_ABORTABLE may be answered (KIP-890).
6: Two-phase commit: keep a prepared transaction across restarts (KIP-939).

Generated from protocol_specs/apis/22_init_producer_id.json by `python -m protocol_specs.codegen`; do not edit.
"""

from struct import Struct

from minibroker.kafka.protocol.message import JsonFields, Message, not_carried
from minibroker.kafka.protocol.primitives import Reader, Writer

_IHQH = Struct(">ihqh")
_IHQHQH = Struct(">ihqhqh")
_IQH = Struct(">iqh")
_IQHZZ = Struct(">iqh??")


class InitProducerIdRequest(Message):
    """Request of InitProducerId."""

    __slots__ = ("transactional_id", "transaction_timeout_ms", "producer_id", "producer_epoch", "enable2_pc", "keep_prepared_txn")
    API_KEY = 22
    VERSIONS = (0, 6)
    FLEXIBLE_FROM: int | None = 2
    JSON_FIELDS: JsonFields = (
        ("transactional_id", "string", 0, 6, False),
        ("transaction_timeout_ms", "int32", 0, 6, False),
        ("producer_id", "int64", 3, 6, False),
        ("producer_epoch", "int16", 3, 6, False),
        ("enable2_pc", "bool", 6, 6, False),
        ("keep_prepared_txn", "bool", 6, 6, False),
    )

    def __init__(
        self,
        *,
        transactional_id: str | None = "",
        transaction_timeout_ms: int = 0,
        producer_id: int = -1,
        producer_epoch: int = -1,
        enable2_pc: bool = False,
        keep_prepared_txn: bool = False,
    ) -> None:
        self.transactional_id: str | None = transactional_id
        """transactional.id to initialise; null = idempotence only, any broker hands out an id."""
        self.transaction_timeout_ms: int = transaction_timeout_ms
        """Idle transactions are aborted after this many ms; bounded by transaction.max.timeout.ms."""
        self.producer_id: int = producer_id
        """v3+. Producer id the sender had and wants its epoch raised for; -1 = none yet."""
        self.producer_epoch: int = producer_epoch
        """v3+. Epoch that goes with it; -1 = none yet. Must match what the coordinator knows."""
        self.enable2_pc: bool = enable2_pc
        """v6+. True: transactions of this producer never time out; an outside coordinator decides (KIP-939)."""
        self.keep_prepared_txn: bool = keep_prepared_txn
        """v6+. True: leave the open transaction as it is instead of aborting it (KIP-939)."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "InitProducerIdRequest":
        self = cls.__new__(cls)
        if version >= 2:
            self.transactional_id = reader.compact_nullable_string()
        else:
            self.transactional_id = reader.nullable_string()
        if version >= 6:
            (
                self.transaction_timeout_ms,
                self.producer_id,
                self.producer_epoch,
                self.enable2_pc,
                self.keep_prepared_txn,
            ) = reader.fixed(_IQHZZ)
        elif version >= 3:
            (
                self.transaction_timeout_ms,
                self.producer_id,
                self.producer_epoch,
            ) = reader.fixed(_IQH)
            self.enable2_pc = False
            self.keep_prepared_txn = False
        else:
            self.transaction_timeout_ms = reader.int32()
            self.producer_id = -1
            self.producer_epoch = -1
            self.enable2_pc = False
            self.keep_prepared_txn = False
        if version >= 2:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 2:
            writer.compact_nullable_string(self.transactional_id)
        else:
            writer.nullable_string(self.transactional_id)
        if version >= 6:
            writer.append(_IQHZZ.pack(
                self.transaction_timeout_ms,
                self.producer_id,
                self.producer_epoch,
                self.enable2_pc,
                self.keep_prepared_txn,
            ))
        elif version >= 3:
            if self.enable2_pc:
                raise not_carried("InitProducerIdRequest", "enable2_pc", version)
            if self.keep_prepared_txn:
                raise not_carried("InitProducerIdRequest", "keep_prepared_txn", version)
            writer.append(_IQH.pack(
                self.transaction_timeout_ms,
                self.producer_id,
                self.producer_epoch,
            ))
        else:
            if self.producer_id != -1:
                raise not_carried("InitProducerIdRequest", "producer_id", version)
            if self.producer_epoch != -1:
                raise not_carried("InitProducerIdRequest", "producer_epoch", version)
            if self.enable2_pc:
                raise not_carried("InitProducerIdRequest", "enable2_pc", version)
            if self.keep_prepared_txn:
                raise not_carried("InitProducerIdRequest", "keep_prepared_txn", version)
            writer.int32(self.transaction_timeout_ms)
        if version >= 2:
            writer.append(b"\x00")


class InitProducerIdResponse(Message):
    """Answer of InitProducerId."""

    __slots__ = ("throttle_time_ms", "error_code", "producer_id", "producer_epoch", "ongoing_txn_producer_id", "ongoing_txn_producer_epoch")
    API_KEY = 22
    VERSIONS = (0, 6)
    FLEXIBLE_FROM: int | None = 2
    JSON_FIELDS: JsonFields = (
        ("throttle_time_ms", "int32", 0, 6, False),
        ("error_code", "error_code", 0, 6, False),
        ("producer_id", "int64", 0, 6, False),
        ("producer_epoch", "int16", 0, 6, False),
        ("ongoing_txn_producer_id", "int64", 6, 6, False),
        ("ongoing_txn_producer_epoch", "int16", 6, 6, False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        producer_id: int = -1,
        producer_epoch: int = 0,
        ongoing_txn_producer_id: int = -1,
        ongoing_txn_producer_epoch: int = -1,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        """Pause the quota asks of the client, in ms; 0 when it is within quota."""
        self.error_code: int = error_code
        """Outcome, e.g. CONCURRENT_TRANSACTIONS while an older transaction ends; 0 on success."""
        self.producer_id: int = producer_id
        """Producer id to put into batches from now on; -1 on error."""
        self.producer_epoch: int = producer_epoch
        """Epoch to put into batches; 0 for a fresh id, one more than before for a known transactional id."""
        self.ongoing_txn_producer_id: int = ongoing_txn_producer_id
        """v6+. Old producer id under which the kept transaction goes on; -1 = nothing was open."""
        self.ongoing_txn_producer_epoch: int = ongoing_txn_producer_epoch
        """v6+. Epoch that goes with it; -1 = nothing was open."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "InitProducerIdResponse":
        self = cls.__new__(cls)
        if version >= 6:
            (
                self.throttle_time_ms,
                self.error_code,
                self.producer_id,
                self.producer_epoch,
                self.ongoing_txn_producer_id,
                self.ongoing_txn_producer_epoch,
            ) = reader.fixed(_IHQHQH)
        else:
            (
                self.throttle_time_ms,
                self.error_code,
                self.producer_id,
                self.producer_epoch,
            ) = reader.fixed(_IHQH)
            self.ongoing_txn_producer_id = -1
            self.ongoing_txn_producer_epoch = -1
        if version >= 2:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 6:
            writer.append(_IHQHQH.pack(
                self.throttle_time_ms,
                self.error_code,
                self.producer_id,
                self.producer_epoch,
                self.ongoing_txn_producer_id,
                self.ongoing_txn_producer_epoch,
            ))
        else:
            if self.ongoing_txn_producer_id != -1:
                raise not_carried("InitProducerIdResponse", "ongoing_txn_producer_id", version)
            if self.ongoing_txn_producer_epoch != -1:
                raise not_carried("InitProducerIdResponse", "ongoing_txn_producer_epoch", version)
            writer.append(_IHQH.pack(
                self.throttle_time_ms,
                self.error_code,
                self.producer_id,
                self.producer_epoch,
            ))
        if version >= 2:
            writer.append(b"\x00")

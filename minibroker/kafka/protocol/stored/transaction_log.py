# fmt: off
# ruff: noqa: E501
"""State of one transactional id in __transaction_state; a null value means the id has expired.


Versions:
1: Value: flexible encoding, new fields only as tags (KIP-915).

Generated from protocol_specs/stored/transaction_log.json by `python -m protocol_specs.codegen`; do not edit.
"""

from struct import Struct

from minibroker.kafka.protocol.message import JsonFields, Message, not_carried
from minibroker.kafka.protocol.primitives import Reader, Writer
from minibroker.kafka.protocol.versioned import VersionedMessage

_QHIB = Struct(">qhib")
_QQ = Struct(">qq")


class TransactionLogKey(VersionedMessage):
    """The record itself; its version is the int16 in front of it."""

    __slots__ = ("transactional_id",)
    VERSIONS = (0, 0)
    FLEXIBLE_FROM: int | None = None
    JSON_FIELDS: JsonFields = (
        ("transactional_id", "string", 0, 0, False),
    )

    def __init__(
        self,
        *,
        transactional_id: str = "",
    ) -> None:
        self.transactional_id: str = transactional_id
        """transactional.id the state belongs to."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "TransactionLogKey":
        self = cls.__new__(cls)
        self.transactional_id = reader.string()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.string(self.transactional_id)


class PartitionsSchema(Message):
    """Partitions in the transaction, grouped by topic; null when it is Empty."""

    __slots__ = ("topic", "partition_ids")
    JSON_FIELDS: JsonFields = (
        ("topic", "string", 0, 1, False),
        ("partition_ids", "int32", 0, 1, False),
    )

    def __init__(
        self,
        *,
        topic: str = "",
        partition_ids: list[int] | None = None,
    ) -> None:
        self.topic: str = topic
        """Topic, by name."""
        self.partition_ids: list[int] = [] if partition_ids is None else partition_ids
        """Numbers of the partitions meant within that topic."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "PartitionsSchema":
        self = cls.__new__(cls)
        if version >= 1:
            self.topic = reader.compact_string()
        else:
            self.topic = reader.string()
        if version >= 1:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        self.partition_ids = reader.numbers(count, "i")
        if version >= 1:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 1:
            writer.compact_string(self.topic)
        else:
            writer.string(self.topic)
        if version >= 1:
            writer.compact_array_count(len(self.partition_ids))
        else:
            writer.array_count(len(self.partition_ids))
        writer.numbers(self.partition_ids, "i")
        if version >= 1:
            writer.append(b"\x00")


class TransactionLogValue(VersionedMessage):
    """The record itself; its version is the int16 in front of it."""

    __slots__ = ("producer_id", "previous_producer_id", "next_producer_id", "producer_epoch", "next_producer_epoch", "transaction_timeout_ms", "transaction_status", "transaction_partitions", "transaction_last_update_timestamp_ms", "transaction_start_timestamp_ms", "client_transaction_version")
    VERSIONS = (0, 1)
    FLEXIBLE_FROM: int | None = 1
    JSON_FIELDS: JsonFields = (
        ("producer_id", "int64", 0, 1, False),
        ("previous_producer_id", "int64", 1, 1, True),
        ("next_producer_id", "int64", 1, 1, True),
        ("producer_epoch", "int16", 0, 1, False),
        ("next_producer_epoch", "int16", 1, 1, True),
        ("transaction_timeout_ms", "int32", 0, 1, False),
        ("transaction_status", "int8", 0, 1, False),
        ("transaction_partitions", "PartitionsSchema", 0, 1, False),
        ("transaction_last_update_timestamp_ms", "int64", 0, 1, False),
        ("transaction_start_timestamp_ms", "int64", 0, 1, False),
        ("client_transaction_version", "int16", 1, 1, True),
    )

    def __init__(
        self,
        *,
        producer_id: int = 0,
        previous_producer_id: int = -1,
        next_producer_id: int = -1,
        producer_epoch: int = 0,
        next_producer_epoch: int = -1,
        transaction_timeout_ms: int = 0,
        transaction_status: int = 0,
        transaction_partitions: list[PartitionsSchema] | None | tuple[()] = (),
        transaction_last_update_timestamp_ms: int = 0,
        transaction_start_timestamp_ms: int = 0,
        client_transaction_version: int = 0,
    ) -> None:
        self.producer_id: int = producer_id
        """Producer id the transactional id maps to."""
        self.previous_producer_id: int = previous_producer_id
        """v1+. Tagged: producer id before the last switch to a new one; -1 when none (KIP-890)."""
        self.next_producer_id: int = next_producer_id
        """v1+. Tagged: producer id the client already got for its next transaction; -1 when none (KIP-890)."""
        self.producer_epoch: int = producer_epoch
        """Latest epoch of that producer id."""
        self.next_producer_epoch: int = next_producer_epoch
        """v1+. Tagged: epoch the client got along with the next producer id; -1 when none."""
        self.transaction_timeout_ms: int = transaction_timeout_ms
        """Open transactions are aborted after this many ms."""
        self.transaction_status: int = transaction_status
        """0 Empty, 1 Ongoing, 2/3 PrepareCommit/Abort, 4/5 CompleteCommit/Abort, 6 Dead, 7 PrepareEpochFence."""
        self.transaction_partitions: list[PartitionsSchema] | None = [] if isinstance(transaction_partitions, tuple) else transaction_partitions
        """Partitions in the transaction, grouped by topic; null when it is Empty."""
        self.transaction_last_update_timestamp_ms: int = transaction_last_update_timestamp_ms
        """When the state last changed, ms since the epoch; counts for expiry of the id."""
        self.transaction_start_timestamp_ms: int = transaction_start_timestamp_ms
        """When the transaction began, ms since the epoch; -1 when none is open."""
        self.client_transaction_version: int = client_transaction_version
        """v1+. Tagged: transaction.version the client works with: 0, 1 or 2 (KIP-890)."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "TransactionLogValue":
        self = cls.__new__(cls)
        (
            self.producer_id,
            self.producer_epoch,
            self.transaction_timeout_ms,
            self.transaction_status,
        ) = reader.fixed(_QHIB)
        if version >= 1:
            count = reader.compact_nullable_array_count()
        else:
            count = reader.nullable_array_count()
        transaction_partitions: list[PartitionsSchema] = []
        for _ in range(count):
            transaction_partitions.append(PartitionsSchema.read(reader, version))
        self.transaction_partitions = transaction_partitions if count >= 0 else None
        (
            self.transaction_last_update_timestamp_ms,
            self.transaction_start_timestamp_ms,
        ) = reader.fixed(_QQ)
        self.previous_producer_id = -1
        self.next_producer_id = -1
        self.client_transaction_version = 0
        self.next_producer_epoch = -1
        if version >= 1:
            for _ in range(reader.tag_count()):
                tag = reader.uvarint()
                end = reader.tag_end()
                if tag == 0:
                    self.previous_producer_id = reader.int64()
                elif tag == 1:
                    self.next_producer_id = reader.int64()
                elif tag == 2:
                    self.client_transaction_version = reader.int16()
                elif tag == 3:
                    self.next_producer_epoch = reader.int16()
                else:
                    reader.position = end
                reader.finish_tag(end)
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.append(_QHIB.pack(
            self.producer_id,
            self.producer_epoch,
            self.transaction_timeout_ms,
            self.transaction_status,
        ))
        if version >= 1:
            writer.compact_array_count(-1 if self.transaction_partitions is None else len(self.transaction_partitions))
        else:
            writer.array_count(-1 if self.transaction_partitions is None else len(self.transaction_partitions))
        for partitions_schema in self.transaction_partitions or []:
            partitions_schema.write(writer, version)
        writer.append(_QQ.pack(
            self.transaction_last_update_timestamp_ms,
            self.transaction_start_timestamp_ms,
        ))
        if version >= 1:
            tagged: list[tuple[int, Writer]] = []
            if self.previous_producer_id != -1:
                value = Writer()
                value.int64(self.previous_producer_id)
                tagged.append((0, value))
            if self.next_producer_id != -1:
                value = Writer()
                value.int64(self.next_producer_id)
                tagged.append((1, value))
            if self.client_transaction_version != 0:
                value = Writer()
                value.int16(self.client_transaction_version)
                tagged.append((2, value))
            if self.next_producer_epoch != -1:
                value = Writer()
                value.int16(self.next_producer_epoch)
                tagged.append((3, value))
            if tagged:
                writer.tagged_fields(tagged)
            else:
                writer.append(b"\x00")
        else:
            if self.previous_producer_id != -1:
                raise not_carried("TransactionLogValue", "previous_producer_id", version)
            if self.next_producer_id != -1:
                raise not_carried("TransactionLogValue", "next_producer_id", version)
            if self.client_transaction_version != 0:
                raise not_carried("TransactionLogValue", "client_transaction_version", version)
            if self.next_producer_epoch != -1:
                raise not_carried("TransactionLogValue", "next_producer_epoch", version)

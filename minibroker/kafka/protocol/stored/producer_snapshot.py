# fmt: off
# ruff: noqa: E501
"""File `<offset>.snapshot` beside a segment: what the log knew of its producers before that offset.


Versions:
1: The only version; the version stands first in the file as an int16.

Generated from protocol_specs/stored/producer_snapshot.json by `python -m protocol_specs.codegen`; do not edit.
"""

from struct import Struct

from minibroker.kafka.protocol.message import JsonFields, Message
from minibroker.kafka.protocol.primitives import Reader, Writer
from minibroker.kafka.protocol.versioned import VersionedMessage

_QHIQIQIQ = Struct(">qhiqiqiq")


class ProducerEntry(Message):
    """Producers that wrote lately, in no particular order."""

    __slots__ = ("producer_id", "epoch", "last_sequence", "last_offset", "offset_delta", "timestamp", "coordinator_epoch", "current_txn_first_offset")
    JSON_FIELDS: JsonFields = (
        ("producer_id", "int64", 1, 1, False),
        ("epoch", "int16", 1, 1, False),
        ("last_sequence", "int32", 1, 1, False),
        ("last_offset", "int64", 1, 1, False),
        ("offset_delta", "int32", 1, 1, False),
        ("timestamp", "int64", 1, 1, False),
        ("coordinator_epoch", "int32", 1, 1, False),
        ("current_txn_first_offset", "int64", 1, 1, False),
    )

    def __init__(
        self,
        *,
        producer_id: int = 0,
        epoch: int = 0,
        last_sequence: int = 0,
        last_offset: int = 0,
        offset_delta: int = 0,
        timestamp: int = 0,
        coordinator_epoch: int = 0,
        current_txn_first_offset: int = 0,
    ) -> None:
        self.producer_id: int = producer_id
        """Producer, by its id."""
        self.epoch: int = epoch
        """Latest epoch seen from that id."""
        self.last_sequence: int = last_sequence
        """Sequence number of its last record; -1 when only a marker came."""
        self.last_offset: int = last_offset
        """Offset of its last record; -1 when only a marker came."""
        self.offset_delta: int = offset_delta
        """Last offset minus first offset of its last batch."""
        self.timestamp: int = timestamp
        """Largest timestamp of its last batch, ms since the epoch; counts for expiry."""
        self.coordinator_epoch: int = coordinator_epoch
        """Epoch of the coordinator that wrote its last marker; -1 when none did."""
        self.current_txn_first_offset: int = current_txn_first_offset
        """First offset of its open transaction; -1 when none is open."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ProducerEntry":
        self = cls.__new__(cls)
        (
            self.producer_id,
            self.epoch,
            self.last_sequence,
            self.last_offset,
            self.offset_delta,
            self.timestamp,
            self.coordinator_epoch,
            self.current_txn_first_offset,
        ) = reader.fixed(_QHIQIQIQ)
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.append(_QHIQIQIQ.pack(
            self.producer_id,
            self.epoch,
            self.last_sequence,
            self.last_offset,
            self.offset_delta,
            self.timestamp,
            self.coordinator_epoch,
            self.current_txn_first_offset,
        ))


class ProducerSnapshot(VersionedMessage):
    """The record itself; its version is the int16 in front of it."""

    __slots__ = ("crc", "producer_entries")
    VERSIONS = (1, 1)
    FLEXIBLE_FROM: int | None = None
    JSON_FIELDS: JsonFields = (
        ("crc", "uint32", 1, 1, False),
        ("producer_entries", "ProducerEntry", 1, 1, False),
    )

    def __init__(
        self,
        *,
        crc: int = 0,
        producer_entries: list[ProducerEntry] | None = None,
    ) -> None:
        self.crc: int = crc
        """CRC-32C of everything behind this field."""
        self.producer_entries: list[ProducerEntry] = [] if producer_entries is None else producer_entries
        """Producers that wrote lately, in no particular order."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ProducerSnapshot":
        self = cls.__new__(cls)
        self.crc = reader.uint32()
        count = reader.array_count()
        producer_entries: list[ProducerEntry] = []
        for _ in range(count):
            producer_entries.append(ProducerEntry.read(reader, version))
        self.producer_entries = producer_entries
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.uint32(self.crc)
        writer.array_count(len(self.producer_entries))
        for producer_entry in self.producer_entries:
            producer_entry.write(writer, version)

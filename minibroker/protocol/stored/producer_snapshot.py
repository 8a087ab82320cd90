# fmt: off
# ruff: noqa: E501
"""producer_snapshot.

Generated from protocol_specs/stored/producer_snapshot.json by `python -m minibroker.codegen`; do not edit.
"""

from struct import Struct

from minibroker.protocol.message import Message
from minibroker.protocol.primitives import Reader, Writer

_QHIQIQIQ = Struct(">qhiqiqiq")

class ProducerEntry(Message):
    """"""

    __slots__ = ("producer_id", "epoch", "last_sequence", "last_offset", "offset_delta", "timestamp", "coordinator_epoch", "current_txn_first_offset")

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
        """"""
        self.epoch: int = epoch
        """"""
        self.last_sequence: int = last_sequence
        """"""
        self.last_offset: int = last_offset
        """"""
        self.offset_delta: int = offset_delta
        """"""
        self.timestamp: int = timestamp
        """"""
        self.coordinator_epoch: int = coordinator_epoch
        """"""
        self.current_txn_first_offset: int = current_txn_first_offset
        """"""

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


class ProducerSnapshot(Message):
    """The record itself; its version is the int16 in front of it."""

    __slots__ = ("crc", "producer_entries")
    VERSIONS = (1, 1)
    FLEXIBLE_FROM: int | None = None

    def __init__(
        self,
        *,
        crc: int = 0,
        producer_entries: list[ProducerEntry] | None = None,
    ) -> None:
        self.crc: int = crc
        """"""
        self.producer_entries: list[ProducerEntry] = [] if producer_entries is None else producer_entries
        """"""

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

# fmt: off
# ruff: noqa: E501
"""Marker that ends a transaction in a partition log: the only record of its batch (KIP-98).

Generated from protocol_specs/stored/control_record.json by `python -m protocol_specs.codegen`; do not edit.
"""

from minibroker.kafka.protocol.message import JsonFields
from minibroker.kafka.protocol.primitives import Reader, Writer
from minibroker.kafka.protocol.versioned import VersionedMessage


class ControlRecordKey(VersionedMessage):
    """The record itself; its version is the int16 in front of it."""

    __slots__ = ("type",)
    VERSIONS = (0, 0)
    FLEXIBLE_FROM: int | None = None
    JSON_FIELDS: JsonFields = (
        ("type", "int16", 0, 0, False),
    )

    def __init__(
        self,
        *,
        type: int = 0,
    ) -> None:
        self.type: int = type
        """0 abort, 1 commit, 2 leader change, 3/4 snapshot header/footer, 5 kraft version, 6 voters."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ControlRecordKey":
        self = cls.__new__(cls)
        self.type = reader.int16()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.int16(self.type)


class EndTxnMarker(VersionedMessage):
    """The record itself; its version is the int16 in front of it."""

    __slots__ = ("coordinator_epoch",)
    VERSIONS = (0, 0)
    FLEXIBLE_FROM: int | None = None
    JSON_FIELDS: JsonFields = (
        ("coordinator_epoch", "int32", 0, 0, False),
    )

    def __init__(
        self,
        *,
        coordinator_epoch: int = 0,
    ) -> None:
        self.coordinator_epoch: int = coordinator_epoch
        """Leader epoch of the coordinator's __transaction_state partition, to fence an older coordinator."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "EndTxnMarker":
        self = cls.__new__(cls)
        self.coordinator_epoch = reader.int32()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.int32(self.coordinator_epoch)

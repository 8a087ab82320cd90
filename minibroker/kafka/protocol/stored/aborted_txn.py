# fmt: off
# ruff: noqa: E501
"""Entry of a segment's .txnindex file: one aborted transaction (KIP-98). Fixed size, 34 bytes with its version.

Generated from protocol_specs/stored/aborted_txn.json by `python -m protocol_specs.codegen`; do not edit.
"""

from struct import Struct

from minibroker.kafka.protocol.message import JsonFields
from minibroker.kafka.protocol.primitives import Reader, Writer
from minibroker.kafka.protocol.versioned import VersionedMessage

_QQQQ = Struct(">qqqq")


class AbortedTxn(VersionedMessage):
    """The record itself; its version is the int16 in front of it."""

    __slots__ = ("producer_id", "first_offset", "last_offset", "last_stable_offset")
    VERSIONS = (0, 0)
    FLEXIBLE_FROM: int | None = None
    JSON_FIELDS: JsonFields = (
        ("producer_id", "int64", 0, 0, False),
        ("first_offset", "int64", 0, 0, False),
        ("last_offset", "int64", 0, 0, False),
        ("last_stable_offset", "int64", 0, 0, False),
    )

    def __init__(
        self,
        *,
        producer_id: int = 0,
        first_offset: int = 0,
        last_offset: int = 0,
        last_stable_offset: int = 0,
    ) -> None:
        self.producer_id: int = producer_id
        """Producer whose transaction was rolled back."""
        self.first_offset: int = first_offset
        """Offset where the transaction began."""
        self.last_offset: int = last_offset
        """Offset of its abort marker."""
        self.last_stable_offset: int = last_stable_offset
        """First offset still undecided once the marker was in; bounds the search in the index."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "AbortedTxn":
        self = cls.__new__(cls)
        (
            self.producer_id,
            self.first_offset,
            self.last_offset,
            self.last_stable_offset,
        ) = reader.fixed(_QQQQ)
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.append(_QQQQ.pack(
            self.producer_id,
            self.first_offset,
            self.last_offset,
            self.last_stable_offset,
        ))

"""Control batches: the markers that end a transaction in a partition.

Written by the transaction coordinator through WriteTxnMarkers, never by clients; read when producer
state is rebuilt. A marker is one record: key = version int16 (0), type int16 (0 abort, 1 commit);
value = version int16 (0), coordinator epoch int32. Big-endian; later versions only add fields
behind these.

Source: Kafka ControlRecordType, EndTransactionMarker; KIP-98.
"""

from __future__ import annotations

from struct import Struct
from typing import Final, NamedTuple

from minibroker.kafka.errors import CorruptionError
from minibroker.kafka.records.batch import BatchHeader, read_header
from minibroker.kafka.records.builder import build_batch
from minibroker.kafka.records.record import Record, decode_records

ABORT: Final = 0
COMMIT: Final = 1

_KEY: Final = Struct(">hh")
_VALUE: Final = Struct(">hi")


class TransactionMarker(NamedTuple):
    """How a transaction ended, and the epoch of the coordinator that says so."""

    is_commit: bool
    coordinator_epoch: int


def build_marker(
    marker: TransactionMarker,
    *,
    producer_id: int,
    producer_epoch: int,
    timestamp_ms: int,
    base_offset: int = 0,
    leader_epoch: int = -1,
) -> bytearray:
    """Return the control batch (one record, uncompressed, no sequence) that ends a producer's
    transaction."""
    key = _KEY.pack(0, COMMIT if marker.is_commit else ABORT)
    value = _VALUE.pack(0, marker.coordinator_epoch)
    return build_batch(
        [Record(base_offset, timestamp_ms, key, value)],
        base_offset=base_offset,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        is_transactional=True,
        is_control=True,
        leader_epoch=leader_epoch,
    )


def read_marker(
    buffer: bytes | bytearray | memoryview, position: int = 0, header: BatchHeader | None = None
) -> TransactionMarker | None:
    """Return the marker in the control batch at `position`.

    None for an empty control batch (compaction took the marker with its transaction) and for
    control records of other kinds (Kafka's quorum writes some). Raises CorruptionError when key or
    value is too short or has a negative version.
    """
    if header is None:
        header = read_header(buffer, position)
    if header.count == 0:
        return None
    return parse_marker(decode_records(buffer, position, header=header)[0])


def parse_marker(record: Record) -> TransactionMarker | None:
    """Return the marker in a control record, None for other kinds. Raises CorruptionError."""
    kind = _unpack(_KEY, record.key, "key")
    if kind not in (ABORT, COMMIT):
        return None
    return TransactionMarker(kind == COMMIT, _unpack(_VALUE, record.value, "value"))


def _unpack(layout: Struct, data: bytes | None, subject: str) -> int:
    """Return the field behind the version."""
    if data is None or len(data) < layout.size:
        length_text = "null" if data is None else f"{len(data)} bytes"
        raise CorruptionError(
            f"control record has a {subject} of {length_text}, "
            f"expected at least {layout.size} bytes"
        )
    version, field = layout.unpack_from(data)
    if version < 0:
        raise CorruptionError(f"control record has a {subject} of version {version}")
    return int(field)

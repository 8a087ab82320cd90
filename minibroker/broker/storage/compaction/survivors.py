"""The rest of a batch after compaction: batch in, batch out.

Second pass of a round. Of every batch, in order:

| batch                                          | what happens                                  |
|------------------------------------------------|-----------------------------------------------|
| of an aborted transaction                      | all records go                                |
| a marker whose transaction is gone             | gets a delete horizon, goes when that is over |
| record with a later one of its key             | goes                                          |
| record without a key                           | goes (an old segment of another policy)       |
| tombstone: a key, no value                     | its batch gets a delete horizon, the record   |
|                                                | goes when that is over                        |
| emptied, but the last of an active producer or | stays without records: its numbers are still  |
| of the part that is compacted                  | needed                                        |
| emptied                                        | goes                                          |

The delete horizon (now + `delete.retention.ms`, ms) is set the first time a round meets tombstone
or lonely marker; it stands in the place of the batch's base timestamp, attribute bit 6 says so, and
the records' timestamp deltas count from it (KIP-534). Formats 0 and 1 have no place for it: there
tombstones go by the age of their segment.

Offsets never change. A batch of format 2 keeps base offset, last offset and first sequence, so
gaps inside it say what is missing; a compressed message of an older format keeps its last
*surviving* inner offset. A batch that loses nothing is left as its bytes are; others keep their
codec.

Pure: no file, no clock.

`OffsetMap`: key → the last offset it was seen at. The first pass over the dirty records fills it,
the second pass asks it for every record of the log. Its memory is bounded
(`log.cleaner.dedupe.buffer.size` by the load factor): when it is full the round ends at the offset
it came to, and the next round goes on from there. Short keys stand for themselves, longer ones as a
digest of 24 bytes, which no short key can equal. Differs from Kafka, whose table keeps MD5 digests
at 24 bytes a key: here a key takes 160 bytes (an entry of a Python dict), so the same buffer holds
a seventh of the keys and a log of more keys takes more rounds. A table of bytes searched by Python
code takes five times as long for every key.

`CleanedTransactions`: open transactions along a walk. Both passes tell it every batch in order.
Records of aborted transactions go at once, whatever their keys. A marker may go (after its delete
horizon) once no batch of its transaction is left before it; until then it stays, and for an abort
the entry of the transaction index with it. The walk stays below the last stable offset, so every
transaction it meets is decided, and the transaction index tells the aborted ones ahead of time
(KIP-98).

Source: Kafka Cleaner.cleanInto and shouldRetainRecord, MemoryRecords.filterTo. Differs from it in
one case: where the last message of the part that is compacted has format 0 or 1 and would go, Kafka
gives the partition up; here the message stays until it is not the last.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from heapq import heappop, heappush
from struct import Struct
from typing import Final, NamedTuple

from minibroker.broker.storage.compaction.record_rows import (
    Row,
    copy_rows,
    copy_rows_with_deltas,
    fold,
    read_rows,
    unfold,
)
from minibroker.broker.storage.txn_index import AbortedTransaction
from minibroker.kafka.records.batch import (
    APPEND_TIME_FLAG,
    ATTRIBUTES_AT,
    CODEC_MASK,
    CONTROL_FLAG,
    CRC_AT,
    DELETE_HORIZON_FLAG,
    HEADER,
    HEADER_BYTES,
    LENGTH_FIELD_END,
    NO_TIMESTAMP,
    TRANSACTIONAL_FLAG,
    BatchHeader,
)
from minibroker.kafka.records.compression import NONE
from minibroker.kafka.records.control import TransactionMarker, read_marker
from minibroker.kafka.records.conversion import read_records
from minibroker.kafka.records.crc import crc32c
from minibroker.kafka.records.message_set import build_message_set
from minibroker.kafka.records.record import Record

ENTRY_BYTES: Final = 160
"""Most that one key takes: 64 for its bytes, 32 for the offset, 64 of the dict just grown."""
DIGEST_BYTES: Final = 24
"""Keys of this length and more are hashed: then key and digest take equally much memory."""


class OffsetMap:
    """Used by one thread; emptied for every round."""

    __slots__ = ("_offsets", "keys_max", "latest_offset")

    def __init__(self, memory_bytes: int, load_factor: float) -> None:
        """Raises ValueError where not even one key fits."""
        self.keys_max = int(memory_bytes * load_factor) // ENTRY_BYTES
        if self.keys_max < 1:
            raise ValueError(
                f"log.cleaner.dedupe.buffer.size={memory_bytes} at a load factor of {load_factor} "
                f"holds no key, expected at least {ENTRY_BYTES} bytes of it"
            )
        self._offsets: dict[bytes, int] = {}
        self.latest_offset = -1
        """Everything up to here was looked at; -1: nothing."""

    def __len__(self) -> int:
        return len(self._offsets)

    @property
    def is_full(self) -> bool:
        return len(self._offsets) >= self.keys_max

    @property
    def utilization(self) -> float:
        """Share of the keys it may hold, 0 … 1."""
        return len(self._offsets) / self.keys_max

    def put(self, key: bytes, offset: int) -> None:
        """Note the last offset of a key. The caller has asked `is_full` before; offsets ascend."""
        if len(key) >= DIGEST_BYTES:
            key = blake2b(key, digest_size=DIGEST_BYTES).digest()
        self._offsets[key] = offset

    def get(self, key: bytes) -> int:
        """Return the last offset of `key`, -1 where it was not seen."""
        if len(key) >= DIGEST_BYTES:
            key = blake2b(key, digest_size=DIGEST_BYTES).digest()
        return self._offsets.get(key, -1)

    def clear(self) -> None:
        self._offsets = {}
        self.latest_offset = -1


class CleanedTransactions:
    """One walk; made anew for the next."""

    __slots__ = ("_aborted", "_committed", "_expected", "kept_aborts")

    def __init__(self) -> None:
        self._committed: set[int] = set()
        # Producer id → its aborted transaction, and whether a batch of it was met.
        self._aborted: dict[int, tuple[AbortedTransaction, bool]] = {}
        self._expected: list[tuple[int, AbortedTransaction]] = []
        self.kept_aborts: list[AbortedTransaction] = []
        """Entries for the transaction index of the segment that is being written; whoever begins
        one empties it."""

    def expect(self, aborted: Iterable[AbortedTransaction]) -> None:
        """Take the transactions that the walk is about to come to. One that spans segments may be
        named again.
        """
        for transaction in aborted:
            heappush(self._expected, (transaction.first_offset, transaction))

    def note_batch(self, header: BatchHeader) -> bool:
        """Note a batch of records; True: it belongs to an aborted transaction."""
        self._begin_up_to(header.last_offset)
        if not header.is_transactional:
            return False
        transaction = self._aborted.get(header.producer_id)
        if transaction is None:
            self._committed.add(header.producer_id)
            return False
        self._aborted[header.producer_id] = transaction[0], True
        return True

    def note_control(self, header: BatchHeader, marker: TransactionMarker | None) -> bool:
        """Note a control batch; True: nothing of its transaction is left, it may go.

        `marker` is None for an empty control batch, whose marker went before, and for control
        records of another kind, which stay.
        """
        self._begin_up_to(header.last_offset)
        if marker is None:
            return header.count == 0
        if marker.is_commit:
            if header.producer_id not in self._committed:
                return True
            self._committed.remove(header.producer_id)
            return False
        transaction = self._aborted.pop(header.producer_id, None)
        if transaction is None or not transaction[1]:
            return True
        self.kept_aborts.append(transaction[0])
        return False

    def _begin_up_to(self, offset: int) -> None:
        while self._expected and self._expected[0][0] <= offset:
            _, transaction = heappop(self._expected)
            self._aborted.setdefault(transaction.producer_id, (transaction, False))


_UINT32: Final = Struct(">I")
_KEPT_FLAGS: Final = APPEND_TIME_FLAG | TRANSACTIONAL_FLAG | CONTROL_FLAG
REMOVED: Final = b""
"""The result for a batch without any record left."""


class LastRecord(NamedTuple):
    """A producer's state: the end of its newest batch (-1: only a marker is known), its epoch."""

    last_offset: int
    epoch: int


class Survivors:
    """The rules of one round, and how many records they let live. Used by one thread."""

    __slots__ = (
        "_delete_retention_ms",
        "_end_offset",
        "_last_records",
        "_now_ms",
        "_offsets",
        "_transactions",
        "invalid_count",
        "kept_count",
        "read_count",
    )

    def __init__(
        self,
        offsets: OffsetMap,
        transactions: CleanedTransactions,
        last_records: dict[int, LastRecord],
        *,
        end_offset: int,
        now_ms: int,
        delete_retention_ms: int,
    ) -> None:
        """`end_offset`: the first offset that may not be compacted; `now_ms`: when the round began.

        `last_records`: producer id → its last record, of producers that may still write.
        """
        self._offsets = offsets
        self._transactions = transactions
        self._last_records = last_records
        self._end_offset = end_offset
        self._now_ms = now_ms
        self._delete_retention_ms = delete_retention_ms
        self.read_count = 0
        self.kept_count = 0
        self.invalid_count = 0
        """Records without a key."""

    def of_batch(
        self, chunk: bytes, position: int, header: BatchHeader, *, keeps_old_tombstones: bool
    ) -> bytes | bytearray | None:
        """Return the bytes that replace the batch at `position`; None keeps it, `REMOVED` drops it.

        `keeps_old_tombstones`: the segment is young, tombstones of format 0 and 1 stay. Batches
        have to come in the order of the log. Raises CorruptionError.
        """
        if header.magic < 2:
            return self._of_old(chunk, position, header, keeps_old_tombstones)
        if header.is_control:
            return self._of_control(chunk, position, header)
        self.read_count += header.count
        if self._transactions.note_batch(header):
            return self._emptied(header)
        body, start, end = unfold(chunk, position, header)
        rows = read_rows(body, start, end, header.count)
        survivor_rows, has_tombstone = self._survivors_of(rows, header)
        self.kept_count += len(survivor_rows)
        if not survivor_rows:
            return self._emptied(header)
        has_horizon = header.attributes & DELETE_HORIZON_FLAG
        horizon = header.base_timestamp if has_horizon else None
        if has_tombstone and not has_horizon:
            horizon = self._now_ms + self._delete_retention_ms
        elif len(survivor_rows) == len(rows):
            return None
        return _rebuilt(header, body, survivor_rows, horizon)

    def _survivors_of(self, rows: list[Row], header: BatchHeader) -> tuple[list[Row], bool]:
        """Return the records that live, and whether a tombstone is among them."""
        base_offset = header.base_offset
        latest, get = self._offsets.latest_offset, self._offsets.get
        goes_without_value = (
            header.attributes & DELETE_HORIZON_FLAG != 0 and header.base_timestamp <= self._now_ms
        )
        survivor_rows: list[Row] = []
        has_tombstone = False
        for row in rows:
            _, _, _, _, delta, key, has_value = row
            offset = base_offset + delta
            if offset <= latest:
                if key is None:
                    self.invalid_count += 1
                    continue
                if offset < get(key) or (goes_without_value and not has_value):
                    continue
            if not has_value:
                has_tombstone = True
            survivor_rows.append(row)
        return survivor_rows, has_tombstone

    def _of_control(
        self, chunk: bytes, position: int, header: BatchHeader
    ) -> bytes | bytearray | None:
        self.read_count += header.count
        marker = read_marker(chunk, position, header)
        is_lonely = self._transactions.note_control(header, marker)
        has_horizon = header.attributes & DELETE_HORIZON_FLAG
        if is_lonely and has_horizon and header.base_timestamp <= self._now_ms:
            return self._emptied(header)
        if header.count == 0:
            return self._emptied(header)
        self.kept_count += header.count
        if not is_lonely or has_horizon:
            return None
        body, start, end = unfold(chunk, position, header)
        rows = read_rows(body, start, end, header.count)
        return _rebuilt(header, body, rows, self._now_ms + self._delete_retention_ms)

    def _emptied(self, header: BatchHeader) -> bytes | bytearray:
        """Return a batch without records where its numbers are still needed."""
        if not (self._is_last_of_producer(header) or self._is_last(header)):
            return REMOVED
        return _sealed(
            header,
            header.attributes & _KEPT_FLAGS,
            base_timestamp=NO_TIMESTAMP,
            max_timestamp=header.max_timestamp,
            count=0,
            payload=b"",
        )

    def _is_last_of_producer(self, header: BatchHeader) -> bool:
        """Return whether the batch has the last sequence and the epoch of a producer, which the
        next load of the log needs.
        """
        if header.producer_id < 0:
            return False
        last = self._last_records.get(header.producer_id)
        if last is None:
            return False
        if last.last_offset >= 0:
            return header.last_offset == last.last_offset
        return header.is_control and header.producer_epoch == last.epoch

    def _is_last(self, header: BatchHeader) -> bool:
        """Return whether the batch's last offset says where the compacted part ends."""
        return header.last_offset + 1 == self._end_offset

    def _of_old(
        self, chunk: bytes, position: int, header: BatchHeader, keeps_tombstones: bool
    ) -> bytes | bytearray | None:
        self._transactions.note_batch(header)
        records = read_records(chunk, position, header)
        self.read_count += len(records)
        survivor_records = [
            record for record in records if self._keeps_old(record, keeps_tombstones)
        ]
        if not survivor_records and self._is_last(header):
            survivor_records = records[-1:]
        self.kept_count += len(survivor_records)
        if len(survivor_records) == len(records):
            return None
        if not survivor_records:
            return REMOVED
        append_time = header.max_timestamp if header.magic and header.is_append_time else None
        return build_message_set(
            survivor_records, magic=header.magic, codec=header.codec, append_time_ms=append_time
        )

    def _keeps_old(self, record: Record, keeps_tombstones: bool) -> bool:
        if record.offset > self._offsets.latest_offset:
            return True
        if record.key is None:
            self.invalid_count += 1
            return False
        if record.offset < self._offsets.get(record.key):
            return False
        return record.value is not None or keeps_tombstones


def _rebuilt(header: BatchHeader, body: bytes, rows: list[Row], horizon: int | None) -> bytearray:
    """Return the batch with only the records of `rows` (at least one), with the delete horizon if
    given.

    Timestamps stay; their deltas count from the first one that is left, or from the horizon.
    """
    base = header.base_timestamp
    append_time = header.max_timestamp if header.is_append_time else None
    first = base + rows[0].timestamp_delta if append_time is None else append_time
    new_base = first if horizon is None else horizon
    codec = header.attributes & CODEC_MASK
    if append_time is not None:
        max_timestamp = append_time
        payload = copy_rows_with_deltas(body, rows, [append_time - new_base] * len(rows))
    else:
        max_timestamp = max(NO_TIMESTAMP, base + max(row.timestamp_delta for row in rows))
        shift = base - new_base
        if shift == 0:
            payload = copy_rows(body, rows)
        else:
            deltas = [row.timestamp_delta + shift for row in rows]
            payload = copy_rows_with_deltas(body, rows, deltas)
    return _sealed(
        header,
        codec | header.attributes & _KEPT_FLAGS | (0 if horizon is None else DELETE_HORIZON_FLAG),
        base_timestamp=new_base,
        max_timestamp=max_timestamp,
        count=len(rows),
        payload=payload if codec == NONE else fold(codec, payload),
    )


def _sealed(
    header: BatchHeader,
    attributes: int,
    *,
    base_timestamp: int,
    max_timestamp: int,
    count: int,
    payload: bytes,
) -> bytearray:
    """Return a batch with the numbers of `header`, this content and its CRC."""
    batch = bytearray(
        HEADER.pack(
            header.base_offset,
            HEADER_BYTES - LENGTH_FIELD_END + len(payload),
            header.leader_epoch,
            2,
            0,
            attributes,
            header.last_offset_delta,
            base_timestamp,
            max_timestamp,
            header.producer_id,
            header.producer_epoch,
            header.base_sequence,
            count,
        )
    )
    batch += payload
    with memoryview(batch) as view:
        crc = crc32c(view[ATTRIBUTES_AT:])
    _UINT32.pack_into(batch, CRC_AT, crc)
    return batch

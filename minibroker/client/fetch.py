"""Batches in an answer of Fetch: whole ones, sound ones, and of committed transactions alone.

    bytes of an answer ─► StoredBatch, StoredBatch, … ─► segments.record_columns

What a reader of committed records must not see is found as Kafka's consumers find it: the answer
names the producers of aborted transactions and where each begins, and its abort marker ends one.

Source: Kafka CompletedFetch; KIP-98.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from minibroker.kafka.records.batch import iterate_headers
from minibroker.kafka.records.control import read_marker
from minibroker.kafka.records.stored_batch import StoredBatch, check_crc

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from minibroker.kafka.protocol.primitives import Buffer


class FetchedBatches(NamedTuple):
    """The content of one answer."""

    data: list[StoredBatch]
    """Batches with records for the reader, as views into the answer."""
    next_offset: int | None
    """The offset behind the last whole batch, of whatever kind; None without one."""
    epoch: int
    """Leader epoch of the last whole batch, -1 without one or in formats 0 and 1."""


def read_batches(records: Buffer, aborted: Iterable[tuple[int, int]]) -> FetchedBatches:
    """Return the batches of an answer.

    Args:
        records: batches one behind the other; the last one may be cut.
        aborted: producer and first offset of aborted transactions, empty to see them all.

    Raises:
        CorruptionError: a batch has a wrong CRC, or the bytes are no batches.
    """
    waiting = deque(sorted(aborted, key=lambda transaction: transaction[1]))
    open_aborts: set[int] = set()
    data: list[StoredBatch] = []
    next_offset, epoch = None, -1
    for batch in _whole(memoryview(records)):
        header = batch.header
        next_offset = max(next_offset or 0, header.last_offset + 1)
        epoch = header.leader_epoch if header.magic == 2 else -1
        while waiting and waiting[0][1] <= header.last_offset:
            open_aborts.add(waiting.popleft()[0])
        if header.is_control and header.magic == 2:
            marker = read_marker(batch.content, 0, header)
            if marker is not None and not marker.is_commit:
                open_aborts.discard(header.producer_id)
        elif header.count > 0 and not (
            header.is_transactional and header.producer_id in open_aborts
        ):
            data.append(batch)
    return FetchedBatches(data, next_offset, epoch)


def _whole(records: memoryview) -> Iterator[StoredBatch]:
    for at, header in iterate_headers(records):
        check_crc(records, at, header)
        yield StoredBatch(at, header, records[at : at + header.size_bytes])

"""The records of a topic, decoded, so that a test can see the records of its clients.

They are read from the broker's log: no client, no group, no position. Markers of transactions are
not records. With `read_committed`, records of aborted and open transactions are left out.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from minibroker.broker.partitions.partition import READ_COMMITTED, READ_UNCOMMITTED
from minibroker.kafka.records.batch import iterate_headers
from minibroker.kafka.records.conversion import read_records

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from minibroker.broker.partitions.partition import Partition
    from minibroker.kafka.records.record import Header

READ_BYTES: Final = 8 << 20
LEVELS: Final = {"read_uncommitted": READ_UNCOMMITTED, "read_committed": READ_COMMITTED}
CREATE_TIME: Final = "CreateTime"
LOG_APPEND_TIME: Final = "LogAppendTime"


class TopicRecord(NamedTuple):
    """One record as a consumer would get it."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    """Milliseconds since the epoch, -1 for a record without a timestamp (message format 0)."""
    timestamp_type: str
    """`CreateTime` or `LogAppendTime`."""
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()

    @property
    def text(self) -> str | None:
        """Return the value as UTF-8 text, None for a tombstone. Raises UnicodeDecodeError."""
        return None if self.value is None else self.value.decode()

    @property
    def time(self) -> datetime | None:
        """Return the timestamp in UTC, None for a record without a timestamp."""
        return None if self.timestamp < 0 else datetime.fromtimestamp(self.timestamp / 1000, UTC)

    def json(self) -> Any:
        """Return the value decoded as JSON, None for a tombstone. Raises ValueError."""
        return None if self.value is None else json.loads(self.value)

    def header(self, name: str) -> bytes | None:
        """Return the last header of this name, like Java's `lastHeader`, None without one."""
        return next((value for key, value in reversed(self.headers) if key == name), None)


def check_isolation(isolation: str) -> int:
    """Return the level's number. Raises ValueError, which names the levels."""
    level = LEVELS.get(isolation)
    if level is None:
        raise ValueError(f"isolation {isolation!r}, expected one of {', '.join(LEVELS)}")
    return level


def records_of(
    partition: Partition, isolation: str, first_offset: int | None = None
) -> Iterator[TopicRecord]:
    """Return the partition's records in the order of offsets. Raises KafkaError, ValueError.

    `first_offset` None: from the log start offset on.
    """
    first = partition.log_start_offset if first_offset is None else first_offset
    return decoded(partition, first, check_isolation(isolation))


def decoded(partition: Partition, offset: int, level: int) -> Iterator[TopicRecord]:
    """Return the records from `offset` on that a reader of this isolation level gets.

    Raises KafkaError.
    """
    while True:
        batches = read_batches(partition, offset, level)
        next_offset = yield from batches.records()
        if next_offset == offset:
            return
        offset = next_offset


class ReadBatches(NamedTuple):
    """Batches of a partition as they stand in its log. Constant: another thread may decode them."""

    topic: str
    partition: int
    offset: int
    """The first offset that was asked for; the first batch may begin before it."""
    data: memoryview
    aborted: dict[int, list[int]]
    """Producer id → first offsets of its aborted transactions, for read_committed."""

    def records(self) -> Generator[TopicRecord, None, int]:
        """Yield the records, and return the offset behind them."""
        aborted = {producer: list(offsets) for producer, offsets in self.aborted.items()}
        next_offset = self.offset
        for position, header in iterate_headers(self.data):
            next_offset = header.last_offset + 1
            if header.is_control:
                _end_transaction(aborted.get(header.producer_id), header)
                continue
            if header.is_transactional and _is_aborted(aborted.get(header.producer_id), header):
                continue
            kind = LOG_APPEND_TIME if header.is_append_time else CREATE_TIME
            for record in read_records(self.data, position, header):
                if record.offset >= self.offset:
                    yield TopicRecord(
                        self.topic,
                        self.partition,
                        record.offset,
                        record.timestamp,
                        kind,
                        record.key,
                        record.value,
                        record.headers,
                    )
        return next_offset


def read_batches(
    partition: Partition,
    offset: int,
    level: int,
    bytes_max: int = READ_BYTES,
    *,
    resident_only: bool = False,
) -> ReadBatches:
    """Return the batches from `offset` on, at most `bytes_max`, or one. Raises KafkaError; with
    `resident_only`, ColdError where it would wait for the disk.
    """
    log_read = partition.read(offset, bytes_max, isolation_level=level, resident_only=resident_only)
    aborted: dict[int, list[int]] = {}
    if level == READ_COMMITTED:
        for transaction in partition.aborted_transactions(offset, log_read):
            aborted.setdefault(transaction.producer_id, []).append(transaction.first_offset)
    return ReadBatches(partition.topic, partition.index, offset, log_read.records, aborted)


def _is_aborted(first_offsets: list[int] | None, header: object) -> bool:
    """Return whether a transactional batch belongs to its producer's oldest aborted transaction."""
    return bool(first_offsets) and first_offsets[0] <= header.base_offset  # type: ignore[attr-defined, index]


def _end_transaction(first_offsets: list[int] | None, marker: object) -> None:
    """Forget an aborted transaction at its marker.

    A marker before it is that of a committed one.
    """
    if _is_aborted(first_offsets, marker):
        first_offsets.pop(0)  # type: ignore[union-attr]

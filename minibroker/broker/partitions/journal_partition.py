"""One partition of a coordinator's journal: its state, what is staged in it, parts of it decoded.

`journal` holds one `JournalPartition` for each partition of its topic that this broker leads. It
hangs on the partition as a long poll does and so learns, inside `AppendQueue.commit` and
before any answer leaves, what is in the file.
"""

from __future__ import annotations

import logging
from collections import deque
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.records.batch import HEADER_BYTES, batch_size_at, read_header
from minibroker.kafka.records.conversion import read_records

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from minibroker.broker.partitions.partition import Partition
    from minibroker.kafka.records.batch import BatchHeader
    from minibroker.kafka.records.record import Record

    DecodeBatch = Callable[[memoryview, int, BatchHeader], Sequence[Any] | None]
    """(data, position of a whole batch, its header) → what the listener gets of it, None: read its
    records."""


logger = logging.getLogger(__name__)

RECORDS_AT_ONCE: Final = 64
"""Records that the listener gets in one step of a load; replaying one takes some microseconds."""


class JournalState(Enum):
    """The state of one partition that this broker leads."""

    LOADING = "loading"
    ACTIVE = "active"
    FAILED = "failed"


class JournalPartition:
    """One led partition of a journal; waits on it like a long poll, to learn what was written."""

    __slots__ = ("cold_rounds", "leader_epoch", "next_offset", "partition", "staged", "state")

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.leader_epoch = partition.leader_epoch
        """The epoch in which loading began: a later epoch begins anew where loading failed."""
        self.state = JournalState.LOADING
        self.next_offset = partition.log_start_offset
        """Loaded up to here, exclusive."""
        self.cold_rounds = 0
        """How often the next part was not in memory."""
        self.staged: deque[StagedAppend | _Follower] = deque()
        """In the order of the log: entries that are not below the high watermark yet."""

    @property
    def index(self) -> int:
        return self.partition.index

    def stay(self) -> None:
        """Wait on the partition: be told of its progress from now on."""
        if self.partition.waiters is None:
            self.partition.waiters = {}
        self.partition.waiters[self] = None

    def leave(self) -> None:
        """Wait on the partition no more."""
        if self.partition.waiters is not None:
            self.partition.waiters.pop(self, None)

    def on_progress(self) -> None:
        """Tell the entries below the high watermark, in the order of the log.

        Entries behind one that the disk refused are refused with it.
        """
        staged = self.staged
        high_watermark = self.partition.high_watermark
        is_lost = False
        while staged:
            entry = staged[0]
            is_lost = entry.is_failed or (is_lost and isinstance(entry, _Follower))
            if not is_lost and entry.last_offset >= high_watermark:
                return
            staged.popleft()
            try:
                if is_lost:
                    entry.error_code = int(ErrorCode.KAFKA_STORAGE_ERROR)
                else:
                    entry.succeed()
            except Exception:  # what the others recorded is done all the same
                logger.exception("cannot do what is recorded in %s", self.partition)

    def when_told(
        self, then: Callable[[], None], failed: Callable[[ErrorCode], None] | None = None
    ) -> None:
        """Call `then` when every entry that is staged now was told: at once if there is none."""
        self.on_progress()  # what the disk refused is not waited for
        if self.staged:
            self.staged.append(_Follower(self.staged[-1].last_offset, then, failed))
        else:
            then()

    def await_loaded(self) -> None:
        """Have those that ask from now on wait until all that was loaded is visible: the next
        leader may be without what is behind the high watermark.
        """
        end_offset = self.partition.log_end_offset
        if end_offset > self.partition.high_watermark:
            self.staged.append(_Follower(end_offset - 1, _do_nothing, None))

    def fail_staged(self) -> None:
        """Fail all entries, in the order of the log: this broker serves the partition no more."""
        while self.staged:
            entry = self.staged.popleft()
            try:
                entry.error_code = int(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            except Exception:  # the others are told all the same
                logger.exception("cannot fail what was recorded in %s", self.partition)

    def complete(self) -> None:
        """Fail or tell the entries: the partition is offline or led elsewhere, or an fsync failed.

        The coordinator itself follows the changes of the cluster.
        """
        if self.partition.is_leader:
            self.on_progress()
        else:
            self.fail_staged()


class StagedAppend:
    """The entry of an append: tells one of two callbacks how it ended."""

    __slots__ = (
        "_on_failed",
        "_on_written",
        "base_offset",
        "first_offset",
        "is_failed",
        "last_offset",
        "log_append_time_ms",
        "log_start_offset",
    )

    def __init__(
        self,
        on_written: Callable[[int], None] | None,
        on_failed: Callable[[ErrorCode], None] | None,
    ) -> None:
        self._on_written = on_written
        self._on_failed = on_failed
        self.is_failed = False
        self.first_offset = self.last_offset = -1
        self.base_offset = self.log_append_time_ms = self.log_start_offset = -1

    @property
    def error_code(self) -> int:
        """0, or that of the disk that refused."""
        return int(ErrorCode.KAFKA_STORAGE_ERROR) if self.is_failed else 0

    @error_code.setter
    def error_code(self, code: int) -> None:
        if code and not self.is_failed:
            self.is_failed = True
            if self._on_failed is not None:
                self._on_failed(coordinator_error(ErrorCode(code)))

    def succeed(self) -> None:
        """Tell that the records are visible; do nothing where the disk refused them."""
        if not self.is_failed and self._on_written is not None:
            self._on_written(self.first_offset)


class _Follower:
    """A call that stands behind an entry in the queue of a partition."""

    __slots__ = ("_failed", "last_offset", "succeed")

    is_failed = False

    def __init__(
        self,
        last_offset: int,
        then: Callable[[], None],
        failed: Callable[[ErrorCode], None] | None,
    ) -> None:
        self.last_offset = last_offset
        self.succeed = then
        self._failed = failed

    @property
    def error_code(self) -> int:
        """0: it waits for others."""
        return 0

    @error_code.setter
    def error_code(self, code: int) -> None:
        if self._failed is None:  # it waits for its turn, however the others went
            self.succeed()
        else:
            self._failed(coordinator_error(ErrorCode(code)))


def _do_nothing() -> None:
    pass


class LoadedPart:
    """Some batches of a journal, decoded; the next part begins at `next_offset`."""

    __slots__ = ("batches", "next_offset")

    def __init__(self, batches: list[tuple[BatchHeader, Sequence[Any]]], next_offset: int) -> None:
        self.batches = batches
        self.next_offset = next_offset


def decode_batches(
    data: memoryview,
    start_offset: int,
    decode: Callable[[BatchHeader, list[Record]], Sequence[Any]] | None,
    decode_batch: DecodeBatch | None = None,
) -> LoadedPart:
    """Return the whole batches in `data` (the last may be cut), of any format, from `start_offset`
    on.

    The first may begin before it, as an offset in the middle of a batch finds the batch. The result
    of `decode_batch` stands for the whole batch. A batch of many records is cut into parts. Raises
    CorruptionError.
    """
    batches: list[tuple[BatchHeader, Sequence[Any]]] = []
    next_offset = start_offset
    position = 0
    while (header := _whole_header(data, position)) is not None:
        records: Sequence[Any] | None = None
        if decode_batch is not None:
            records = decode_batch(data, position, header)
        if records is None:
            records = read_records(data, position, header)
            if decode is not None:
                records = decode(header, records)
        batches += [
            (header, records[start : start + RECORDS_AT_ONCE])
            for start in range(0, len(records) or 1, RECORDS_AT_ONCE)
        ]
        next_offset = header.last_offset + 1
        position += header.size_bytes
    return LoadedPart(batches, next_offset)


def _whole_header(data: memoryview, position: int) -> BatchHeader | None:
    """Return the header at `position` if its batch is there as a whole. Raises CorruptionError."""
    available = len(data) - position
    if available >= HEADER_BYTES:  # the usual case, in one step
        header = read_header(data, position)
        return header if header.size_bytes <= available else None
    return None if batch_size_at(data, position) is None else read_header(data, position)


def coordinator_error(code: ErrorCode) -> ErrorCode:
    """Return the coordinator's error for `code` of its journal's log."""
    return _COORDINATOR_ERRORS.get(code, code)


_COORDINATOR_ERRORS: Final = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
}

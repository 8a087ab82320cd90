"""One partition that this broker leads: its log, its leader epoch, and who waits for it.

Stands between the handlers and `storage/`. With one replica the high watermark is the log end
offset as soon as the bytes are written.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, Literal

from minibroker.error_codes import ErrorCode
from minibroker.errors import KafkaError, StorageError

if TYPE_CHECKING:
    from minibroker.partitions.manager import Failable, PartitionManager
    from minibroker.partitions.verification import Pending
    from minibroker.partitions.waiters import Waiter
    from minibroker.storage.lookups import TimestampOffset
    from minibroker.storage.partition_log import AppendInfo, PartitionLog
    from minibroker.storage.producer_state import ProducerEntry
    from minibroker.storage.readable_log import LogPosition, LogRead
    from minibroker.storage.txn_index import AbortedTransaction
    from minibroker.storage.validator import CheckedRecords

logger = logging.getLogger(__name__)

READ_UNCOMMITTED: Final = 0
READ_COMMITTED: Final = 1
LOG_END: Final = 2
"""Isolation level of coordinators, never of a client: reads everything that is written."""

HIGH_WATERMARK: Final = -1
"""The offset in DeleteRecords that stands for everything readable."""


class Partition:
    """A leader on this broker; made and dropped by the `PartitionManager`."""

    __slots__ = (
        "high_watermark",
        "index",
        "isr_size",
        "leader_epoch",
        "log",
        "manager",
        "topic",
        "topic_id",
        "unverified",
        "waiters",
    )

    def __init__(
        self,
        manager: PartitionManager,
        *,
        topic: str,
        index: int,
        topic_id: bytes,
        leader_epoch: int,
        isr_size: int,
        log: PartitionLog,
    ) -> None:
        self.manager = manager
        self.topic = topic
        self.index = index
        self.topic_id = topic_id
        self.leader_epoch = leader_epoch
        self.isr_size = isr_size
        self.log = log
        self.high_watermark = log.log_end_offset
        self.waiters: set[Waiter] | None = None
        self.unverified: dict[int, Pending] = {}
        """Producer id → its transactional batches that the coordinator was asked about
        (`verification`)."""

    def __str__(self) -> str:
        return f"{self.topic}-{self.index}"

    @property
    def log_start_offset(self) -> int:
        return self.log.log_start_offset

    @property
    def log_end_offset(self) -> int:
        return self.log.log_end_offset

    @property
    def last_stable_offset(self) -> int:
        """First offset that an open transaction may still change; at most the high watermark."""
        return min(self.log.last_stable_offset, self.high_watermark)

    def check_leader_epoch(self, epoch: int) -> None:
        """Compare the epoch a client believes in (-1: none) with ours (KIP-320).

        Raises KafkaError: FENCED_LEADER_EPOCH when the client's is older, UNKNOWN_LEADER_EPOCH when
        it is newer.
        """
        if epoch < 0 or epoch == self.leader_epoch:
            return
        if epoch < self.leader_epoch:
            raise KafkaError(
                ErrorCode.FENCED_LEADER_EPOCH,
                f"{self}: leader epoch {epoch} is older than {self.leader_epoch}",
            )
        raise KafkaError(
            ErrorCode.UNKNOWN_LEADER_EPOCH,
            f"{self}: leader epoch {epoch} is newer than {self.leader_epoch}",
        )

    def append(
        self,
        records: memoryview,
        acks: int,
        now_ms: int,
        answer: Failable,
        *,
        origin: Literal["client", "coordinator"] = "client",
        is_bounded: bool = False,
        checked: CheckedRecords | None = None,
    ) -> AppendInfo:
        """Check one produce request's records for this partition and stage them for the disk.

        Args:
            records: writable, the request's bytes; offsets are patched in place.
            acks: -1, 0 or 1.
            now_ms: wall clock, milliseconds.
            answer: what the client will be told; turned into an error if the disk refuses later.
            origin: a coordinator's own records are not checked for sequences.
            is_bounded: raise LargeBatchError where to check them would hold the loop.
            checked: these records, where `Checker` has checked them.

        The bytes are on disk after `PartitionManager.commit`; the answer must not leave before.

        Raises KafkaError with Kafka's code; nothing is appended then.
        """
        log = self.log
        if acks == -1 and (self.isr_size != 1 or log.config.min_insync_replicas > 1):
            self._check_in_sync(log.config.min_insync_replicas)
        try:
            appended = log.append(
                records,
                self.leader_epoch,
                now_ms,
                origin=origin,
                is_bounded=is_bounded,
                checked=checked,
            )
        except StorageError as error:
            raise self._failed(error) from error
        self.manager.staged.append((self, answer, appended))
        return appended

    def _check_in_sync(self, min_insync_replicas: int) -> None:
        """Raise KafkaError NOT_ENOUGH_REPLICAS if acks=all cannot be kept.

        Where Kafka's controller put other replicas into the ISR, it may elect one of them later.
        This broker does not wait until they have a record, so it acknowledges none.
        """
        if self.isr_size < min_insync_replicas:
            raise KafkaError(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"The size of the current ISR {self.isr_size} is insufficient to satisfy the"
                f" min.isr requirement of {min_insync_replicas} for partition {self}",
            )
        if self.isr_size > 1:
            raise KafkaError(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"{self} has {self.isr_size} replicas in sync, and minibroker does not replicate"
                " yet: move the partition to one replica, or produce with acks=1",
            )

    def delete_records(self, offset: int) -> int:
        """Of `PartitionManager.delete_records`, which says what it raises.

        Source: Kafka Partition.deleteRecordsOnLeader.
        """
        config = self.log.config
        if config.compact and not config.delete:
            raise KafkaError(
                ErrorCode.POLICY_VIOLATION,
                f"records of {self} cannot be deleted: its cleanup.policy is compact",
            )
        wanted = self.high_watermark if offset == HIGH_WATERMARK else offset
        if wanted < 0:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE, f"offset {wanted} for {self} is not valid"
            )
        try:
            self.log.advance_log_start(wanted, self.high_watermark)
        except StorageError as error:
            raise self._failed(error) from error
        return self.log_start_offset

    def end_offset_for(self, isolation_level: int) -> int:
        """Where reading ends: high watermark, or last stable offset for read_committed."""
        if isolation_level == READ_COMMITTED:
            return self.last_stable_offset
        return self.log_end_offset if isolation_level == LOG_END else self.high_watermark

    def read(
        self, offset: int, max_bytes: int, *, isolation_level: int, min_one_batch: bool
    ) -> LogRead:
        """Whole and partial batches from `offset` on, at most `max_bytes` (a memoryview of a map).

        Raises KafkaError(OFFSET_OUT_OF_RANGE) outside [log start offset, log end offset].
        """
        self.flush_staged()
        try:
            return self.log.read(
                offset,
                max_bytes,
                end_offset=self.end_offset_for(isolation_level),
                min_one_batch=min_one_batch,
            )
        except StorageError as error:
            raise self._failed(error) from error

    def position_of(self, offset: int) -> LogPosition:
        """Return where in the files the batch of `offset` begins, or the log ends (bytes)."""
        try:
            return self.log.position_of(offset)
        except StorageError as error:
            raise self._failed(error) from error

    def aborted_transactions(self, offset: int, read: LogRead) -> list[AbortedTransaction]:
        """Aborted transactions with data from `offset` to the end of what was read."""
        try:
            return self.log.aborted_transactions(offset, self.log.end_of(read))
        except StorageError as error:
            raise self._failed(error) from error

    def producers(self) -> dict[int, ProducerEntry]:
        """Producer id → what the log knows of it, what is staged included; not to be changed."""
        try:
            return self.log.producers()
        except StorageError as error:
            raise self._failed(error) from error

    def offset_for_timestamp(self, timestamp: int) -> TimestampOffset | None:
        """The first record with a timestamp ≥ `timestamp` (ms), None if there is none."""
        self.flush_staged()
        try:
            return self.log.offset_for_timestamp(timestamp)
        except StorageError as error:
            raise self._failed(error) from error

    def max_timestamp_offset(self) -> TimestampOffset | None:
        """The first record with the largest timestamp, None in an empty log."""
        self.flush_staged()
        try:
            return self.log.max_timestamp_offset()
        except StorageError as error:
            raise self._failed(error) from error

    def offsets_before(self, timestamp: int, max_count: int) -> list[int]:
        """Segment starts for ListOffsets v0 (behaviour T8), newest first."""
        self.flush_staged()
        try:
            return self.log.offsets_before(timestamp, max_count)
        except StorageError as error:
            raise self._failed(error) from error

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """(largest epoch ≤ `epoch`, where it ended); (-1, -1) when the log knows none."""
        self.flush_staged()
        return self.log.end_offset_for_epoch(epoch)

    def earliest_epoch(self) -> int:
        """Leader epoch of the record at the log start offset, -1 when the log knows none."""
        self.flush_staged()
        entries = self.log.epochs.entries
        if entries and entries[0][1] <= self.log.log_start_offset:
            return entries[0][0]
        return -1

    def _failed(self, error: StorageError) -> KafkaError:
        self.manager.log_failed(self, error)
        return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error))

    def exchange_log(self, log: PartitionLog) -> None:
        """The same records are in another log directory now; nothing is staged."""
        self.log = log
        log.note_high_watermark(self.high_watermark)

    def flush_staged(self) -> None:
        """Have staged appends on disk before the log is looked at."""
        if self.manager.staged:
            self.manager.commit()

    def advance_high_watermark(self, offset: int) -> None:
        """Let readers see everything below `offset`, and wake the waiters. Never moves back."""
        if offset <= self.high_watermark:
            return
        self.high_watermark = offset
        self.log.note_high_watermark(offset)
        if self.waiters:
            for waiter in list(self.waiters):
                try:
                    waiter.on_progress()
                except Exception:  # not the fault of who appended, nor of the others
                    logger.exception("cannot tell of progress in %s", self)

"""One partition of this broker: its role, its log, its high watermark, and its waiters.

Stands between the handlers and `storage/`. Handlers see leaders only (`PartitionManager.get`). The
high watermark is a value of its own: with one replica it follows the written end of the log, or the
synced one where `flush.messages` ask for it, and it survives a change of role.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, Literal, Protocol

from minibroker.broker.cluster.image import NO_LEADER
from minibroker.broker.partitions.replica_progress import isr_size_min_of
from minibroker.broker.partitions.replicas import Replicas
from minibroker.broker.partitions.role import (
    INITIAL,
    NO_EPOCH,
    Follower,
    Leader,
    Offline,
    OfflineReason,
    become_follower,
    become_leader,
    come_back,
    go_offline,
    is_stale,
)
from minibroker.broker.storage import log_reads
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import CorruptionError, KafkaError, StorageError

if TYPE_CHECKING:
    from minibroker.broker.cluster.image import PartitionImage
    from minibroker.broker.partitions.replicas import FollowerId, ReplicaRules
    from minibroker.broker.partitions.role import Role
    from minibroker.broker.storage.log_reads import LogPosition, LogRead, TimestampOffset
    from minibroker.broker.storage.partition_log import AppendInfo, PartitionLog
    from minibroker.broker.storage.producer_state import ProducerEntry
    from minibroker.broker.storage.record_checks import Checked
    from minibroker.broker.storage.txn_index import AbortedTransaction
    from minibroker.kafka.records.batch import BatchHeader

logger = logging.getLogger(__name__)

ACKS_ALL: Final = -1
"""In a Produce request: answer when all replicas in sync have the records."""
READ_UNCOMMITTED: Final = 0
READ_COMMITTED: Final = 1
LOG_END: Final = 2
"""Isolation level of coordinators, never of a client: reads everything that is written."""

FLUSH_NEVER: Final = (1 << 63) - 1
"""The default of `flush.messages`."""

HIGH_WATERMARK: Final = -1
"""The offset in DeleteRecords that stands for everything readable."""


class Failable(Protocol):
    """A part of an answer that says "written", until the disk says otherwise."""

    error_code: int
    base_offset: int
    log_append_time_ms: int
    log_start_offset: int


class Waiter(Protocol):
    """A listener of one partition."""

    def on_progress(self) -> None:
        """Hear that more of the partition can be read."""

    def complete(self) -> None:
        """Hear that the partition goes away, has a new leader epoch, or that the broker stops."""


ReadBounds = tuple[int, int, int]
"""Log start offset, last stable offset and high watermark of a partition: where it begins and ends
for readers, at one moment."""


class Appends(Protocol):
    """The queue that takes what partitions stage (`append_queue.AppendQueue`)."""

    staged: list[tuple[Partition, Failable, AppendInfo]]

    def commit(self) -> None:
        """Write everything staged."""

    def log_failed(self, partition: Partition, error: StorageError) -> None:
        """Report that a disk refused to write or to read a partition."""


class VerificationGuard:
    """A producer whose first batch of a transaction is not in the log yet (`verification`).

    Compared by identity: each question to the coordinator after a marker has its own guard.
    """

    __slots__ = ("epoch", "has_epoch_bump", "lowest_sequence")

    def __init__(self, epoch: int, lowest_sequence: int, *, has_epoch_bump: bool) -> None:
        self.epoch = epoch
        self.lowest_sequence = lowest_sequence
        self.has_epoch_bump = has_epoch_bump
        """True in the second protocol (KIP-890): the producer's first batch has sequence 0."""


class Partition:
    """One replica on this broker; made, changed and dropped by the `PartitionManager`.

    Owned by the loop.
    """

    __slots__ = (
        "appends",
        "index",
        "is_stopped",
        "log",
        "replicas",
        "requested_epoch",
        "role",
        "topic",
        "topic_id",
        "unverified",
        "waiters",
        "watchers",
    )

    def __init__(
        self,
        appends: Appends,
        *,
        topic: str,
        index: int,
        topic_id: bytes,
    ) -> None:
        """Begin offline: `open` gives it a log."""
        self.appends = appends
        """Constant, as are the next two."""
        self.topic = topic
        self.index = index
        self.topic_id = topic_id
        """Zero until the topic has one; then the manager sets it."""
        self.role: Role = INITIAL
        """Changed by `open` and `take_role` only."""
        self.requested_epoch = NO_EPOCH
        """Leader epoch of the last LeaderAndIsr request that was taken."""
        self.is_stopped = False
        """The controller stopped this replica: it follows nobody until a LeaderAndIsr request."""
        self.replicas: Replicas | None = None
        """The followers, while this broker leads a partition of several replicas."""
        self.log: PartitionLog
        """Set by `open`: there is one unless the role is Offline."""
        self.waiters: dict[Waiter, None] | None = None
        self.watchers: dict[Waiter, None] | None = None
        """Listeners that have seen everything; None: nobody, as in most partitions. They are told
        once, also where the log starts later, and come back when they have seen everything again.
        Both in the order in which they came.
        """
        self.unverified: dict[int, VerificationGuard] = {}
        """Producer id → its transactional batches that the coordinator was asked about
        (`verification`)."""

    def __str__(self) -> str:
        return f"{self.topic}-{self.index}"

    def open(self, log: PartitionLog) -> None:
        """Take `log`, whose high watermark is that of the last checkpoint, as far as it reaches.

        The role is Follower of nobody then. Source: Kafka Partition.createLog.
        """
        role = come_back(self.role)
        assert role is not None, f"{self} is {self.role}"
        self.role = role
        self.log = log
        log.on_start_moved = self.tell_news

    def take_role(self, role: Role, rules: ReplicaRules | None = None) -> None:
        """Take `role`, the result of a step from the role so far.

        `rules`: how a leader judges its followers. A leader without any is in sync alone, and lets
        readers see everything written.
        """
        old_role = self.role
        self.role = role
        if role.__class__ is not Leader:
            self.unverified.clear()
            replicas, self.replicas = self.replicas, None
            if replicas is not None:
                code = ErrorCode.NOT_LEADER_OR_FOLLOWER
                if role.__class__ is Offline:
                    code = ErrorCode.KAFKA_STORAGE_ERROR
                replicas.refuse_waiting(code)
            return
        was_leader = old_role.__class__ is Leader
        if self.replicas is None:
            if rules is None or len(role.replicas) == 1:
                if not was_leader:
                    self.advance_high_watermark(self.log_end_offset)
                return
            self.replicas = Replicas(rules, self.tell_news)
        is_new_epoch = not was_leader or old_role.epoch != role.epoch
        self.replicas.lead(role, self.log_end_offset, is_new_epoch=is_new_epoch)
        self.advance_high_watermark(self.replicas.own_end_offset)

    # The next role: from what the metadata say, or from what a disk does.

    def leader_of(self, state: PartitionImage) -> Leader | None:
        """Return the role of the leader by `state`, None where the partition knows a later one."""
        return become_leader(
            self.role,
            state.leader_epoch,
            state.partition_epoch,
            end_offset=self.log_end_offset,
            replicas=state.replicas,
            metadata_isr=state.isr,
        )

    def follower_of(self, state: PartitionImage, leader: int) -> Follower | None:
        """Return the role of a follower of `leader` (NO_LEADER: of nobody) by `state`, None where
        the partition knows a later one.
        """
        return become_follower(self.role, state.leader_epoch, state.partition_epoch, leader)

    def is_ahead_of(self, state: PartitionImage) -> bool:
        """Return whether the partition knows a later state."""
        return is_stale(self.role, state.leader_epoch, state.partition_epoch)

    def follow_nobody(self) -> bool:
        """Follow no leader any more; False where this is no follower, which stays what it is."""
        role = self.role
        if not isinstance(role, Follower):
            return False
        self.take_role(role._replace(leader=NO_LEADER))
        return True

    def lose_log(self) -> None:
        """Go offline: the log cannot be made or opened. The next event tries it again."""
        self.take_role(go_offline(self.role, OfflineReason.LOG_FAILED))

    def lose_directory(self) -> None:
        """Go offline until the next start: the log directory failed."""
        self.take_role(go_offline(self.role, OfflineReason.DIRECTORY_FAILED))

    def give_up(self, *, is_deleted: bool) -> None:
        """Go offline, because nobody finds the partition any more: those who wait hear that there
        is no such partition. `is_deleted`: its log goes, else it is kept.
        """
        self.wake()
        if self.replicas is not None:
            self.replicas.refuse_waiting(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        reason = OfflineReason.DELETED if is_deleted else OfflineReason.MISSING
        self.take_role(go_offline(self.role, reason))

    def check_follows(self) -> None:
        """Raise KafkaError(NOT_LEADER_OR_FOLLOWER) unless this is a follower."""
        role = self.role
        if not isinstance(role, Follower):
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{self} is no follower: {role}")

    @property
    def followed_leader(self) -> int:
        """Return the broker that this follower follows, NO_LEADER for none."""
        role = self.role
        return role.leader if isinstance(role, Follower) else NO_LEADER

    @property
    def is_leader(self) -> bool:
        return self.role.__class__ is Leader

    @property
    def is_lost(self) -> bool:
        """Return whether its directory failed: it is not served before the next start."""
        role = self.role
        return isinstance(role, Offline) and role.reason is OfflineReason.DIRECTORY_FAILED

    @property
    def lags(self) -> bool:
        """Return whether a record may be written and not visible yet: followers, or an fsync
        (`flush.messages`), come in between.
        """
        return self.replicas is not None or self.log.config.flush_messages < FLUSH_NEVER

    @property
    def has_log(self) -> bool:
        return self.role.__class__ is not Offline

    @property
    def leader_epoch(self) -> int:
        return self.role.epoch

    @property
    def high_watermark(self) -> int:
        """Return the end of reading (the log's); it never moves back while this broker leads."""
        return self.log.high_watermark

    @property
    def is_behind_epoch_start(self) -> bool:
        """Return whether this leader's high watermark has not reached the start of its epoch: the
        leader before it may have committed more.
        """
        role = self.role
        return isinstance(role, Leader) and role.start_offset > self.high_watermark

    @property
    def log_start_offset(self) -> int:
        return self.log.log_start_offset

    @property
    def log_end_offset(self) -> int:
        return self.log.log_end_offset

    @property
    def last_stable_offset(self) -> int:
        """Return the first offset that an open transaction may still change, at most the high
        watermark.
        """
        return min(self.log.last_stable_offset, self.high_watermark)

    def check_leader_epoch(self, epoch: int) -> None:
        """Compare the epoch a client believes in (-1: none) with ours (KIP-320).

        Raises KafkaError: FENCED_LEADER_EPOCH when the client's is older, UNKNOWN_LEADER_EPOCH when
        it is newer.
        """
        if epoch == NO_EPOCH:
            return
        if epoch < self.leader_epoch:
            raise KafkaError(
                ErrorCode.FENCED_LEADER_EPOCH,
                f"{self}: leader epoch {epoch} is older than {self.leader_epoch}",
            )
        if epoch > self.leader_epoch:
            raise KafkaError(
                ErrorCode.UNKNOWN_LEADER_EPOCH,
                f"{self}: leader epoch {epoch} is newer than {self.leader_epoch}",
            )

    def append(  # noqa: PLR0917  positional: one call per produced batch
        self,
        records: memoryview,
        acks: int,
        now_ms: int,
        answer: Failable,
        origin: Literal["client", "coordinator"] = "client",
        is_bounded: bool = False,
        header: BatchHeader | None = None,
        checked: Checked | None = None,
    ) -> AppendInfo:
        """Check one produce request's records for this partition and stage them for the disk.

        Args:
            records: writable, the request's bytes; offsets are patched in place.
            acks: -1, 0 or 1.
            now_ms: wall clock, milliseconds.
            answer: the client's answer; it becomes an error if the disk refuses later.
            origin: a coordinator's own records are not checked for sequences.
            is_bounded: raise LargeBatchError where the check would hold the loop, ColdError where
                the producers have to be loaded first.
            header: what `read_produced_header` gives for the records, None: the log reads it.
            checked: these records, where they were checked before (`checking`).

        The bytes are on disk after `AppendQueue.commit`; the answer must not leave before.

        Raises KafkaError with Kafka's code; nothing is appended then.
        """
        role = self.role
        if role.__class__ is not Leader:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{self} is not led here any more")
        log = self.log
        if acks == ACKS_ALL and log.config.min_insync_replicas > 1:
            self._check_in_sync(role, log.config.min_insync_replicas)
        try:
            if checked is None:
                checked = log.check(records, now_ms, origin, is_bounded, header)
            appended = log.append_as_leader(checked, role.epoch, origin)
        except StorageError as error:
            raise self._failed(error) from error
        self.appends.staged.append((self, answer, appended))
        return appended

    def _check_in_sync(self, role: Leader, min_insync_replicas: int) -> None:
        """Raise KafkaError NOT_ENOUGH_REPLICAS if acks=all cannot be kept.

        `min.insync.replicas` never asks for more replicas than the partition has.
        """
        isr_size = len(role.metadata_isr)
        isr_size_min = isr_size_min_of(min_insync_replicas, len(role.replicas))
        if isr_size < isr_size_min:
            raise KafkaError(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"The size of the current ISR {isr_size} is insufficient to satisfy the"
                f" min.isr requirement of {isr_size_min} for partition {self}",
            )

    @property
    def has_other_in_sync(self) -> bool:
        """Return whether this broker leads, and another replica in sync could do so."""
        role = self.role
        return role.__class__ is Leader and len(role.metadata_isr) > 1

    @property
    def low_watermark(self) -> int:
        """Return the lowest log start offset of all live replicas, as this leader knows them."""
        start_offset = self.log_start_offset
        return start_offset if self.replicas is None else self.replicas.low_watermark(start_offset)

    def delete_records(self, offset: int) -> int:
        """Do `PartitionManager.delete_records` for this partition, and raise the same errors.

        Source: Kafka Partition.deleteRecordsOnLeader.
        """
        config = self.log.config
        if config.compact and not config.delete:
            raise KafkaError(
                ErrorCode.POLICY_VIOLATION,
                f"records of {self} cannot be deleted: its cleanup.policy is compact",
            )
        start_offset = self.high_watermark if offset == HIGH_WATERMARK else offset
        if start_offset < 0:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE, f"offset {start_offset} for {self} is not valid"
            )
        try:
            self.log.advance_log_start(start_offset, self.high_watermark)
        except StorageError as error:
            raise self._failed(error) from error
        return start_offset

    def end_offset_for(self, isolation_level: int) -> int:
        """Return the end of reading: high watermark, or last stable offset for read_committed."""
        if isolation_level == READ_COMMITTED:
            return self.last_stable_offset
        return self.log_end_offset if isolation_level == LOG_END else self.high_watermark

    def bounds(self) -> ReadBounds:
        """Return where the partition begins and ends for readers now. Raises
        KafkaError(KAFKA_STORAGE_ERROR).
        """
        self.flush_staged()
        log = self.log
        high_watermark = log.high_watermark
        try:
            last_stable_offset = min(log.last_stable_offset, high_watermark)
        except StorageError as error:
            raise self._failed(error) from error
        return log.log_start_offset, last_stable_offset, high_watermark

    def read(
        self,
        offset: int,
        max_bytes: int,
        *,
        isolation_level: int,
        resident_only: bool = False,
    ) -> LogRead:
        """Return what `read_below` gives below the end of reading of `isolation_level`, one batch
        at least.
        """
        self.flush_staged()
        return self.read_below(
            offset,
            max_bytes,
            end_offset=self.end_offset_for(isolation_level),
            min_one_batch=True,
            resident_only=resident_only,
        )

    def read_below(
        self,
        offset: int,
        max_bytes: int,
        *,
        end_offset: int,
        min_one_batch: bool,
        resident_only: bool = False,
    ) -> LogRead:
        """Return whole and partial batches from `offset` on, at most `max_bytes` (a memoryview of a
        map), nothing from `end_offset` on. Nothing is staged (`bounds`).

        Raises KafkaError: OFFSET_OUT_OF_RANGE outside [log start offset, log end offset],
        CORRUPT_MESSAGE where the bytes are damaged, KAFKA_STORAGE_ERROR; with `resident_only`,
        ColdError where it would wait for the disk.
        """
        try:
            return log_reads.read(
                self.log,
                offset,
                max_bytes,
                end_offset=end_offset,
                min_one_batch=min_one_batch,
                resident_only=resident_only,
            )
        except StorageError as error:
            raise self._unreadable(error) from error

    def position_of(self, offset: int) -> LogPosition:
        """Return where in the files the batch of `offset` begins, or the log ends (bytes)."""
        try:
            return log_reads.position_of(self.log, offset)
        except StorageError as error:
            raise self._unreadable(error) from error

    def aborted_transactions(self, offset: int, log_read: LogRead) -> list[AbortedTransaction]:
        """Return the aborted transactions with data from `offset` to the end of `log_read`."""
        try:
            return log_reads.aborted_in(self.log, offset, log_read)
        except StorageError as error:
            raise self._unreadable(error) from error

    def producers(self) -> dict[int, ProducerEntry]:
        """Return producer id → its entry in the log, with staged batches; not to be changed."""
        try:
            return self.log.producers.loaded().producers
        except StorageError as error:
            raise self._failed(error) from error

    def require_producers(self, header: BatchHeader | None = None) -> None:
        """Raise ColdError while the producers of the log are on the disk only (`cold_reads`), or
        while a batch with this `header` may repeat one that is.
        """
        try:
            self.log.producers.require(header)
        except StorageError as error:
            raise self._failed(error) from error

    def offset_for_timestamp(
        self, timestamp: int, *, resident_only: bool = False
    ) -> TimestampOffset | None:
        """Return the first record with a timestamp ≥ `timestamp` (ms), None if there is none. With
        `resident_only`, raise ColdError where it would wait for the disk.
        """
        self.flush_staged()
        try:
            return log_reads.offset_for_timestamp(self.log, timestamp, resident_only=resident_only)
        except StorageError as error:
            raise self._unreadable(error) from error

    def max_timestamp_offset(self, *, resident_only: bool = False) -> TimestampOffset | None:
        """Return the first record with the largest timestamp, None in an empty log. With
        `resident_only`, raise ColdError where it would wait for the disk.
        """
        self.flush_staged()
        try:
            return log_reads.max_timestamp_offset(self.log, resident_only=resident_only)
        except StorageError as error:
            raise self._unreadable(error) from error

    def offsets_before(self, timestamp: int, max_count: int) -> list[int]:
        """Return segment starts for ListOffsets v0, newest first."""
        self.flush_staged()
        try:
            return log_reads.offsets_before(self.log, timestamp, max_count)
        except StorageError as error:
            raise self._failed(error) from error

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """Return (largest epoch ≤ `epoch`, its end offset); (-1, -1) where the log knows none."""
        self.flush_staged()
        return self.log.end_offset_for_epoch(epoch)

    def earliest_epoch(self) -> int:
        """Return the leader epoch at the log start offset, -1 where the log knows none."""
        self.flush_staged()
        entries = self.log.epochs.history.entries
        if entries and entries[0][1] <= self.log.log_start_offset:
            return entries[0][0]
        return -1

    def _failed(self, error: StorageError) -> KafkaError:
        self.appends.log_failed(self, error)
        return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error))

    def _unreadable(self, error: StorageError) -> KafkaError:
        """Return the answer to a read: CORRUPT_MESSAGE where the bytes are damaged. A consumer says
        that to its user, and tries again for ever with KAFKA_STORAGE_ERROR.
        """
        refusal = self._failed(error)
        if isinstance(error.__cause__, CorruptionError):
            return KafkaError(ErrorCode.CORRUPT_MESSAGE, refusal.detail)
        return refusal

    def exchange_log(self, log: PartitionLog) -> None:
        """Take the log of the same records in another log directory; nothing is staged."""
        log.update_high_watermark(self.log.high_watermark)
        self.log = log
        log.on_start_moved = self.tell_news

    def flush_staged(self) -> None:
        """Write staged appends before the log is read."""
        if self.appends.staged:
            self.appends.commit()

    def advance_high_watermark(self, offset: int) -> None:
        """Let readers see everything below `offset`, and wake the waiters.

        It never moves back, and moves only while this broker leads. With followers it moves as far
        as all replicas in sync are: `offset` is where this broker is itself.
        """
        if self.role.__class__ is not Leader:
            return
        log = self.log
        # A truncation may have come since somebody asked for a sync up to `offset`.
        end_offset = min(offset, log.log_end_offset)
        replicas = self.replicas
        if replicas is None:
            has_moved = log.advance_high_watermark(end_offset)
        else:
            replicas.own_end_offset = max(replicas.own_end_offset, end_offset)
            min_insync_replicas = log.config.min_insync_replicas
            has_moved = log.advance_high_watermark(
                replicas.committed(log.high_watermark, min_insync_replicas)
            )
            replicas.complete(log.high_watermark, min_insync_replicas)
            replicas.complete_deletions(log.log_start_offset)
        if has_moved and (self.watchers or self.waiters):
            self.tell_readers()

    def tell_readers(self) -> None:
        """Tell those who wait, and those who have seen everything, that the end of reading moved:
        of committed records for consumers, of the log for followers.
        """
        if self.watchers:
            self.tell_news()
        if self.waiters:
            self.tell_waiters()

    def tell_waiters(self) -> None:
        """Have those who wait look again."""
        if self.waiters:
            for waiter in list(self.waiters):
                try:
                    waiter.on_progress()
                except Exception:  # not the fault of who appended, nor of the others
                    logger.exception("cannot tell of progress in %s", self)

    def follower_fetched(self, follower: FollowerId, offset: int, log_start_offset: int) -> None:
        """Note that `follower` fetches from `offset`: it has everything before.

        Raises KafkaError NOT_LEADER_OR_FOLLOWER where that broker has no replica, or was started
        again since. Source: Kafka Partition.updateFollowerFetchState.
        """
        replicas = self.replicas
        if replicas is None or not replicas.note_fetch(
            follower, offset, log_start_offset, self.log_end_offset
        ):
            raise KafkaError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                f"broker {follower.broker_id} with epoch {follower.broker_epoch} has no replica of"
                f" {self}",
            )
        self.advance_high_watermark(replicas.own_end_offset)

    def tell_news(self) -> None:
        """Tell the watchers, which had seen everything, that there is more."""
        watchers, self.watchers = self.watchers, None
        for watcher in watchers or ():
            watcher.on_progress()

    def watch(self, watcher: Waiter) -> None:
        """Tell `watcher` once, as soon as there is something that it has not seen."""
        if self.watchers is None:
            self.watchers = {}
        self.watchers[watcher] = None

    def unwatch(self, watcher: Waiter) -> None:
        """Tell it nothing."""
        if self.watchers is not None:
            self.watchers.pop(watcher, None)

    def wake(self) -> None:
        """End every wait: the partition goes away, has a new leader epoch, or the broker stops."""
        watchers, self.watchers = self.watchers, None
        for waiter in (*(watchers or ()), *(self.waiters or ())):
            waiter.complete()

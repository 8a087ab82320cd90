"""Partitions on their way into another log directory (AlterReplicaLogDirs).

`storage/log_move.py` says what to copy; here it is driven: a round on the worker, back to the loop,
the next round, until the rest is small enough to be copied at once. Then the partition's log is
exchanged, and nobody who reads or writes it notices. A move ends early when its directory fails,
when the partition goes, or when another directory is asked for.

Any replica can move, a leader or a follower. A follower goes on fetching meanwhile; what its leader
has it cut, is copied anew.

Directories that fail: every part that is told of a `StorageError` (an append, a checkpoint on the
worker) hands it to `FailedDirectories.note`. If the disk will refuse again, the directory goes
offline: its partitions answer KAFKA_STORAGE_ERROR, the cluster is told that they have no replica
here, and everything else is served on. Without a directory left, or without the one that holds the
metadata, the broker ends, as Kafka's does (ReplicaManager.handleLogDirFailure,
LogDirFailureChannel).

A full disk may have room again, so its directory stays, as long as nobody else could take the
appends. In a cluster of processes, the directory of a leader goes offline like any that fails where
another replica is in sync: that one leads from then on.

Source: KIP-113, Kafka ReplicaManager.alterReplicaLogDirs.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import FullLeaderError, KafkaError, MinibrokerError, StorageError
from minibroker.kafka.ids import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable

    from minibroker.broker.partitions.manager import PartitionManager
    from minibroker.broker.partitions.partition import Partition
    from minibroker.broker.storage.log_manager import LogManager
    from minibroker.broker.storage.log_move import LogMove
    from minibroker.broker.timers import Timers
    from minibroker.broker.worker import Runners

logger = logging.getLogger(__name__)


class FailedDirectories:
    """Takes directories offline. Belongs to the loop's thread."""

    __slots__ = (
        "_essential",
        "_has_other_disks",
        "_logs",
        "_on_fatal",
        "_on_offline",
        "_partitions",
    )

    def __init__(
        self,
        *,
        logs: LogManager,
        partitions: PartitionManager,
        on_offline: Callable[[list[TopicPartition]], None],
        on_fatal: Callable[[str], None],
        essential: str | None = None,
        has_other_disks: bool = False,
    ) -> None:
        """`on_offline` gets the partitions that were lost, `on_fatal` the reason to end.

        `essential`: the directory without which there is no broker, None: any one will do.
        `has_other_disks`: the other brokers of the cluster are processes with disks of their own.
        """
        self._logs = logs
        self._partitions = partitions
        self._on_offline = on_offline
        self._on_fatal = on_fatal
        self._essential = essential
        self._has_other_disks = has_other_disks

    def note(self, error: StorageError) -> None:
        """Take note of what a disk refused; the caller has said so in the log already."""
        path = error.log_directory
        leaves_to_others = self._has_other_disks and isinstance(error, FullLeaderError)
        if path is None or not (error.is_lasting or leaves_to_others):
            return
        lost = self._logs.fail_directory(path)
        if lost is None:
            return
        self._partitions.take_offline(lost)
        logger.error(
            "the log directory %s failed and is offline with its %d partitions: %s",
            path,
            len(lost),
            error,
        )
        if not self._logs.live_directories:
            self._on_fatal(f"all log directories have failed; the last one is {path}: {error}")
        elif path == self._essential:
            self._on_fatal(f"the log directory {path}, which holds the metadata, failed: {error}")
        elif lost:
            self._on_offline(lost)


TOPIC_NAME_MAX_WITH_PARTITION = 255 - len(".") - 32 - len("-future")
"""Kafka does not cut a long topic's name for the copy's directory; a longer one is refused."""


LIMIT_LOOK_MS = 1_000.0
"""Time after which a move that waits looks at its limit again."""


class LogMoves:
    """Belongs to the loop's thread."""

    __slots__ = ("_bytes_per_s", "_logs", "_moves", "_partitions", "_timers", "_workers")

    def __init__(
        self,
        *,
        logs: LogManager,
        partitions: PartitionManager,
        workers: Runners,
        timers: Timers,
        bytes_per_s: Callable[[], float],
    ) -> None:
        """The one of `workers` that belongs to the destination copies. `bytes_per_s`:
        `replica.alter.log.dirs.io.max.bytes.per.second` as it is now."""
        self._logs = logs
        self._partitions = partitions
        self._workers = workers
        self._timers = timers
        self._bytes_per_s = bytes_per_s
        self._moves: dict[TopicPartition, LogMove] = {}

    def alter(self, name: TopicPartition, path: str) -> None:
        """Begin to move a partition to the log directory with this absolute path.

        Raises KafkaError with Kafka's codes, in its order; nothing is begun then.
        """
        if len(str(name)) > TOPIC_NAME_MAX_WITH_PARTITION:
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, "The topic name is too long.")
        views = self._partitions.log_directories()
        view = next((directory for directory in views if directory.path == path), None)
        if view is None:
            raise KafkaError(
                ErrorCode.LOG_DIR_NOT_FOUND, f"Log dir {path} is not found in the config."
            )
        if view.is_offline:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"Log directory {path} is offline")
        try:
            partition = self._partitions.hosted(*name)
        except KafkaError as error:
            if error.code == ErrorCode.KAFKA_STORAGE_ERROR:
                raise
            # There may be a replica later: its log is made there.
            self._logs.prefer(name, view.configured_path)
            if error.code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
                raise KafkaError(ErrorCode.REPLICA_NOT_AVAILABLE, error.detail) from None
            raise
        self._begin(partition, view.configured_path)

    def resume(self) -> None:
        """Begin again what a stop interrupted; the copies of then are removed. After the start."""
        for name, destination in self._logs.take_futures().items():
            partition = self._partitions.replica(*name)
            if partition is not None and partition.has_log:
                try:
                    self._begin(partition, destination)
                except KafkaError as error:
                    logger.error("partition %s is not moved on: %s", name, error)

    def in_directory(self, path: str) -> list[tuple[TopicPartition, int, int]]:
        """Return the copies that grow in a directory: partition, bytes copied, offsets to come."""
        return [
            (name, move.size_bytes, max(move.log.log_end_offset - move.end_offset, 0))
            for name, move in self._moves.items()
            if move.destination == path
        ]

    def _begin(self, partition: Partition, destination: str) -> None:
        name = TopicPartition(partition.topic, partition.index)
        running = self._moves.get(name)
        if running is not None:
            # That of a log that was deleted ends with its next step, and moves nothing.
            if running.destination == destination and running.log is partition.log:
                return
            self._give_up(name)
        if partition.log.log_directory == destination:
            return
        if any(directory.is_offline for directory in self._partitions.log_directories()):
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR,
                f"Can not move {name} while a log directory is offline",
            )
        from minibroker.broker.storage.log_move import LogMove  # noqa: PLC0415  seldom asked for

        try:
            move = LogMove(partition.log, destination)
        except StorageError as error:
            self._partitions.on_storage_error(error)
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error
        self._moves[name] = move
        self._step(name, move)

    def _step(self, name: TopicPartition, move: LogMove) -> None:
        """Begin the next round, or the end."""
        if self._moves.get(name) is not move:
            return
        if self._is_in_vain(move):
            self._give_up(name)
            return
        old_size_bytes = move.size_bytes
        try:
            copy = move.next_round()
            if copy is None:
                worker = self._workers.of(move.destination)
                worker.run_then(move.sync(), lambda error: self._end(name, move, error))
                return
        except Exception as error:  # a bug of ours costs this move
            self._failed(name, move, error)
            return
        copied_bytes = move.size_bytes - old_size_bytes

        def done(error: Exception | None) -> None:
            if error is not None:
                self._failed(name, move, error)
            else:
                self._wait(name, move, copied_bytes)

        self._workers.of(move.destination).run_then(copy, done)

    def _is_in_vain(self, move: LogMove) -> bool:
        """Return whether the log has gone, or the directory to which it moves."""
        return move.log.place.is_deleted or not self._logs.is_live(move.destination)

    def _wait(self, name: TopicPartition, move: LogMove, ahead_bytes: float) -> None:
        """Take the next step once the limit allows the bytes that were copied ahead of it. It looks
        again from time to time: the limit may be altered.
        """
        if self._moves.get(name) is not move:
            return
        bytes_per_s, clock = self._bytes_per_s(), self._logs.clock
        delay_ms = ahead_bytes / bytes_per_s * 1000
        if delay_ms < 1 or self._is_in_vain(move):
            self._step(name, move)
            return
        began_s = clock.monotonic_s()

        def look() -> None:
            allowed_bytes = (clock.monotonic_s() - began_s) * bytes_per_s
            self._wait(name, move, ahead_bytes - allowed_bytes)

        self._timers.after(min(delay_ms, LIMIT_LOOK_MS), look)

    def _end(self, name: TopicPartition, move: LogMove, error: Exception | None) -> None:
        """Copy the rest, and exchange the logs: all else is copied and durable."""
        if self._moves.get(name) is not move:
            return
        if error is not None:
            self._failed(name, move, error)
            return
        try:
            self._partitions.commit()  # it may take the old directory offline
            if move.log.place.is_deleted:
                self._give_up(name)
                return
            recovery_point = move.finish()
            if recovery_point is None:
                self._step(name, move)
                return
            log, remove_old = self._logs.complete_move(move, recovery_point)
            with log.place.whole_change("move"):
                partition = self._partitions.replica(*name)
                if partition is not None and partition.has_log:
                    partition.exchange_log(log)
        except Exception as failure:  # a bug of ours costs this move
            self._failed(name, move, failure)
            return
        del self._moves[name]
        self._workers.of(move.destination).run_later(remove_old)
        self._logs.checkpoint_later()
        logger.info("partition %s is in %s now", name, move.destination)

    def _failed(self, name: TopicPartition, move: LogMove, error: Exception) -> None:
        is_known = isinstance(error, (MinibrokerError, OSError))
        logger.error(
            "partition %s stays in %s: %s",
            *(name, move.log.log_directory, error),
            exc_info=None if is_known else error,
        )
        if self._moves.get(name) is move:
            self._give_up(name)
        if isinstance(error, StorageError):
            self._partitions.on_storage_error(error)

    def _give_up(self, name: TopicPartition) -> None:
        move = self._moves.pop(name)
        self._workers.of(move.destination).run_later(self._logs.remove_copy(move.directory))

"""What the checkpoints of a log directory say of its logs, read at the start and written since.

Recovery points, log start offsets, high watermarks and how far compaction came stand in one file
each, for all partitions at once. A file may name a partition that is gone. One of that name that is
made again must not be taken for it: a start offset beyond its end would empty it at the next start,
a recovery point would vouch for bytes that were never synced. So `LogDirectory.named` holds what
the files may name, what one that is being written may, and who makes a log of such a name has them
written first.

Source: Kafka LogManager (checkpointRecoveryOffsetsInDir and its like, asyncDelete).
"""

from collections.abc import Callable, Sequence
from threading import Lock
from typing import NamedTuple

from minibroker.ids import TopicPartition
from minibroker.storage import names
from minibroker.storage.durable_log import DurableLog
from minibroker.storage.log_directory import LogDirectory
from minibroker.storage.partition_log import PartitionLog
from minibroker.storage.recovery import Checkpointed

Named = tuple[TopicPartition, PartitionLog]


class FoundCheckpoints(NamedTuple):
    """All four of a directory, by partition."""

    recovery_points: dict[TopicPartition, int]
    log_starts: dict[TopicPartition, int]
    high_watermarks: dict[TopicPartition, int]
    clean_offsets: dict[TopicPartition, int]

    def of(self, name: TopicPartition, *, was_clean: bool) -> Checkpointed:
        """What recovery wants to know of one partition."""
        return Checkpointed(
            self.recovery_points.get(name, -1), self.log_starts.get(name, -1), was_clean
        )


class Checkpoints:
    """Of all directories of a log manager. `read` at the start, `write` on any thread."""

    __slots__ = ("_lock", "_was_cleaned", "high_watermark_of")

    def __init__(self, high_watermark_of: Callable[[PartitionLog], int]) -> None:
        self._lock = Lock()
        self._was_cleaned = False
        self.high_watermark_of = high_watermark_of

    def read(self, directory: LogDirectory) -> FoundCheckpoints:
        """Raises StorageError."""
        found = FoundCheckpoints(
            directory.read_checkpoint(names.RECOVERY_POINTS),
            directory.read_checkpoint(names.LOG_START_OFFSETS),
            directory.read_checkpoint(names.HIGH_WATERMARKS),
            directory.read_checkpoint(names.CLEANER_OFFSETS),
        )
        self._was_cleaned = self._was_cleaned or bool(found.clean_offsets)
        directory.named = {name for offsets in found for name in offsets}
        directory.recovery_points = found.recovery_points
        return found

    def write(
        self, directories: Sequence[LogDirectory], all_logs: Callable[[], list[Named]]
    ) -> None:
        """Those that changed. Two threads take turns: the second one knows the newer logs.

        A directory that failed before the logs were looked up has none of them any more, and its
        files stay as they are. Raises StorageError.
        """
        with self._lock:
            logs = all_logs()
            for directory in directories:
                if directory.is_offline:
                    continue
                prefix = directory.path + "/"
                mine = [
                    (name, log)
                    for name, log in logs
                    if log.directory.startswith(prefix) and "/" not in log.directory[len(prefix) :]
                ]
                now_named = {name for name, _ in mine}
                directory.named |= now_named
                self._write_one(directory, mine)
                directory.named = now_named

    def write_synced(
        self,
        directories: Sequence[LogDirectory],
        synced: Sequence[tuple[DurableLog, int]],
        current: Callable[[TopicPartition], DurableLog | None],
    ) -> None:
        """Write the recovery points of a few logs that were synced up to an offset; those of all
        others stay as the file has them. Most logs of a broker are idle: to ask 10,000 of them
        takes 15 ms of the interpreter, and the loop waits for it.

        `current`: the log of that name now. One that was truncated since counts up to there, and
        one that is not current any more counts not at all. Raises StorageError.
        """
        with self._lock:
            for directory in directories:
                mine = [(log, to) for log, to in synced if log.log_directory == directory.path]
                if directory.is_offline or not mine:
                    continue
                directory.named.update(log.name for log, _ in mine)
                points = {
                    log.name: min(offset, log.recovery_point)
                    for log, offset in mine
                    if current(log.name) is log
                }
                self._write_points(directory, {**directory.recovery_points, **points})

    @staticmethod
    def _write_points(directory: LogDirectory, points: dict[TopicPartition, int]) -> None:
        directory.write_checkpoint(names.RECOVERY_POINTS, points)
        directory.recovery_points = points

    def _write_one(self, directory: LogDirectory, logs: Sequence[Named]) -> None:
        recovery_points = {name: log.recovery_point for name, log in logs}
        starts = {
            name: log.log_start_offset
            for name, log in logs
            if log.log_start_offset > log.segments.first.base_offset
        }
        # The start first: DeleteRecords takes the recovery point along, over records that may
        # never have been synced and are of no interest below it only.
        directory.write_checkpoint(names.LOG_START_OFFSETS, starts)
        self._write_points(directory, recovery_points)
        watermarks = {name: self.high_watermark_of(log) for name, log in logs}
        directory.write_checkpoint(names.HIGH_WATERMARKS, watermarks)
        cleaned = {name: log.clean_offset for name, log in logs if log.clean_offset is not None}
        if cleaned or self._was_cleaned:  # most brokers compact nothing: two fsyncs less
            self._was_cleaned = True
            directory.write_checkpoint(names.CLEANER_OFFSETS, cleaned)

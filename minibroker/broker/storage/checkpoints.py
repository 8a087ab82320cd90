"""The checkpoints of a log directory: read at the start, and written from then on.

Recovery points, log start offsets, high watermarks and the ends of compaction stand in one file
each, for all partitions at once. A file may name a partition that is gone. A new one of that name
must not be taken for it: a start offset beyond its end would empty it at the next start, a recovery
point would vouch for bytes that were never synced. So a deletion takes its names out of the files
(`forget`), on the worker. `LogDirectory.checkpoint_names` holds the names that the files may have,
and those of a file that is being written. A log that is made under such a name gets a mark in its
directory (`names.MADE_ANEW`). The mark goes when the worker has written the files.

Source: Kafka LogManager (checkpointRecoveryOffsetsInDir and its like, asyncDelete).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

from minibroker.broker.storage import names
from minibroker.broker.storage.log_directory import LogDirectory
from minibroker.kafka.ids import TopicPartition

if TYPE_CHECKING:
    from minibroker.broker.storage.partition_log import PartitionLog

    NameAndLog = tuple[TopicPartition, PartitionLog]


class Checkpointed:
    """The log directory's checkpoints of one partition; -1 for none. The load of the log corrects
    what its files show to be otherwise.
    """

    __slots__ = (
        "clean_offset",
        "high_watermark",
        "is_clean",
        "log_start_offset",
        "recovery_point",
        "stopped_ns",
        "synced_to",
    )

    def __init__(  # noqa: PLR0917  a start makes one for each log
        self,
        recovery_point: int = -1,
        log_start_offset: int = -1,
        is_clean: bool = False,
        high_watermark: int = -1,
        clean_offset: int | None = None,
        synced_to: int | None = None,
        stopped_ns: int | None = None,
    ) -> None:
        self.recovery_point = recovery_point
        self.log_start_offset = log_start_offset
        self.is_clean = is_clean
        """All that is in the files is whole, and the log ends at the recovery point."""
        self.high_watermark = high_watermark
        self.clean_offset = clean_offset
        """End of compaction, None: it never ran."""
        self.synced_to = synced_to
        """Offset below which a log that is clean is durable, None: all of it is."""
        self.stopped_ns = stopped_ns
        """End of the clean stop in the file system's time; None: nobody can have changed files
        since.
        """


class FoundCheckpoints:
    """All four of a directory, by partition."""

    __slots__ = ("clean_offsets", "high_watermarks", "log_starts", "recovery_points")

    def __init__(
        self,
        recovery_points: dict[TopicPartition, int],
        log_starts: dict[TopicPartition, int],
        high_watermarks: dict[TopicPartition, int],
        clean_offsets: dict[TopicPartition, int],
    ) -> None:
        self.recovery_points = recovery_points
        self.log_starts = log_starts
        self.high_watermarks = high_watermarks
        self.clean_offsets = clean_offsets

    def names(self) -> set[TopicPartition]:
        """Return the partitions that one of them names."""
        checkpoints = (self.log_starts, self.high_watermarks, self.clean_offsets)
        return set(self.recovery_points).union(*checkpoints)

    def forget(self, name: TopicPartition) -> None:
        """Leave out a partition: what they say of it is of an older one."""
        self.recovery_points.pop(name, None)
        self.log_starts.pop(name, None)
        self.high_watermarks.pop(name, None)
        self.clean_offsets.pop(name, None)

    def of(
        self, name: TopicPartition, *, was_clean: bool, stopped_ns: int | None = None
    ) -> Checkpointed:
        """Return the checkpointed offsets of one partition, for recovery."""
        return Checkpointed(
            self.recovery_points.get(name, -1),
            self.log_starts.get(name, -1),
            was_clean,
            self.high_watermarks.get(name, -1),
            self.clean_offsets.get(name),
            stopped_ns=stopped_ns,
        )


class Checkpoints:
    """Checkpoints of all directories of a log manager.

    `read` at the start, `write` on any thread.
    """

    __slots__ = ("_was_cleaned", "high_watermark_of")

    def __init__(self, high_watermark_of: Callable[[PartitionLog], int]) -> None:
        self._was_cleaned = False
        self.high_watermark_of = high_watermark_of

    def read(self, directory: LogDirectory) -> FoundCheckpoints:
        """Raises StorageError."""
        names_by_text: dict[str, TopicPartition] = {}
        checkpoints = FoundCheckpoints(
            directory.read_checkpoint(names.RECOVERY_POINTS, names_by_text),
            directory.read_checkpoint(names.LOG_START_OFFSETS, names_by_text),
            directory.read_checkpoint(names.HIGH_WATERMARKS, names_by_text),
            directory.read_checkpoint(names.CLEANER_OFFSETS, names_by_text),
        )
        self._was_cleaned = self._was_cleaned or bool(checkpoints.clean_offsets)
        directory.checkpoint_names = checkpoints.names()
        return checkpoints

    def write(
        self, directories: Sequence[LogDirectory], all_logs: Callable[[], list[NameAndLog]]
    ) -> None:
        """Write the checkpoints that changed. Two threads take turns at a directory: the second one
        knows the newer logs.

        A directory that failed before the logs were looked up has none of them any more, and its
        files stay as they are. Raises StorageError.
        """
        for directory in directories:
            with directory.checkpoints_lock:
                logs = all_logs()
                if directory.is_offline:
                    continue
                prefix = directory.path + "/"
                mine = [
                    (name, log)
                    for name, log in logs
                    if log.directory.startswith(prefix) and "/" not in log.directory[len(prefix) :]
                ]
                now_named = {name for name, _ in mine}
                directory.checkpoint_names |= now_named
                self._write_one(directory, mine)
                directory.checkpoint_names = now_named

    def write_synced(
        self,
        directories: Sequence[LogDirectory],
        synced: Sequence[tuple[PartitionLog, int]],
        current: Callable[[TopicPartition], PartitionLog | None],
    ) -> None:
        """Write the recovery points of a few logs that were synced up to an offset; those of all
        others stay as the file has them. Most logs of a broker are idle: to ask 10,000 of them
        takes 15 ms of the interpreter, and the loop waits for it.

        `current`: the log of that name now. One that was truncated since counts up to there, and
        one that is not current any more counts not at all. Raises StorageError.
        """
        for directory in directories:
            mine = [(log, to) for log, to in synced if log.log_directory == directory.path]
            if not mine:
                continue
            with directory.checkpoints_lock:
                if directory.is_offline:
                    continue
                directory.checkpoint_names.update(log.name for log, _ in mine)
                points = {
                    log.name: min(offset, log.recovery_point)
                    for log, offset in mine
                    if current(log.name) is log
                }
                offset_by_log = directory.offsets.get(names.RECOVERY_POINTS, {})
                directory.write_checkpoint(names.RECOVERY_POINTS, {**offset_by_log, **points})

    def write_cut(
        self,
        directory: LogDirectory,
        log: PartitionLog,
        current: Callable[[TopicPartition], PartitionLog | None],
    ) -> None:
        """Write what one log's truncation changed. The entries of all other logs stay, and so does
        a file that says nothing beyond the cut. `current` as of `write_synced`. Raises
        StorageError.

        Source: Kafka LogManager.truncateTo, which writes the recovery points of the directory.
        """
        with directory.checkpoints_lock:
            if directory.is_offline or current(log.name) is not log:
                return
            end_offset = log.log_end_offset
            cut = {
                names.LOG_START_OFFSETS: log.log_start_offset,
                names.RECOVERY_POINTS: log.recovery_point,
                names.HIGH_WATERMARKS: min(self.high_watermark_of(log), end_offset),
                names.CLEANER_OFFSETS: end_offset,
            }
            for file_name, offset in cut.items():
                offset_by_log = directory.offsets.get(file_name, {})
                if offset_by_log.get(log.name, -1) > offset:
                    directory.write_checkpoint(file_name, {**offset_by_log, log.name: offset})

    def write_cleaned(
        self,
        directory: LogDirectory,
        log: PartitionLog,
        current: Callable[[TopicPartition], PartitionLog | None],
    ) -> None:
        """Write how far one log is compacted; the ends of all others stay as the file has them.

        The other checkpoints do not follow from a round of compaction. `current` as of
        `write_synced`: a log that is not current any more counts not at all. Raises StorageError.

        Source: Kafka LogCleanerManager.updateCheckpoints.
        """
        with directory.checkpoints_lock:
            if directory.is_offline or log.clean_offset is None or current(log.name) is not log:
                return
            self._was_cleaned = True
            directory.checkpoint_names.add(log.name)
            offset_by_log = directory.offsets.get(names.CLEANER_OFFSETS, {})
            cleaned = {**offset_by_log, log.name: log.clean_offset}
            directory.write_checkpoint(names.CLEANER_OFFSETS, cleaned)

    @staticmethod
    def forget(
        directory: LogDirectory,
        forgotten_logs: Collection[TopicPartition],
        current: Callable[[TopicPartition], PartitionLog | None],
    ) -> None:
        """Have the files name none of these partitions, whose logs have left the directory. One
        that was made again stays. Raises StorageError.

        Source: Kafka LogManager.asyncDelete, which writes the checkpoints without them.
        """
        with directory.checkpoints_lock:
            if directory.is_offline:
                return
            unserved = {name for name in forgotten_logs if current(name) is None}
            for file_name, offsets in list(directory.offsets.items()):
                if not unserved.isdisjoint(offsets):
                    remaining = {name: offsets[name] for name in offsets if name not in unserved}
                    directory.write_checkpoint(file_name, remaining)
            directory.checkpoint_names -= unserved

    def _write_one(self, directory: LogDirectory, logs: Sequence[NameAndLog]) -> None:
        recovery_points = {name: log.recovery_point for name, log in logs}
        starts = {
            name: log.log_start_offset
            for name, log in logs
            if log.log_start_offset > log.segments.first.base_offset
        }
        # The start first: DeleteRecords takes the recovery point along, over records that may
        # never have been synced and are of no interest below it only.
        directory.write_checkpoint(names.LOG_START_OFFSETS, starts)
        directory.write_checkpoint(names.RECOVERY_POINTS, recovery_points)
        watermarks = {name: self.high_watermark_of(log) for name, log in logs}
        directory.write_checkpoint(names.HIGH_WATERMARKS, watermarks)
        cleaned = {name: log.clean_offset for name, log in logs if log.clean_offset is not None}
        if cleaned or self._was_cleaned:  # most brokers compact nothing: two fsyncs less
            self._was_cleaned = True
            directory.write_checkpoint(names.CLEANER_OFFSETS, cleaned)

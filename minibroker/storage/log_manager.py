"""All logs of this broker: finds, makes, checkpoints, deletes and closes them.

    open()    lock every log directory, read whose it is
    claim()   compare or write meta.properties, once the cluster id is known
    load()    open every partition's log (recovery where the last stop was not clean)
    …         create_log, get, delete; checkpoint_now() from time to time
    close()   write and sync everything, checkpoints, clean-shutdown markers, locks

No thread and no timer of its own: who owns the manager calls `checkpoint_now` (any thread), and
gives a `run_later` callable for what may block (fsync, unmapping, removal).

Source: Kafka LogManager.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from minibroker.clock import Clock
from minibroker.errors import StorageError
from minibroker.ids import TopicId, TopicPartition
from minibroker.storage import names
from minibroker.storage.disk import Disk
from minibroker.storage.log_directory import LogDirectory
from minibroker.storage.partition_log import PartitionLog
from minibroker.storage.recovery import Checkpointed, load_log
from minibroker.storage.tasks import RemoveDirectoryTask
from minibroker.storage.validator import AppendRules

if TYPE_CHECKING:
    from minibroker.config.topic import TopicConfig

_log = logging.getLogger(__name__)


def _unknown(_name: TopicPartition) -> None:
    """No high watermark is reported: without followers it is the log's end."""


class LogManager:
    """Used by the loop's thread; `checkpoint_now` and returned tasks may run on any."""

    def __init__(
        self,
        log_dirs: Sequence[str],
        *,
        clock: Clock,
        config_of: Callable[[str], "TopicConfig"],
        disk: Disk | None = None,
    ) -> None:
        """Touches no file. `config_of`: topic name → its configuration, asked while loading."""
        self.disk = disk or Disk()
        self._clock = clock
        self._config_of = config_of
        self._rules: dict[int, tuple[TopicConfig, AppendRules]] = {}
        self.directories = [
            LogDirectory(self.disk.files, path.rstrip("/") or "/") for path in log_dirs
        ]
        self.logs: dict[TopicPartition, PartitionLog] = {}
        self._log_counts = dict.fromkeys((one.path for one in self.directories), 0)
        self.high_watermarks: dict[TopicPartition, int] = {}
        """Of the last checkpoint, as `load` found it; who leads a partition starts from it."""
        self.strays: list[str] = []
        """Directories that are no partition of ours; kept, and named in the log."""
        self.was_clean = True
        self._high_watermark_of: Callable[[TopicPartition], int | None] = _unknown

    # --- start ----------------------------------------------------------------------------------

    def open(self) -> None:
        """Lock every directory. Raises StorageError; then none is locked."""
        opened: list[LogDirectory] = []
        try:
            for directory in self.directories:
                directory.open()
                opened.append(directory)
        except StorageError:
            for directory in opened:
                directory.release()
            raise

    @property
    def cluster_id(self) -> str | None:
        """The cluster that the directories belong to, None for new ones."""
        for directory in self.directories:
            if directory.properties is not None and directory.properties.cluster_id is not None:
                return directory.properties.cluster_id
        return None

    def claim(self, broker_id: int, cluster_id: str) -> None:
        """Raises StorageError where a directory is another broker's or cluster's."""
        for directory in self.directories:
            directory.claim(broker_id, cluster_id, self._clock.now_ms())

    def load(self) -> None:
        """Open every log in every directory. Raises StorageError."""
        for directory in self.directories:
            self._load_directory(directory)

    def _load_directory(self, directory: LogDirectory) -> None:
        self.was_clean = self.was_clean and directory.was_clean
        recovery_points = directory.read_checkpoint(names.RECOVERY_POINTS)
        log_starts = directory.read_checkpoint(names.LOG_START_OFFSETS)
        self.high_watermarks.update(directory.read_checkpoint(names.HIGH_WATERMARKS))
        for found in self.disk.files.list_directories(directory.path):
            parsed = names.parse_directory(found)
            path = f"{directory.path}/{found}"
            if parsed is not None and parsed[1] == names.DELETE_DIRECTORY:
                self.disk.run_later(RemoveDirectoryTask(self.disk.files, path))
            elif parsed is None or parsed[1] or parsed[0].topic.startswith("__cluster_metadata"):
                self.strays.append(path)
                _log.warning("%s is no partition of this broker and is left alone", path)
            else:
                checkpointed = Checkpointed(
                    recovery_points.get(parsed[0], -1),
                    log_starts.get(parsed[0], -1),
                    directory.was_clean,
                )
                self._load_one(parsed[0], path, checkpointed)
        if directory.was_clean:
            self.disk.run_later(directory.sync)

    def _load_one(self, name: TopicPartition, path: str, checkpointed: Checkpointed) -> None:
        if name in self.logs:
            raise StorageError(
                f"{name} is in two places, {self.logs[name].directory} and {path}: "
                "remove the older one and start again"
            )
        config = self._config_of(name.topic)
        self._log_counts[path.rpartition("/")[0]] += 1
        self.logs[name] = load_log(
            self.disk,
            self._clock,
            name,
            path,
            config=config,
            rules=self.rules_of(config),
            checkpointed=checkpointed,
        )

    def rules_of(self, config: "TopicConfig") -> AppendRules:
        """What the validator needs of `config`; logs with one configuration share it."""
        found = self._rules.get(id(config))
        if found is None:
            if len(self._rules) > len(self.logs) + 64:
                self._rules.clear()  # configurations that no log has any more
            found = self._rules[id(config)] = (config, AppendRules(config))
        return found[1]

    # --- logs -----------------------------------------------------------------------------------

    def get(self, topic: str, partition: int) -> PartitionLog | None:
        return self.logs.get(TopicPartition(topic, partition))

    def create_log(
        self, topic: str, partition: int, topic_id: TopicId, config: "TopicConfig"
    ) -> PartitionLog:
        """The partition's log, made in the directory with the fewest partitions if there is none.

        Raises KafkaError(INCONSISTENT_TOPIC_ID) where the log belongs to another topic of that
        name, StorageError.
        """
        name = TopicPartition(topic, partition)
        log = self.logs.get(name)
        if log is None:
            directory = self._emptiest_directory()
            path = f"{directory.path}/{names.partition_directory(topic, partition)}"
            is_new = True
            try:
                self.disk.files.make_directory(path)
            except FileExistsError:
                is_new = False
                _log.warning("%s was there already and is taken over", path)
            except OSError as error:
                raise StorageError(f"cannot create {path}: {error.strerror}") from error
            log = load_log(
                self.disk,
                self._clock,
                name,
                path,
                config=config,
                rules=self.rules_of(config),
                checkpointed=Checkpointed(),
                is_new=is_new,
            )
            self.logs[name] = log
            self._log_counts[directory.path] += 1
        log.assign_topic_id(topic_id)
        return log

    def _emptiest_directory(self) -> LogDirectory:
        counts = self._log_counts
        return min(self.directories, key=lambda one: counts[one.path])

    def update_config(self, topic: str, config: "TopicConfig") -> None:
        """The topic's configuration changed: its logs follow."""
        rules = self.rules_of(config)
        for log in self.logs.values():
            if log.name.topic == topic:
                log.update_config(config, rules)

    def truncate(self, topic: str, partition: int, offset: int) -> bool:
        """Remove everything from `offset` on; False where there was nothing. Raises StorageError.

        The recovery point is checkpointed before the log grows again: an old one beyond the cut
        would vouch for bytes that were never synced.
        """
        log = self.logs[TopicPartition(topic, partition)]
        if not log.truncate_to(offset):
            return False
        self.checkpoint_now()
        return True

    def delete(self, topic: str, partition: int) -> Callable[[], None] | None:
        """Take the partition out of service and rename its directory; the returned task removes it,
        on any thread. None where there is no such log. Raises StorageError.
        """
        name = TopicPartition(topic, partition)
        log = self.logs.get(name)
        if log is None:
            return None
        parent = log.directory.rpartition("/")[0]
        marked = names.marked_directory(topic, partition, names.DELETE_DIRECTORY)
        task = log.mark_deleted(f"{parent}/{marked}")
        del self.logs[name]
        self._log_counts[parent] -= 1
        self.high_watermarks.pop(name, None)
        return task

    def remove_expired_producers(self, now_ms: int, expiration_ms: int) -> int:
        """Forget silent producers in every log; how many are left. Call it with nothing staged."""
        left = 0
        for log in self.logs.values():
            left += log.remove_expired_producers(now_ms, expiration_ms)
        return left

    def logs_in(self, directory: LogDirectory) -> list[PartitionLog]:
        """The logs in one of `directories`."""
        prefix = directory.path + "/"
        return [
            log for log in self.logs.values() if log.directory.rpartition("/")[0] + "/" == prefix
        ]

    def space_of(self, directory: LogDirectory) -> tuple[int, int]:
        """Total and usable bytes of the file system under a directory. Raises StorageError."""
        try:
            return self.disk.files.room_bytes(directory.path)
        except OSError as error:
            raise StorageError(f"cannot ask for the room in {directory.path}: {error}") from error

    def release(self) -> None:
        """Give the locks back without having served: nothing is written, no marker is left."""
        self.disk.close()
        for directory in self.directories:
            directory.release()

    # --- checkpoints and stop -------------------------------------------------------------------

    def report_high_watermarks(self, of: Callable[[TopicPartition], int | None]) -> None:
        """`of` answers the high watermark of a partition when checkpoints are written; None: the
        log's end, which it is where there are no followers.
        """
        self._high_watermark_of = of

    def checkpoint_now(self) -> None:
        """Write the checkpoints that changed, and unmap what became free. Any thread.

        Raises StorageError.
        """
        logs = list(self.logs.items())
        for directory in self.directories:
            prefix = directory.path + "/"
            mine = [
                (name, log)
                for name, log in logs
                if log.directory.startswith(prefix) and "/" not in log.directory[len(prefix) :]
            ]
            self._checkpoint_directory(directory, mine)
        self.disk.windows.close_unused()

    def _checkpoint_directory(
        self, directory: LogDirectory, logs: list[tuple[TopicPartition, PartitionLog]]
    ) -> None:
        directory.write_checkpoint(
            names.RECOVERY_POINTS, {name: log.recovery_point for name, log in logs}
        )
        starts = {
            name: log.log_start_offset
            for name, log in logs
            if log.log_start_offset > log.segments.first.base_offset
        }
        directory.write_checkpoint(names.LOG_START_OFFSETS, starts)
        watermarks: dict[TopicPartition, int] = {}
        for name, log in logs:
            known = self._high_watermark_of(name)
            watermarks[name] = log.log_end_offset if known is None else known
        directory.write_checkpoint(names.HIGH_WATERMARKS, watermarks)

    def flush_all(self) -> None:
        """Write and sync every log. Raises StorageError."""
        for log in self.logs.values():
            log.flush()

    def close(self, high_watermarks: Mapping[TopicPartition, int] | None = None) -> None:
        """Stop cleanly: the next start reads nothing but names and checkpoints.

        A log that cannot be closed is named, its directory gets no marker and is recovered at the
        next start; the locks are given back in any case. Raises StorageError for the first such
        log.
        """
        if high_watermarks is not None:
            self._high_watermark_of = high_watermarks.get
        failed: StorageError | None = None
        unclean: set[str] = set()
        for log in self.logs.values():
            try:
                log.close()
            except StorageError as error:
                _log.error("%s", error)
                failed = failed or error
                unclean.add(log.directory.rpartition("/")[0])
        try:
            self.checkpoint_now()
            for directory in self.directories:
                if directory.path not in unclean:
                    directory.mark_clean()
        finally:
            self.disk.close()
            for directory in self.directories:
                directory.release()
        if failed is not None:
            raise failed

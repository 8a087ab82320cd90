"""All logs of this broker: this finds, makes, checkpoints, deletes and closes them.

    open()    lock every log directory, read whose it is
    claim()   compare or write meta.properties, once the cluster id is known
    load()    open every partition's log (recovery where the last stop was not clean)
    …         create_log, get, delete; checkpoint_now() from time to time
    close()   write and sync everything, checkpoints, clean-shutdown markers, locks

A directory whose disk refuses to be read or written (a full one does not count) goes offline: its
partitions are gone until the next start, the others are served. Without any left nothing is.

The manager has no thread and no timer. Its owner calls `checkpoint_later`, and gives it a `Disk`
with workers for all that may block (fsync, unmapping, removal).

The modules that work on records are imported with the first log. A start without one is shorter,
and behind its ready line `verbs/serve/warm_up.py` imports them before somebody makes a topic.

Two logs of one name (`Namesakes`): a directory was offline while a topic was deleted and made
again. When it is back, a start finds the old log in it and the new one elsewhere. Their ids differ,
and the metadata, which come later, say which of them is the topic's. Until then one is open and the
other one waits here. A log that turns out to be of another topic is marked as stray and kept. Kafka
4 does the same (LogManager.loadLog, isStrayReplica); Kafka 3.9 refuses to start.

Source: Kafka LogManager.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Final

from minibroker.broker.storage import names
from minibroker.broker.storage.checkpoints import Checkpointed, Checkpoints
from minibroker.broker.storage.disk import Disk
from minibroker.broker.storage.files import Files
from minibroker.broker.storage.log_directory import (
    LogDirectory,
    is_kafkas,
    keep_kafka_out,
    way_back,
)
from minibroker.broker.storage.partition_metadata import SharedMetadata, read_metadata
from minibroker.broker.storage.removals import Once, RemoveCopyTask, RemoveDirectoryTask
from minibroker.clock import Clock
from minibroker.kafka.errors import CorruptionError, HalfChangedError, StorageError
from minibroker.kafka.ids import ZERO_TOPIC_ID, TopicId, TopicPartition

if TYPE_CHECKING:
    from types import ModuleType

    from minibroker.broker.config.topic import TopicConfig
    from minibroker.broker.evidence import DeletionEvidence
    from minibroker.broker.storage.log_move import LogMove
    from minibroker.broker.storage.partition_directory import PartitionDirectory
    from minibroker.broker.storage.partition_log import OnUnsynced, PartitionLog
    from minibroker.broker.storage.record_checks import AppendRules
    from minibroker.broker.storage.refusals import Refusals
    from minibroker.kafka.errors import MinibrokerError


logger = logging.getLogger(__name__)


class Namesake:
    """A log that is not open."""

    __slots__ = ("checkpointed", "directory", "topic_id")

    def __init__(self, directory: str, topic_id: TopicId, checkpointed: Checkpointed) -> None:
        self.directory = directory
        self.topic_id = topic_id
        self.checkpointed = checkpointed


class Namesakes:
    """Those of a log manager; for the loop's thread."""

    __slots__ = ("_files", "_waiting")

    def __init__(self, files: Files) -> None:
        self._files = files
        self._waiting: dict[TopicPartition, list[Namesake]] = {}

    def __contains__(self, name: TopicPartition) -> bool:
        """Return whether a log of this name waits."""
        return name in self._waiting

    def add(
        self,
        name: TopicPartition,
        directory: str,
        known_id: TopicId,
        checkpointed: Checkpointed,
    ) -> bool:
        """Keep a second log of this name; False where it does not tell that its topic is another
        one than `known_id`. Raises StorageError.
        """
        try:
            topic_id = read_metadata(self._files, directory)
        except (OSError, CorruptionError) as error:
            log_directory = directory.rpartition("/")[0]
            raise StorageError(
                f"cannot read the topic id of {directory}: {error}", log_directory=log_directory
            ) from error
        if topic_id is None or known_id in (topic_id, ZERO_TOPIC_ID):
            return False
        logger.warning("%s is one of two logs of %s: the metadata decide", directory, name)
        namesake = Namesake(directory, topic_id, checkpointed)
        self._waiting.setdefault(name, []).append(namesake)
        return True

    def take(self, name: TopicPartition, topic_id: TopicId) -> Namesake | None:
        """Return the log of this name that belongs to the topic, if it waits here. Others become
        stray.

        Nothing is decided while the topic has no id. Raises StorageError.
        """
        if topic_id == ZERO_TOPIC_ID:
            return None
        match = None
        for namesake in self._waiting.pop(name, ()):
            if namesake.topic_id == topic_id:
                match = namesake
            else:
                self._mark_stray(name, namesake.directory)
        return match

    def _mark_stray(self, name: TopicPartition, directory: str) -> None:
        parent = directory.rpartition("/")[0]
        marked = names.marked_directory(name.topic, name.partition, names.STRAY_DIRECTORY)
        try:
            self._files.replace(directory, f"{parent}/{marked}")
        except OSError as error:
            raise StorageError(
                f"cannot rename {directory}: {error}", log_directory=parent
            ) from error
        warn_of_stray(directory, f"{parent}/{marked}")


def warn_of_stray(directory: str, marked: str) -> None:
    """Say that a log makes room and where it is kept."""
    logger.warning(
        "%s is of another topic with this name, which was deleted; it is kept as %s: remove it if "
        "nobody needs it",
        directory,
        marked,
    )


PREFERRED_MAX: Final = 10_000
"""So many partitions that do not exist yet may have a directory chosen for them."""


@cache
def _recovery() -> ModuleType:
    """Return the module `recovery`, imported with the first log."""
    from minibroker.broker.storage import recovery  # noqa: PLC0415  see above

    return recovery


@cache
def _move_mark() -> ModuleType:
    """Return the module `move_mark`: only a start after a kill, and logs of one name, need it."""
    from minibroker.broker.storage import move_mark  # noqa: PLC0415  see above

    return move_mark


def _sync_never(_log: PartitionLog, _has_grown_much: bool) -> None:
    """Do nothing: nobody syncs logs in the background."""


class LogManager:
    """Belongs to the loop's thread; `checkpoint_now` and returned tasks may run on any."""

    def __init__(
        self,
        log_dirs: Sequence[str],
        *,
        clock: Clock,
        config_of: Callable[[str], TopicConfig],
        disk: Disk | None = None,
    ) -> None:
        """Touches no file. `config_of`: topic name → its configuration, asked while loading."""
        self.disk = disk or Disk()
        self.clock = clock
        self._config_of = config_of
        self._rules: dict[int, tuple[TopicConfig, AppendRules]] = {}
        self.directories = [
            LogDirectory(self.disk.files, path.rstrip("/") or "/") for path in log_dirs
        ]
        self.logs: dict[TopicPartition, PartitionLog] = {}
        self._log_counts = dict.fromkeys((directory.path for directory in self.directories), 0)
        self._futures: dict[TopicPartition, str] = {}
        self._preferred: dict[TopicPartition, str] = {}
        self.strays: list[str] = []
        """Directories that are no partition of ours; kept, and named in the log."""
        self.was_clean = True
        self.on_unsynced: OnUnsynced = _sync_never
        """Every log that wants to be synced calls it (`partitions/housekeeping.py`). The loop sets
        it."""
        self._checkpoints = Checkpoints(self.high_watermark_of)
        self._namesakes = Namesakes(self.disk.files)
        self._refusals: Refusals | None = None
        """Made with the first error of a disk."""
        self._shared_metadata: SharedMetadata | None = None
        """Set while `load` runs."""
        self._high_watermark_of: Callable[[TopicPartition], int | None] | None = None

    def open(self) -> None:
        """Lock every directory. Raises StorageError; then none is locked."""
        try:
            self._in_each(LogDirectory.open)
            self._check_owner()
            self._in_each(LogDirectory.take_marker)
        except StorageError:
            for directory in self.directories:
                directory.release()
            raise

    def _in_each(self, step: Callable[[LogDirectory], None]) -> None:
        """Take a step of the start in every live directory; one whose disk refuses goes offline.

        Raises StorageError when it is the last one, or when it is not the disk that refuses.
        """
        for directory in self.live_directories:
            try:
                step(directory)
            except StorageError as error:
                if not error.is_lasting or len(self.live_directories) == 1:
                    raise
                logger.error("%s: it is offline, the other directories are served", error)
                self.fail_directory(directory.path)

    @property
    def live_directories(self) -> list[LogDirectory]:
        """Return the directories that have not failed."""
        return [directory for directory in self.directories if not directory.is_offline]

    def is_live(self, path: str) -> bool:
        """Return whether this is one of the directories, and has not failed."""
        return any(directory.path == path for directory in self.live_directories)

    def fail_directory(self, path: str) -> list[TopicPartition] | None:
        """Serve nothing from this directory any more; the partitions that are lost with it.

        Nothing is written: what the disk still takes is recovered at the next start. None for a
        directory that is offline already, or none of ours.
        """
        directory = next(
            (directory for directory in self.live_directories if directory.path == path), None
        )
        if directory is None:
            return None
        directory.fail()
        lost = [name for name, log in self.logs.items() if log.log_directory == path]
        for name in lost:
            self.logs.pop(name).abandon()
        return lost

    def note_refusal(self, subject: str, error: StorageError) -> None:
        """Log what a disk refused to `subject`, or count it (`Refusals`)."""
        if self._refusals is None:
            from minibroker.broker.storage.refusals import Refusals  # noqa: PLC0415  seldom needed

            self._refusals = Refusals()
        self._refusals.note(subject, error, self.clock.monotonic_s())

    @property
    def cluster_id(self) -> str | None:
        """Return the cluster that the directories belong to, None for new ones."""
        for directory in self.directories:
            if directory.properties is not None and directory.properties.cluster_id is not None:
                return directory.properties.cluster_id
        return None

    def _check_owner(self) -> None:
        """Raise StorageError if Apache Kafka with KRaft owns the first directory. (Kafka with
        ZooKeeper refuses such a directory, too.)
        """
        first = self.directories[0]
        if is_kafkas(self.disk.files, first.path, first.properties):
            raise StorageError(
                f"the data directory {first.path} belongs to Apache Kafka (KRaft): "
                f"{way_back(first.path)}",
                log_directory=first.path,
            )

    def claim(self, broker_id: int, cluster_id: str) -> None:
        """Raises StorageError where a directory is another broker's or cluster's."""
        self._in_each(lambda directory: directory.claim(broker_id, cluster_id, self.clock.now_ms()))

    def keep_kafka_out(self) -> None:
        """Have Apache Kafka with KRaft refuse the first directory. Raises StorageError."""
        path = self.directories[0].path
        try:
            keep_kafka_out(self.disk.files, path)
        except OSError as error:
            raise StorageError(
                f"the data directory {path} cannot be written: {error.strerror}", log_directory=path
            ) from error

    def load(self) -> None:
        """Open every log in every directory. Raises StorageError."""
        deleted: list[tuple[TopicPartition, str]] = []
        copies: list[str] = []
        marked: list[Callable[[], None]] = []
        self._shared_metadata = SharedMetadata(self.disk.files)
        self._in_each(lambda directory: self._load_directory(directory, deleted, copies, marked))
        for task in marked:
            task()
        for name, path in deleted:
            if self.may_be_lost(name):
                logger.warning("%s is left alone: its log may be in an offline directory", path)
            elif name in self._futures and name not in self.logs:
                self._take_back(name, path)
            else:
                self._disk_under(path).worker.run_later(RemoveDirectoryTask(self.disk.files, path))
        self._shared_metadata = None
        for path in copies:  # not before: a copy tells what is to be taken back
            self._disk_under(path).worker.run_later(self.remove_copy(path))

    def _disk_under(self, path: str) -> Disk:
        """Return the disk of the log directory that a partition's directory `path` is in."""
        return self.disk.of(path.rpartition("/")[0] or "/")

    def _take_back(self, name: TopicPartition, path: str) -> None:
        """Rename the old log back, which is here and whole: a power cut left only its rename of a
        move's two. It goes once the other rename is durable. Raises StorageError.
        """
        parent = path.rpartition("/")[0]
        original = f"{parent}/{names.partition_directory(name.topic, name.partition)}"
        logger.warning("%s is %s again: its move to another directory was cut off", path, original)
        try:
            self.disk.files.replace(path, original)
            self.disk.files.sync_directory(parent)
        except OSError as error:
            raise StorageError(f"cannot rename {path}: {error}", log_directory=parent) from error
        (owner,) = (directory for directory in self.directories if directory.path == parent)
        checkpoints = self._checkpoints.read(owner)
        checkpointed = checkpoints.of(name, was_clean=False)
        self._load_one(name, original, checkpointed)

    def _load_directory(
        self,
        directory: LogDirectory,
        deleted: list[tuple[TopicPartition, str]],
        copies: list[str],
        marked: list[Callable[[], None]],
    ) -> None:
        """`deleted` and `copies` get the partitions' directories that are to be removed, `marked`
        tasks for when all logs are loaded.
        """
        self.was_clean = self.was_clean and directory.was_clean
        checkpoints = self._checkpoints.read(directory)
        for directory_name in self.disk.files.list_directories(directory.path):
            name_and_mark = names.parse_directory(directory_name)
            path = f"{directory.path}/{directory_name}"
            if name_and_mark is not None and name_and_mark[1] == names.DELETE_DIRECTORY:
                deleted.append((name_and_mark[0], path))
            elif name_and_mark is not None and name_and_mark[1] == names.FUTURE_DIRECTORY:
                self._futures[name_and_mark[0]] = directory.path
                copies.append(path)
            elif (
                name_and_mark is None
                or name_and_mark[1]
                or name_and_mark[0].topic.startswith("__cluster_metadata")
            ):
                self.strays.append(path)
                logger.warning("%s is no partition of this broker and is left alone", path)
            else:
                if not directory.was_clean and self.disk.files.exists(f"{path}/{names.MADE_ANEW}"):
                    checkpoints.forget(name_and_mark[0])
                    marked.append(partial(self._unmark, directory, path))
                checkpointed = checkpoints.of(
                    name_and_mark[0],
                    was_clean=directory.was_clean,
                    stopped_ns=directory.stopped_ns,
                )
                if not directory.was_clean:
                    start = self._marked_start(directory, path)
                    if start > checkpointed.log_start_offset:
                        checkpointed.log_start_offset = start
                        marked.append(partial(self._save_marked_start, directory, path))
                self._load_one(name_and_mark[0], path, checkpointed)
        if directory.was_clean:
            self.disk.of(directory.path).worker.run_later(directory.sync)

    def _load_one(self, name: TopicPartition, path: str, checkpointed: Checkpointed) -> None:
        namesake = self.logs.get(name)
        if namesake is None:
            metadata = self._shared_metadata
            self._open_log(
                name,
                path,
                self._config_of(name.topic),
                checkpointed,
                topic_id=metadata.read(path) if metadata is not None else None,
            )
        elif self._is_moved(path):
            remove = self._take_out(namesake, names.DELETE_DIRECTORY)
            self._sync(namesake.log_directory)
            start = max(checkpointed.log_start_offset, namesake.log_start_offset)
            checkpointed.log_start_offset = start
            self._open_log(name, path, self._config_of(name.topic), checkpointed)
            self._disk_under(namesake.directory).worker.run_later(remove)
        elif self._is_moved(namesake.directory):
            self._remove_older(namesake, path, checkpointed.log_start_offset)
        elif not self._namesakes.add(name, path, namesake.place.topic_id, checkpointed):
            raise StorageError(
                f"{name} is in two places, {namesake.directory} and {path}: "
                "remove the older one and start again"
            )

    def _marked_start(self, directory: LogDirectory, path: str) -> int:
        """Return the start of a log that its move's mark says, -1 for none. Raises StorageError."""
        try:
            start: int = _move_mark().read_mark(self.disk.files, path)
            return start
        except OSError as error:
            raise StorageError(
                f"cannot read a mark in {path}: {error}", log_directory=directory.path
            ) from error

    def _save_marked_start(self, directory: LogDirectory, path: str) -> None:
        """Have the checkpoints say where a moved log starts, which only its mark said, and the mark
        no more. At the end of a load. Raises StorageError.
        """
        self._checkpoint([directory])
        try:
            self.disk.files.write_atomically(_move_mark().mark_path(path), b"")
        except FileNotFoundError:
            return  # of two logs this one has left
        except OSError as error:
            raise StorageError(
                f"cannot write a mark in {path}: {error}", log_directory=directory.path
            ) from error

    def _is_moved(self, path: str) -> bool:
        """Return whether a move made the log in this directory, and a power cut came before its
        end.
        """
        return self.disk.files.exists(_move_mark().mark_path(path))

    def _remove_older(self, moved: PartitionLog, path: str, log_start_offset: int) -> None:
        """Remove the log at `path`, from which `moved` was made. Raises StorageError."""
        directory = path.rpartition("/")[0]
        mark = names.marked_directory(moved.topic, moved.partition, names.DELETE_DIRECTORY)
        try:
            self.disk.files.replace(path, f"{directory}/{mark}")
        except OSError as error:
            raise StorageError(f"cannot rename {path}: {error}", log_directory=directory) from error
        self._sync(directory)
        moved.advance_log_start(max(log_start_offset, moved.log_start_offset))
        self._disk_under(path).worker.run_later(
            RemoveDirectoryTask(self.disk.files, f"{directory}/{mark}")
        )

    def _sync(self, path: str) -> None:
        """Make names in a log directory durable. Raises StorageError."""
        for directory in self.live_directories:
            if directory.path == path:
                directory.sync()

    def _open_log(
        self,
        name: TopicPartition,
        path: str,
        config: TopicConfig,
        checkpointed: Checkpointed,
        *,
        is_new: bool = False,
        topic_id: TopicId | None = None,
    ) -> PartitionLog:
        """Open the log in directory `path`, which is this partition's from now on. Raises
        StorageError.
        """
        log_directory = path.rpartition("/")[0] or "/"
        log: PartitionLog = _recovery().load_log(
            self.disk.of(log_directory),
            self.clock,
            name,
            path,
            config=config,
            rules=self.rules_of(config),
            checkpointed=checkpointed,
            is_new=is_new,
            topic_id=topic_id,
        )
        log.on_unsynced = self._note_unsynced
        self.logs[name] = log
        self._log_counts[log_directory] += 1
        return log

    def _note_unsynced(self, log: PartitionLog, has_grown_much: bool) -> None:
        self.on_unsynced(log, has_grown_much)

    def rules_of(self, config: TopicConfig) -> AppendRules:
        """Return the rules of `config` for the validator; logs of the same `config` share them."""
        rules = self._rules.get(id(config))
        if rules is None:
            if len(self._rules) > len(self.logs) + 64:
                self._rules.clear()  # configurations that no log has any more
            from minibroker.broker.storage.record_checks import AppendRules  # noqa: PLC0415  see above

            rules = self._rules[id(config)] = (config, AppendRules(config))
        return rules[1]

    def get(self, topic: str, partition: int) -> PartitionLog | None:
        return self.logs.get(TopicPartition(topic, partition))

    def create_log(
        self, topic: str, partition: int, topic_id: TopicId, config: TopicConfig
    ) -> PartitionLog:
        """Return the partition's log, made if there is none: in the directory that somebody asked
        for, else in the one with the fewest partitions.

        A log of another topic, deleted while nobody looked, makes room: its directory is marked as
        stray and kept, as Kafka 4 does it. Raises KafkaError(INCONSISTENT_TOPIC_ID) for a directory
        that was put there since the start, StorageError.
        """
        name = TopicPartition(topic, partition)
        log = self.logs.get(name)
        if log is not None and name not in self._namesakes and log.place.is_of_topic(topic_id):
            return log
        if log is not None and log.place.is_of_other_topic(topic_id):
            actual_path = log.directory
            self._take_out(log, names.STRAY_DIRECTORY)
            warn_of_stray(actual_path, log.directory)
            log = None
        namesake = self._namesakes.take(name, topic_id)
        if log is None and namesake is not None:
            log = self._open_log(name, namesake.directory, config, namesake.checkpointed)
        if log is None:
            directory = self._directory_for(name)
            path = f"{directory.path}/{names.partition_directory(topic, partition)}"
            is_new = True
            places: list[PartitionDirectory] = []
            try:
                self.disk.files.make_directory(path)
                if name in directory.checkpoint_names:
                    self._mark_anew(directory, path, places)
            except FileExistsError:
                is_new = False
                logger.warning("%s was there already and is taken over", path)
            except OSError as error:
                raise StorageError(
                    f"cannot create {path}: {error.strerror}", log_directory=directory.path
                ) from error
            log = self._open_log(name, path, config, Checkpointed(), is_new=is_new)
            places.append(log.place)
        log.place.assign_topic_id(topic_id)
        return log

    def _mark_anew(
        self, directory: LogDirectory, path: str, places: Sequence[PartitionDirectory]
    ) -> None:
        """Mark the new directory `path`: a start takes nothing from the checkpoints for it. The
        worker writes those without the older log of that name, and removes the mark. Raises
        OSError.

        `places` gets the place of its log. Once that has gone, the mark is of another log, which
        these checkpoints may not know.
        """
        self.disk.files.create(f"{path}/{names.MADE_ANEW}")
        disk = self.disk.of(directory.path)

        def unmark() -> None:
            self._checkpoint([directory])
            with disk.names_lock:
                if not any(place.is_deleted for place in places):
                    self._remove_mark(directory, path)

        disk.worker.run_later(unmark)

    def _unmark(self, directory: LogDirectory, path: str) -> None:
        """Write the checkpoints and remove the mark, at the end of a load. Raises StorageError."""
        self._checkpoint([directory])
        self._remove_mark(directory, path)

    def _remove_mark(self, directory: LogDirectory, path: str) -> None:
        """Raises StorageError."""
        try:
            self.disk.files.remove(f"{path}/{names.MADE_ANEW}")
        except FileNotFoundError:
            return  # the partition was deleted meanwhile
        except OSError as error:
            raise StorageError(
                f"cannot remove a mark in {path}: {error}", log_directory=directory.path
            ) from error

    def _forget_namesake(self, name: TopicPartition, path: str) -> None:
        """Write the checkpoints of this directory without that name: a log of the name is about to
        come into it.

        Raises StorageError.
        """
        naming = [
            directory
            for directory in self.live_directories
            if directory.path == path and name in directory.checkpoint_names
        ]
        if naming:
            self._checkpoint(naming)

    def _note_left(self, name: TopicPartition, path: str) -> None:
        """Note that a log is not in this directory any more; who writes its checkpoints may have
        seen it.
        """
        self._log_counts[path] -= 1
        for directory in self.directories:
            if directory.path == path:
                directory.checkpoint_names.add(name)

    def may_be_lost(self, name: TopicPartition) -> bool:
        """Return whether the log of an existing partition may be in an offline directory.

        Then it must not begin anew in another one: its records would be gone when the directory
        comes back. Source: Kafka LogManager.getOrCreateLog (isNew).
        """
        return name not in self.logs and any(directory.is_offline for directory in self.directories)

    def prefer(self, name: TopicPartition, path: str) -> None:
        """Make this partition's log in that directory, once there is such a partition."""
        self._preferred[name] = path
        if len(self._preferred) > PREFERRED_MAX:
            del self._preferred[next(iter(self._preferred))]

    def take_futures(self) -> dict[TopicPartition, str]:
        """Return, once, the partitions whose move a stop interrupted → where to. The copies are
        being removed.
        """
        futures, self._futures = self._futures, {}
        return futures

    def remove_copy(self, directory: str) -> Callable[[], None]:
        """Return a task, for any thread, that removes the copy of a move that was given up."""
        return RemoveCopyTask(self.disk.files, directory)

    def complete_move(
        self, move: LogMove, recovery_point: int
    ) -> tuple[PartitionLog, Callable[[], None]]:
        """Give the finished copy the partition's name. Return its log, and a task for any thread
        that makes it durable and then removes the old one. The task raises StorageError.

        `recovery_point`: the copy is durable below it. Raises StorageError; the partition stays
        where it is then. Raises HalfChangedError where it cannot: a start completes the exchange or
        undoes it.
        """
        old = move.log
        topic_id = old.place.topic_id
        if not self.is_live(move.destination):
            raise StorageError(f"cannot move {old.name}: {move.destination} is offline")
        original, old_log_directory = old.directory, old.log_directory
        marked = names.marked_directory(old.topic, old.partition, names.DELETE_DIRECTORY)
        remove: Callable[[], None] | None = None
        refusal: StorageError | None = None
        try:
            # First: where a kill comes in between, a start takes this one back. Durable it is with
            # the task; a start that finds both logs takes the copy (`_load_moved`).
            remove = old.mark_deleted(f"{old_log_directory}/{marked}")
        except HalfChangedError:
            raise
        except StorageError as error:
            refusal = error
        try:
            log = self._open_copy(move, recovery_point)
        except HalfChangedError:
            raise
        except Exception:
            old.return_to_service(original)
            raise
        with log.place.whole_change("move"):
            self._complete(log, old, topic_id)
        if refusal is not None:
            logger.error(
                "%s is served from %s now; remove %s by hand before the next start: %s",
                *(old.name, log.directory, original, refusal),
            )
        directories = [
            directory for directory in self.directories if directory.path == move.destination
        ]
        checkpoint = partial(self._checkpoints.write, directories, lambda: list(self.logs.items()))
        settle = move.settle(log, checkpoint)

        def run() -> None:
            settle()
            if refusal is not None:
                raise refusal  # whose disk it was is told where such a task runs
            if remove is not None:
                remove()

        return log, run

    def _complete(self, log: PartitionLog, old: PartitionLog, topic_id: TopicId) -> None:
        """Hand over to the copy what the old log has in memory. The copy is in service."""
        if old.producers.state is not None:
            log.producers.adopt(old.producers.state)  # five batches of each, a snapshot has one
        log.place.assign_topic_id(topic_id)
        self._note_left(old.name, old.log_directory)

    def _open_copy(self, move: LogMove, recovery_point: int) -> PartitionLog:
        """Open the copy under the partition's name. Raises StorageError and whatever a load raises;
        then it is a copy again. Raises HalfChangedError where it cannot be one again.
        """
        old, files = move.log, self.disk.files
        path = f"{move.destination}/{names.partition_directory(old.topic, old.partition)}"
        checkpointed = Checkpointed(
            recovery_point=old.log_end_offset,
            log_start_offset=old.log_start_offset,
            is_clean=True,
            high_watermark=old.high_watermark,
            clean_offset=old.clean_offset,
            synced_to=recovery_point,
        )
        self._forget_namesake(old.name, move.destination)
        try:
            files.replace(move.directory, path)
        except OSError as error:
            raise self._not_renamed(move.directory, path, error, StorageError) from error
        try:
            return self._open_log(old.name, path, old.config, checkpointed)
        except Exception:
            try:
                files.replace(path, move.directory)
            except OSError as error:
                raise self._not_renamed(path, move.directory, error, HalfChangedError) from error
            raise

    @staticmethod
    def _not_renamed(old: str, new: str, error: OSError, kind: type[StorageError]) -> StorageError:
        return kind(
            f"cannot rename {old} to {new}: {error}",
            log_directory=old.rpartition("/")[0] or "/",
        )

    def _directory_for(self, name: TopicPartition) -> LogDirectory:
        """Return the directory for a new log.

        Raises StorageError where all have failed: the broker is about to end, as Kafka's does.
        """
        counts, live = self._log_counts, self.live_directories
        if not live:
            raise StorageError(f"there is no log directory for {name}: all of log.dirs have failed")
        preferred = self._preferred.pop(name, None)
        return min(
            live, key=lambda directory: (directory.path != preferred, counts[directory.path])
        )

    def truncate(self, topic: str, partition: int, offset: int) -> None:
        """Remove everything from `offset` on.

        Raises StorageError. The worker of the directory has the checkpoints follow, before the log
        grows again (`PartitionLog.hold_until_saved`).
        """
        log = self.logs[TopicPartition(topic, partition)]
        if log.truncate_to(offset):
            self._save_cut(log)

    def begin_anew(self, topic: str, partition: int, offset: int) -> None:
        """Remove everything; the log begins at `offset`. The checkpoints follow as in `truncate`.
        Raises StorageError.
        """
        log = self.logs[TopicPartition(topic, partition)]
        log.truncate_fully_and_start_at(offset)
        self._save_cut(log)

    def _save_cut(self, log: PartitionLog) -> None:
        """Have the worker write the checkpoints that a truncation changed."""
        (directory,) = (
            candidate for candidate in self.directories if candidate.path == log.log_directory
        )
        save_cut = Once(partial(self._checkpoints.write_cut, directory, log, self.logs.get))
        log.hold_until_saved(save_cut)

        def done(error: MinibrokerError | OSError | None) -> None:
            if error is None:
                log.note_cut_saved(save_cut)

        log.disk.worker.run_reported(save_cut, done)

    def delete(
        self, topic: str, partition: int, evidence: DeletionEvidence
    ) -> Callable[[], None] | None:
        """Take the partition out of service and rename its directory; the returned task removes it,
        on any thread. None where there is no such log. The evidence is named in one log line.

        The new name is durable after `settle_deletion`. Raises StorageError, which takes the
        directory offline: the log is out of service and has its name, until a start finds it.
        """
        log = self.logs.get(TopicPartition(topic, partition))
        if log is None:
            return None
        directory = log.directory
        task = self._take_out(log, names.DELETE_DIRECTORY)
        logger.info("log %s is deleted: %s", directory, evidence)
        return task

    def _take_out(self, log: PartitionLog, mark: str) -> Callable[[], None]:
        """Rename a log's directory and forget it; a task removes it. Raises StorageError."""
        parent = log.log_directory
        marked = names.marked_directory(log.topic, log.partition, mark)
        with log.place.whole_change("delete"):
            task = log.mark_deleted(f"{parent}/{marked}")
        del self.logs[log.name]
        self._note_left(log.name, parent)
        return task

    def settle_deletion(self, path: str, deleted_logs: Collection[TopicPartition]) -> None:
        """Make it durable that these logs have left this log directory: their names, and that the
        checkpoints have nothing of them. An offline directory is passed by. Any thread.

        Raises StorageError.
        """
        for directory in self.live_directories:
            if directory.path == path:
                directory.sync()
                self._checkpoints.forget(directory, deleted_logs, self.logs.get)

    def remove_expired_producers(self, now_ms: int, expiration_ms: int) -> Iterator[int]:
        """Forget silent producers in every log, in short steps. Run them with nothing staged.

        The yielded numbers add up to the producers that stay in memory.
        """
        for name in list(self.logs):
            log = self.logs.get(name)
            if log is not None:
                yield from log.producers.remove_expired(now_ms, expiration_ms)

    def logs_in(self, directory: LogDirectory) -> list[PartitionLog]:
        """Return the logs in one of `directories`."""
        return [log for log in self.logs.values() if log.log_directory == directory.path]

    def space_of(self, directory: LogDirectory) -> tuple[int, int]:
        """Return total and usable bytes of the file system under a directory. Raises
        StorageError.
        """
        try:
            return self.disk.files.room_bytes(directory.path)
        except OSError as error:
            raise StorageError(f"cannot ask for the room in {directory.path}: {error}") from error

    def release(self) -> None:
        """Give the locks back without having served: nothing is written, no marker is left."""
        self.disk.close()
        for directory in self.directories:
            directory.release()

    def report_high_watermarks(self, of: Callable[[TopicPartition], int | None]) -> None:
        """`of` answers the high watermark of a partition when checkpoints are written; None: no
        partition has the log yet, and its high watermark stays as it was checkpointed.
        """
        self._high_watermark_of = of

    def high_watermark_of(self, log: PartitionLog) -> int:
        """Return the high watermark of a log, as its partition reports it.

        While nobody reports any, as in tools, there are no followers: it is the log's end.
        """
        if self._high_watermark_of is None:
            return log.log_end_offset
        high_watermark = self._high_watermark_of(log.name)
        return log.high_watermark if high_watermark is None else high_watermark

    def checkpoint_now(self) -> None:
        """Write the checkpoints that changed, and unmap what became free. Any thread.

        Raises StorageError.
        """
        self._checkpoint(self.directories)

    def checkpoint_later(self) -> None:
        """Have the workers write the checkpoints that changed, each those of its directory."""
        for directory in self.live_directories:
            write = partial(self._checkpoint, [directory])
            self.disk.of(directory.path).worker.run_later(write)

    def checkpoint_cleaned_later(self, log: PartitionLog) -> None:
        """Have the end of the compaction of one log written by the worker of its directory."""
        self.disk.of(log.log_directory).worker.run_later(partial(self._checkpoint_cleaned, log))

    def _checkpoint_cleaned(self, log: PartitionLog) -> None:
        """Write how far a log is compacted. Runs on any thread. Raises StorageError."""
        for directory in self.directories:
            if directory.path == log.log_directory:
                self._checkpoints.write_cleaned(directory, log, self.logs.get)
        self.disk.windows.close_unused()

    def _checkpoint(self, directories: Sequence[LogDirectory]) -> None:
        """Write the checkpoints of these directories. Runs on any thread. Raises StorageError."""
        self._checkpoints.write(directories, lambda: list(self.logs.items()))
        self.disk.windows.close_unused()

    def checkpoint_synced(self, synced: Sequence[tuple[PartitionLog, int]]) -> None:
        """Write the recovery points of logs that were synced up to an offset. Any thread.

        Raises StorageError.
        """
        self._checkpoints.write_synced(self.directories, synced, self.logs.get)

    def close(self) -> None:
        """Stop cleanly: the next start reads nothing but names and checkpoints.

        A log that cannot be closed is named, its directory gets no marker and is recovered at the
        next start; the locks are given back in any case. Raises StorageError for the first such
        log.
        """
        try:
            failed = self._close_logs() if self.logs else {}
            self.checkpoint_now()
            for directory in self.live_directories:
                if directory.path not in failed:
                    directory.mark_clean()
        finally:
            self.disk.close()
            for directory in self.directories:
                directory.release()
        for error in failed.values():
            raise error

    def _close_logs(self) -> dict[str, StorageError]:
        from minibroker.broker.storage.closing import close_logs  # noqa: PLC0415  see above

        return close_logs(self.logs.values())

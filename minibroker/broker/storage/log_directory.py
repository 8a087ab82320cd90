"""One of `log.dirs`: its lock, whose it is, its checkpoints, its clean-shutdown marker.

Beside the partitions' directories it holds

    .lock                               held by the process that serves the directory
    meta.properties                     broker and cluster it belongs to
    recovery-point-offset-checkpoint    below these offsets everything is synced
    log-start-offset-checkpoint         where a log starts behind its first segment
    replication-offset-checkpoint       high watermarks
    cleaner-offset-checkpoint           how far compaction came
    .kafka_cleanshutdown                only while nobody serves it: the last stop was clean

Source: Kafka LogManager, CleanShutdownFileHandler; FORMAT.md sections 6 and 7.
"""

import errno
import logging
from collections.abc import Mapping
from threading import Lock
from typing import ClassVar, Final

from minibroker.broker.storage import names
from minibroker.broker.storage.checkpoint import encode_offsets, read_offsets
from minibroker.broker.storage.files import Files
from minibroker.broker.storage.meta_properties import (
    MetaProperties,
    check_properties,
    read_properties,
    write_properties,
)
from minibroker.kafka.errors import CorruptionError, StorageError, SyncError
from minibroker.kafka.ids import TopicPartition

logger = logging.getLogger(__name__)

_CLEAN_SHUTDOWN_CONTENT: Final = b'{"version":0,"brokerEpoch":-1}'


class LogDirectory:
    """A locked log directory. Opened and closed by the log manager."""

    held: ClassVar[set[str]] = set()
    """Real paths locked by this process: a POSIX lock does not keep a process from itself."""

    __slots__ = (
        "_files",
        "_lock",
        "_written",
        "checkpoints_lock",
        "is_offline",
        "named",
        "offsets",
        "path",
        "properties",
        "was_clean",
    )

    def __init__(self, files: Files, path: str) -> None:
        self._files = files
        self.path = path
        self.properties: MetaProperties | None = None
        self.was_clean = False
        self.named: set[TopicPartition] = set()
        """Partitions that the checkpoints may name, also such as are gone: see `checkpointing`."""
        self.offsets: dict[str, Mapping[TopicPartition, int]] = {}
        """Checkpoint → what stands in the file. Nobody changes these mappings, they are replaced.
        Under `checkpoints_lock`."""
        self.is_offline = False
        """It failed: nothing is read or written in it until the broker is started again."""
        self._lock: int | None = None
        self._written: dict[str, bytes] = {}
        self.checkpoints_lock = Lock()
        """Held while the checkpoints are written, with what is known of them here."""

    def open(self) -> None:
        """Make the directory if need be, lock it, read whose it is, take the marker away.

        Raises StorageError, one sentence, where it cannot be used.
        """
        try:
            self._files.make_directories(self.path)
        except FileExistsError as error:
            raise self._failed("is not a directory") from error
        except PermissionError as error:
            raise self._failed("cannot be created: permission denied") from error
        except OSError as error:
            raise self._failed(f"cannot be created: {error.strerror}") from error
        if not self._files.is_usable_directory(self.path):
            raise self._failed("cannot be read and written: permission denied") from (
                PermissionError(errno.EACCES, "permission denied", self.path)
            )
        self._take_lock()
        try:
            self.properties = read_properties(self._files, self.path)
            marker = f"{self.path}/{names.CLEAN_SHUTDOWN}"
            self.was_clean = self._files.exists(marker)
            if self.was_clean:
                self._files.remove(marker)
        except (OSError, CorruptionError) as error:
            self.release()
            raise self._failed(f"cannot be read: {error}") from error

    def _failed(self, what: str) -> StorageError:
        return StorageError(f"the data directory {self.path} {what}", log_directory=self.path)

    def _take_lock(self) -> None:
        real = self._files.real_path(self.path)
        try:
            lock = None if real in self.held else self._files.lock(f"{self.path}/{names.LOCK}")
        except OSError as error:
            raise self._failed(f"cannot be locked: {error.strerror}") from error
        if lock is None:
            raise self._failed(
                "is in use by another process: stop that broker, or use another --data-dir"
            )
        self._lock = lock
        self.held.add(real)

    def claim(self, broker_id: int, cluster_id: str, now_ms: int) -> None:
        """Compare `meta.properties` with who we are; a new directory becomes ours. Raises
        StorageError.
        """
        if self.properties is not None:
            check_properties(
                self.properties, broker_id=broker_id, cluster_id=cluster_id, directory=self.path
            )
            if self.properties.broker_id is not None and self.properties.cluster_id is not None:
                return
        known = self.properties
        mine = MetaProperties(broker_id, cluster_id, known.directory_id if known else None)
        try:
            write_properties(self._files, self.path, mine, now_ms)
            self._files.create(f"{self.path}/{names.CLEANER_OFFSETS}")
        except OSError as error:
            raise self._failed(f"cannot be written: {error.strerror}") from error
        self.properties = mine

    def read_checkpoint(self, name: str) -> dict[TopicPartition, int]:
        """Return a checkpoint's offsets; none where the file is absent, or damaged (more is
        recovered then).
        """
        path = f"{self.path}/{name}"
        try:
            found = read_offsets(self._files, path)
        except CorruptionError as error:
            logger.warning("%s is ignored: %s", path, error)
            return {}
        except OSError as error:
            raise StorageError(
                f"{path} cannot be read: {error}", log_directory=self.path
            ) from error
        self.offsets[name] = found
        return found

    def write_checkpoint(self, name: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Replace a checkpoint, if it says something new. Any thread. Raises StorageError."""
        content = encode_offsets(offsets)
        if self._written.get(name) == content:
            return
        try:
            self._files.write_atomically(f"{self.path}/{name}", content)
        except OSError as error:
            raise StorageError(
                f"{self.path}/{name} cannot be written: {error}", log_directory=self.path
            ) from error
        self._written[name] = content
        self.offsets[name] = offsets

    def mark_clean(self) -> None:
        """Say that everything is synced and checkpointed; the last file written. Raises
        StorageError.
        """
        path = f"{self.path}/{names.CLEAN_SHUTDOWN}"
        try:
            self._files.write_atomically(path, _CLEAN_SHUTDOWN_CONTENT)
        except OSError as error:
            raise StorageError(
                f"{path} cannot be written: {error}", log_directory=self.path
            ) from error

    def sync(self) -> None:
        """Make new and removed names in the directory durable: that there is no marker any more.
        Any thread. Raises SyncError: after a power cut the next start might trust the old one.
        """
        try:
            self._files.sync_directory(self.path)
        except OSError as error:
            raise SyncError(f"cannot sync {self.path}: {error}", log_directory=self.path) from error

    def fail(self) -> None:
        """Release the directory, and do nothing in it any more. The caller says what failed."""
        self.is_offline = True
        self.release()

    def release(self) -> None:
        """Give the lock back."""
        if self._lock is not None:
            try:
                self._files.close(self._lock)
            except OSError as error:  # of a disk that failed: the lock is gone all the same
                logger.warning("the lock of %s was closed with an error: %s", self.path, error)
            self._lock = None
            self.held.discard(self._files.real_path(self.path))

"""Work that may block, packed so that a worker thread can do it: new files, fsync, removal.

A log hands these to `Disk.run_later`. They open the files by name themselves, so that no handle of
the loop's thread is used elsewhere. `FlushTask` has a result, which the loop applies. Meanwhile the
loop goes on: a file that was removed needs no sync, and one that left service is not made any more.
"""

import logging
from collections.abc import Callable
from threading import Lock
from typing import TYPE_CHECKING

from minibroker.errors import StorageError, SyncError
from minibroker.storage import names
from minibroker.storage.files import Files

if TYPE_CHECKING:
    from minibroker.storage.durable_log import DurableLog
    from minibroker.storage.segment import Segment

_log = logging.getLogger(__name__)


_epochs_lock = Lock()
"""Two workers must not write the same temporary file."""


class CreateTask:
    """Makes the files of a new segment; those that are there already stay."""

    __slots__ = ("_segment",)

    def __init__(self, segment: "Segment") -> None:
        self._segment = segment

    def __call__(self) -> None:
        try:
            self._segment.create_files()
        except OSError as error:
            # Who writes first makes them as well, and fails aloud.
            _log.warning("cannot create the files of %s: %s", self._segment.log_path, error)


class EpochsTask:
    """Replaces `leader-epoch-checkpoint`, durably, by the newest content the log has for it."""

    __slots__ = ("_log",)

    def __init__(self, log: "DurableLog") -> None:
        self._log = log

    def __call__(self) -> None:
        try:
            self.write()
        except OSError as error:
            if not self._log.is_deleted:
                _log.warning("cannot write %s: %s", self._log.epochs_path, error)

    def write(self) -> None:
        """Raises OSError."""
        log = self._log
        if log.epochs_content is None:
            return
        with _epochs_lock:
            content = log.epochs_content
            if content is None or log.is_deleted:
                return
            log.files.write_atomically(log.epochs_path, content)
            if log.epochs_content is content:
                log.epochs_content = None


class FlushTask:
    """fsync of files; absent ones are passed by. `apply` then moves the recovery point to `end`.

    Where names changed, the partition's directory is synced as well, and its parent where the
    directory itself is new. A call changes nothing in the log: the worker makes it, then the loop
    calls `apply`. Two tasks of one log may be under way, and either may end first.

    `closing` flushes many logs and syncs a parent once for all. It takes three steps: `sync`, then
    `sync_directory` of the parent where `has_new_directory`, then `apply`.
    """

    __slots__ = (
        "_has_synced_names",
        "_names_changed",
        "_paths",
        "_truncation_count",
        "end",
        "log",
    )

    def __init__(self, log: "DurableLog", paths: list[str], end: int, names_changed: int) -> None:
        """`names_changed`: the log's count of changes when `paths` were found."""
        self.log = log
        self._paths = paths
        self._names_changed = names_changed
        self._truncation_count = log.truncation_count
        self.end = end
        # Set by the worker in `sync`, read by the loop in `apply`.
        self._has_synced_names = False

    def __call__(self) -> None:
        """Sync everything, the parent included. Raises StorageError; the recovery point stays."""
        self.sync()
        if self.has_new_directory:
            self._guarded(SyncError, self.log.files.sync_directory, self.log.log_directory)

    @property
    def has_new_directory(self) -> bool:
        """Does the parent have to be synced, too?"""
        return self.log.has_new_directory and not self.log.is_deleted

    def apply(self) -> None:
        """Tell the log that all of it is durable. On the loop, after a call that did not raise.

        Nothing is told to a log that was deleted or moved meanwhile. A log that was truncated
        keeps its recovery point.
        """
        log = self.log
        if log.is_deleted:
            return
        log.has_new_directory = False
        if self._has_synced_names:
            log.names_synced = max(log.names_synced, self._names_changed)
        if log.truncation_count == self._truncation_count:
            log.note_flushed(self.end)

    def sync(self) -> None:
        """Sync everything but the parent. Raises StorageError, SyncError where an fsync failed."""
        self._guarded(StorageError, EpochsTask(self.log).write)
        self._guarded(SyncError, self._sync)

    def _guarded(
        self, kind: type[StorageError], step: Callable[..., None], *arguments: str
    ) -> None:
        """Raises an error of this kind."""
        log = self.log
        if log.is_deleted:
            return
        try:
            step(*arguments)
        except OSError as error:
            if log.is_deleted:
                return  # the directory went away underneath: nothing to keep
            raise kind(
                f"cannot flush {log.name} in {log.directory}: {error}",
                log_directory=log.log_directory,
            ) from error

    def _sync(self) -> None:
        log = self.log
        for path in self._paths:
            try:
                log.files.sync_path(path)
            except FileNotFoundError:
                continue  # a transaction index is rarely there
        if self._names_changed > log.names_synced:
            log.files.sync_directory(log.directory)
            self._has_synced_names = True


class SyncDirectoryTask:
    """Makes new and changed names in a log's directory durable."""

    __slots__ = ("_log",)

    def __init__(self, log: "DurableLog") -> None:
        self._log = log

    def __call__(self) -> None:
        """Raises StorageError."""
        log = self._log
        try:
            log.files.sync_directory(log.directory)
        except OSError as error:
            if not log.is_deleted:
                raise SyncError(
                    f"cannot sync {log.directory}: {error}", log_directory=log.log_directory
                ) from error


class RemoveTask:
    """Removes files that were renamed to `….deleted`."""

    __slots__ = ("_files", "_paths")

    def __init__(self, files: Files, paths: list[str]) -> None:
        self._files = files
        self._paths = paths

    def __call__(self) -> None:
        for path in self._paths:
            try:
                self._files.remove(path)
            except FileNotFoundError:
                continue  # recovery of a later start was quicker
            except OSError as error:
                _log.warning("cannot remove %s: %s", path, error)


class RemoveDirectoryTask:
    """Removes a partition's directory that was renamed to `…-delete`, with all that is in it.

    A crash in between leaves the rest under that name; the next start goes on with it.
    """

    __slots__ = ("_directory", "_files")

    def __init__(self, files: Files, directory: str) -> None:
        self._files = files
        self._directory = directory

    def __call__(self) -> None:
        if not self._directory.endswith(names.DELETE_DIRECTORY):
            raise AssertionError(f"{self._directory} is not marked for deletion")
        try:
            for name in list(self._files.walk_names(self._directory)):
                self._files.remove(f"{self._directory}/{name}")
            self._files.remove_directory(self._directory)
        except FileNotFoundError:
            return  # removed by hand meanwhile
        except OSError as error:
            _log.warning("cannot remove %s: %s", self._directory, error)


class RemoveCopyTask:
    """Removes the `…-future` directory of a move that was given up, by way of `…-delete`."""

    __slots__ = ("_directory", "_files")

    def __init__(self, files: Files, directory: str) -> None:
        self._files = files
        self._directory = directory

    def __call__(self) -> None:
        marked = self._directory.removesuffix(names.FUTURE_DIRECTORY) + names.DELETE_DIRECTORY
        try:
            self._files.replace(self._directory, marked)
        except FileNotFoundError:
            return  # its log directory failed, or somebody was quicker
        RemoveDirectoryTask(self._files, marked)()

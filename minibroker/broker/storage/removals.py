"""Removal of files and directories, packed so that a worker thread can do it; steps that run once.

Logs and their manager hand these to `Disk.worker`. A removal may be cut off anywhere: the names say
that it is due, and the next start goes on with it. A broker has this module before it has a log.

Source: Kafka LogManager.deleteLogs, LogSegment.deleteIfExists.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from threading import Lock

from minibroker.broker.storage import names
from minibroker.broker.storage.files import Files

logger = logging.getLogger(__name__)


class Once:
    """A step that runs once. Any thread may call it; the others wait for the one that runs it."""

    __slots__ = ("_is_done", "_lock", "_step")

    def __init__(self, step: Callable[[], None]) -> None:
        self._step = step
        self._lock = Lock()
        # Held by the thread that runs the step.
        self._is_done = False

    def __call__(self) -> None:
        """Run the step, unless that is done. After an error the next call runs it again."""
        with self._lock:
            if not self._is_done:
                self._step()
                self._is_done = True


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
                logger.warning("cannot remove %s: %s", path, error)


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
            logger.warning("cannot remove %s: %s", self._directory, error)


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

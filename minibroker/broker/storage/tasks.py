"""Work that may block, packed so that a worker thread can do it: new files and fsync.

A log hands these to `Disk.worker`. They open the files by name themselves, so that no handle of
the loop's thread is used elsewhere. `FlushTask` has a result, which the loop applies. Meanwhile the
loop goes on: a file that was removed needs no sync, and one that left service is not made any more.

A flush alone bounds what a power cut takes. Recovery after a kill also replays the producers, from
the newest snapshot on. So `SyncTask` writes a snapshot for the offset where it ends: the next start
looks at nothing below that offset. `partitions/housekeeping.py` decides when a log is synced. The
snapshot before it is superseded, if it is not the one of a segment. It may go when the checkpoint
names the new recovery point.

`removals` has removals. `quick_switches` is for a thread that runs Python for long. Python takes
the interpreter from a thread that does not let go after 5 ms only, and the loop would wait that
long. `compaction.pace` has the figures.

Source: Kafka ProducerStateManager.takeSnapshot, which Kafka calls at a roll and at a clean stop.
"""

from __future__ import annotations

import gc
import logging
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from threading import Lock
from typing import Final

from minibroker.broker.storage import producer_files
from minibroker.broker.storage.partition_directory import PartitionDirectory
from minibroker.broker.storage.producer_state import ProducersAt, encode_snapshot
from minibroker.broker.storage.removals import RemoveTask
from minibroker.broker.storage.segment import Segment
from minibroker.kafka.errors import CorruptionError, StorageError, SyncError

logger = logging.getLogger(__name__)

SWITCH_S: Final = 0.0005

_switching = Lock()
_usual_s: list[float] = []
"""The switch interval to go back to, once for every thread that asked for quick switches."""


@contextmanager
def quick_switches() -> Iterator[None]:
    """Threads that wait for the interpreter get it within `SWITCH_S` while this is open."""
    with _switching:
        _usual_s.append(sys.getswitchinterval())
        sys.setswitchinterval(SWITCH_S)
    try:
        yield
    finally:
        with _switching:
            before_s = _usual_s.pop()
            if not _usual_s:
                sys.setswitchinterval(before_s)


_resting = Lock()
_was_collecting: list[bool] = []
"""Did the garbage collector run before? Once for every thread that asked for its rest."""


@contextmanager
def collector_at_rest() -> Iterator[None]:
    """Let the garbage collector of the process rest while this is open.

    For work that makes hundreds of thousands of objects and drops them all at its end, some seconds
    later: the collector would look at all of them again and again, 0.1 s each time, and no other
    thread runs meanwhile.
    """
    with _resting:
        _was_collecting.append(gc.isenabled())
        gc.disable()
    try:
        yield
    finally:
        with _resting:
            was_collecting = _was_collecting.pop()
            if not _was_collecting and was_collecting:
                gc.enable()


class CreateTask:
    """Makes the files of a new segment; those that are there already stay."""

    __slots__ = ("_segment",)

    def __init__(self, segment: Segment) -> None:
        self._segment = segment

    def __call__(self) -> None:
        try:
            self._segment.create_files()
        except OSError as error:
            # Who writes first makes them as well, and fails aloud.
            logger.warning("cannot create the files of %s: %s", self._segment.log_path, error)


class EpochsTask:
    """Replaces `leader-epoch-checkpoint`, durably, by the newest content the log has for it."""

    __slots__ = ("_place",)

    def __init__(self, place: PartitionDirectory) -> None:
        self._place = place

    def __call__(self) -> None:
        try:
            self.write()
        except OSError as error:
            if not self._place.is_deleted:
                logger.warning("cannot write %s: %s", self._place.epochs_path, error)

    def write(self) -> None:
        """Raises OSError."""
        place = self._place
        if place.epochs_content is None:
            return
        with place.epochs_lock:  # two workers must not write the same temporary file
            content = place.epochs_content
            if content is None or place.is_deleted:
                return
            place.files.write_atomically(place.epochs_path, content)
            if place.epochs_content is content:
                place.epochs_content = None


class FlushTask:
    """fsync of files; absent ones are passed by. `apply` then moves the recovery point to `end`.

    Where names changed, the partition's directory is synced as well, and its parent where the
    directory itself is new. A call changes nothing in the log: the worker makes it, then the loop
    calls `apply`. Two tasks of one log may be under way, and either may end first.

    `closing` flushes many logs and syncs a parent once for all. It takes three steps: `sync`, then
    `sync_directory` of the parent where `has_new_directory`, then `apply`.
    """

    __slots__ = (
        "_generation",
        "_has_synced_names",
        "_names_changed",
        "_on_synced",
        "_path",
        "_paths",
        "_snapshots",
        "end",
        "place",
    )

    def __init__(
        self,
        place: PartitionDirectory,
        paths: list[str],
        end: int,
        *,
        names_changed: int,
        on_synced: Callable[[int, Mapping[int, ProducersAt]], None],
        snapshots: Mapping[int, ProducersAt] | None = None,
    ) -> None:
        """`names_changed`: the count of `place` when `paths` were found. `snapshots`: of
        producers, by offset, to be written first; nobody changes these mappings. `on_synced` is
        told `end` and `snapshots` by `apply`.
        """
        self.place = place
        self._path = place.path
        self._snapshots = snapshots or {}
        self._paths = paths
        self._names_changed = names_changed
        self._on_synced = on_synced
        self._generation = place.generation
        self.end = end
        # Set by the worker in `sync`, read by the loop in `apply`.
        self._has_synced_names = False

    def __call__(self) -> None:
        """Sync everything, the parent included. Raises StorageError; the recovery point stays."""
        self.sync()
        if self.has_new_directory:
            place = self.place
            self._guarded(SyncError, "flush", place.files.sync_directory, place.log_directory)

    @property
    def has_new_directory(self) -> bool:
        """Return whether the parent has to be synced, too."""
        return self.place.has_new_directory and not self.place.is_deleted

    @property
    def is_current(self) -> bool:
        """Return whether the log is where it was, and what it was, when the task was made."""
        place = self.place
        return not place.is_deleted and place.generation == self._generation

    def apply(self) -> None:
        """Tell the log that all of it is durable. On the loop, after a call that did not raise.

        Nothing is told to a log that was deleted or moved meanwhile. A log that was truncated
        keeps its recovery point.
        """
        if self.place.is_deleted:
            return
        names_changed = self._names_changed if self._has_synced_names else None
        self.place.note_names_synced(names_changed)
        if self.is_current:
            self._on_synced(self.end, self._snapshots)

    def sync(self) -> None:
        """Sync everything but the parent. Raises StorageError, SyncError where an fsync failed."""
        self._guarded(StorageError, "flush", EpochsTask(self.place).write)
        self._guarded(StorageError, "write the producers of", self._write_snapshots)
        self._guarded(SyncError, "flush", self._sync)

    def _guarded(
        self, kind: type[StorageError], action: str, step: Callable[..., None], *arguments: str
    ) -> None:
        """Raises an error of this kind."""
        place = self.place
        if place.is_deleted:
            return
        try:
            step(*arguments)
        except (OSError, CorruptionError) as error:
            if place.is_deleted:
                return  # the directory went away underneath: nothing to keep
            raise place.failed(action, error, kind) from error

    def _write_snapshots(self) -> None:
        """Write the snapshots, but not where the log was truncated or has left its directory:
        another log may be there.
        """
        place = self.place
        for offset, producers in self._snapshots.items():
            content = encode_snapshot(producers())
            with place.names_lock:
                if not self.is_current:
                    return
                producer_files.write_content(place.files, self._snapshot_path(offset), content)

    def _snapshot_path(self, offset: int) -> str:
        return producer_files.snapshot_path(self._path, offset)

    def _sync(self) -> None:
        place = self.place
        for path in (*self._paths, *map(self._snapshot_path, self._snapshots)):
            try:
                place.files.sync_path(path)
            except FileNotFoundError:
                continue  # a transaction index is rarely there
        if self._names_changed > place.names_synced:
            place.files.sync_directory(place.path)
            self._has_synced_names = True


class SyncDirectoryTask:
    """Makes new and changed names in a log's directory durable."""

    __slots__ = ("_place",)

    def __init__(self, place: PartitionDirectory) -> None:
        self._place = place

    def __call__(self) -> None:
        """Raises StorageError."""
        place = self._place
        try:
            place.files.sync_directory(place.path)
        except OSError as error:
            if not place.is_deleted:
                raise SyncError(
                    f"cannot sync {place.path}: {error}", log_directory=place.log_directory
                ) from error


class SyncTask:
    """A worker calls it, then the loop calls `apply`."""

    __slots__ = ("_flush", "_note_snapshot", "offset")

    def __init__(self, flush: FlushTask, note_snapshot: Callable[[int], str | None] | None) -> None:
        """`note_snapshot`: of the log, where `flush` writes a snapshot for the offset where it
        ends; None: there is one.
        """
        self._flush = flush
        self._note_snapshot = note_snapshot
        self.offset = flush.end

    def __call__(self) -> None:
        """Write the snapshot, sync it and the log. Raises StorageError."""
        self._flush()

    def apply(self) -> RemoveSnapshotTask | None:
        """Tell the log that it is synced. Return the removal of the snapshot that nobody needs once
        the recovery point is checkpointed, None: there is none. On the loop.
        """
        self._flush.apply()
        if self._note_snapshot is None or not self._flush.is_current:
            return None
        path = self._note_snapshot(self.offset)
        return None if path is None else RemoveSnapshotTask(self._flush.place, path)


class RemoveSnapshotTask:
    """Removes a snapshot of producers, but not where the log was truncated or has left its
    directory since this was made: another snapshot may have that name.
    """

    __slots__ = ("_generation", "_path", "_place")

    def __init__(self, place: PartitionDirectory, path: str) -> None:
        self._place = place
        self._path = path
        self._generation = place.generation

    def __call__(self) -> None:
        place = self._place
        with place.names_lock:
            if not place.is_deleted and place.generation == self._generation:
                RemoveTask(place.files, [self._path])()

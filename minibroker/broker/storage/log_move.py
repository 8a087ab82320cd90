"""One partition's log on its way into another log directory, while it is served where it is.

    next_round()   what to copy next, on any thread: closed segments with all their files, then the
                   active one's bytes; None when no more is left than `finish` may copy at once
    sync()         what was copied is made durable, on any thread
    finish()       the rest, in one step of the loop's thread; the log in its new place
    settle()       the rest is made durable in the new place, on any thread

The exchange of both is two renames, in two directories. A power cut may take either of them. Where
it takes that of the old log only, a start finds two logs of one name; the file `moved-here` tells
the copy, until the old one has left for good.

The copy grows in `<topic>-<partition>.<32 hex>-future`. A segment that retention or compaction took
away meanwhile is forgotten, one that was replaced or cut is copied anew.

`move_mark` has the mark in the directory of a log that a move made.

Source: KIP-113, Kafka ReplicaAlterLogDirsThread, LogManager.replaceCurrentWithFutureLog. Differs
from Kafka: files are copied as they are instead of record by record.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from minibroker.broker.storage import names
from minibroker.broker.storage.closing import write_state
from minibroker.broker.storage.move_mark import encode_mark, mark_path
from minibroker.broker.storage.partition_log import PartitionLog
from minibroker.broker.storage.segment import Segment
from minibroker.kafka.errors import StorageError

_CHUNK_BYTES: Final = 1 << 20
ROUND_BYTES: Final = 8 << 20
"""One round copies about this much: the worker has others to serve in between."""
FINISH_BYTES: Final = 1 << 20
"""As much may be left for the loop's thread to copy."""


Copied = TypeVar("Copied")


def _at_source(log: PartitionLog, step: Callable[..., Copied], *arguments: object) -> Copied:
    """Do a step in the directory where the log is. Raises FileNotFoundError, and StorageError which
    names that directory, not the one that is written to.
    """
    try:
        return step(*arguments)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise _refused(log, error) from error


def _refused(log: PartitionLog, error: OSError) -> StorageError:
    return StorageError(
        f"cannot move {log.name} from {log.log_directory}: {error}",
        log_directory=log.log_directory,
    )


class Piece:
    """A part of one segment's `.log`: copied from `position` on, `size_bytes` of it."""

    __slots__ = ("position", "segment", "size_bytes", "source", "target")

    def __init__(self, segment: Segment, target: str, position: int, size_bytes: int) -> None:
        self.segment = segment
        self.source = segment.log_path
        self.target = target
        self.position = position
        self.size_bytes = size_bytes

    def copy(self, log: PartitionLog) -> None:
        """Raises OSError; FileNotFoundError where the source is gone, StorageError where it cannot
        be read.
        """
        files = log.files
        source = _at_source(log, files.open_to_read, self.source)
        try:
            target = files.open(self.target, create=True)
            try:
                end = self.position + self.size_bytes
                for at in range(self.position, end, _CHUNK_BYTES):
                    size = min(_CHUNK_BYTES, end - at)
                    content = _at_source(log, files.pread, source, size, at)
                    files.write_all(target, [content], at)
            finally:
                files.close(target)
        finally:
            files.close(source)


class LogMove:
    """One move. Belongs to the loop's thread; the tasks it returns do not."""

    __slots__ = (
        "_copied",
        "_generation",
        "_synced_offset",
        "destination",
        "directory",
        "log",
    )

    def __init__(self, log: PartitionLog, destination: str) -> None:
        """`destination`: one of `log.dirs`, another one than the log is in. Raises StorageError."""
        self.log = log
        self.destination = destination
        marked = names.marked_directory(log.topic, log.partition, names.FUTURE_DIRECTORY)
        self.directory = f"{destination}/{marked}"
        self._copied: dict[int, tuple[Segment, int]] = {}
        self._synced_offset = log.segments.first.base_offset
        self._generation = log.place.generation
        """Generation of the log when copies were looked at last."""
        try:
            log.files.make_directory(self.directory)
        except OSError as error:
            raise self._failed(error) from error

    def _failed(self, error: OSError) -> StorageError:
        return StorageError(
            f"cannot move {self.log.name} to {self.destination}: {error}",
            log_directory=self.destination,
        )

    @property
    def size_bytes(self) -> int:
        """Return the bytes of `.log` files that are copied."""
        return sum(copied for _, copied in self._copied.values())

    @property
    def end_offset(self) -> int:
        """Return the offset below which records are copied, in whole segments; DescribeLogDirs
        shows the lag.
        """
        for segment in self.log.segments:
            copied_segment, copied = self._copied.get(segment.base_offset, (None, 0))
            if copied_segment is not segment or copied < segment.size_bytes:
                return segment.base_offset
        return self.log.log_end_offset

    def next_round(self) -> Callable[[], None] | None:
        """Return the next copy, None if only `finish` is left.

        Raises StorageError; so does the copy.
        """
        self.log.write_staged()
        try:
            removed_segments = self._forget_changed()
            pieces, size = self._pieces(ROUND_BYTES)
        except OSError as error:
            raise _refused(self.log, error) from error
        if not removed_segments and size <= FINISH_BYTES and len(pieces) <= 1:
            return None
        self._count(pieces)

        def copy() -> None:
            try:
                self._remove(removed_segments)
                self._copy(pieces)
            except OSError as error:
                raise self._failed(error) from error

        return copy

    def _forget_changed(self) -> list[int]:
        """Forget copies that are of no use, and return their base offsets: the segment is gone,
        another one, or cut (all where the log was truncated: a segment may have grown again since).
        """
        if self.log.place.generation != self._generation:
            self._generation = self.log.place.generation
            removed_segments = list(self._copied)
            self._copied.clear()
            return removed_segments
        removed_segments = []
        for base_offset, (segment, copied) in list(self._copied.items()):
            now = self.log.segments.floor(base_offset)
            if now is not segment or segment.size_bytes < copied:
                removed_segments.append(base_offset)
                del self._copied[base_offset]
        return removed_segments

    def _remove(self, base_offsets: list[int]) -> None:
        for base_offset in base_offsets:
            for suffix in names.SEGMENT_SUFFIXES:
                path = f"{self.directory}/{names.segment_file(base_offset, suffix)}"
                if self.log.files.exists(path):
                    self.log.files.remove(path)

    def _pieces(self, limit_bytes: int) -> tuple[list[Piece], int]:
        """Return uncopied pieces of the segments in order, up to `limit_bytes`, and their size.

        Raises OSError.
        """
        pieces: list[Piece] = []
        total = 0
        for segment in self.log.segments:
            _, copied = self._copied.get(segment.base_offset, (segment, 0))
            size = min(segment.size_bytes - copied, limit_bytes - total)
            if size > 0 or segment.base_offset not in self._copied:
                pieces.append(Piece(segment, self._target(segment.log_path), copied, size))
                total += size
            if total >= limit_bytes:
                break
        return pieces, total

    def _count(self, pieces: list[Piece]) -> None:
        """Note that they are copied, as far as the next look is concerned: a task that fails ends
        the move.
        """
        for piece in pieces:
            end = piece.position + piece.size_bytes
            self._copied[piece.segment.base_offset] = (piece.segment, end)

    def _target(self, path: str) -> str:
        return f"{self.directory}/{path.rpartition('/')[2]}"

    def _copy(self, pieces: list[Piece]) -> None:
        """Copy pieces, but not of files that are gone by now: the next look finds them changed."""
        for piece in pieces:
            try:
                piece.copy(self.log)
            except FileNotFoundError:
                if not self.log.files.exists(self.directory):
                    raise
                self.log.files.create(piece.target)

    def sync(self) -> Callable[[], None]:
        """Return a task that copies the closed segments' other files and syncs what is there.

        It raises StorageError.
        """
        files = self.log.files
        active = self.log.active_segment
        closed = [segment for segment in self.log.segments if segment is not active]
        self._synced_offset = active.base_offset
        copied = [self._target(segment.log_path) for segment, _ in self._copied.values()]

        def run() -> None:
            try:
                for segment in closed:
                    self.copy_small([segment.path(suffix) for suffix in names.SEGMENT_SUFFIXES[1:]])
                for path in copied:
                    files.sync_path(path)
                self._mark()
                files.sync_directory(self.directory)
                files.sync_directory(self.destination)
            except OSError as error:
                raise self._failed(error) from error

        return run

    def _mark(self) -> None:
        """Have the copy say that it is the newer one of two logs, durably; the log that it is made
        from, which a move that was cut off may have brought there, says so no more. Raises OSError.
        """
        files, log = self.log.files, self.log
        path = mark_path(log.directory)
        if files.exists(path):
            files.remove(path)
            files.sync_directory(log.directory)
        mark = mark_path(self.directory)
        files.create(mark)
        files.sync_path(mark)

    def finish(self) -> int | None:
        """Copy the rest; the recovery point of the log in its new place.

        None: too much was written meanwhile, another round is due. Raises StorageError.
        """
        log = self.log
        log.write_staged()
        try:
            changed = self._forget_changed()
            pieces, size = self._pieces(FINISH_BYTES + 1)
            is_early = bool(changed) or size > FINISH_BYTES
            if not is_early:
                write_state(log)
        except OSError as error:
            raise _refused(log, error) from error
        try:
            if is_early:
                self._remove(changed)
                return None
            self._copy(pieces)
            self._count(pieces)
            segments = [log.active_segment, *log.segments.since(self._synced_offset)]
            paths = {segment.path(suffix) for segment in segments for suffix in _BESIDE_LOG}
            others = [
                name
                for name in _at_source(log, log.files.list_files, log.directory)
                if name.endswith(names.SNAPSHOT)
                or name in (names.LEADER_EPOCHS, names.PARTITION_METADATA)
            ]
            self.copy_small([*paths, *(f"{log.directory}/{name}" for name in others)])
            if log.place.epochs_content is not None:  # the worker has not come to it
                self._write(log.place.epochs_path, log.place.epochs_content)
            self._write(mark_path(log.directory), encode_mark(log.log_start_offset))
        except OSError as error:
            raise self._failed(error) from error
        return self._synced_offset

    def settle(self, log: PartitionLog, checkpoint: Callable[[], None]) -> Callable[[], None]:
        """Return a task that syncs `log`, the copy in its place, with its name, and the old one's
        new name: then that may go, where all of it was durable. It raises StorageError.

        `checkpoint` says in the new place where the log starts; no record that was deleted is back
        when a start finds it there.
        """
        files = log.files
        old_log_directory = self.log.log_directory

        def run() -> None:
            try:
                for name in files.list_files(log.directory):
                    try:
                        files.sync_path(f"{log.directory}/{name}")
                    except FileNotFoundError:
                        continue  # retention was quicker
                files.sync_directory(log.directory)
            except OSError as error:
                if not log.directory.endswith(names.DELETE_DIRECTORY):
                    raise self._failed(error) from error
            try:
                files.sync_directory(old_log_directory)
            except OSError as error:
                raise _refused(self.log, error) from error
            checkpoint()
            try:
                files.sync_directory(self.destination)
                if files.exists(mark_path(log.directory)):
                    files.remove(mark_path(log.directory))
            except OSError as error:
                raise self._failed(error) from error

        return run

    def copy_small(self, paths: list[str]) -> None:
        """Copy whole files; absent ones are passed by. Raises OSError."""
        files = self.log.files
        for path in paths:
            try:
                content = _at_source(self.log, files.read_all, path)
            except FileNotFoundError:
                continue
            self._write(path, content)

    def _write(self, path: str, content: bytes) -> None:
        """Let the copy of the file at `path` be this. Raises OSError."""
        files = self.log.files
        handle = files.open(self._target(path), create=True)
        try:
            files.truncate(handle, 0)
            if content:
                files.write_all(handle, [content], 0)
        finally:
            files.close(handle)


_BESIDE_LOG: Final = names.SEGMENT_SUFFIXES[1:]

"""From a directory to a consistent log.

After a clean stop nothing is read but names: the recovery point of the checkpoint is the log's end.
After anything else the segments from the recovery point on are walked batch by batch: lengths,
CRCs, ascending offsets. What does not hold is a torn tail: the file is cut there and later segments
go. On the way the indexes and the leader epochs are filled again; the producer state comes back
from the newest snapshot and the headers behind it when somebody asks. Everything below the recovery
point is trusted, for it was synced; an index that is missing or cannot be right is made again when
it is first used (`segment`).

Leftovers of interrupted work: `.deleted` files go; `.cleaned` files go, and the `.swap` files that
belong to them; other `.swap` files replace the segments they cover (the cleaner had finished them);
an index without its `.log` goes.

Source: Kafka LogLoader, LogSegment.recover; FORMAT.md section 8.
"""

import logging
import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.clock import Clock
from minibroker.errors import CorruptionError, StorageError
from minibroker.ids import TopicPartition
from minibroker.records.batch import HEADER_BYTES, BatchHeader, crc_is_valid, read_header
from minibroker.storage import names, producer_files
from minibroker.storage.disk import Disk
from minibroker.storage.epochs import LeaderEpochs
from minibroker.storage.partition_log import PartitionLog
from minibroker.storage.segment import Segment, roll_jitter_ms
from minibroker.storage.segments import Segments
from minibroker.storage.tasks import CreateTask
from minibroker.storage.validator import AppendRules

if TYPE_CHECKING:
    from minibroker.config.topic import TopicConfig

_log = logging.getLogger(__name__)

_READ_BYTES: Final = 1 << 20
"""Read at once while checking CRCs; a larger batch is read as a whole."""
_LEGACY_CRC_AT: Final = 12
_LEGACY_CRC_FROM: Final = 16


class Checkpointed(NamedTuple):
    """What the log directory's checkpoints say of one partition; -1: nothing."""

    recovery_point: int = -1
    log_start_offset: int = -1
    is_clean: bool = False


def load_log(
    disk: Disk,
    clock: Clock,
    name: TopicPartition,
    directory: str,
    *,
    config: "TopicConfig",
    rules: AppendRules,
    checkpointed: Checkpointed,
    is_new: bool = False,
) -> PartitionLog:
    """Open the log in `directory`, which exists; recover it if it was not closed cleanly.

    `is_new`: the directory was made just now and is empty; then nothing is looked for.

    Raises StorageError where files cannot be read or changed.
    """
    try:
        loader = _Loader(
            disk, clock, name, directory, config=config, checkpointed=checkpointed, is_new=is_new
        )
        return loader.load(rules)
    except (OSError, CorruptionError) as error:
        raise StorageError(f"cannot load {name} from {directory}: {error}") from error


class _Loader:
    """One load. Lives as long as `load_log` runs."""

    def __init__(
        self,
        disk: Disk,
        clock: Clock,
        name: TopicPartition,
        directory: str,
        *,
        config: "TopicConfig",
        checkpointed: Checkpointed,
        is_new: bool,
    ) -> None:
        self.is_new = is_new
        self.disk = disk
        self.files = disk.files
        self.now_ms = clock.now_ms()
        self.clock = clock
        self.name = name
        self.directory = directory
        self.config = config
        self.checkpointed = checkpointed
        self.segments = Segments()
        self.epochs = LeaderEpochs()
        self.has_new_names = not checkpointed.is_clean

    def load(self, rules: AppendRules) -> PartitionLog:
        found = [] if self.is_new else self.files.list_files(self.directory)
        if any(name.endswith((names.DELETED, names.CLEANED, names.SWAP)) for name in found):
            finish_interrupted_work(self.disk, self.directory)
            found = self.files.list_files(self.directory)
        self._find_segments(found)
        if names.LEADER_EPOCHS in found:
            self._read_epochs()
        log_start = max(self.checkpointed.log_start_offset, 0)
        log_end = self._recover()
        if len(self.segments) == 0 or log_end < log_start:
            log_end = self._start_empty(log_start, log_end)
        log_start = max(log_start, self.segments.first.base_offset)
        if self.epochs.truncate_from_end(log_end) | self.epochs.truncate_from_start(log_start):
            self._write_epochs()
        snapshots = self._clean_snapshots(found, log_end)
        known = max(self.checkpointed.recovery_point, 0)
        if known > log_end:  # of a log that was truncated since: says nothing of what is there now
            known = self.segments.last.base_offset
        log = PartitionLog(
            self.disk,
            self.clock,
            self.name,
            self.directory,
            config=self.config,
            rules=rules,
            segments=self.segments,
            epochs=self.epochs,
            log_start_offset=log_start,
            log_end_offset=log_end,
            recovery_point=log_end if self._is_clean else max(min(known, log_end), log_start),
            snapshot_offset=snapshots,
            has_new_names=self.has_new_names,
        )
        if not self._is_clean and log_end > log_start:
            _ = log.producer_state  # replayed now rather than when a request waits for it
        return log

    @property
    def _is_clean(self) -> bool:
        return self.checkpointed.is_clean

    def _new_segment(self, base_offset: int) -> Segment:
        return Segment(
            self.disk,
            self.directory,
            base_offset,
            created_ms=self.now_ms,
            roll_jitter_ms=roll_jitter_ms(self.config),
        )

    def _find_segments(self, found: list[str]) -> None:
        bases = set()
        for name in found:
            base_offset = names.base_offset_of(name)
            if base_offset is not None and name.endswith(names.LOG):
                self.segments.add(self._new_segment(base_offset))
                bases.add(base_offset)
        for name in found:
            base_offset = names.base_offset_of(name)
            is_index = name.endswith(names.SEGMENT_SUFFIXES[1:])
            if is_index and base_offset is not None and base_offset not in bases:
                _log.warning("%s/%s has no .log beside it and is removed", self.directory, name)
                self.disk.remove(f"{self.directory}/{name}")

    def _start_empty(self, log_start: int, log_end: int) -> int:
        """A log without segments, or one that ends before it starts, begins at its start offset."""
        if len(self.segments):
            _log.warning(
                "%s ends at offset %d, before its start at %d: its segments are removed",
                self.name,
                log_end,
                log_start,
            )
            for segment in list(self.segments):
                self._remove(segment)
            self.epochs.clear()
        fresh = self._new_segment(log_start)
        paths = [*fresh.begin_empty(), f"{self.directory}/{names.LEADER_EPOCHS}"]
        self.disk.run_later(CreateTask(self.files, paths))
        self.segments.add(fresh)
        self.has_new_names = True
        return log_start

    def _remove(self, segment: Segment) -> None:
        for path in segment.mark_deleted():
            self.files.remove(path)
        self.segments.remove(segment.base_offset)

    # --- recovery -------------------------------------------------------------------------------

    def _recover(self) -> int:
        """The log's end offset; 0 where there is no segment. Raises OSError, CorruptionError."""
        if len(self.segments) == 0:
            return 0
        recovery_point = self.checkpointed.recovery_point
        if self._is_clean:
            if recovery_point >= self.segments.last.base_offset:
                return recovery_point
            return self.segments.last.read_next_offset()
        next_offset = -1
        unsynced = self.segments.since(max(recovery_point, 0))
        for index, segment in enumerate(unsynced):
            next_offset, cut_bytes = self._recover_segment(segment, max(recovery_point, 0))
            if cut_bytes:
                _log.warning(
                    "%s: %d bytes behind offset %d were torn and are cut off",
                    segment.log_path,
                    cut_bytes,
                    next_offset,
                )
                for later in unsynced[index + 1 :]:
                    self._remove(later)
                break
            if segment is not unsynced[-1]:
                segment.become_inactive()
        return next_offset

    def _recover_segment(self, segment: Segment, recovery_point: int) -> tuple[int, int]:
        """Check batches, fill the indexes: (next offset, bytes to cut off the end)."""
        file_size = segment.size_bytes
        start, next_offset = self._trusted_start(segment, recovery_point)
        segment.reset_indexes(next_offset if start else segment.base_offset)
        segment.assume_size(start)
        if start:
            segment.bytes_since_index_entry = self.config.index_interval_bytes + 1
        for header in checked_batches(self.disk, segment, start, file_size, next_offset):
            if header.leader_epoch > self.epochs.latest_epoch and header.magic == 2:
                self.epochs.assign(header.leader_epoch, header.base_offset)
            next_offset = header.last_offset + 1
            segment.note_append(
                next_offset - 1,
                header.max_timestamp,
                header.size_bytes,
                self.config.index_interval_bytes,
            )
        end = segment.size_bytes
        if end < file_size:
            segment.cut(end)
        segment.create_indexes()
        return next_offset, file_size - end

    def _trusted_start(self, segment: Segment, recovery_point: int) -> tuple[int, int]:
        """Where checking may begin: (position, offset of the batch there).

        The newest index entry below the recovery point, if a sound batch stands where it points to;
        the file's start otherwise. Bytes and entries below the recovery point were synced.
        """
        nothing = 0, segment.base_offset
        if recovery_point <= segment.base_offset:
            return nothing
        try:
            if not segment.open_sound_indexes():
                return nothing
            offset, position = segment.offset_index.lookup(recovery_point - 1)
            if position == 0:
                return nothing
            batches = checked_batches(
                self.disk, segment, position, segment.size_bytes, segment.base_offset
            )
            first = next(batches, None)
        except CorruptionError:
            return nothing
        if first is None or not first.base_offset <= offset:
            return nothing
        return position, first.base_offset

    # --- the files beside the segments ----------------------------------------------------------

    def _read_epochs(self) -> None:
        path = f"{self.directory}/{names.LEADER_EPOCHS}"
        try:
            text = self.files.read_all(path).decode("ascii", "replace")
            self.epochs = LeaderEpochs.from_text(text)
        except CorruptionError as error:
            _log.warning("%s is ignored: %s", path, error)

    def _write_epochs(self) -> None:
        path = f"{self.directory}/{names.LEADER_EPOCHS}"
        content = self.epochs.to_text().encode("ascii")
        self.files.write_atomically(path, content, sync=False)

    def _clean_snapshots(self, found: list[str], log_end: int) -> int:
        """Remove snapshots nothing needs; the newest one's offset, 0: there is none."""
        if not any(name.endswith(names.SNAPSHOT) for name in found):
            return 0
        bases = self.segments.base_offsets
        producer_files.remove_strays(self.files, self.directory, bases, log_end)
        offsets = producer_files.snapshot_offsets(self.files, self.directory)
        return offsets[-1] if offsets else 0


def checked_batches(
    disk: Disk, segment: Segment, start: int, end: int, expected_offset: int
) -> Iterator[BatchHeader]:
    """Headers of the batches from position `start` on, as long as they are whole, sound and
    ascending.

    Ends at the first that is not (or at `end`); never raises CorruptionError. Raises OSError.
    """
    position = start
    chunk, chunk_at = b"", start
    while position < end:
        at = position - chunk_at
        if at + HEADER_BYTES > len(chunk) and chunk_at + len(chunk) < end:
            handle = disk.handles.get(segment.log_path)
            chunk = disk.files.pread(handle, _READ_BYTES, position)
            chunk_at, at = position, 0
        try:
            header = read_header(chunk, at)
        except CorruptionError:
            return
        if position + header.size_bytes > end:
            return
        if at + header.size_bytes > len(chunk):
            handle = disk.handles.get(segment.log_path)
            chunk = disk.files.pread(handle, max(_READ_BYTES, header.size_bytes), position)
            chunk_at, at = position, 0
        if not _is_sound(chunk, at, header) or header.base_offset < expected_offset:
            return
        if not header.base_offset <= header.last_offset <= segment.max_offset:
            return
        yield header
        expected_offset = header.last_offset + 1
        position += header.size_bytes


def _is_sound(chunk: bytes, at: int, header: BatchHeader) -> bool:
    """Does the CRC fit? CRC-32C for format 2, CRC-32 for 0 and 1."""
    if header.magic == 2:
        return crc_is_valid(chunk, at, header.size_bytes)
    content = memoryview(chunk)[at + _LEGACY_CRC_FROM : at + header.size_bytes]
    stored = int.from_bytes(chunk[at + _LEGACY_CRC_AT : at + _LEGACY_CRC_FROM], "big")
    return zlib.crc32(content) == stored


def finish_interrupted_work(disk: Disk, directory: str) -> None:
    """Remove or adopt `.deleted`, `.cleaned` and `.swap` files. Raises OSError, CorruptionError."""
    files = disk.files
    found = files.list_files(directory)
    cleaned = [name for name in found if name.endswith(names.CLEANED)]
    cleaned_from = min((_base(name) for name in cleaned), default=1 << 63)
    for name in found:
        unfinished = name.endswith(names.SWAP) and _base(name) >= cleaned_from
        if name.endswith((names.DELETED, names.CLEANED)) or unfinished:
            disk.remove(f"{directory}/{name}")
    swaps = [name for name in files.list_files(directory) if name.endswith(names.SWAP)]
    if not swaps:
        return
    covered = [_covered(disk, directory, name) for name in swaps if names.LOG in name]
    for name in files.list_files(directory):
        base_offset = names.base_offset_of(name)
        if base_offset is None or name.endswith(names.SWAP):
            continue
        if any(start <= base_offset < end for start, end in covered):
            disk.remove(f"{directory}/{name}")
    for name in swaps:
        _log.warning("%s/%s is taken over: compaction had finished it", directory, name)
        files.replace(f"{directory}/{name}", f"{directory}/{name.removesuffix(names.SWAP)}")
    files.sync_directory(directory)


def _base(name: str) -> int:
    base_offset = names.base_offset_of(name)
    return 1 << 63 if base_offset is None else base_offset


def _covered(disk: Disk, directory: str, name: str) -> tuple[int, int]:
    """Offsets that a finished `.log.swap` replaces: (base offset, next offset)."""
    base_offset = _base(name)
    path = f"{directory}/{name}"
    content_end = base_offset
    handle = disk.handles.get(path)
    size = disk.files.size_of(handle)
    position = 0
    while position < size:  # a message of format 0 may be shorter than a header of format 2
        header = read_header(disk.files.pread(handle, HEADER_BYTES, position))
        content_end = header.last_offset + 1
        position += header.size_bytes
    disk.handles.forget(path)
    return base_offset, content_end

"""One round of compaction over one log, on whatever thread calls.

    1. walk the dirty records: key → last offset, until the map is full      (`survivors`)
    2. group the segments below the offset reached                           (`selection`)
    3. for each group: walk its batches, write what survives to `.cleaned`   (`survivors`,
       files, sync, and put them in the place of the group                    `segment_writer`)

What it reads are closed segments, which nobody changes; it opens them itself, so no handle of the
log's thread is used here. Truncation, deletion and retention may take them away meanwhile: the
swap is refused then, or a file is missing, and the round ends as aborted, with nothing changed.

A crash at any step loses nothing: `.cleaned` files are ignored, and the swap is atomic
(`segment_files`). The checkpoint moves after the last swap; a round that is done twice changes
nothing the second time.

The last step, `replace_segments`: a round leaves finished `….cleaned` files. They get their names
in an order in which a crash at any step leaves something that a start completes or undoes, and the
log's list of segments changes with it (Kafka: LocalLog.replaceSegments).

Source: Kafka Cleaner.doClean, buildOffsetMap, cleanSegments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple, Protocol

from minibroker.broker.storage import names, segment_files
from minibroker.broker.storage.compaction.record_rows import read_rows, unfold
from minibroker.broker.storage.compaction.segment_writer import SegmentWriter
from minibroker.broker.storage.compaction.selection import GroupFacts, group_segments
from minibroker.broker.storage.compaction.survivors import (
    CleanedTransactions,
    LastRecord,
    OffsetMap,
    Survivors,
)
from minibroker.broker.storage.files import Files
from minibroker.broker.storage.log_reads import aborted_transactions
from minibroker.broker.storage.partition_log import PartitionLog
from minibroker.broker.storage.segment import RELATIVE_OFFSET_MAX, Segment
from minibroker.broker.storage.tasks import SyncDirectoryTask
from minibroker.kafka.errors import CorruptionError, StorageError
from minibroker.kafka.records.batch import HEADER_BYTES, BatchHeader, batch_size_at, read_header
from minibroker.kafka.records.control import read_marker
from minibroker.kafka.records.conversion import read_records


def replace_segments(log: PartitionLog, cleaned: Sequence[int], old: Sequence[Segment]) -> bool:
    """Put finished `….cleaned` files in the place of the closed segments `old`. On the loop.

    `cleaned`: base offsets of the files, which are synced; the first is that of the first old
    segment. Readers see the new ones when this returns, the old files go after
    `file.delete.delay.ms`. False, and nothing but the `.cleaned` files goes, where one of the old
    segments is not in service any more. Raises StorageError; everything is as it was then. Raises
    HalfChangedError where it is not, and a start has to complete it.
    """
    assert log.active_segment not in old, f"{log.name}: the active segment is not compacted"
    in_service = set(map(id, log.segments))
    disk, directory = log.disk, log.directory
    fresh = [log.new_segment(base_offset) for base_offset in cleaned]
    try:
        if not all(id(segment) in in_service for segment in old):
            segment_files.remove_cleaned(disk, directory, cleaned)
            return False
        try:
            segment_files.cleaned_to_swap(disk.files, directory, cleaned)
        except OSError:
            segment_files.remove_cleaned(disk, directory, cleaned)
            raise
    except OSError as error:
        raise log.place.failed("replace segments of", error) from error
    with log.place.whole_change("replace segments of"):
        replaced = [segment for segment in old if segment.base_offset in cleaned]
        merged = [segment for segment in old if segment.base_offset not in cleaned]
        paths = segment_files.mark_deleted(disk, directory, replaced, with_snapshots=False)
        paths += segment_files.mark_deleted(disk, directory, merged)
        segment_files.swap_to_service(disk.files, directory, cleaned)
        log.segments.replace(old, fresh)
        assert log.check_invariant()
    disk.worker.run_later(SyncDirectoryTask(log.place))
    segment_files.remove_later(disk, paths, log.config.file_delete_delay_ms)
    return True


GROUP_SEGMENTS_MAX: Final = 64
"""So many segments are replaced by one at a time: their files are renamed on the log's thread."""


class CleaningAborted(Exception):  # noqa: N818  no error: the log went on without us
    """The round was stopped, or its segments are no longer those of the log."""


class Pace(Protocol):
    """Asked all the time: waits as long as is polite."""

    def breathe(self) -> None:
        """Note that a batch was dealt with."""

    def spent(self, size_bytes: int) -> None:
        """Note that so many bytes were read or written. Raises CleaningAborted."""


class Round(NamedTuple):
    """The facts of a round; made on the log's thread, read on any.

    `segments`: those below `end_offset`, ascending. `start_position`: where in the segment that
    holds `first_dirty_offset` the walk may begin. `now_ms`: wall clock. `generation`: the
    log's, when the round was made.
    """

    log: PartitionLog
    segments: Sequence[Segment]
    first_dirty_offset: int
    end_offset: int
    start_position: int
    last_records: dict[int, LastRecord]
    now_ms: int
    generation: int

    def replace_segments(self, cleaned: Sequence[int], old: Sequence[Segment]) -> bool:
        """Put finished segments in the place of `old`, if these are still what was read.

        Called on the log's thread. False: nothing changed. Raises StorageError.
        """
        return self.is_current and replace_segments(self.log, cleaned, old)

    @property
    def is_current(self) -> bool:
        """Return whether the log has the records that the round was made for, and is compacted."""
        place = self.log.place
        is_same = not place.is_deleted and place.generation == self.generation
        return is_same and self.log.config.compact


class RoundStats:
    """Counts of one round, as Kafka's log line has them."""

    __slots__ = (
        "bytes_read",
        "bytes_written",
        "invalid_count",
        "kept_count",
        "map_utilization",
        "read_count",
    )

    def __init__(self) -> None:
        self.bytes_read = self.bytes_written = 0
        self.read_count = self.kept_count = self.invalid_count = 0
        self.map_utilization = 0.0


Swap = Callable[[Sequence[int], Sequence[Segment]], bool]
"""`Round.replace_segments`, wherever it has to run."""


class Cleaning:
    """One round. Its methods raise CleaningAborted, CorruptionError, StorageError, OSError."""

    def __init__(  # noqa: PLR0917  made in one place
        self,
        work: Round,
        offsets: OffsetMap,
        pace: Pace,
        files: Files,
        chunk_bytes: int,
        swap: Swap,
    ) -> None:
        """`chunk_bytes`: read at once; a larger batch is read as a whole."""
        self._work = work
        self._offsets = offsets
        self._pace = pace
        self._files = files
        self._chunk_bytes = chunk_bytes
        self._swap = swap
        self.stats = RoundStats()

    def run(self) -> int:
        """Do all of it; the offset up to which the log is compacted now."""
        try:
            return self._run()
        except FileNotFoundError as error:
            raise CleaningAborted(f"{error.filename} is gone") from error

    def _run(self) -> int:
        work, offsets = self._work, self._offsets
        old_tombstones_until_ms = self._old_tombstones_until_ms()
        self._fill_map()
        end_offset = offsets.latest_offset + 1
        transactions = CleanedTransactions()
        survivors = Survivors(
            offsets,
            transactions,
            work.last_records,
            end_offset=work.end_offset,
            now_ms=work.now_ms,
            delete_retention_ms=work.log.config.delete_retention_ms,
        )
        for group in self._groups(end_offset):
            self._rewrite(group, survivors, transactions, old_tombstones_until_ms)
        self.stats.read_count, self.stats.kept_count = survivors.read_count, survivors.kept_count
        self.stats.invalid_count = survivors.invalid_count
        self.stats.map_utilization = offsets.utilization
        return end_offset

    def _old_tombstones_until_ms(self) -> int:
        """Return up to when segments were last written whose tombstones of formats 0 and 1 go: the
        newest clean segment's time, less `delete.retention.ms`.
        """
        clean = [
            segment
            for segment in self._work.segments
            if segment.base_offset < self._work.first_dirty_offset
        ]
        if not clean:
            return 0
        return self._modified_ms(clean[-1]) - self._work.log.config.delete_retention_ms

    def _modified_ms(self, segment: Segment) -> int:
        return self._files.modified_ms(segment.log_path)

    def _fill_map(self) -> None:
        """Note the last offset of every key from the first dirty offset on."""
        work, offsets = self._work, self._offsets
        offsets.clear()
        start = work.first_dirty_offset
        offsets.latest_offset = start - 1
        transactions = CleanedTransactions()
        transactions.expect(aborted_transactions(work.log, start, work.end_offset))
        segments = list(work.segments)
        position = work.start_position
        for place, segment in enumerate(segments):
            is_last = place + 1 == len(segments)
            behind = work.end_offset if is_last else segments[place + 1].base_offset
            if behind <= start:
                continue
            if not self._map_segment(segment, position, transactions):
                return
            position = 0
            # What is missing at the segment's end was compacted away before.
            offsets.latest_offset = behind - 1

    def _map_segment(
        self, segment: Segment, position: int, transactions: CleanedTransactions
    ) -> bool:
        """Note the keys of a segment in the map; return False where it is full: `latest_offset` is
        the last one that was looked at.
        """
        offsets, breathe = self._offsets, self._pace.breathe
        start = self._work.first_dirty_offset
        for chunk, batches in self._chunks(segment, position):
            for at, header in batches:
                if header.is_control and header.magic == 2:
                    transactions.note_control(header, read_marker(chunk, at, header))
                elif not transactions.note_batch(header):
                    for offset, key in _keys(chunk, at, header):
                        if key is None or offset < start:
                            continue
                        if offsets.is_full:
                            offsets.latest_offset = max(offsets.latest_offset, offset - 1)
                            return False
                        offsets.put(key, offset)
                if header.last_offset >= start:
                    offsets.latest_offset = header.last_offset
                breathe()
        return True

    def _groups(self, end_offset: int) -> list[list[Segment]]:
        work = self._work
        segments = {
            segment.base_offset: segment
            for segment in work.segments
            if segment.base_offset < end_offset
        }
        facts = [
            GroupFacts(
                segment.base_offset,
                segment.size_bytes,
                self._size_of(segment.path(names.OFFSET_INDEX)),
                self._size_of(segment.path(names.TIME_INDEX)),
            )
            for segment in segments.values()
        ]
        groups = group_segments(
            facts,
            end_offset=work.end_offset,
            segment_bytes=work.log.config.segment_bytes,
            index_bytes=work.log.config.segment_index_bytes,
            offset_span_max=RELATIVE_OFFSET_MAX,
            count_max=GROUP_SEGMENTS_MAX,
        )
        return [[segments[item.base_offset] for item in group] for group in groups]

    def _size_of(self, path: str) -> int:
        try:
            return self._files.size_at(path)
        except FileNotFoundError:
            return 0  # made again when it is used

    def _rewrite(
        self,
        group: list[Segment],
        survivors: Survivors,
        transactions: CleanedTransactions,
        old_tombstones_until_ms: int,
    ) -> None:
        """Write what is left of these segments into one, and put it in their place."""
        log = self._work.log
        base_offset = group[0].base_offset
        transactions.kept_aborts = []
        writer = SegmentWriter(
            self._files, log.directory, base_offset, log.config.index_interval_bytes
        )
        try:
            for segment in group:
                behind = self._end_of(segment)
                transactions.expect(aborted_transactions(log, segment.base_offset, behind))
                is_young = self._modified_ms(segment) > old_tombstones_until_ms
                self._copy(segment, writer, survivors, keeps_old_tombstones=is_young)
            writer.finish(transactions.kept_aborts, self._modified_ms(group[-1]))
        except (CleaningAborted, CorruptionError, StorageError, OSError):
            writer.discard()
            raise
        self.stats.bytes_written += writer.size_bytes
        if not self._swap([base_offset], group):
            writer.discard()
            raise CleaningAborted("its segments are no longer those of the log")

    def _end_of(self, segment: Segment) -> int:
        """Return the base offset of the segment behind it."""
        bases = [segment.base_offset for segment in self._work.segments]
        place = bases.index(segment.base_offset) + 1
        return bases[place] if place < len(bases) else self._work.end_offset

    def _copy(
        self,
        segment: Segment,
        writer: SegmentWriter,
        survivors: Survivors,
        *,
        keeps_old_tombstones: bool,
    ) -> None:
        for chunk, batches in self._chunks(segment, 0):
            view = memoryview(chunk)
            for at, header in batches:
                survivor_rows = survivors.of_batch(
                    chunk, at, header, keeps_old_tombstones=keeps_old_tombstones
                )
                if survivor_rows is None:
                    whole = view[at : at + header.size_bytes]
                    writer.add(whole, header.last_offset, header.max_timestamp)
                elif survivor_rows:
                    for start, batch_rows in _batches(survivor_rows):
                        part = memoryview(survivor_rows)[start : start + batch_rows.size_bytes]
                        writer.add(part, batch_rows.last_offset, batch_rows.max_timestamp)
                self._pace.breathe()
            count = writer.write()
            self.stats.bytes_read += len(chunk)
            if count:
                self._pace.spent(count)

    def _chunks(
        self, segment: Segment, position: int
    ) -> Iterator[tuple[bytes, Iterator[tuple[int, BatchHeader]]]]:
        """Yield pieces of `.log` from `position` on, each with its batches: it ends where the last
        one does.
        """
        files, end = self._files, segment.size_bytes
        handle = files.open_to_read(segment.log_path)
        try:
            read_bytes = self._chunk_bytes
            while position < end:
                chunk = files.pread(handle, min(read_bytes, end - position), position)
                size = _whole_bytes(chunk)
                if size == 0:
                    read_bytes = self._size_of_batch(chunk, segment, position, end)
                    continue
                read_bytes = self._chunk_bytes
                self._pace.spent(size)
                if size < len(chunk):
                    chunk = chunk[:size]
                yield chunk, _batches(chunk)
                position += size
        finally:
            files.close(handle)

    def _size_of_batch(self, chunk: bytes, segment: Segment, position: int, end: int) -> int:
        """Return how much has to be read for the batch that did not fit. Raises CorruptionError."""
        if len(chunk) >= HEADER_BYTES or len(chunk) == end - position:
            size = read_header(chunk).size_bytes
            if size <= end - position:
                return size
        raise CorruptionError(
            f"{segment.log_path}: the batch at byte {position} reaches beyond the end at byte {end}"
        )


def _batches(chunk: bytes | bytearray) -> Iterator[tuple[int, BatchHeader]]:
    position = 0
    while position < len(chunk):
        header = read_header(chunk, position)
        yield position, header
        position += header.size_bytes


def _whole_bytes(chunk: bytes) -> int:
    """Return how many bytes the whole batches in `chunk` take. Raises CorruptionError."""
    position = 0
    while (size := batch_size_at(chunk, position)) is not None:
        position += size
    return position


def _keys(chunk: bytes, at: int, header: BatchHeader) -> Iterator[tuple[int, bytes | None]]:
    """Yield (offset, key) of every record in the batch at `at`."""
    if header.magic < 2:
        for record in read_records(chunk, at, header):
            yield record.offset, record.key
        return
    body, start, end = unfold(chunk, at, header)
    base_offset = header.base_offset
    for row in read_rows(body, start, end, header.count):
        yield base_offset + row[4], row[5]

"""The producers of one log, loaded when somebody asks, and their snapshots in its directory.

`ProducerState` is what is in memory; `producer_files` reads and writes the files. `LogProducers`
knows which of both a log has: state for the log's end or none yet, the newest snapshot, and the
ones that the next flush has to sync. A
caller that needs producers of a log asks here: `require`, then `loaded`.

`ProducersLoad` brings the producers from the disk into memory. A snapshot of 200,000 producers
takes half a second to read and to parse. So the loop has the worker of the log's directory do it
when the first caller asks. The worker reads the files by itself and changes nothing that belongs to
the loop.

`EarlierBatchesLoad` reads the batches that stand before a snapshot, beside the loop. The walk goes
backwards, part by part, until one producer is complete. A part is read forwards, one unpack for
each header. The walk takes the batches of all producers along: the next producer that is asked for
is often complete already.

Source: Kafka ProducerStateManager, its truncateAndReload too, which Kafka calls at the start.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from threading import Lock
from typing import Final, Protocol

from minibroker.broker.storage import names, producer_files
from minibroker.broker.storage.batch_walks import Fields, checked_batches, header_of
from minibroker.broker.storage.disk import Disk
from minibroker.broker.storage.files import Files
from minibroker.broker.storage.partition_directory import PartitionDirectory
from minibroker.broker.storage.producer_state import (
    BATCHES_KEPT,
    BatchesOf,
    EarlierBatches,
    EpochBatches,
    Producers,
    ProducersAt,
    ProducerState,
    RecentBatch,
    encode_snapshot,
)
from minibroker.broker.storage.segment import Segment, Segments
from minibroker.broker.storage.tasks import quick_switches
from minibroker.clock import Clock
from minibroker.kafka.errors import CorruptionError
from minibroker.kafka.ids import TopicPartition
from minibroker.kafka.records.batch import CONTROL_FLAG, BatchHeader

logger = logging.getLogger(__name__)

_TRIES_MAX: Final = 3
"""Retention may take a snapshot or a segment while it is read. The next try does not find it."""


class ProducersLoad:
    """One load. Any thread may call it, more than once: it loads once. The loop calls `apply`."""

    __slots__ = (
        "_active_bytes",
        "_base_offsets",
        "_directory",
        "_end_offset",
        "_expiration_ms",
        "_files",
        "_lock",
        "_log_start_offset",
        "_name",
        "_now_ms",
        "_on_loaded",
        "_producers",
        "failure",
        "state",
    )

    def __init__(
        self,
        files: Files,
        name: TopicPartition,
        directory: str,
        segments: Segments,
        *,
        log_start_offset: int,
        end_offset: int,
        now_ms: int,
        expiration_ms: int,
        on_loaded: Callable[[ProducersLoad], None],
    ) -> None:
        """`end_offset`: the producers are those below it. `on_loaded` is called by `apply`.

        Raises OSError.
        """
        # Constant after construction.
        self._files = files
        self._name = name
        self._directory = directory
        self._base_offsets: Sequence[int] = segments.base_offsets
        self._active_bytes = segments.last.size_bytes
        self._log_start_offset = log_start_offset
        self._end_offset = end_offset
        self._now_ms = now_ms
        self._expiration_ms = expiration_ms
        self._on_loaded = on_loaded
        self._lock = Lock()
        # Held by the thread that loads. It sets what follows, once.
        self._producers: Producers | None = None
        self.state: ProducerState | None = None
        """The result. Nobody uses it before the loop has taken it."""
        self.failure: OSError | CorruptionError | None = None

    def __call__(self) -> None:
        """Load, unless it is done already. Raises nothing: `failure` says what went wrong. After a
        failure the next call tries again.
        """
        with self._lock:
            if self.state is None:
                self._load()

    def _load(self) -> None:
        for _ in range(_TRIES_MAX):
            try:
                state = self._read()
            except FileNotFoundError as error:
                self.failure = error
            except (OSError, CorruptionError) as error:
                self.failure = error
                return
            else:
                self.failure = None
                self._producers = dict(state.producers)
                self.state = state
                return

    def _read(self) -> ProducerState:
        """Read with files and indexes of its own. Raises OSError, CorruptionError."""
        disk = Disk(self._files)
        segments = Segments()
        file_names = set(self._files.list_files(self._directory))
        active = self._base_offsets[-1]
        for base_offset in self._base_offsets:
            if (
                base_offset != active
                and names.segment_file(base_offset, names.LOG) not in file_names
            ):
                continue  # retention took it since
            segments.add(Segment(disk, self._directory, base_offset, created_ms=self._now_ms))
        segments.last.assume_size(self._active_bytes)
        state = ProducerState(self._name)
        try:
            producer_files.load_state(
                self._files,
                self._directory,
                segments,
                state=state,
                log_start_offset=self._log_start_offset,
                end_offset=self._end_offset,
                now_ms=self._now_ms,
                expiration_ms=self._expiration_ms,
            )
        finally:
            disk.close()
        return state

    def producers(self) -> Producers:
        """Return the producers that were found, loaded now if need be; they do not change. Raises
        OSError, CorruptionError.
        """
        self()
        if self.failure is not None:
            raise self.failure
        assert self._producers is not None
        return self._producers

    def apply(self) -> None:
        """Hand over the result. On the loop."""
        self._on_loaded(self)


_PART_OFFSETS: Final = 10_000
"""Offsets in the first part. Each part has twice as many as the one before."""
_WALKS_MAX: Final = 3
"""Retention may take a segment while it is read. The next try does not find it."""
_ATTRIBUTES, _PRODUCER, _EPOCH = 5, 9, 10
"""Places in `Fields`."""


class EarlierBatchesLoad:
    """One load. Any thread may call it, more than once: it loads once. The loop calls `apply`."""

    __slots__ = (
        "_active_bytes",
        "_base_offsets",
        "_batches",
        "_directory",
        "_files",
        "_lock",
        "_now_ms",
        "_on_loaded",
        "_room",
        "_start",
        "batches",
        "earlier",
        "failure",
        "header_count",
        "is_loaded",
        "producer_id",
        "start",
    )

    def __init__(
        self,
        files: Files,
        directory: str,
        segments: Segments,
        *,
        earlier: EarlierBatches,
        producer_id: int,
        now_ms: int,
        on_loaded: Callable[[EarlierBatchesLoad], None],
    ) -> None:
        """`earlier`: what is known so far. The walk ends when `producer_id` is complete.
        `on_loaded` is called by `apply`. Raises OSError.
        """
        # Constant after construction.
        self._files = files
        self._directory = directory
        self._base_offsets: Sequence[int] = segments.base_offsets
        self._active_bytes = segments.last.size_bytes
        self.earlier = earlier
        self._start = earlier.start
        self._room = earlier.room
        self._batches = earlier.batches
        self.producer_id = producer_id
        self._now_ms = now_ms
        self._on_loaded = on_loaded
        self._lock = Lock()
        # Held by the thread that loads. It sets what follows, once. The loop reads it in `apply`.
        self.is_loaded = False
        self.start = earlier.start
        self.header_count = 0
        self.batches: BatchesOf = earlier.batches
        self.failure: OSError | CorruptionError | None = None

    def __call__(self) -> None:
        """Load, unless it is done already. Raises nothing: `failure` says what went wrong. After a
        failure the next call tries again.
        """
        with self._lock:
            if not self.is_loaded:
                with quick_switches():
                    self._load()

    def apply(self) -> None:
        """Hand over the result. On the loop."""
        self._on_loaded(self)

    def _load(self) -> None:
        for _ in range(_WALKS_MAX):
            disk = Disk(self._files)
            try:
                self._walk(disk, self._segments(disk))
            except FileNotFoundError as error:
                self.failure = error
            except (OSError, CorruptionError) as error:
                self.failure = error
                return
            else:
                self.failure = None
                self.is_loaded = True
                return
            finally:
                disk.close()

    def _segments(self, disk: Disk) -> Segments:
        """Return the segments that are there, with files and indexes of their own."""
        segments = Segments()
        names_now = set(self._files.list_files(self._directory))
        active = self._base_offsets[-1]
        for base_offset in self._base_offsets:
            if base_offset == active or names.segment_file(base_offset, names.LOG) in names_now:
                segments.add(Segment(disk, self._directory, base_offset, created_ms=self._now_ms))
        segments.last.assume_size(self._active_bytes)
        return segments

    def _walk(self, disk: Disk, segments: Segments) -> None:
        """Read part after part backwards, until the producer is complete or the log begins."""
        batches = dict(self._batches)
        end, span, count = self._start, _PART_OFFSETS, 0
        while end > 0 and count < self._room:
            own = batches.get(self.producer_id)
            if own is not None and own.is_complete:
                break
            segment = segments.floor(end - 1)
            if segment is None:
                end = 0
                break
            end, header_count, part = _read_part(disk, segment, end - span, end)
            count += header_count + 1  # an empty part has its cost, too
            for producer_id, earlier in part.items():
                later = batches.get(producer_id)
                batches[producer_id] = earlier if later is None else later.behind(earlier)
            span *= 2
        self.start, self.header_count, self.batches = end, count, batches


def _read_part(
    disk: Disk, segment: Segment, start: int, end: int
) -> tuple[int, int, dict[int, EpochBatches]]:
    """Read the headers of a segment from about offset `start` to `end`. Return the offset where
    that began, the number of headers, and the batches by producer. Raises OSError.
    """
    position = segment.peek_position(start) if start > segment.base_offset else 0
    if position and next(_trusted_headers(disk, segment, position, end), None) is None:
        position = 0  # compaction replaced the segment, the index is of the other one
    begun_at, count = segment.base_offset, 0
    recent: dict[int, deque[Fields]] = {}
    for at, fields in _trusted_headers(disk, segment, position, end):
        if fields[0] >= end:
            break
        if at == position > 0:
            begun_at = fields[0]
        count += 1
        producer_id = fields[_PRODUCER]
        if producer_id < 0 or fields[_ATTRIBUTES] & CONTROL_FLAG:
            continue
        headers = recent.get(producer_id)
        if headers is None or headers[-1][_EPOCH] != fields[_EPOCH]:
            headers = recent[producer_id] = deque(maxlen=BATCHES_KEPT)
        headers.append(fields)
    return begun_at, count, {key: _batches_of(headers) for key, headers in recent.items()}


def _trusted_headers(
    disk: Disk, segment: Segment, position: int, end: int
) -> Iterator[tuple[int, Fields]]:
    """Yield position and header of the batches of a segment from `position` on. Those that end
    below offset `end` are trusted. Raises OSError.
    """
    return checked_batches(
        disk,
        segment.log_path,
        position,
        segment.size_bytes,
        expected_offset=segment.base_offset,
        max_offset=segment.max_offset,
        trusted_below=end,
    )


def _batches_of(rows: deque[Fields]) -> EpochBatches:
    headers = [header_of(fields) for fields in rows]
    return EpochBatches(
        headers[-1].producer_epoch, tuple(RecentBatch.of(header) for header in headers)
    )


class Extent(Protocol):
    """How far the log of the producers goes at this moment. On the loop."""

    @property
    def log_start_offset(self) -> int:
        """Return the first offset that a reader may ask for."""

    @property
    def high_watermark(self) -> int:
        """Return the offset below which a reader may see everything."""


class LogProducers:
    """The producers of one log, owned by the loop. Methods raise StorageError, but for
    `write_unsynced`.
    """

    __slots__ = (
        "_clock",
        "_disk",
        "_earlier_load",
        "_extent",
        "_failure",
        "_load",
        "_place",
        "_segments",
        "_unsynced",
        "known_to",
        "snapshot_offset",
        "state",
    )

    def __init__(
        self,
        disk: Disk,
        clock: Clock,
        place: PartitionDirectory,
        segments: Segments,
        extent: Extent,
        *,
        log_end_offset: int,
        snapshot_offset: int,
    ) -> None:
        """`place`, `segments` and `extent` are those of the log; `extent` is not asked here."""
        self._disk = disk  # constant after construction, as the next four
        self._clock = clock
        self._place = place
        self._segments = segments
        self._extent = extent
        self._load: ProducersLoad | None = None
        # The task that is under way.
        self._earlier_load: EarlierBatchesLoad | None = None
        # The same for batches before the snapshot.
        self._failure: OSError | CorruptionError | None = None
        # The error of the last one, until somebody asks again.
        self.state: ProducerState | None = None
        """The producers in memory; None: they are on the disk only."""
        self.known_to = log_end_offset
        """The log's end when it was opened or cut. A batch that came since without a producer id
        changes nothing, and an append with one loads the state first."""
        self.snapshot_offset = snapshot_offset
        """Offset of the newest snapshot, 0: there is none."""
        self._unsynced: dict[int, ProducersAt] = {}
        """Snapshots that a flush has to write and to sync: offset → the producers there."""

    @property
    def is_on_disk(self) -> bool:
        """Return whether they are on the disk only. A log that had no record when it was opened has
        none there.
        """
        return self.state is None and self.known_to > 0

    def loaded(self) -> ProducerState:
        """Return the producers and transactions at the log's end. Where they are on the disk only,
        this waits for it; `require` does not.
        """
        if self.state is None:
            self._load_now()
            assert self.state is not None
        return self.state

    def require(self, header: BatchHeader | None = None) -> None:
        """Raise ColdError while they are on the disk only: its task loads them. Do the same while a
        batch with this `header` may repeat one that was not read yet. Raises StorageError where a
        load went wrong.
        """
        state = self.state
        if state is not None and (header is None or not state.may_repeat_earlier(header)):
            return
        try:
            self._check_failure()
            if self.is_on_disk:
                raise self._disk.cold(f"the producers of {self._place.name}", self.loading())
            if state is not None and header is not None:
                load = self._loading_earlier(state, header.producer_id)
                raise self._disk.cold(f"earlier batches of {self._place.name}", load)
        except (OSError, CorruptionError) as error:
            raise self._place.failed("load the producers of", error) from error

    def loaded_for(self, header: BatchHeader) -> ProducerState:
        """Return the producers with all batches that one with this `header` may repeat. Where some
        are on the disk only, this waits for it; `require` does not.
        """
        state = self.loaded()
        while state.may_repeat_earlier(header):
            try:
                self._check_failure()
                load = self._loading_earlier(state, header.producer_id)
                load()
                load.apply()
                self._check_failure()
            except (OSError, CorruptionError) as error:
                raise self._place.failed("load the producers of", error) from error
        return state

    def _loading_earlier(self, state: ProducerState, producer_id: int) -> EarlierBatchesLoad:
        """Return the task that reads earlier batches: the one that is under way, or a new one.
        Raises OSError.
        """
        assert state.earlier is not None
        if self._earlier_load is None:
            self._earlier_load = EarlierBatchesLoad(
                self._disk.files,
                self._place.path,
                self._segments,
                earlier=state.earlier,
                producer_id=producer_id,
                now_ms=self._clock.now_ms(),
                on_loaded=self._note_earlier,
            )
        return self._earlier_load

    def _note_earlier(self, load: EarlierBatchesLoad) -> None:
        """Take earlier batches, but not where the log was truncated since."""
        if self._earlier_load is load:
            self._earlier_load = None
            self._failure = load.failure
            if load.failure is None:
                load.earlier.note_read(load.start, load.header_count, load.batches)

    def _load_now(self) -> None:
        """Load them on this thread."""
        try:
            self._check_failure()
            if not self.is_on_disk:
                self.state = ProducerState(self._place.name)
                return
            load = self.loading()
            load()
            load.apply()
            self._check_failure()
        except (OSError, CorruptionError) as error:
            raise self._place.failed("load the producers of", error) from error

    def loading(self) -> ProducersLoad:
        """Return the task that loads them: the one that is under way, or a new one. Raises
        OSError.
        """
        if self._load is None:
            self._load = ProducersLoad(
                self._disk.files,
                self._place.name,
                self._place.path,
                self._segments,
                log_start_offset=self._extent.log_start_offset,
                end_offset=self.known_to,
                now_ms=self._clock.now_ms(),
                expiration_ms=self._disk.producer_expiration_ms,
                on_loaded=self._note_loaded,
            )
        return self._load

    def _note_loaded(self, load: ProducersLoad) -> None:
        """Take the result of a task, but not where the log was truncated since."""
        if self._load is load:
            self._load = None
            self._failure = load.failure
            self.adopt(load.state)
            if load.state is not None and load.state.producers:
                self._disk.on_producers_loaded()

    def _check_failure(self) -> None:
        """Raise the error of the last load, once."""
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def adopt(self, state: ProducerState | None) -> None:
        """Take over what is known of the producers at the log's end; None: they are on the disk
        only. Transactions that ended below the high watermark are decided.
        """
        self.state = state
        if state is not None:
            state.on_high_watermark(self._extent.high_watermark)

    def remove_expired(self, now_ms: int, expiration_ms: int) -> Iterator[int]:
        """Forget producers silent for `expiration_ms`, in short steps.

        The last step yields the number of producers that stay in memory, the others 0.
        """
        state = self.state
        if state is not None:
            for _ in state.remove_expired(now_ms, expiration_ms):
                yield 0
            yield len(state.producers)

    def truncate_to(self, offset: int, log_start_offset: int) -> None:
        """Follow a log that is from `log_start_offset` to `offset` now: later snapshots go, all of
        them where it is empty. The state is loaded when somebody asks.

        Source: Kafka UnifiedLog.rebuildProducerState, ProducerStateManager.truncateAndReload.
        """
        kept_to = offset if offset > log_start_offset else -1
        files, directory = self._disk.files, self._place.path
        self.state = self._load = self._earlier_load = self._failure = None
        self.known_to = offset
        try:
            with self._disk.names_lock:
                offsets = producer_files.snapshot_offsets(files, directory)
                beyond = [
                    snapshot_offset for snapshot_offset in offsets if snapshot_offset > kept_to
                ]
                producer_files.remove_snapshots(files, directory, beyond)
        except OSError as error:
            raise self._place.failed("remove producer snapshots of", error) from error
        self.snapshot_offset = max(set(offsets) - set(beyond), default=0)
        self._unsynced = {
            snapshot_offset: producers
            for snapshot_offset, producers in self._unsynced.items()
            if snapshot_offset <= kept_to
        }

    def at_end(self) -> ProducersAt:
        """Return a function for the producers at the log's end, which a flush writes. Where they
        are on the disk only, it loads them: no batch of a producer has come since.
        """
        if self.is_on_disk:
            try:
                return self.loading().producers
            except OSError as error:
                raise self._place.failed("load the producers of", error) from error
        producers = dict(self.loaded().producers)
        return lambda: producers

    def stage_snapshot(self, offset: int) -> None:
        """Have the next flush write a snapshot for `offset`, the log's end, if it is newer than the
        last.
        """
        if offset > self.snapshot_offset:
            self._unsynced[offset] = self.at_end()
            self.snapshot_offset = offset

    def write_unsynced(self) -> None:
        """Write what the next flush would write, and sync nothing. Raises OSError,
        CorruptionError.
        """
        for offset, producers in self._unsynced.items():
            path = producer_files.snapshot_path(self._place.path, offset)
            content = encode_snapshot(producers())  # may read files
            with self._disk.names_lock:
                producer_files.write_content(self._disk.files, path, content)

    @property
    def unsynced(self) -> dict[int, ProducersAt]:
        """Return what a flush has to write: offset → producers, which nobody changes."""
        return dict(self._unsynced)

    def note_synced(self, snapshots: Mapping[int, ProducersAt]) -> None:
        """Note that these snapshots are on the disk. One for the same offset that was staged since
        is not.
        """
        for offset, producers in snapshots.items():
            if self._unsynced.get(offset) is producers:
                del self._unsynced[offset]

    def forget_snapshot(self, offset: int) -> None:
        """Forget the snapshot of a segment that goes: nobody needs it."""
        self._unsynced.pop(offset, None)

    def note_snapshot(self, offset: int) -> str | None:
        """Remember a snapshot that a worker wrote for `offset`. Return the path of the one before
        it, if it is not the snapshot of a segment.
        """
        old = self.snapshot_offset
        if offset <= old:
            return None  # a roll wrote a newer one meanwhile
        self.snapshot_offset = offset
        segment = self._segments.floor(old)
        is_needed = segment is not None and segment.base_offset == old
        if old == 0 or is_needed:
            return None
        return producer_files.snapshot_path(self._place.path, old)

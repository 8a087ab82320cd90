"""Reads the batches of producers that stand before a snapshot, beside the loop.

The walk goes backwards, part by part, until one producer is complete. A part is read forwards, one
unpack for each header. The walk takes the batches of all producers along: the next producer that is
asked for is often complete already.
"""

import logging
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from threading import Lock
from typing import Final

from minibroker.broker.storage import names
from minibroker.broker.storage.checked_batches import Fields, checked_batches, header_of
from minibroker.broker.storage.disk import Disk
from minibroker.broker.storage.files import Files
from minibroker.broker.storage.producer_batches import (
    BATCHES_KEPT,
    BatchesOf,
    EarlierBatches,
    EpochBatches,
    RecentBatch,
)
from minibroker.broker.storage.segment import Segment
from minibroker.broker.storage.segments import Segments
from minibroker.broker.storage.switching import quick_switches
from minibroker.kafka.errors import CorruptionError
from minibroker.kafka.records.batch import CONTROL_FLAG

logger = logging.getLogger(__name__)

_PART_OFFSETS: Final = 10_000
"""Offsets in the first part. Each part has twice as many as the one before."""
_TRIES_MAX: Final = 3
"""Retention may take a segment while it is read. The next try does not find it."""
_ATTRIBUTES, _PRODUCER, _EPOCH = 5, 9, 10
"""Places in `Fields`."""


class EarlierBatchesLoad:
    """One load. Any thread may call it, more than once: it loads once. The loop calls `apply`."""

    __slots__ = (
        "_active_bytes",
        "_base_offsets",
        "_directory",
        "_files",
        "_known",
        "_left",
        "_lock",
        "_now_ms",
        "_on_loaded",
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
        on_loaded: "Callable[[EarlierBatchesLoad], None]",
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
        self._left = earlier.left
        self._known = earlier.batches
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
        for _ in range(_TRIES_MAX):
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
        batches = dict(self._known)
        end, span, count = self._start, _PART_OFFSETS, 0
        while end > 0 and count < self._left:
            found = batches.get(self.producer_id)
            if found is not None and found.is_complete:
                break
            segment = segments.floor(end - 1)
            if segment is None:
                end = 0
                break
            end, header_count, part = _read_part(disk, segment, end - span, end)
            count += header_count + 1  # an empty part has its cost, too
            for producer_id, earlier in part.items():
                known = batches.get(producer_id)
                batches[producer_id] = earlier if known is None else known.behind(earlier)
            span *= 2
        self.start, self.header_count, self.batches = end, count, batches


def _read_part(
    disk: Disk, segment: Segment, start: int, end: int
) -> tuple[int, int, dict[int, EpochBatches]]:
    """Read the headers of a segment from about offset `start` to `end`. Return the offset where
    that began, the number of headers, and the batches by producer. Raises OSError.
    """
    position = segment.peek_position(start) if start > segment.base_offset else 0
    if position and next(_headers(disk, segment, position, end), None) is None:
        position = 0  # compaction replaced the segment, the index is of the other one
    begun_at, count = segment.base_offset, 0
    recent: dict[int, deque[Fields]] = {}
    for at, fields in _headers(disk, segment, position, end):
        if fields[0] >= end:
            break
        if at == position > 0:
            begun_at = fields[0]
        count += 1
        producer_id = fields[_PRODUCER]
        if producer_id < 0 or fields[_ATTRIBUTES] & CONTROL_FLAG:
            continue
        found = recent.get(producer_id)
        if found is None or found[-1][_EPOCH] != fields[_EPOCH]:
            found = recent[producer_id] = deque(maxlen=BATCHES_KEPT)
        found.append(fields)
    return begun_at, count, {key: _batches(found) for key, found in recent.items()}


def _headers(disk: Disk, segment: Segment, position: int, end: int) -> Iterator[tuple[int, Fields]]:
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


def _batches(found: deque[Fields]) -> EpochBatches:
    headers = [header_of(fields) for fields in found]
    return EpochBatches(
        headers[-1].producer_epoch, tuple(RecentBatch.of(header) for header in headers)
    )

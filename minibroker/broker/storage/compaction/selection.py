"""The log to compact next, and how far: rules over offsets, sizes and times only.

    | clean            | dirty, may be compacted     | may not            |
    ^ log start        ^ first dirty offset          ^ end offset         ^ log end

The first dirty offset is where the last round ended (`cleaner-offset-checkpoint`). The part that
may not be compacted yet begins with the segment that holds the first of: the last stable offset,
the active segment, a record younger than `min.compaction.lag.ms`.

A log is worth a round when more than `min.cleanable.dirty.ratio` of its bytes are dirty, or when a
dirty record is older than `max.compaction.lag.ms`. The log with the largest dirty share goes first.

Source: Kafka LogCleanerManager (cleanableOffsets, maxCompactionDelay, grabFilthiestCompactedLog).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol, TypeVar


class SegmentFacts(Protocol):
    """Facts of a segment; looked up when asked, which may read the disk."""

    @property
    def base_offset(self) -> int: ...
    @property
    def size_bytes(self) -> int: ...
    @property
    def max_timestamp(self) -> int: ...
    @property
    def first_timestamp(self) -> int: ...


class LogFacts(NamedTuple):
    """A compacted log as it is now. `segments` has at least the active one, which is the last.

    `checkpoint`: where the last round ended, None: there was none. `stable_end`: last stable
    offset, at most the high watermark. Lags in ms.
    """

    segments: Sequence[SegmentFacts]
    log_start_offset: int
    log_end_offset: int
    stable_end: int
    checkpoint: int | None
    min_lag_ms: int
    max_lag_ms: int
    min_dirty_ratio: float


class Candidate(NamedTuple):
    """The work of a round over a log.

    `is_reset`: the checkpoint did not fit the log and counts as none. `delay_ms`: how much longer
    than `max.compaction.lag.ms` a record has waited.
    """

    first_dirty_offset: int
    end_offset: int
    clean_bytes: int
    dirty_bytes: int
    is_reset: bool
    delay_ms: int

    @property
    def dirty_ratio(self) -> float:
        """Dirty bytes among those that a round would read, 0 … 1."""
        total = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / total if total else 0.0

    def is_worth_it(self, min_dirty_ratio: float) -> bool:
        if self.delay_ms > 0 and self.dirty_bytes > 0:
            return True
        return self.dirty_ratio > min_dirty_ratio


def candidate_of(facts: LogFacts, now_ms: int) -> Candidate:
    """Return the work of a round over this log now."""
    start = facts.log_start_offset
    first_dirty = start if facts.checkpoint is None else facts.checkpoint
    # DeleteRecords passed it, or the log lost its end.
    is_reset = not start <= first_dirty <= facts.log_end_offset
    if is_reset:
        first_dirty = start
    closed = facts.segments[:-1]
    active_base = facts.segments[-1].base_offset
    dirty = _from_floor(closed, first_dirty) if first_dirty < active_base else []
    end = min(facts.stable_end, active_base)
    if facts.min_lag_ms > 0:
        for segment in dirty:
            if segment.max_timestamp > now_ms - facts.min_lag_ms:
                end = min(end, segment.base_offset)
                break
    end = max(first_dirty, end)
    beyond = _from_floor(closed, end) if end < active_base else []
    end_base = beyond[0].base_offset if beyond else active_base
    return Candidate(
        first_dirty,
        end_base,
        sum(segment.size_bytes for segment in facts.segments if segment.base_offset < first_dirty),
        sum(
            segment.size_bytes
            for segment in _from_floor(facts.segments, min(first_dirty, end_base))
            if segment.base_offset < end_base
        ),
        is_reset,
        _delay_ms(dirty, facts.max_lag_ms, now_ms),
    )


Facts = TypeVar("Facts", bound=SegmentFacts)


def _from_floor(segments: Sequence[Facts], offset: int) -> Sequence[Facts]:
    """Return the segment that holds `offset` and those behind it."""
    first = 0
    for place, segment in enumerate(segments):
        if segment.base_offset > offset:
            break
        first = place
    return segments[first:]


def _delay_ms(dirty: Iterable[SegmentFacts], max_lag_ms: int, now_ms: int) -> int:
    """Return how long ago the oldest dirty record was due, 0: none is. Records without a timestamp
    are never due.
    """
    due = now_ms - max(max_lag_ms, 0)
    if due <= 0:
        return 0  # the usual: nothing is ever due, and no segment has to be asked
    earliest = min(
        (stamp for segment in dirty if (stamp := segment.first_timestamp) > 0), default=due
    )
    return max(0, due - earliest)


class GroupFacts(NamedTuple):
    """A segment as `group_segments` looks at it: bytes of its files."""

    base_offset: int
    size_bytes: int
    offset_index_bytes: int
    time_index_bytes: int


def group_segments(
    segments: Sequence[GroupFacts],
    *,
    end_offset: int,
    segment_bytes: int,
    index_bytes: int,
    offset_span_max: int,
    count_max: int,
) -> list[Sequence[GroupFacts]]:
    """Runs of segments of which each becomes one new segment.

    A run stays within `segment_bytes`, its indexes within `index_bytes`, its offsets within
    `offset_span_max`, so that the new segment is a proper one whatever survives. `end_offset`
    stands in for the base of the segment behind the last. At most `count_max` segments a run, which
    bounds how many names change at once (Kafka has no such bound; what is left is merged by a later
    round).

    Source: Kafka Cleaner.groupSegmentsBySize.
    """
    groups: list[Sequence[GroupFacts]] = []
    start = 0
    while start < len(segments):
        first = segments[start]
        sizes = [first.size_bytes, first.offset_index_bytes, first.time_index_bytes]
        stop = start + 1
        while stop < len(segments) and stop - start < count_max:
            following = segments[stop]
            grown = [
                sizes[0] + following.size_bytes,
                sizes[1] + following.offset_index_bytes,
                sizes[2] + following.time_index_bytes,
            ]
            behind = segments[stop + 1].base_offset if stop + 1 < len(segments) else end_offset
            fits = grown[0] <= segment_bytes and max(grown[1:]) <= index_bytes
            # An empty one adds no offset, and would stay for ever if its place were looked at.
            reaches = behind - 1 - first.base_offset <= offset_span_max
            if not fits or not (reaches or following.size_bytes == 0):
                break
            sizes = grown
            stop += 1
        groups.append(segments[start:stop])
        start = stop
    return groups

"""The segments of a log over their limits: by log start offset, by size, by time.

The unit is a whole segment, and the oldest go first: the first segment that stays ends the search.
Three rules in this order, each looking at what the one before left:

    start offset   the next segment begins at or below the log start offset (DeleteRecords)
    size           the log without this segment is still at least `retention.bytes` large
    time           its largest timestamp is more than `retention.ms` ago

The last two only where `cleanup.policy` has delete. No segment goes that holds offsets at or above
the high watermark. The active segment goes like the others when its time is over, and a new one
takes its place first; by size it could only go with a limit of 0.

`delete_old_segments` takes them out of service (`PartitionLog.remove_segments`).

`expired` reads what it needs of the segments: sizes, last entries of time indexes. After a start
that would be thousands of small reads, so `survey`, on a worker, fetches them beforehand.

Source: Kafka UnifiedLog.deleteOldSegments.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.broker.storage.log_reads import largest_timestamp
from minibroker.broker.storage.partition_log import PartitionLog
from minibroker.broker.storage.segment import Segment
from minibroker.kafka.errors import CorruptionError

if TYPE_CHECKING:
    from minibroker.broker.config.topic import TopicConfig

logger = logging.getLogger(__name__)

SEGMENTS_AT_ONCE: Final = 16
"""So many segments are renamed before the loop does something else: one takes some 80 µs."""


class Expired(NamedTuple):
    """So many of the oldest segments are to go; `reason` says why the newest of them is."""

    segment_count: int
    reason: str


def delete_old_segments(
    log: PartitionLog, high_watermark: int, now_ms: int, *, limit: int = SEGMENTS_AT_ONCE
) -> int:
    """Take what retention does not keep out of service, `limit` segments at most. Return how many.

    Call it again until it answers 0. Files are renamed at once, removed on the worker after
    `file.delete.delay.ms`. Raises StorageError.
    """
    log.write_staged()
    try:
        segments = list(log.segments)
        count, reason = expired(
            segments,
            log.config,
            log_start_offset=log.log_start_offset,
            log_end_offset=log.log_end_offset,
            high_watermark=high_watermark,
            now_ms=now_ms,
        )
    except (OSError, CorruptionError) as error:
        raise log.place.failed("look for old segments of", error) from error
    if count == 0:
        return 0
    old_segments = segments[: min(count, limit)]
    if len(old_segments) == len(segments):
        log.roll()
    higher = log.segments.higher(old_segments[-1].base_offset)
    assert higher is not None
    log.advance_log_start(higher.base_offset, high_watermark)
    logger.info(
        "%s: %d segments up to %s go, %s",
        log.name,
        len(old_segments),
        old_segments[-1].log_path,
        reason,
    )
    log.remove_segments(old_segments)
    return len(old_segments)


def expired(
    segments: Sequence[Segment],
    config: TopicConfig,
    *,
    log_start_offset: int,
    log_end_offset: int,
    high_watermark: int,
    now_ms: int,
) -> Expired:
    """Return how many of `segments`, all of a log in order, are over their limits. Raises OSError,
    CorruptionError.
    """
    ends = [segment.base_offset for segment in segments[1:]]
    # Segments below the high watermark; an empty active one has nothing to delete.
    eligible = sum(1 for end in [*ends, log_end_offset] if end <= high_watermark)
    if eligible == len(segments) and segments[-1].size_bytes == 0:
        eligible -= 1
    count = 0
    while count < min(eligible, len(ends)) and ends[count] <= log_start_offset:
        count += 1
    reason = f"all of it is below the log start offset {log_start_offset}" if count else ""
    if not config.delete:
        return Expired(count, reason)
    if config.retention_bytes >= 0:
        over = sum(segment.size_bytes for segment in segments[count:]) - config.retention_bytes
        while count < eligible and over >= segments[count].size_bytes:
            over -= segments[count].size_bytes
            count += 1
            reason = f"the log is larger than retention.bytes={config.retention_bytes}"
    if config.retention_ms >= 0:
        oldest_kept_ms = now_ms - config.retention_ms
        while count < eligible and largest_timestamp(segments[count]) < oldest_kept_ms:
            count += 1
            reason = f"its newest record is older than retention.ms={config.retention_ms}"
    return Expired(count, reason)


def may_expire(log: PartitionLog) -> bool:
    """Return whether `delete_old_segments` could take anything, now or if only time went by. Raises
    StorageError.
    """
    first = log.segments.first
    second = log.segments.higher(first.base_offset)
    if second is not None and second.base_offset <= log.log_start_offset:
        return True
    try:
        return _has_limit(log.config) and (second is not None or first.size_bytes > 0)
    except OSError as error:
        raise log.place.failed("look for old segments of", error) from error


def _has_limit(config: TopicConfig) -> bool:
    return config.delete and (config.retention_ms >= 0 or config.retention_bytes >= 0)


def unsurveyed(segments: Sequence[Segment], config: TopicConfig) -> list[Segment]:
    """Return the segments that `expired` would have to read files for."""
    if not _has_limit(config):
        return []
    return [segment for segment in segments if not segment.is_surveyed]

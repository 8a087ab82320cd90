"""How far a log goes: the offsets that have to agree with each other.

A log takes all of them at once, when it is opened and whenever it is cut or starts later. They come
from here, so that a checkpoint or a caller that says something else changes nothing.

    log start ≤ recovery point ≤ log end          log start ≤ high watermark ≤ log end

Source: Kafka UnifiedLog, LocalLog, which check some of it in each setter.
"""

from typing import NamedTuple


class LogExtent(NamedTuple):
    """The offsets of one log. Made by `clamped`."""

    log_start_offset: int
    """The first offset that a reader may ask for."""
    recovery_point: int
    """Everything below is durable, or below the log's start."""
    high_watermark: int
    """A reader may see everything below."""
    log_end_offset: int
    """One beyond the last written record."""
    clean_offset: int | None
    """Compaction came up to here; None: it never ran."""


def clamped(
    *,
    log_start_offset: int,
    recovery_point: int,
    high_watermark: int,
    log_end_offset: int,
    clean_offset: int | None,
) -> LogExtent:
    """Return the offsets, those in the middle put between the log's start and its end.

    Raises ValueError for a log that ends before it starts.
    """
    if log_end_offset < log_start_offset:
        raise ValueError(f"a log from {log_start_offset} cannot end at {log_end_offset}")
    return LogExtent(
        log_start_offset,
        min(max(recovery_point, log_start_offset), log_end_offset),
        min(max(high_watermark, log_start_offset), log_end_offset),
        log_end_offset,
        None if clean_offset is None else min(clean_offset, log_end_offset),
    )

"""Sizes and largest timestamps of closed segments, read on a worker.

Retention and look-ups by time go by them. Kafka knows them from the start; here nobody reads a file
before somebody asks.
"""

from collections.abc import Sequence
from typing import NamedTuple

from minibroker.broker.storage import names
from minibroker.broker.storage.files import Files
from minibroker.broker.storage.segment import Segment
from minibroker.broker.storage.time_index import read_last_entry


class Found(NamedTuple):
    """The facts that `survey` read of one segment; -1: not read, or not reliable."""

    segment: Segment
    size_bytes: int
    max_timestamp: int
    offset: int


def survey(files: Files, segments: Sequence[Segment], oldest_kept_ms: int) -> list[Found]:
    """Read sizes and largest timestamps, by name: any thread may. `Segment.note_survey` takes them.

    Timestamps are read up to the first segment that has one of `oldest_kept_ms` or later: those
    behind it are not asked for. A file that is away is passed by: who uses it will say so.
    """
    found = []
    with_times = True
    for segment in segments:
        timestamp, offset = -1, -1
        try:
            size_bytes = files.size_at(segment.log_path)
            if with_times:
                path = segment.path(names.TIME_INDEX)
                timestamp, offset = read_last_entry(files, path, segment.base_offset)
        except OSError:
            continue
        with_times = with_times and timestamp < oldest_kept_ms
        found.append(Found(segment, size_bytes, timestamp, offset))
    return found


class SurveyTask:
    """A survey of segments that a reader asks for. A worker calls it, then the loop `apply`."""

    __slots__ = ("_files", "_found", "_segments", "_timestamp")

    def __init__(self, files: Files, segments: Sequence[Segment], timestamp: int) -> None:
        """`timestamp`: ms; a segment that reaches it is the last one whose time is read."""
        self._files = files
        self._segments = segments
        self._timestamp = timestamp
        # Set by the worker, read by the loop in `apply`.
        self._found: list[Found] = []

    def __call__(self) -> None:
        """Read. Raises nothing: a file that is away is passed by."""
        self._found = survey(self._files, self._segments, self._timestamp)

    def apply(self) -> None:
        """Tell the segments."""
        for found in self._found:
            found.segment.note_survey(found.size_bytes, found.max_timestamp, found.offset)

"""An index of an archive, so that a replay can read it in order, in pieces. No Spark, no I/O.

For every partition the index has stretches: how many records are between two offsets. For a replay
at a speed it also has the times at which offsets are due. The records of a partition keep their
order: a record is due when all records before it are due, whatever its own timestamp says.

Its size has a limit, however many files an archive has (STRETCHES_MAX, KNOTS_MAX). The files of a
batch are found by Spark, in the tasks (`replay.rows.paths_within`).
"""

from __future__ import annotations

import bisect
import json
from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.kafka.ids import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from minibroker.pipeline.offsets import Offsets

STRETCHES_MAX: Final = 100_000
"""Stretches of all partitions together, at most, if there are not more partitions."""
KNOTS_MAX: Final = 1_000_000
"""Knots of all partitions together, at most; a longer archive has coarser times."""
KNOTS_OF_PARTITION_MAX: Final = 50_000
FINEST_MS: Final = 100


class Stretch(NamedTuple):
    """Records of one partition that follow each other: those of one file, or of several."""

    topic: str
    partition: int
    first: int
    """Smallest offset."""
    last: int
    """Largest offset, inclusive."""
    records: int


class Knot(NamedTuple):
    """A time, and the offset from which on records of a partition are due at that time."""

    time_ms: int
    offset: int


class ReplayIndex:
    """Stretches and times of an archive."""

    def __init__(
        self,
        stretches: Iterable[Stretch],
        knots: Mapping[TopicPartition, Sequence[Knot]] | None = None,
    ) -> None:
        """Args:
        stretches: all of them, in any order.
        knots: of every partition, sorted by time; None: everything is due at once.
        """
        self._stretches: dict[TopicPartition, list[Stretch]] = {}
        for stretch in sorted(stretches, key=lambda item: (item.first, item.last)):
            place = TopicPartition(stretch.topic, stretch.partition)
            self._stretches.setdefault(place, []).append(stretch)
        self._times: dict[TopicPartition, list[int]] = {}
        self._offsets: dict[TopicPartition, list[int]] = {}
        self._knots = {place: list(track) for place, track in (knots or {}).items()}
        for place, track in self._knots.items():
            self._times[place] = [knot.time_ms for knot in track]
            self._offsets[place] = _smallest_from_here([knot.offset for knot in track])

    @property
    def partitions(self) -> list[TopicPartition]:
        """Return the partitions that have records, sorted."""
        return sorted(self._stretches)

    def starts(self) -> Offsets:
        """Return the first offset of each partition."""
        return {place: stretches[0].first for place, stretches in self._stretches.items()}

    def ends(self) -> Offsets:
        """Return the offset behind the last record of each partition."""
        return {
            place: max(stretch.last for stretch in stretches) + 1
            for place, stretches in self._stretches.items()
        }

    def started(self, start: Offsets) -> Offsets:
        """Return `start` with newer partitions added, at their first record."""
        return self.starts() | start

    def advance(self, start: Offsets, rows: int) -> Offsets:
        """Return a position about `rows` records after `start`, shared out by what each partition
        has left.

        Offsets may have gaps (compaction), so records are counted, as if spread evenly within a
        stretch. Each partition with records left moves by at least one.
        """
        start = self.started(start)
        rest = {place: self._records_left(place, start[place]) for place in self._stretches}
        total = sum(rest.values())
        if total <= rows:
            return {place: max(start[place], end) for place, end in self.ends().items()}
        return {
            place: self._step(place, start[place], max(1.0, rows * rest[place] / total))
            for place in self._stretches
        }

    def due(self, until_ms: int) -> Offsets:
        """Return for each partition the offset before which every record is due at `until_ms`."""
        ends = self.ends()
        for place, times in self._times.items():
            behind = bisect.bisect_right(times, until_ms)
            if behind < len(times):
                ends[place] = self._offsets[place][behind]
        return ends

    def next_due_ms(self, start: Offsets) -> int | None:
        """Return when the first record from `start` on is due, None if no record is left."""
        start, ends = self.started(start), self.ends()
        times = []
        for place, offsets in self._offsets.items():
            if start[place] < ends[place]:
                # The first knot behind which `start` is due.
                index = bisect.bisect_right(offsets, start[place]) - 1
                times.append(self._times[place][max(0, index)])
        return min(times, default=None)

    def _records_left(self, place: TopicPartition, start: int) -> float:
        return sum(_records_from(stretch, start) for stretch in self._stretches[place])

    def _step(self, place: TopicPartition, start: int, rows: float) -> int:
        for stretch in self._stretches[place]:
            count = _records_from(stretch, start)
            if not count:
                continue
            if count > rows:
                begin = max(start, stretch.first)
                return begin + max(1, int((stretch.last + 1 - begin) * rows / count))
            rows -= count
            start = stretch.last + 1
            if rows <= 0:
                break
        return start

    def to_json(self) -> str:
        """Return the index as JSON for `from_json`: the source's process reads it from a file."""
        return json.dumps(
            {
                "stretches": [
                    list(stretch) for part in self._stretches.values() for stretch in part
                ],
                "knots": [
                    [*place, [list(knot) for knot in track]] for place, track in self._knots.items()
                ],
            }
        )

    @classmethod
    def from_json(cls, text: str) -> ReplayIndex:
        """Return the index that `to_json` has written."""
        plain = json.loads(text)
        return cls(
            (Stretch(*fields) for fields in plain["stretches"]),
            {
                TopicPartition(topic, partition): [Knot(*knot) for knot in knots]
                for topic, partition, knots in plain["knots"]
            },
        )


def knot_ms(first_ms: int, last_ms: int, speed: float, partitions: int) -> int:
    """Return the width of a knot: a tenth of a second of the replay, or more to stay within
    KNOTS_MAX in all partitions together.
    """
    most = max(1, min(KNOTS_OF_PARTITION_MAX, KNOTS_MAX // max(1, partitions)))
    return max(1, round(FINEST_MS * speed), -(-(last_ms - first_ms) // most))


def _records_from(stretch: Stretch, start: int) -> float:
    """Return about how many records of a stretch are at `start` or behind it."""
    if start > stretch.last:
        return 0.0
    if start <= stretch.first:
        return float(stretch.records)
    return stretch.records * (stretch.last + 1 - start) / (stretch.last + 1 - stretch.first)


def _smallest_from_here(offsets: Sequence[int]) -> list[int]:
    """Return for each place the smallest value from there to the end; the result never falls."""
    smallest = list(offsets)
    for place in range(len(smallest) - 2, -1, -1):
        smallest[place] = min(smallest[place], smallest[place + 1])
    return smallest

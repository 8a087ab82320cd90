"""What an archive holds, so that a replay can take it in order, piece by piece. No Spark, no I/O.

Of every partition: its files with their offsets, to read only those that a piece needs; and, for
a replay at a speed, from which time on which offsets are due. A partition's records keep their
order, so a record is due when all before it are, however its own timestamp reads.
"""

from __future__ import annotations

import bisect
import json
from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.pipeline.offsets import OffsetRange, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from minibroker.pipeline.offsets import Offsets

KNOTS_MAX: Final = 50_000
"""Of one partition; a longer archive is told apart less finely."""
FINEST_MS: Final = 100


class ArchivedFile(NamedTuple):
    """The records of one partition in one file."""

    path: str
    topic: str
    partition: int
    first: int
    """Smallest offset."""
    last: int
    """Largest offset, inclusive."""
    records: int


class Knot(NamedTuple):
    """From this time on the records of a partition from this offset on are due."""

    time_ms: int
    offset: int


class ReplayIndex:
    """Files and times of an archive."""

    def __init__(
        self,
        files: Iterable[ArchivedFile],
        knots: Mapping[TopicPartition, Sequence[Knot]] | None = None,
    ) -> None:
        """Args:
        files: all of them, in any order.
        knots: of every partition, sorted by time; None: everything is due at once.
        """
        self._files: dict[TopicPartition, list[ArchivedFile]] = {}
        for one in sorted(files, key=lambda file: (file.first, file.last)):
            where = TopicPartition(one.topic, one.partition)
            self._files.setdefault(where, []).append(one)
        self._times: dict[TopicPartition, list[int]] = {}
        self._offsets: dict[TopicPartition, list[int]] = {}
        self._knots = {where: list(found) for where, found in (knots or {}).items()}
        for where, found in self._knots.items():
            self._times[where] = [knot.time_ms for knot in found]
            self._offsets[where] = _smallest_from_here([knot.offset for knot in found])

    @property
    def partitions(self) -> list[TopicPartition]:
        """Those that have records, sorted."""
        return sorted(self._files)

    def starts(self) -> Offsets:
        """The first offset of each partition."""
        return {where: files[0].first for where, files in self._files.items()}

    def ends(self) -> Offsets:
        """The offset behind the last one of each partition."""
        return {where: max(one.last for one in files) + 1 for where, files in self._files.items()}

    def started(self, start: Offsets) -> Offsets:
        """`start` with partitions that came later, at their first record."""
        return self.starts() | start

    def advance(self, start: Offsets, rows: int) -> Offsets:
        """About `rows` records further, shared out by what each partition still has.

        Offsets may have gaps (compaction): what counts are the records that the files have, taken
        as evenly spread within a file. Each partition with records left goes on by one at least.
        """
        start = self.started(start)
        left = {where: self._left(where, start[where]) for where in self._files}
        total = sum(left.values())
        if total <= rows:
            return {where: max(start[where], end) for where, end in self.ends().items()}
        return {
            where: self._step(where, start[where], max(1.0, rows * left[where] / total))
            for where in self._files
        }

    def due(self, until_ms: int) -> Offsets:
        """Of each partition the offset before which everything is due at `until_ms`."""
        ends = self.ends()
        for where, times in self._times.items():
            behind = bisect.bisect_right(times, until_ms)
            if behind < len(times):
                ends[where] = self._offsets[where][behind]
        return ends

    def next_due_ms(self, start: Offsets) -> int | None:
        """When the first record from `start` on is due; None: there is none left."""
        start, ends = self.started(start), self.ends()
        times = []
        for where, offsets in self._offsets.items():
            if start[where] < ends[where]:
                # The first knot behind which `start` is due.
                index = bisect.bisect_right(offsets, start[where]) - 1
                times.append(self._times[where][max(0, index)])
        return min(times, default=None)

    def paths(self, ranges: Iterable[OffsetRange]) -> list[str]:
        """The files that have records of `ranges`, sorted."""
        found = set()
        for topic, partition, start, end in ranges:
            for one in self._files.get(TopicPartition(topic, partition), ()):
                if one.first < end and start <= one.last:
                    found.add(one.path)
        return sorted(found)

    def _left(self, where: TopicPartition, start: int) -> float:
        return sum(_records_from(one, start) for one in self._files[where])

    def _step(self, where: TopicPartition, start: int, rows: float) -> int:
        for one in self._files[where]:
            here = _records_from(one, start)
            if not here:
                continue
            if here > rows:
                begin = max(start, one.first)
                return begin + max(1, int((one.last + 1 - begin) * rows / here))
            rows -= here
            start = one.last + 1
            if rows <= 0:
                break
        return start

    def to_json(self) -> str:
        """For `from_json`, in a file that the source's process reads."""
        return json.dumps(
            {
                "files": [list(one) for files in self._files.values() for one in files],
                "knots": [
                    [*where, [list(knot) for knot in found]] for where, found in self._knots.items()
                ],
            }
        )

    @classmethod
    def from_json(cls, text: str) -> ReplayIndex:
        """What `to_json` has written."""
        found = json.loads(text)
        return cls(
            (ArchivedFile(*one) for one in found["files"]),
            {
                TopicPartition(topic, partition): [Knot(*knot) for knot in knots]
                for topic, partition, knots in found["knots"]
            },
        )


def knot_ms(first_ms: int, last_ms: int, speed: float) -> int:
    """How finely times are told apart: a tenth of a second of the replay, or what fits."""
    return max(1, round(FINEST_MS * speed), -(-(last_ms - first_ms) // KNOTS_MAX))


def _records_from(one: ArchivedFile, start: int) -> float:
    """About how many records of a file lie at `start` or behind."""
    if start > one.last:
        return 0.0
    if start <= one.first:
        return float(one.records)
    return one.records * (one.last + 1 - start) / (one.last + 1 - one.first)


def _smallest_from_here(offsets: Sequence[int]) -> list[int]:
    """Of each place the smallest value from there on: never falls."""
    smallest = list(offsets)
    for place in range(len(smallest) - 2, -1, -1):
        smallest[place] = min(smallest[place], smallest[place + 1])
    return smallest

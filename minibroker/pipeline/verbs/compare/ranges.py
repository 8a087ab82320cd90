"""Ranges of `compare`: a task has the same parts of a partition in A and in B.

    partition of A  ├──────────┼──────────┼──────────┤
    partition of B  ├──────────┼──────────┼────┤         cut at the same places from its first
                      a task     a task     a task       offset on

Offsets of a copy may be others. Then the records at a cut differ, and the digests of the parts,
joined, are still those of the partition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.pipeline.offsets import OffsetRange

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_NO_TOPIC: Final = ""


class TaskRanges(NamedTuple):
    """The ranges that a task reads, by partition and offset."""

    a: Sequence[OffsetRange]
    b: Sequence[OffsetRange]

    @property
    def size(self) -> int:
        """Return the number of offsets of both sides."""
        return sum(span.size for ranges in self for span in ranges)


def paired(
    a: Sequence[OffsetRange],
    b: Sequence[OffsetRange],
    group: Callable[[Sequence[OffsetRange]], Sequence[Sequence[OffsetRange]]],
) -> list[TaskRanges]:
    """Return the ranges of each task, large ones first, so that no core waits at the end.

    Args:
        a: the range of each partition of A.
        b: those of B.
        group: cuts and groups ranges, such as `source_batch.tasks_of`.
    """
    of_a, of_b = ({span.partition: span for span in ranges} for ranges in (a, b))
    lengths = [
        OffsetRange(
            _NO_TOPIC,
            partition,
            0,
            max(side[partition].size for side in (of_a, of_b) if partition in side),
        )
        for partition in sorted(of_a.keys() | of_b.keys())
    ]
    tasks = [TaskRanges(_parts(of_a, places), _parts(of_b, places)) for places in group(lengths)]
    return sorted(tasks, key=lambda task: task.size, reverse=True)


def _parts(side: dict[int, OffsetRange], places: Sequence[OffsetRange]) -> list[OffsetRange]:
    """Return the offsets of a side at these places of its partitions, without empty ranges."""
    parts = []
    for place in places:
        span = side.get(place.partition)
        if span is not None and span.size > place.start:
            parts.append(
                span._replace(
                    start=span.start + place.start, end=min(span.end, span.start + place.end)
                )
            )
    return parts

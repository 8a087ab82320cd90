"""Consumer groups follow a copy: their committed offsets, translated, in the target cluster.

As MirrorMaker 2 does it (`MirrorCheckpointTask`): only a group that is not active in the target
gets offsets, they are never ahead of what is copied, and none ever goes back.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from minibroker.cli.quantities import counted
from minibroker.kafka.ids import TopicPartition
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.kafka import options as source_options
from minibroker.pipeline.kafka.groups import DEAD, Groups
from minibroker.pipeline.kafka.sink.marker import is_marker_group
from minibroker.pipeline.kafka.source.reader import read_range
from minibroker.pipeline.offsets import OffsetRange
from minibroker.pipeline.spark.progress import Note

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from minibroker.pipeline.kafka.cluster import Kafka
    from minibroker.pipeline.offsets import Offsets
    from minibroker.pipeline.verbs.copy.offset_map import TranslatedOffsets
    from minibroker.pipeline.verbs.copy.plan import CopyPlan

_IDLE: Final = ("empty", DEAD)


def let_follow(plan: CopyPlan, to: Kafka, offset_map: TranslatedOffsets) -> list[Note]:
    """Write the offsets of the plan's groups into the target, and return a note for each group.

    `to` is the plan's target, whose file is read only once in a job.

    Raises:
        PipelineError: a cluster does not answer or refuses.
    """
    try:
        source, target = Groups(plan.kafka), Groups(to)
        return [_moved(plan, offset_map, source, target, group) for group in chosen(plan, source)]
    except PipelineError as error:
        raise PipelineError(f"groups cannot be copied: {error}") from error


def chosen(plan: CopyPlan, source: Groups) -> list[str]:
    """Return the groups that are named, and those of the source that match, without markers."""
    if plan.groups_pattern is None:
        return list(plan.groups)
    pattern = re.compile(plan.groups_pattern)
    names = {name for name in source.states() if not is_marker_group(name)}
    return sorted({*plan.groups, *(name for name in names if pattern.fullmatch(name))})


def _moved(
    plan: CopyPlan, offset_map: TranslatedOffsets, source: Groups, target: Groups, group: str
) -> Note:
    if (busy := _busy(target, group)) is not None:
        return busy  # before the offsets are looked for, which may read records
    moves: Offsets = {}
    for place, offset in source.offsets_of(group).items():
        translated = offset_map.translated(place, offset, _counter(plan, place))
        if translated is not None:
            moves[TopicPartition(plan.target_of(place.topic), place.partition)] = translated
    moves = forward(moves, target.offsets_of(group))
    if moves:
        if (busy := _busy(target, group)) is not None:
            return busy
        target.commit(group, moves)
    return Note(
        f"group {group} has {counted(len(moves), 'new offset')} in the target",
        {"group": group, "moved_offsets": len(moves)},
    )


def _busy(target: Groups, group: str) -> Note | None:
    """Return what is told of a group with members in the target, None without. Raises
    PipelineError.
    """
    state = target.state_of(group)
    if state in _IDLE:
        return None
    return Note(
        f"group {group} is {state} in the target: its offsets stay",
        {"group": group, "moved_offsets": 0, "state": state},
    )


def forward(moves: Offsets, positions: Offsets) -> Offsets:
    """Return the moves without those that would bring a group back, or leave it where it is."""
    return {place: offset for place, offset in moves.items() if positions.get(place, -1) < offset}


def _counter(plan: CopyPlan, place: TopicPartition) -> Callable[[int, int], int]:
    """Return a function that counts the records of the source between two offsets."""

    def count(start: int, end: int) -> int:
        settings = {**plan.kafka.options(), "subscribe": place.topic, "failOnDataLoss": "false"}
        options = source_options.parse(settings, streaming=False)
        return rows_in(read_range(options, OffsetRange(*place, start, end)))

    return count


def rows_in(batches: Iterable[object]) -> int:
    """Return the number of rows of Arrow batches."""
    return sum(getattr(batch, "num_rows", 0) for batch in batches)

"""Consumer groups follow a copy: their committed offsets, translated, in the target cluster.

As MirrorMaker 2 does it (`MirrorCheckpointTask`): only a group that is not active in the target
gets offsets, they are never ahead of what is copied, and none ever goes back.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from confluent_kafka import (
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    TopicPartition,
)

from minibroker.pipeline import offsets, preflight
from minibroker.pipeline import options as source_options
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.lag.groups import ANSWER_TIMEOUT_S
from minibroker.pipeline.offsets import OffsetRange
from minibroker.pipeline.progress import Note
from minibroker.pipeline.quantities import counted
from minibroker.pipeline.sink.marker import is_marker_group
from minibroker.pipeline.source.reader import read_range

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from confluent_kafka.admin import AdminClient

    from minibroker.pipeline.copies.offset_map import TranslatedOffsets
    from minibroker.pipeline.plan import Kafka
    from minibroker.pipeline.verbs.copy import CopyPlan

_IDLE: Final = (ConsumerGroupState.EMPTY, ConsumerGroupState.DEAD)
_UNKNOWN_GROUP: Final = (KafkaError.GROUP_ID_NOT_FOUND, KafkaError.INVALID_GROUP_ID)

Moves = dict[tuple[str, int], int]
"""(topic, partition) of the target → offset."""


def let_follow(plan: CopyPlan, to: Kafka, known: TranslatedOffsets) -> list[Note]:
    """Write the offsets of the plan's groups into the target, and return a note for each group.

    `to` is the plan's target, whose file is read only once in a job.

    Raises:
        PipelineError: a cluster does not answer or refuses.
    """
    source, target = preflight.admin_of(plan.kafka), preflight.admin_of(to)
    try:
        return [_moved(plan, known, source, target, group) for group in chosen(plan, source)]
    except KafkaException as error:
        raise PipelineError(f"groups cannot be copied: {error.args[0].str()}") from error


def chosen(plan: CopyPlan, admin: AdminClient) -> list[str]:
    """Return the groups that are named, and those of the source that match, without markers."""
    if plan.groups_pattern is None:
        return list(plan.groups)
    wanted = re.compile(plan.groups_pattern)
    listed = admin.list_consumer_groups(request_timeout=ANSWER_TIMEOUT_S).result()
    found = {group.group_id for group in listed.valid if not is_marker_group(group.group_id)}
    return sorted({*plan.groups, *(name for name in found if wanted.fullmatch(name))})


def _moved(
    plan: CopyPlan, known: TranslatedOffsets, source: AdminClient, target: AdminClient, group: str
) -> Note:
    if (busy := _busy(target, group)) is not None:
        return busy  # before the offsets are looked for, which may read records
    moves: Moves = {}
    for topic, partitions in committed_offsets(source, group).items():
        for number, offset in partitions.items():
            where = offsets.TopicPartition(topic, number)
            translated = known.translated(where, offset, _counter(plan, where))
            if translated is not None:
                moves[plan.target_of(topic), number] = translated
    moves = forward(moves, committed_offsets(target, group))
    if moves:
        if (busy := _busy(target, group)) is not None:
            return busy
        _commit(target, group, moves)
    return Note(
        f"group {group} has {counted(len(moves), 'new offset')} in the target",
        {"group": group, "moved_offsets": len(moves)},
    )


def _busy(target: AdminClient, group: str) -> Note | None:
    """Return what is told of a group with members in the target, None without. Raises
    KafkaException.
    """
    state = state_of(target, group)
    if state in _IDLE:
        return None
    return Note(
        f"group {group} is {state.name.lower()} in the target: its offsets stay",
        {"group": group, "moved_offsets": 0, "state": state.name.lower()},
    )


def committed_offsets(admin: AdminClient, group: str) -> dict[str, dict[int, int]]:
    """Return topic → partition → committed offset. Raises KafkaException."""
    request = [ConsumerGroupTopicPartitions(group)]
    answers = admin.list_consumer_group_offsets(request, request_timeout=ANSWER_TIMEOUT_S)
    found: dict[str, dict[int, int]] = {}
    for position in answers[group].result().topic_partitions or ():
        if position.error is None and position.offset >= 0:
            found.setdefault(position.topic, {})[position.partition] = position.offset
    return found


def forward(moves: Moves, there: dict[str, dict[int, int]]) -> Moves:
    """Return the moves without those that would bring a group back, or leave it where it is."""
    return {
        (topic, partition): offset
        for (topic, partition), offset in moves.items()
        if there.get(topic, {}).get(partition, -1) < offset
    }


def state_of(admin: AdminClient, group: str) -> ConsumerGroupState:
    """Return the state of a group; one that is not there is dead. Raises KafkaException."""
    asked = admin.describe_consumer_groups([group], request_timeout=ANSWER_TIMEOUT_S)
    try:
        found: ConsumerGroupState = asked[group].result().state
    except KafkaException as error:
        if error.args[0].code() in _UNKNOWN_GROUP:
            return ConsumerGroupState.DEAD
        raise
    return found


def _commit(admin: AdminClient, group: str, moves: Moves) -> None:
    wanted = [TopicPartition(*where, offset) for where, offset in sorted(moves.items())]
    asked = admin.alter_consumer_group_offsets(
        [ConsumerGroupTopicPartitions(group, wanted)], request_timeout=ANSWER_TIMEOUT_S
    )
    for partition in asked[group].result().topic_partitions:
        if partition.error is not None:
            raise KafkaException(partition.error)


def _counter(plan: CopyPlan, where: offsets.TopicPartition) -> Callable[[int, int], int]:
    """Return a function that counts the records of the source between two offsets."""

    def count(start: int, end: int) -> int:
        given = {**plan.kafka.options(), "subscribe": where.topic, "failOnDataLoss": "false"}
        options = source_options.parse(given, streaming=False)
        return rows_in(read_range(options, OffsetRange(*where, start, end)))

    return count


def rows_in(batches: Iterable[object]) -> int:
    """Return the number of rows of Arrow batches."""
    return sum(getattr(batch, "num_rows", 0) for batch in batches)

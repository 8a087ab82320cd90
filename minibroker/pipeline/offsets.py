"""Offsets of topics as plain data, and the arithmetic on them; no Spark, no broker.

The JSON of Spark's Kafka connector, in options as in checkpoints: topic, partition as text, the
next offset to read. `{"orders": {"0": 17, "1": 4}}`. In options -2 means earliest and -1 latest.

    start ──latest, limited──► end ──split──► ranges, one a task
"""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.pipeline.errors import PipelineError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

EARLIEST: Final = -2
LATEST: Final = -1

OFFSET_MAX: Final = 2**63 - 1


class TopicPartition(NamedTuple):
    """One partition of one topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class OffsetRange(NamedTuple):
    """What one task reads: offsets from `start` to before `end`."""

    topic: str
    partition: int
    start: int
    end: int

    @property
    def size(self) -> int:
        """Offsets, not records: gaps count."""
        return self.end - self.start


Offsets = dict[TopicPartition, int]


def from_json(text: str, *, where: str) -> Offsets:
    """Parse the connector's JSON.

    Raises:
        PipelineError: not of that form; `where` names the option or file it came from.
    """
    try:
        return from_plain(json.loads(text), where=where)
    except json.JSONDecodeError as error:
        raise PipelineError(_wanted(where, text)) from error


def from_plain(found: object, *, where: str) -> Offsets:
    """`from_json` of what is parsed already. Raises PipelineError."""
    offsets: Offsets = {}
    if not isinstance(found, dict):
        raise PipelineError(_wanted(where, found))
    for topic, partitions in found.items():
        if not isinstance(partitions, dict):
            raise PipelineError(_wanted(where, found))
        for partition, offset in partitions.items():
            if not str(partition).isdecimal() or not isinstance(offset, int):
                raise PipelineError(_wanted(where, found))
            offsets[TopicPartition(topic, int(partition))] = offset
    return offsets


def to_plain(offsets: Mapping[TopicPartition, int]) -> dict[str, dict[str, int]]:
    """What `from_plain` reads, sorted by topic and number of partition."""
    plain: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in sorted(offsets.items()):
        plain.setdefault(topic, {})[str(partition)] = offset
    return plain


def to_json(offsets: Mapping[TopicPartition, int]) -> str:
    """The connector's JSON, byte for byte as it writes it into a checkpoint."""
    return json.dumps(to_plain(offsets), separators=(",", ":"))


def limit_rows(
    start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int], rows_max: int
) -> Offsets:
    """`end`, brought so near to `start` that at most about `rows_max` offsets lie between.

    Each partition gets its share in proportion to what waits there, and at least one offset, so
    that a small one is not starved beside a large one: the sum may be larger by that.

    Args:
        start: of every partition of `end`.
        end: at or after `start`, partition by partition.
        rows_max: `maxOffsetsPerTrigger`, at least 1.

    Source: KafkaMicroBatchStream.rateLimit.
    """
    waiting = {one: end[one] - start[one] for one in end if end[one] > start[one]}
    total = sum(waiting.values())
    limited = dict(end)
    if total <= rows_max:
        return limited
    for one, count in waiting.items():
        share = max(1, rows_max * count // total)
        limited[one] = min(end[one], start[one] + share)
    return limited


def split_ranges(
    ranges: Iterable[OffsetRange], *, pieces_min: int = 0, rows_max: int = 0
) -> list[OffsetRange]:
    """One range a task: empty ones go, and large ones are cut.

    Args:
        ranges: what is to be read.
        pieces_min: `minPartitions`: about so many ranges in all, the largest are cut most.
        rows_max: `maxRecordsPerPartition`: no range is longer; 0: no limit.
    """
    whole = [one for one in ranges if one.size > 0]
    if rows_max > 0:
        whole = [piece for one in whole for piece in cut(one, -(-one.size // rows_max))]
    if len(whole) >= pieces_min:
        return whole
    total = sum(one.size for one in whole)
    pieces: list[OffsetRange] = []
    for one in whole:
        pieces += cut(one, max(1, min(one.size, round(one.size * pieces_min / total))))
    return pieces


def cut(one: OffsetRange, pieces: int) -> list[OffsetRange]:
    """`one` as `pieces` ranges in order, equal but for one offset."""
    borders = [one.start + one.size * index // pieces for index in range(pieces + 1)]
    return [one._replace(start=start, end=end) for start, end in itertools.pairwise(borders)]


def ranges_between(
    start: Mapping[TopicPartition, int],
    end: Mapping[TopicPartition, int],
    when_lost: Callable[[str], None],
) -> list[OffsetRange]:
    """What lies between two positions, one range a partition, sorted.

    Args:
        start: of every partition of `end`, or the partition is not read.
        end: the first offset that is not read.
        when_lost: called with a sentence for a partition whose end is before its start: records
            that were there are gone. It raises where `failOnDataLoss` is on.
    """
    ranges = []
    for one in sorted(end):
        if one not in start:
            continue
        if end[one] < start[one]:
            when_lost(
                f"{one} ends at offset {end[one]}, before offset {start[one]} where reading "
                "starts: the bounds are wrong, or the topic was made anew or has lost its tail"
            )
            continue
        ranges.append(OffsetRange(*one, start[one], end[one]))
    return ranges


def _wanted(where: str, found: object) -> str:
    return (
        f"{where} is {found!r}, but offsets are written as JSON of topic, partition and number, "
        'as {"orders": {"0": 17, "1": -1}}'
    )

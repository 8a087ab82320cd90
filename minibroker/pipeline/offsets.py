"""Offsets of topics as plain data, and the arithmetic on them; no Spark, no broker.

The JSON of Spark's Kafka connector, in options as in checkpoints: topic, partition as text, the
next offset to read. `{"orders": {"0": 17, "1": 4}}`. In options -2 means earliest and -1 latest.

    start ──latest, limited──► end ──split──► ranges, one a task
                                 └────group──► a few ranges a task
"""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.kafka.ids import TopicPartition
from minibroker.pipeline.errors import PipelineError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

EARLIEST: Final = -2
LATEST: Final = -1

PIECE_BYTES: Final = 1 << 20
"""Bytes of a partition in a batch with a limit in bytes, if it has so many and is in the batch.

It is what a consumer fetches of a partition at once by default.
"""

INTERNAL_TOPICS: Final = frozenset(
    {"__consumer_offsets", "__transaction_state", "__share_group_state"}
)
"""Topics that Kafka keeps for itself; a pattern matches none of them."""


class OffsetRange(NamedTuple):
    """The range of one task: offsets from `start` to before `end`."""

    topic: str
    partition: int
    start: int
    end: int

    @property
    def size(self) -> int:
        """Return the number of offsets, which is not the number of records: gaps count."""
        return self.end - self.start


Offsets = dict[TopicPartition, int]


def from_json(text: str, *, origin: str) -> Offsets:
    """Parse the connector's JSON.

    Raises:
        PipelineError: not of that form; `origin` names the option or file it came from.
    """
    try:
        return from_plain(json.loads(text), origin=origin)
    except json.JSONDecodeError as error:
        raise PipelineError(_complaint(origin, text)) from error


def from_plain(plain: object, *, origin: str) -> Offsets:
    """Return offsets from JSON that is parsed already. Raises PipelineError."""
    offsets: Offsets = {}
    if not isinstance(plain, dict):
        raise PipelineError(_complaint(origin, plain))
    for topic, partitions in plain.items():
        if not isinstance(partitions, dict):
            raise PipelineError(_complaint(origin, plain))
        for partition, offset in partitions.items():
            if not str(partition).isdecimal() or not isinstance(offset, int):
                raise PipelineError(_complaint(origin, plain))
            offsets[TopicPartition(topic, int(partition))] = offset
    return offsets


def to_plain(offsets: Mapping[TopicPartition, int]) -> dict[str, dict[str, int]]:
    """Return the form that `from_plain` reads, sorted by topic and number of partition."""
    plain: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in sorted(offsets.items()):
        plain.setdefault(topic, {})[str(partition)] = offset
    return plain


def to_json(offsets: Mapping[TopicPartition, int]) -> str:
    """Return the connector's JSON, byte for byte as the connector writes it into a checkpoint."""
    return json.dumps(to_plain(offsets), separators=(",", ":"))


def limit_rows(
    start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int], rows_max: int
) -> Offsets:
    """Return `end`, reduced so that about `rows_max` offsets at most lie behind `start`.

    Each partition gets a share in proportion to its waiting offsets, and at least one offset, so
    that a large partition does not starve a small one. So the sum may be larger than `rows_max`.

    Args:
        start: of every partition of `end`.
        end: at or after `start`, partition by partition.
        rows_max: `maxOffsetsPerTrigger`, at least 1.

    Source: KafkaMicroBatchStream.rateLimit.
    """
    waiting = {
        partition: end[partition] - start[partition]
        for partition in end
        if end[partition] > start[partition]
    }
    total = sum(waiting.values())
    ends = dict(end)
    if total <= rows_max:
        return ends
    for partition, count in waiting.items():
        share = max(1, rows_max * count // total)
        ends[partition] = min(end[partition], start[partition] + share)
    return ends


def limit_bytes(
    start: Mapping[TopicPartition, int],
    end: Mapping[TopicPartition, int],
    bytes_max: int,
    record_bytes: Callable[[str], int],
    waited: Mapping[TopicPartition, int],
) -> Offsets:
    """Return `end`, reduced so that about `bytes_max` bytes at most lie behind `start`.

    Each partition gets a piece of `PIECE_BYTES` first, or all that waits in it, and then a share of
    the rest in proportion. If the pieces alone are too many, partitions take turns: 10,000 of them
    with a few records each would cost a broker far more than some of them with a piece each.

    Args:
        start: of every partition of `end`.
        end: at or after `start`, partition by partition.
        bytes_max: `maxBytesPerTrigger`, at least 1; one partition always gets a record at least.
        record_bytes: topic → bytes of one of its records, about, at least 1.
        waited: partition → number of the batch that it was last in; a missing one was in none.
    """
    sizes = {
        partition: (end[partition] - start[partition]) * record_bytes(partition.topic)
        for partition in end
        if end[partition] > start[partition]
    }
    if sum(sizes.values()) <= bytes_max:
        return dict(end)
    granted: dict[TopicPartition, int] = {}
    rest_bytes = bytes_max
    for partition in sorted(sizes, key=lambda name: (waited.get(name, -1), name)):
        if rest_bytes <= 0:
            break
        granted[partition] = min(sizes[partition], PIECE_BYTES, rest_bytes)
        rest_bytes -= granted[partition]
    more = sum(sizes.values()) - sum(granted.values())
    ends = {**end, **{partition: start[partition] for partition in sizes}}
    for partition, piece in granted.items():
        size = piece + max(0, rest_bytes) * (sizes[partition] - piece) // more
        count = max(1, size // record_bytes(partition.topic))
        ends[partition] = min(end[partition], start[partition] + count)
    return ends


def group_ranges(
    ranges: Iterable[OffsetRange],
    *,
    groups_max: int,
    group_min: int = 1,
    cut_min: int = 1,
    record_bytes: Callable[[str], int] | None = None,
) -> list[list[OffsetRange]]:
    """Return the ranges of each task: tasks of about equal size, as many as `groups_max` at most.

    The ranges are laid end to end, by topic and partition, and the line is cut into equal parts. So
    a task has many small partitions or a part of a large one, and its records are in order. The
    result depends on the arguments alone: a batch that is repeated has the same tasks.

    Args:
        ranges: what is to be read, each partition once; empty ones are dropped.
        groups_max: tasks at most, at least 1.
        group_min: no more tasks than there are parts of this size, in offsets or in bytes.
        cut_min: offsets of the part of a range, at least: where a cut would leave fewer, the whole
            range goes to one side.
        record_bytes: topic → bytes of one of its records, about; None: sizes are in offsets.
    """
    whole = sorted(span for span in ranges if span.size > 0)
    weights = [
        span.size * (1 if record_bytes is None else record_bytes(span.topic)) for span in whole
    ]
    total = sum(weights)
    count = max(1, min(groups_max, total // max(1, group_min)))
    groups: list[list[OffsetRange]] = [[]]
    borders = (total * number // count for number in range(1, count))
    border = next(borders, total)
    begin = 0
    for span, weight in zip(whole, weights, strict=True):
        rest = span
        while border < begin + weight:
            at = span.start + (border - begin) * span.size // weight
            border = next(borders, total)
            if at - rest.start < cut_min:
                at = rest.start
            elif rest.end - at < cut_min:
                at = rest.end
            if at > rest.start:
                groups[-1].append(rest._replace(end=at))
                rest = rest._replace(start=at)
            if groups[-1]:
                groups.append([])
        if rest.size > 0:
            groups[-1].append(rest)
        begin += weight
    return [group for group in groups if group]


def split_ranges(
    ranges: Iterable[OffsetRange], *, pieces_min: int = 0, rows_max: int = 0, rows_min: int = 1
) -> list[OffsetRange]:
    """Return one range for each task: empty ranges are dropped, and large ones are cut.

    Args:
        ranges: what is to be read.
        pieces_min: `minPartitions`: about so many ranges in all, the largest are cut most.
        rows_max: `maxRecordsPerPartition`: no range is longer; 0: no limit.
        rows_min: `minRecordsPerPartition`: for `pieces_min` no shorter range is made.
    """
    whole = [span for span in ranges if span.size > 0]
    if rows_max > 0:
        whole = [piece for span in whole for piece in cut(span, -(-span.size // rows_max))]
    if len(whole) >= pieces_min:
        return whole
    total = sum(span.size for span in whole)
    pieces: list[OffsetRange] = []
    for span in whole:
        pieces += cut(
            span, max(1, min(span.size // rows_min, round(span.size * pieces_min / total)))
        )
    return pieces


def cut(span: OffsetRange, pieces: int) -> list[OffsetRange]:
    """Return `span` as `pieces` ranges in order; their sizes differ by one offset at most."""
    borders = [span.start + span.size * index // pieces for index in range(pieces + 1)]
    return [span._replace(start=start, end=end) for start, end in itertools.pairwise(borders)]


def ranges_between(
    start: Mapping[TopicPartition, int],
    end: Mapping[TopicPartition, int],
    when_lost: Callable[[str], None],
) -> list[OffsetRange]:
    """Return the offsets between two positions, one range for each partition, sorted.

    Args:
        start: of every partition of `end`, or the partition is not read.
        end: the first offset that is not read.
        when_lost: called with a sentence for a partition whose end is before its start: records
            that were there are gone. It raises where `failOnDataLoss` is on.
    """
    ranges = []
    for partition in sorted(end):
        if partition not in start:
            continue
        if end[partition] < start[partition]:
            when_lost(
                f"{partition} ends at offset {end[partition]}, before offset {start[partition]}"
                " where reading starts: the bounds are wrong, or the topic was made anew or has"
                " lost its tail"
            )
            continue
        ranges.append(OffsetRange(*partition, start[partition], end[partition]))
    return ranges


def _complaint(origin: str, value: object) -> str:
    return (
        f"{origin} is {value!r}, but offsets are written as JSON of topic, partition and number, "
        'as {"orders": {"0": 17, "1": -1}}'
    )

"""Places in a topic as a person writes them, and the offsets that they are in each partition.

| text | place |
|---|---|
| `beginning`, `end` | the start of the log, and the end of what a reader may see |
| `1500` | that offset, of each partition |
| `-10` | the last ten offsets of each partition |
| `-1h`, `2026-11-24`, `2026-11-24T17:30+01:00`, `now` | the first record of that time or later |
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.cli.errors import UsageError
from minibroker.cli.moments import moment_of
from minibroker.clock import SystemClock
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError
from minibroker.kafka.ids import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from minibroker.client.client import Client

OFFSET: Final = "offset"
LAST: Final = "last"
TIME: Final = "time"
_NUMBER: Final = re.compile(r"-?\d{1,11}")
"""Fewer digits than milliseconds since the epoch have."""


class OffsetPlace(NamedTuple):
    """A place in each partition of a topic."""

    kind: str
    """`OFFSET`, `LAST` (records before the end) or `TIME`."""
    number: int
    """An offset, a count, or milliseconds since the epoch."""
    text: str
    """The words of the user."""


BEGINNING: Final = OffsetPlace(TIME, EARLIEST_TIMESTAMP, "beginning")
END: Final = OffsetPlace(TIME, LATEST_TIMESTAMP, "end")


def place_of(text: str, now_ms: int | None = None) -> OffsetPlace:
    """Return the place that `text` names; see the table of this module.

    `now_ms`: the time that relative ones are from, None: the time of this machine. Raises
    UsageError.
    """
    word = text.strip()
    if word in ("beginning", "earliest", "start"):
        return BEGINNING
    if word in ("end", "latest"):
        return END
    if _NUMBER.fullmatch(word):
        number = int(word)
        return (
            OffsetPlace(LAST, -number, word)
            if word.startswith("-")
            else OffsetPlace(OFFSET, number, word)
        )
    try:
        return time_of(word, now_ms)
    except UsageError:
        raise UsageError(
            f"{text!r}: expected beginning, end, an offset such as 1500, the last records of each "
            "partition such as -10, or a time such as -1h or 2026-11-24T17:30"
        ) from None


def time_of(text: str, now_ms: int | None = None) -> OffsetPlace:
    """Return the place of a time. Raises UsageError."""
    now_ms = SystemClock().now_ms() if now_ms is None else now_ms
    return OffsetPlace(TIME, moment_of(text, now_ms).ms, text)


class Bounds(NamedTuple):
    """The records of a partition that a reader may see now."""

    beginning: int
    end: int


def bounds_of(
    client: Client, partitions: Iterable[TopicPartition], *, is_committed: bool
) -> dict[TopicPartition, Bounds]:
    """Return first offset and end of each partition.

    `is_committed`: the end is the last stable offset. Raises KafkaError, OSError, ProtocolError,
    ConfigError.
    """
    from minibroker.client import admin  # noqa: PLC0415  not for a help page

    places = list(partitions)
    starts = admin.offsets_at(client, places, EARLIEST_TIMESTAMP, is_committed=is_committed)
    ends = admin.offsets_at(client, places, LATEST_TIMESTAMP, is_committed=is_committed)
    return {place: Bounds(starts[place], max(starts[place], ends[place])) for place in places}


def offsets_at(
    client: Client,
    place: OffsetPlace,
    bounds: Mapping[TopicPartition, Bounds],
    *,
    is_committed: bool,
) -> dict[TopicPartition, int]:
    """Return the offset of a place in each partition, within its bounds. Raises KafkaError,
    OSError, ProtocolError, ConfigError.
    """
    if place.kind == TIME and place.number >= 0:
        from minibroker.client import admin  # noqa: PLC0415  not for a help page

        dated = admin.offsets_at(client, bounds, place.number, is_committed=is_committed)
        offsets = {
            part: offset if offset >= 0 else bounds[part].end for part, offset in dated.items()
        }
    elif place.kind == LAST:
        offsets = {part: bound.end - place.number for part, bound in bounds.items()}
    elif place.kind == OFFSET:
        offsets = dict.fromkeys(bounds, place.number)
    else:
        is_end = place.number == LATEST_TIMESTAMP
        offsets = {part: bound.end if is_end else 0 for part, bound in bounds.items()}
    return {
        part: min(max(offset, bounds[part].beginning), bounds[part].end)
        for part, offset in offsets.items()
    }


def outside_notes(place: OffsetPlace, bounds: Mapping[TopicPartition, Bounds]) -> list[str]:
    """Return a sentence for each side on which partitions have no record at an offset that a person
    chose; 0 is the beginning of any log.
    """
    if place.kind != OFFSET or place.number == 0:
        return []
    number, parts = place.number, bounds.items()
    sides = {
        "before the first record of": {
            part: b.beginning for part, b in parts if number < b.beginning
        },
        "beyond the end of": {part: b.end for part, b in parts if number > b.end},
    }
    return [
        f"offset {number} is {words} {_first_of(offsets)}: it reads from there"
        for words, offsets in sides.items()
        if offsets
    ]


def _first_of(offsets: Mapping[TopicPartition, int]) -> str:
    """Return the first partition with its offset, and how many more there are."""
    part, offset = min(offsets.items())
    more = len(offsets) - 1
    others = "" if not more else f" and of {more} other partition{'s' if more > 1 else ''}"
    return f"{part} ({offset}){others}"


def partitions_of(client: Client, topic: str, numbers: Iterable[int] = ()) -> list[TopicPartition]:
    """Return the partitions of a topic, or some of them by their numbers.

    Raises KafkaError if there is no such topic or partition; OSError, ProtocolError, ConfigError.
    """
    count = client.partition_count(topic)
    for number in numbers:
        if number >= count:
            raise KafkaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                f"topic {topic} has {count} partitions, 0 to {count - 1}: there is no {number}",
            )
    return [TopicPartition(topic, number) for number in numbers or range(count)]

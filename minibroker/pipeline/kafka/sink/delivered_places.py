"""The offsets that copied records get: for each range of the source, the first and the last one.

Records of a range go to one partition, in one transaction. If nobody else writes there, they have
offsets one behind the other. The acknowledgements of their batches tell where they are. The text of
all ranges of a task fits into the marker of its transaction (`marker`), so that a task that is
repeated knows the offsets, too.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from minibroker.kafka.ids import TopicPartition

RANGES_MAX: Final = 100
"""Ranges of a task: their text has to fit into `offset.metadata.max.bytes`, 4096."""
NOWHERE: Final = -1


class Delivered(NamedTuple):
    """The records of one range."""

    rows: int = 0
    first: int = NOWHERE
    """Offset of the first record in the target."""
    last: int = NOWHERE


class DeliveredPlaces:
    """The ranges of one task, in their order."""

    def __init__(self, targets: Sequence[TopicPartition]) -> None:
        """Take the target of each range; no two are the same."""
        self._numbers = {target: number for number, target in enumerate(targets)}
        self.places = [Delivered() for _ in targets]
        self._unknown: set[int] = set()
        """Ranges with a batch that a broker had before its answer was lost: nobody knows where."""

    def note_batch(self, target: TopicPartition, first: int, count: int) -> None:
        """Take `count` records of a range that are written from offset `first` on, -1: unknown."""
        number = self._numbers[target]
        if first < 0:
            self._unknown.add(number)
        earlier = self.places[number]
        rows = earlier.rows + count
        if number in self._unknown:
            self.places[number] = Delivered(rows)
        else:
            lowest = first if earlier.first == NOWHERE else min(earlier.first, first)
            self.places[number] = Delivered(rows, lowest, max(earlier.last, first + count - 1))

    def text(self) -> str:
        """Return all places as text for the marker."""
        return json.dumps([list(place) for place in self.places], separators=(",", ":"))

    def read(self, text: str) -> None:
        """Take the places of an earlier attempt from its marker."""
        if text:
            self.places = [Delivered(*place) for place in json.loads(text)]

"""The offsets that copied records get: for each range of the source, the first and the last one.

Records of a range go to one partition, in one transaction. If nobody else writes there, they have
offsets one behind the other. The acknowledgements of their batches tell where they are, and with
librdkafka the reports of delivery of the first and the last record of each batch of rows. The text
of all ranges of a task fits into the marker of its transaction (`marker`), so that a task that is
repeated knows the offsets, too.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pyarrow as pa

    from minibroker.kafka.ids import TopicPartition
    from minibroker.pipeline.kafka.sink.columns import Arguments

RANGES_MAX: Final = 100
"""Ranges of a task: their text has to fit into `offset.metadata.max.bytes`, 4096."""
NOWHERE: Final = -1
_REPORT: Final = 4
"""Place of the call-back of a delivery among the arguments of `Producer.produce`."""


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
        self.found = [Delivered() for _ in targets]
        self._unknown: set[int] = set()
        """Ranges with a batch that a broker had before its answer was lost: nobody knows where."""

    def noting(self, batch: pa.RecordBatch, rows: Iterable[Arguments]) -> Iterable[Arguments]:
        """Return the rows of a batch of one range, with reports for the first and the last."""
        given: list[Any] = list(rows)
        number = self._numbers[batch["topic"][0].as_py(), batch["partition"][0].as_py()]  # type: ignore[index]
        before = self.found[number]
        self.found[number] = before._replace(rows=before.rows + len(given))

        def note(error: object, message: Any) -> None:
            if error is None:
                self._note(number, message.offset())

        for index in {0, len(given) - 1}:
            row = list(given[index])
            row[_REPORT] = note
            given[index] = tuple(row)
        return given

    def note_batch(self, where: TopicPartition, first: int, count: int) -> None:
        """Take `count` records of a range that are written from offset `first` on, -1: unknown."""
        number = self._numbers[where]
        found = self.found[number]
        self.found[number] = found._replace(rows=found.rows + count)
        if first < 0:
            self._unknown.add(number)
        if number in self._unknown:
            self.found[number] = self.found[number]._replace(first=NOWHERE, last=NOWHERE)
        else:
            self._note(number, first)
            self._note(number, first + count - 1)

    def _note(self, number: int, offset: int) -> None:
        found = self.found[number]
        first = offset if found.first == NOWHERE else min(found.first, offset)
        self.found[number] = found._replace(first=first, last=max(found.last, offset))

    def text(self) -> str:
        """Return all places as text for the marker."""
        return json.dumps([list(place) for place in self.found], separators=(",", ":"))

    def read(self, text: str) -> None:
        """Take the places of an earlier attempt from its marker."""
        if text:
            self.found = [Delivered(*place) for place in json.loads(text)]

"""A streaming source that says which records of an archive come next: `minibroker-replay`.

Its rows are ranges of offsets. The job reads the records of these ranges from the files with
Spark's own readers. It is a source so that Spark keeps the progress: a range is in the checkpoint
before it is read, and after a kill the source returns the same range again.

Options: `index`, a file with a `ReplayIndex` (this process and the driver share the machine);
`rows`, about how many records a batch has; `speed`, empty: everything is due at once.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from minibroker.clock import SystemClock
from minibroker.pipeline import offsets
from minibroker.pipeline.kafka.schemas import RANGE
from minibroker.pipeline.verbs.replay.index import ReplayIndex

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql.streaming.datasource import ReadLimit
    from pyspark.sql.types import StructType

    from minibroker.clock import Clock

FORMAT: Final = "minibroker-replay"
_ORIGIN: Final = "the replay's checkpoint"


class ReplaySource(DataSource):
    """`spark.readStream.format("minibroker-replay")`; only `replay.job` uses it."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> StructType:
        return RANGE

    def streamReader(self, schema: StructType) -> ReplayReader:  # noqa: N802  Spark's name
        index = ReplayIndex.from_json(Path(self.options["index"]).read_text(encoding="utf-8"))
        speed = self.options.get("speed")
        return ReplayReader(
            index,
            rows=int(self.options["rows"]),
            speed=float(speed) if speed else None,
            clock=SystemClock(),
        )


class Ranges(InputPartition):
    """All ranges of a batch: they are few and small."""

    def __init__(self, ranges: Sequence[offsets.OffsetRange]) -> None:
        super().__init__([tuple(span) for span in ranges])


class ReplayReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The reader; its offsets are those of the archived topics, in the connector's JSON."""

    def __init__(self, index: ReplayIndex, *, rows: int, speed: float | None, clock: Clock) -> None:
        self._index = index
        self._rows = rows
        self._speed = speed
        self._clock = clock
        self._began_s: float | None = None
        """Start of this run's replay by the clock; `_began_ms` is the time that was due then."""
        self._began_ms = 0

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  Spark's name
        return offsets.to_plain(self._index.starts())

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802  Spark's name
        """Do nothing: the index is complete when it is made and never grows."""

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802  Spark's name
        return ReadMaxRows(self._rows)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        begin = self._index.started(offsets.from_plain(start, origin=_ORIGIN))
        due = self._due(begin)
        if isinstance(limit, ReadAllAvailable):
            end = due
        else:
            end = self._index.advance(begin, self._rows)
            end = {place: min(offset, due[place]) for place, offset in end.items()}
        ends = {place: max(begin[place], offset) for place, offset in end.items()}
        return offsets.to_plain(begin | ends)

    def reportLatestOffset(self) -> dict[str, Any]:  # noqa: N802  Spark's name
        return offsets.to_plain(self._index.ends())

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        begin = self._index.started(offsets.from_plain(start, origin=_ORIGIN))
        until = offsets.from_plain(end, origin=_ORIGIN)
        ranges = [
            offsets.OffsetRange(*place, begin[place], until[place])
            for place in sorted(until)
            if begin[place] < until[place]
        ]
        return [Ranges(ranges)] if ranges else []

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        yield from partition.value

    def _due(self, begin: offsets.Offsets) -> offsets.Offsets:
        """Return the offsets that may be written by now.

        The first call starts the replay's clock.
        """
        if self._speed is None:
            return self._index.ends()
        now_s = self._clock.monotonic_s()
        if self._began_s is None:
            next_ms = self._index.next_due_ms(begin)
            if next_ms is None:
                return self._index.ends()
            self._began_s, self._began_ms = now_s, next_ms
        passed_ms = (now_s - self._began_s) * 1000 * self._speed
        return self._index.due(self._began_ms + int(passed_ms))

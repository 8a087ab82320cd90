"""The work of an archive's task: ranges of offsets become the rows of data files, in one process.

    rows of schemas.RANGE ─► fetch ─► station ─► station ─► date ─► data_files
                              └──────── Arrow batches ────────┘

No record crosses to the JVM: it gets only the ranges and the facts of the files. A station is a
function from a batch of records to a batch. It may change, add and leave out columns and rows; the
columns `topic`, `partition`, `offset` and `timestamp` stay. Work that only Spark can do belongs
into a frame of records instead, which is written row by row (`table_writer`).
"""

from __future__ import annotations

import base64
import pickle
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa

from minibroker.pipeline.kafka import options as source_options
from minibroker.pipeline.kafka.source.reader import read_ranges
from minibroker.pipeline.offsets import OffsetRange
from minibroker.pipeline.operations import record_times
from minibroker.pipeline.operations.record_times import Judged

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from minibroker.pipeline.kafka.options import SourceOptions

Station = Callable[[pa.RecordBatch], pa.RecordBatch]
"""A function of a module, or a `partial` of one: it travels to the workers by pickle."""

_READER: Final = "reader."
_STATIONS: Final = "stations"


class ArchiveTask(NamedTuple):
    """The way of a record in a task."""

    options: SourceOptions
    stations: tuple[Station, ...]

    def rows(
        self, batches: Iterable[pa.RecordBatch], last_ms: int | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of these ranges in order, with their `date`. Raises PipelineError.

        Records that are dated behind `last_ms` pass no station: they will be dead letters, and
        nobody knows whether they are in a range of time. None: all pass.
        """
        for batch in batches:
            ranges = [OffsetRange(**row) for row in batch.to_pylist()]
            for records in read_ranges(self.options, ranges):
                judged = Judged(records, None)
                if last_ms is not None:
                    judged = record_times.judged(records, last_ms)
                yield with_date(self._through(judged.good))
                if judged.bad is not None:
                    yield with_date(judged.bad.select(records.schema.names))

    def _through(self, records: pa.RecordBatch) -> pa.RecordBatch:
        for station in self.stations:
            records = station(records)
        return records


def with_date(records: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows with the day of their timestamp, in UTC, as the last column."""
    return records.append_column("date", records.column("timestamp").cast(pa.date32()))


def options_of(options: Mapping[str, str], stations: Sequence[Station] = ()) -> dict[str, str]:
    """Return what `task_of` reads, as options of Spark.

    Args:
        options: options of the source, as for `source.frames.stream_ranges`.
        stations: what becomes of the records before they are written.
    """
    of_reader = {f"{_READER}{name}": value for name, value in options.items()}
    return of_reader | {_STATIONS: base64.b64encode(pickle.dumps(tuple(stations))).decode()}


def task_of(options: Mapping[str, str]) -> ArchiveTask | None:
    """Return the task, None if `options_of` has made none of the options. Raises PipelineError."""
    if _STATIONS not in options:
        return None
    of_reader = {
        name.removeprefix(_READER): value
        for name, value in options.items()
        if name.startswith(_READER)
    }
    # Made by `options_of` in the driver, which sends its code to the workers in the same way.
    stations = pickle.loads(base64.b64decode(options[_STATIONS]))
    return ArchiveTask(source_options.parse(of_reader, streaming=True), stations)

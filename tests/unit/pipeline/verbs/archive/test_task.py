"""The way of a record in a task that writes files: ranges in, rows with a date out."""

from __future__ import annotations

from datetime import UTC, date, datetime
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from minibroker.pipeline.kafka import schemas
from minibroker.pipeline.kafka.source.batch import RangePartition
from minibroker.pipeline.offsets import OffsetRange
from minibroker.pipeline.verbs.archive import task as archive_task

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from minibroker.pipeline.kafka.options import SourceOptions

OPTIONS = {"kafka.bootstrap.servers": "x:1", "subscribe": "t", "includeHeaders": "true"}


def records(span: OffsetRange) -> pa.RecordBatch:
    """A record for each offset of a range, an hour apart."""
    rows = [
        {
            "topic": span.topic,
            "partition": span.partition,
            "offset": offset,
            "timestamp": datetime.fromtimestamp(offset * 3600 - 1, UTC),
        }
        for offset in range(span.start, span.end)
    ]
    return pa.RecordBatch.from_pylist(rows, schema=schemas.arrow_schema(include_headers=True))


def without(offset: int, batch: pa.RecordBatch) -> pa.RecordBatch:
    """A station that leaves out a row."""
    return batch.filter(pc.not_equal(batch.column("offset"), offset))


def twice_as_far(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A station that changes a column."""
    column_index = batch.schema.get_field_index("offset")
    return batch.set_column(column_index, "offset", pc.multiply(batch.column("offset"), 2))


def test_records_pass_the_stations_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    requests: list[SourceOptions] = []

    def read_ranges(
        options: SourceOptions, ranges: Iterable[OffsetRange]
    ) -> Iterator[pa.RecordBatch]:
        requests.append(options)
        yield from map(records, ranges)

    monkeypatch.setattr(archive_task, "read_ranges", read_ranges)
    stations = (partial(without, 25), twice_as_far)
    task_options = archive_task.options_of({**OPTIONS, "topicIds": '{"t": "id"}'}, stations)
    assert all(isinstance(value, str) for value in task_options.values())
    task = archive_task.task_of(task_options)
    assert task is not None
    ranges = [OffsetRange("t", 3, 0, 2), OffsetRange("u", 0, 24, 27)]

    batches = task.rows([RangePartition(ranges).rows])
    rows = [row for batch in batches for row in batch.to_pylist()]

    assert [(row["topic"], row["partition"], row["offset"], row["date"]) for row in rows] == [
        ("t", 3, 0, date(1969, 12, 31)),
        ("t", 3, 2, date(1970, 1, 1)),
        ("u", 0, 48, date(1970, 1, 1)),
        ("u", 0, 52, date(1970, 1, 2)),
    ]
    assert requests[0].include_headers
    assert requests[0].topic_ids == {"t": "id"}


def test_a_batch_of_records_has_no_such_task() -> None:
    assert archive_task.task_of({"directory": "d"}) is None


def test_a_task_without_ranges_has_no_rows() -> None:
    assert RangePartition([]).rows.num_rows == 0

"""Batches of an archive without a broker: files in a stage, and files for a table."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from minibroker.pipeline.files.file_system import LocalFiles
from minibroker.pipeline.tables import data_files
from minibroker.pipeline.tables import delta as delta_table
from minibroker.pipeline.tables import iceberg as iceberg_table
from minibroker.pipeline.tables.choice import place_of
from minibroker.pipeline.tables.data_files import DataFile
from minibroker.pipeline.tables.table import BatchId
from tests.pipeline.table_readers import READERS
from tests.support.data_files import write_files

if TYPE_CHECKING:
    from pathlib import Path

    from minibroker.pipeline.tables.file_archive import FileArchive
    from minibroker.pipeline.tables.table import Table

DAY = "topic=a/date=2026-11-24"
QUERY = "12345678-1234-1234-1234-123456789abc"
DAY_US = 86_400_000_000
FIRST_DAY = 20_781
DAYS = 1
"""Days between two records."""
TOPIC = "a-topic-with-a-name-longer-than-what-statistics-keep"


def open_table(file_format: str, directory: Path) -> Table:
    if file_format == "iceberg":
        return iceberg_table.open_table(place_of(str(directory), None), {}, None)
    return delta_table.open_table(place_of(str(directory), None))


def rows(first: int, count: int, days: int | None = None) -> pa.RecordBatch:
    """Records of one partition from an offset on, each on a day of its own, or in turn on a few."""
    numbers = range(first, first + count)
    dates = [FIRST_DAY + number * DAYS % (days or sys.maxsize) for number in numbers]
    columns: dict[str, Any] = {
        "key": [None] * count,
        "value": [b"%d" % number for number in numbers],
        "topic": [TOPIC] * count,
        "partition": [0] * count,
        "offset": list(numbers),
        "timestamp": [date * DAY_US + 999 for date in dates],
        "timestampType": [0] * count,
        "headers": [[{"key": "h", "value": None}]] * count,
        "date": dates,
    }
    return pa.RecordBatch.from_pydict(columns, schema=data_files.RECORD)


def written(
    table: Table, batch: BatchId, count: int = 2, days: int | None = None
) -> list[DataFile]:
    """Files of a batch whose offsets follow its number."""
    return write_files(table.layout(batch, 1 << 20), [rows(batch.number * 10, count, days)])


def offsets_in(file_format: str, directory: Path) -> list[int]:
    """The offsets for every reader, which see the same."""
    all_offsets = [[record[2] for record in reader(directory)] for reader in READERS[file_format]]
    assert all(offsets == all_offsets[0] for offsets in all_offsets)
    return all_offsets[0]


def staged(archive: FileArchive, batch: BatchId, *names: str) -> str:
    """A stage with files, and with what Spark leaves beside them."""
    stage = archive.new_stage(batch)
    for name in (f"{DAY}/{name}" for name in (*names, ".hidden.crc")):
        LocalFiles().write(f"{stage}/{name}", name)
    LocalFiles().write(f"{stage}/_SUCCESS", "")
    return stage

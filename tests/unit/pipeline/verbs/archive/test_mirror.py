"""A table of rows by their key: changes of batches, each applied once, for every reader."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.files.file_system import LocalFiles
from minibroker.pipeline.kafka.cluster import Kafka
from minibroker.pipeline.tables.choice import place_of
from minibroker.pipeline.tables.file_archive import FileArchive
from minibroker.pipeline.tables.parquet_directory import ParquetDirectory
from minibroker.pipeline.tables.table import BatchId
from minibroker.pipeline.values.json_events import event_type
from minibroker.pipeline.verbs.archive.mirror import MirrorTable
from minibroker.pipeline.verbs.archive.plan import ArchivePlan
from tests.pipeline.table_readers import TABLES
from tests.support.data_files import write_files
from tests.unit.pipeline.tables.archives import QUERY, rows

if TYPE_CHECKING:
    from pathlib import Path

    from minibroker.pipeline.tables.data_files import DataFile

NARROW = pa.struct([("id", pa.int64()), ("name", pa.string())])
WIDE = pa.struct([*NARROW, ("tags", pa.list_(pa.field("element", pa.string())))])
FORMATS = ("iceberg", "delta")


def open_mirror(file_format: str, directory: Path, *by: str) -> MirrorTable:
    files = LocalFiles()
    plan = ArchivePlan(Kafka(), str(directory), ["a"], format=file_format, upsert_by=by)
    archive = FileArchive(files, str(directory))
    staged = ParquetDirectory(archive, files, str(directory), ["value"], compression="snappy")
    return MirrorTable(plan, place_of(str(directory), None), staged)


def written(
    table: MirrorTable, batch: BatchId, row: pa.DataType, values: list[Any]
) -> list[DataFile]:
    """Write records with these values, one after the other in one partition."""
    table.take_in({"value": event_type(row)})
    value = pa.array(values, event_type(row))
    records = rows(batch.number * 10, len(values)).set_column(1, "value", value)
    return write_files(table.layout(batch, 1 << 20), [records])


def change(op: str, old: Any = None, after: Any = None) -> dict[str, Any]:
    return {"before": old, "after": after, "op": op}


@pytest.mark.parametrize("file_format", FORMATS)
def test_batches_change_rows_once(file_format: str, tmp_path: Path) -> None:
    """Rows come, change and go; a column comes; a batch is committed again by another run."""
    first, second = BatchId(QUERY, 0), BatchId(QUERY, 1)
    table = open_mirror(file_format, tmp_path, "id")
    assert not table.has(first)
    events = [change("c", after={"id": number, "name": f"n{number}"}) for number in range(4)]
    assert table.commit(first, written(table, first, NARROW, events))
    again = open_mirror(file_format, tmp_path, "id")
    assert again.has(first)
    events = [
        change("d", old={"id": 1}),
        change("u", after={"id": 2, "name": "new", "tags": ["x"]}),
        {"after": {"id": 9, "name": "a row"}},
        None,
    ]
    files = written(again, second, WIDE, events)
    assert again.commit(second, files)
    late = open_mirror(file_format, tmp_path, "id")
    assert not late.commit(second, written(late, second, WIDE, events))
    assert late.commit(BatchId(QUERY, 2), [])
    for reader in TABLES[file_format]:
        assert reader(tmp_path, "id", "name", "tags") == [
            (0, "n0", None),
            (2, "new", ["x"]),
            (3, "n3", None),
            (9, "a row", None),
        ], reader
    assert not list((tmp_path / "_minibroker" / ".staged").glob("*"))


@pytest.mark.parametrize("file_format", FORMATS)
def test_the_key_of_the_record_is_a_column(file_format: str, tmp_path: Path) -> None:
    table, batch = open_mirror(file_format, tmp_path, "key"), BatchId(QUERY, 0)
    table.take_in({"value": NARROW})
    value = pa.array([{"id": 1, "name": "a"}, {"id": 2, "name": "b"}, None], NARROW)
    keys = pa.array([b"x", b"y", b"x"], pa.binary())
    records = rows(0, 3).set_column(1, "value", value).set_column(0, "key", keys)
    assert table.commit(batch, write_files(table.layout(batch, 1 << 20), [records]))
    for reader in TABLES[file_format]:
        assert reader(tmp_path, "id", "name", "key") == [(2, "b", b"y")], reader


def test_a_record_that_is_no_change(tmp_path: Path) -> None:
    table, batch = open_mirror("delta", tmp_path, "id"), BatchId(QUERY, 0)
    files = written(table, batch, NARROW, [change("c", after={"name": "no id"})])
    with pytest.raises(
        PipelineError, match="offset 0 has no key: id is null; topic and table differ"
    ):
        table.commit(batch, files)

"""Batches of Parquet files with columns: committed by a list, each file with the columns so far."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.files.file_system import LocalFiles
from minibroker.pipeline.tables.data_files import write_files
from minibroker.pipeline.tables.file_archive import FileArchive
from minibroker.pipeline.tables.parquet_directory import ParquetDirectory
from minibroker.pipeline.tables.table import BatchId
from tests.pipeline.table_readers import TABLES
from tests.unit.pipeline.tables.archives import QUERY, rows

if TYPE_CHECKING:
    from pathlib import Path


def opened(directory: Path) -> ParquetDirectory:
    files = LocalFiles()
    archive = FileArchive(files, str(directory))
    return ParquetDirectory(archive, files, str(directory), ["value"], compression="snappy")


def test_only_the_named_files_count(tmp_path: Path) -> None:
    """A task that was repeated leaves a file in the stage, and so does another run."""
    table = opened(tmp_path)
    for number, found in enumerate(
        (pa.struct([("x", pa.int64())]), pa.struct([("x", pa.int64()), ("s", pa.string())]))
    ):
        table.take_in({"value": found})
        value = pa.array([{"x": number, "s": "new"}], found)
        batch = rows(number, 1).set_column(1, "value", value)
        identity = BatchId(QUERY, number)
        write_files(table.layout(identity, 1 << 20), [batch])
        layout = table.layout(identity, 1 << 20)
        write_files(layout, [batch])
        files = write_files(layout, [batch])
        assert not table.has(identity)
        assert table.commit(identity, files)
        assert opened(tmp_path).has(identity)
        assert not table.commit(identity, files)
    assert table.commit(BatchId(QUERY, 2), [])
    for read in TABLES["parquet"]:
        assert read(tmp_path, "offset", "value") == [
            (0, {"x": 0, "s": None}),
            (1, {"x": 1, "s": "new"}),
        ], read
    assert not list((tmp_path / "_minibroker" / ".staged").glob("*"))


def test_a_damaged_list_of_columns(tmp_path: Path) -> None:
    LocalFiles().write(str(tmp_path / "_minibroker" / "columns.json"), '{"schema": "zz"}')
    with pytest.raises(PipelineError, match=r"columns.json is damaged"):
        opened(tmp_path).columns()

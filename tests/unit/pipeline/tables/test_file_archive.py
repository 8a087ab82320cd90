"""Batches of files: what is seen before, at and after a commit, by whoever makes it."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.files.file_system import LocalFiles
from minibroker.pipeline.tables.file_archive import FileArchive
from minibroker.pipeline.tables.parquet_directory import ParquetDirectory
from minibroker.pipeline.tables.table import BatchId
from tests.pipeline.table_readers import TABLES
from tests.support.data_files import write_files
from tests.unit.pipeline.tables.archives import DAY, QUERY, rows, staged

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def file_names(directory: Path) -> list[str]:
    """The files that a reader finds, which skips hidden names and those with `_`."""
    return sorted(path.name for path in directory.glob("topic=*/date=*/*"))


def test_files_are_seen_once_their_batch_is_committed(tmp_path: Path) -> None:
    archive, batch = FileArchive(LocalFiles(), str(tmp_path)), BatchId(QUERY, 0)
    assert archive.finish() is None
    stage = staged(archive, batch, "part-0", "part-1")
    assert (file_names(tmp_path), archive.has(batch), list(archive.names())) == ([], False, [])
    assert archive.commit(batch, stage)
    assert file_names(tmp_path) == ["part-0", "part-1"]
    assert archive.has(batch)
    assert list(archive.names()) == [f"{DAY}/part-0", f"{DAY}/part-1"]
    assert not LocalFiles().names(str(tmp_path / "_minibroker" / ".staged"))


def test_the_second_commit_of_a_batch_changes_nothing(tmp_path: Path) -> None:
    """A driver that was believed dead commits first."""
    old, new = (FileArchive(LocalFiles(), str(tmp_path)) for _ in range(2))
    batch = BatchId(QUERY, 3)
    ours, others = staged(new, batch, "ours"), staged(old, batch, "others")
    assert old.commit(batch, others)
    assert not new.commit(batch, ours)
    assert file_names(tmp_path) == ["others"]
    assert list(new.names()) == [f"{DAY}/others"]


def test_a_kill_between_the_commit_and_the_moves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = LocalFiles()
    archive, batch = FileArchive(files, str(tmp_path)), BatchId(QUERY, 0)
    stage = staged(archive, batch, "part-0", "part-1")
    move: Callable[[str, str], None] = files.rename

    def killed(path: str, to: str) -> None:
        if path.endswith("part-1"):
            raise KeyboardInterrupt
        move(path, to)

    with monkeypatch.context() as patch:
        patch.setattr(files, "rename", killed)
        with pytest.raises(KeyboardInterrupt):
            archive.commit(batch, stage)
    assert file_names(tmp_path) == ["part-0"]
    moved = tmp_path.with_name("moved")
    tmp_path.rename(moved)
    again = FileArchive(LocalFiles(), str(moved))
    assert again.finish() == 0
    assert file_names(moved) == ["part-0", "part-1"]
    moved.rename(tmp_path)


def test_another_process_moves_the_same_file(tmp_path: Path) -> None:
    files = LocalFiles()
    archive, batch = FileArchive(files, str(tmp_path)), BatchId(QUERY, 0)
    stage = staged(archive, batch, "part-0")
    move = files.rename

    def late(path: str, to: str) -> None:
        move(path, to)
        move(path, to)

    files.rename = late  # type: ignore[method-assign]
    assert archive.commit(batch, stage)
    assert file_names(tmp_path) == ["part-0"]


def test_stages_of_later_batches_stay(tmp_path: Path) -> None:
    """They may belong to a job that is running."""
    archive = FileArchive(LocalFiles(), str(tmp_path))
    leftover, running = (
        staged(archive, BatchId(QUERY, 0), "x"),
        staged(archive, BatchId(QUERY, 2), "y"),
    )
    archive.commit(BatchId(QUERY, 1), staged(archive, BatchId(QUERY, 1), "z"))
    assert LocalFiles().names(leftover) == []
    assert LocalFiles().names(running) != []


def test_a_damaged_list_is_named(tmp_path: Path) -> None:
    archive = FileArchive(LocalFiles(), str(tmp_path))
    LocalFiles().write(str(tmp_path / "_minibroker" / "batches" / "000000000.json"), "{}")
    with pytest.raises(PipelineError, match=r"000000000.json is damaged .*begin anew in another"):
        list(archive.names())


def test_an_archive_of_spark_is_told_by_its_lists(tmp_path: Path) -> None:
    archive = FileArchive(LocalFiles(), str(tmp_path))
    assert not archive.is_of_spark()
    LocalFiles().write(str(tmp_path / "_spark_metadata" / "0"), json.dumps({}))
    assert archive.is_of_spark()


def test_files_that_no_task_has_told_are_not_committed(tmp_path: Path) -> None:
    """An attempt of a task that failed left them."""
    archive, batch = FileArchive(LocalFiles(), str(tmp_path)), BatchId(QUERY, 0)
    stage = staged(archive, batch, "part-0", "part-of-a-failed-attempt")
    assert archive.commit(batch, stage, [f"{DAY}/part-0"])
    assert file_names(tmp_path) == ["part-0"]
    assert list(archive.names()) == [f"{DAY}/part-0"]
    assert not LocalFiles().names(str(tmp_path / "_minibroker" / ".staged"))


# Batches of Parquet files with columns: committed by a list, each file with the columns so far.


def open_directory(directory: Path) -> ParquetDirectory:
    files = LocalFiles()
    archive = FileArchive(files, str(directory))
    return ParquetDirectory(archive, files, str(directory), ["value"], compression="snappy")


def test_only_the_named_files_count(tmp_path: Path) -> None:
    """A task that was repeated leaves a file in the stage, and so does another run."""
    table = open_directory(tmp_path)
    for number, file_format in enumerate(
        (pa.struct([("x", pa.int64())]), pa.struct([("x", pa.int64()), ("s", pa.string())]))
    ):
        table.take_in({"value": file_format})
        value = pa.array([{"x": number, "s": "new"}], file_format)
        batch = rows(number, 1).set_column(1, "value", value)
        identity = BatchId(QUERY, number)
        write_files(table.layout(identity, 1 << 20), [batch])
        layout = table.layout(identity, 1 << 20)
        write_files(layout, [batch])
        files = write_files(layout, [batch])
        assert not table.has(identity)
        assert table.commit(identity, files)
        assert open_directory(tmp_path).has(identity)
        assert not table.commit(identity, files)
    assert table.commit(BatchId(QUERY, 2), [])
    for reader in TABLES["parquet"]:
        assert reader(tmp_path, "offset", "value") == [
            (0, {"x": 0, "s": None}),
            (1, {"x": 1, "s": "new"}),
        ], reader
    assert not list((tmp_path / "_minibroker" / ".staged").glob("*"))


def test_a_damaged_list_of_columns(tmp_path: Path) -> None:
    LocalFiles().write(str(tmp_path / "_minibroker" / "columns.json"), '{"schema": "zz"}')
    with pytest.raises(PipelineError, match=r"columns.json is damaged"):
        open_directory(tmp_path).columns()


@pytest.mark.parametrize("prefix", ["", "file:"])
def test_a_directory_may_be_given_as_a_url_of_this_machine(tmp_path: Path, prefix: str) -> None:
    """It came into a directory named `file:` beside the process."""
    files, directory = LocalFiles(), f"{prefix}{tmp_path}"
    table = ParquetDirectory(
        FileArchive(files, directory), files, directory, [], compression="snappy"
    )
    batch = BatchId(QUERY, 0)
    assert table.commit(batch, write_files(table.layout(batch, 1 << 20), [rows(0, 2, days=1)]))
    [name] = file_names(tmp_path)
    assert re.fullmatch(r"part-000000000-[0-9a-f-]{36}\.parquet", name)

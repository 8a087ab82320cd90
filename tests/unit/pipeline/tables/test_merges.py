"""Small files of a day become one: for readers in one step, wherever a kill hits."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.files.file_system import LocalFiles
from minibroker.pipeline.tables import merges
from minibroker.pipeline.tables.file_archive import FileArchive
from minibroker.pipeline.tables.merges import exchange
from minibroker.pipeline.tables.parquet_directory import ParquetDirectory
from minibroker.pipeline.tables.table import BatchId
from minibroker.pipeline.verbs.maintain import maintenance
from minibroker.pipeline.verbs.maintain.maintenance import Maintained
from minibroker.pipeline.verbs.maintain.plan import MaintainPlan
from tests.pipeline.table_readers import READERS
from tests.support.data_files import write_files
from tests.unit.pipeline.tables.archives import QUERY, offsets_in, rows

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

BATCHES = 4


class Archive:
    """An archive of Parquet files, each batch with a file for each of two days."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        job = '{"job": "archive", "format": "parquet"}'
        LocalFiles().write(str(directory / "_minibroker" / "job.json"), job)
        self.offsets: list[int] = []
        for _ in range(BATCHES):
            self.grow()

    def grow(self) -> None:
        batch = BatchId(QUERY, len(self.offsets) // 2)
        files = FileArchive(LocalFiles(), str(self.directory))
        place = ParquetDirectory(files, LocalFiles(), str(self.directory), (), compression="snappy")
        first = batch.number * 2
        data_files = write_files(place.layout(batch, 1 << 20), [rows(first, 2, days=2)])
        assert place.commit(batch, data_files)
        self.offsets += [first, first + 1]

    def names(self) -> list[str]:
        """The names of the lists, which are those of the files."""
        names = sorted(FileArchive(LocalFiles(), str(self.directory)).names())
        paths = self.directory.glob("topic=*/date=*/*.parquet")
        assert names == sorted(str(path.relative_to(self.directory)) for path in paths)
        return names

    def maintain(self) -> Maintained:
        return maintenance.run(MaintainPlan(str(self.directory)))

    def grow_old(self) -> None:
        """Make the merges so old that no reader lists their old directories any more."""
        for path in (self.directory / "_minibroker" / "merges").iterdir():
            made_s = path.stat().st_mtime - merges.OLD_FILES_S
            os.utime(path, (made_s, made_s))

    def old_files(self) -> list[Path]:
        return list((self.directory / "_minibroker" / ".merging").glob("**/*.parquet"))

    def check(self) -> None:
        self.names()
        assert offsets_in("parquet", self.directory) == self.offsets


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Archive:
    monkeypatch.setattr("tests.unit.pipeline.tables.archives.DAYS", 1)
    return Archive(tmp_path / "archive")


def test_small_files_become_one_for_each_day(archive: Archive) -> None:
    assert archive.maintain() == Maintained(merged_files=2 * BATCHES, into_files=2)
    archive.check()
    names = archive.names()
    assert len(names) == 2
    columns = [pq.read_metadata(archive.directory / name).row_group(0).column(0) for name in names]
    assert {column.compression for column in columns} == {"SNAPPY"}
    assert archive.maintain() == Maintained()
    archive.grow()
    archive.check()
    assert archive.maintain() == Maintained(merged_files=4, into_files=2)
    archive.check()
    archive.grow_old()
    assert len(archive.names()) == 2
    assert not LocalFiles().names(str(archive.directory / "_minibroker" / ".merging"))


def test_a_directory_opened_before_the_exchange_lists_every_file_behind_it(
    archive: Archive,
) -> None:
    (day, _) = sorted(archive.directory.glob("topic=*/date=*"))
    descriptor = os.open(day, os.O_RDONLY)
    try:
        archive.maintain()
        archive.maintain()
        names = [entry.name for entry in os.scandir(descriptor) if entry.name.endswith(".parquet")]
        assert len(names) == BATCHES
    finally:
        os.close(descriptor)
    assert len(archive.old_files()) == 2 * BATCHES
    archive.grow_old()
    archive.maintain()
    assert not archive.old_files()
    archive.check()


def test_files_that_come_meanwhile_are_kept(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch puts its files into the directory just before it is exchanged."""
    really = merges.exchange

    def exchange(path: Path, other: Path) -> None:
        if len(archive.offsets) == 2 * BATCHES:
            archive.grow()
        really(path, other)

    monkeypatch.setattr(merges, "exchange", exchange)
    archive.maintain()
    archive.check()


@pytest.mark.parametrize("is_exchanged", [False, True])
def test_a_kill_beside_the_exchange(
    archive: Archive, monkeypatch: pytest.MonkeyPatch, is_exchanged: bool
) -> None:
    """A batch came just before; whoever reads the lists next puts its file in place."""
    really = merges.exchange

    def killed(path: Path, other: Path) -> None:
        archive.grow()
        if is_exchanged:
            really(path, other)
        raise KeyboardInterrupt

    monkeypatch.setattr(merges, "exchange", killed)
    with pytest.raises(KeyboardInterrupt):
        archive.maintain()
    archive.check()
    archive.grow()
    archive.check()
    monkeypatch.setattr(merges, "exchange", really)
    archive.maintain()
    archive.check()
    archive.grow_old()
    assert len(archive.names()) == 2
    assert not LocalFiles().names(str(archive.directory / "_minibroker" / ".merging"))


def test_a_kill_before_the_list(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(self: object, merge: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(merges.Merges, "commit", killed)
        with pytest.raises(KeyboardInterrupt):
            archive.maintain()
    archive.check()
    assert archive.maintain().into_files == 2
    archive.check()


def test_a_file_system_that_cannot_exchange(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(path: Path, other: Path) -> None:
        raise PipelineError("cannot")

    monkeypatch.setattr(merges, "exchange", refused)
    with pytest.raises(PipelineError, match="cannot"):
        archive.maintain()
    archive.check()
    assert not LocalFiles().names(str(archive.directory / "_minibroker" / "merges"))


def test_readers_see_each_record_once_meanwhile(archive: Archive) -> None:
    """One that lists a directory before the exchange and opens a file after it gets an error."""
    ended = threading.Event()
    wrong: list[object] = []
    reads = [0] * len(READERS["parquet"])

    def read(
        number: int, reader: Callable[[Path], list[tuple[str, int, int, bytes | None]]]
    ) -> None:
        while not ended.is_set() or not reads[number]:
            old_offsets = list(archive.offsets)
            try:
                offsets = sorted(record[2] for record in reader(archive.directory))
            except Exception as error:
                if "No such file" not in str(error) and "No files found" not in str(error):
                    wrong.append(error)
                continue
            reads[number] += 1
            if len(set(offsets)) != len(offsets) or not set(old_offsets) <= set(offsets):
                wrong.append((old_offsets, offsets))

    readers = [
        threading.Thread(target=read, args=(number, reader))
        for number, reader in enumerate(READERS["parquet"])
    ]
    for reader in readers:
        reader.start()
    for _ in range(10):
        archive.grow()
        archive.maintain()
    ended.set()
    for reader in readers:
        reader.join()
    assert not wrong
    archive.check()


def test_a_day_with_a_directory_inside_stays(archive: Archive) -> None:
    (day, _) = sorted(archive.directory.glob("topic=*/date=*"))
    (day / "of-somebody").mkdir()
    assert archive.maintain() == Maintained(merged_files=BATCHES, into_files=1)
    archive.check()


def test_a_damaged_list_is_one_sentence(archive: Archive) -> None:
    archive.maintain()
    (path,) = (archive.directory / "_minibroker" / "merges").glob("*1.json")
    path.write_text("{")
    with pytest.raises(PipelineError, match="is damaged"):
        archive.names()


def test_each_gets_the_name_of_the_other(tmp_path: Path) -> None:
    first, other = tmp_path / "a" / "first", tmp_path / "b" / "other"
    for directory in (first, other):
        directory.mkdir(parents=True)
        (directory / directory.name).touch()
    exchange(first, other)
    assert (first / "other").exists()
    assert (other / "first").exists()


def test_a_directory_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match=r"are not merged: its file system cannot .*No such"):
        exchange(tmp_path, tmp_path / "nothing")

"""Upkeep of tables: the same rows in fewer files, beside a writer, and what is removed."""

from __future__ import annotations

import fcntl
import threading
from typing import TYPE_CHECKING

import pytest
from pyiceberg.expressions import visitors

from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.files.file_system import LocalFiles
from minibroker.pipeline.tables.file_archive import FileArchive
from minibroker.pipeline.tables.table import BatchId, ListedFile
from minibroker.pipeline.verbs.maintain import maintenance
from minibroker.pipeline.verbs.maintain.maintenance import Maintained, bins
from minibroker.pipeline.verbs.maintain.plan import MaintainPlan
from tests.unit.pipeline.tables.archives import QUERY, offsets_in, open_table, staged, written

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyiceberg.manifest import ManifestFile

    from minibroker.pipeline.tables.data_files import DataFile

FORMATS = ("iceberg", "delta")
BATCHES = 4
OFFSETS = sorted(number * 10 + row for number in range(BATCHES) for row in range(2))


@pytest.fixture(autouse=True)
def one_day(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put all records of `written` on one day."""
    monkeypatch.setattr("tests.unit.pipeline.tables.archives.DAYS", 0)


def filled(file_format: str, directory: Path, days: int | None = None) -> MaintainPlan:
    """An archive of four batches, each with files of its own, and a plan that keeps nothing."""
    job = f'{{"job": "archive", "format": "{file_format}"}}'
    LocalFiles().write(str(directory / "_minibroker" / "job.json"), job)
    LocalFiles().write(str(directory / "_minibroker" / "query"), QUERY)
    table = open_table(file_format, directory)
    for number in range(BATCHES):
        table.commit(BatchId(QUERY, number), written(table, BatchId(QUERY, number), days=days))
    return MaintainPlan(str(directory), keep_ms=0)


def data_files(directory: Path) -> int:
    return len([path for path in directory.rglob("*.parquet") if "_delta_log" not in path.parts])


@pytest.mark.parametrize("file_format", FORMATS)
def test_small_files_are_merged_once(file_format: str, tmp_path: Path) -> None:
    plan = filled(file_format, tmp_path)
    old_files = data_files(tmp_path)
    done = maintenance.run(plan)
    assert done.merged_files == old_files
    assert offsets_in(file_format, tmp_path) == OFFSETS
    assert data_files(tmp_path) == done.into_files == len(open_table(file_format, tmp_path).files())
    again = maintenance.run(plan)
    assert (again.merged_files, again.removed_files) == (0, 0)
    assert open_table(file_format, tmp_path).has(BatchId(QUERY, BATCHES - 1))
    assert offsets_in(file_format, tmp_path) == OFFSETS


@pytest.mark.parametrize("file_format", FORMATS)
def test_a_running_archive_loses_nothing(
    file_format: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It commits a batch between merge and commit, and has written files of the next one."""
    plan = filled(file_format, tmp_path)
    table = open_table(file_format, tmp_path)
    early, later = BatchId(QUERY, BATCHES), BatchId(QUERY, BATCHES + 1)
    uncommitted = written(table, later)
    leftover = written(table, BatchId(QUERY, 0))
    really = type(table).replace

    def replace(self: object, old: Sequence[ListedFile], new: Sequence[DataFile]) -> bool:
        table.commit(early, written(table, early))
        return really(self, old, new)  # type: ignore[arg-type]

    monkeypatch.setattr(type(table), "replace", replace)
    assert maintenance.run(plan).merged_files > 0
    assert offsets_in(file_format, tmp_path) == [*OFFSETS, BATCHES * 10, BATCHES * 10 + 1]
    assert not any((tmp_path / file.path).exists() for file in leftover)
    assert table.commit(later, uncommitted)
    assert len(offsets_in(file_format, tmp_path)) == len(OFFSETS) + 4


def test_a_manifest_that_pyiceberg_skips(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its threads share an evaluator with a state, so one may skip a manifest that it needs."""
    plan = filled("iceberg", tmp_path)
    really = visitors._ManifestEvalVisitor.eval
    skipped: list[str] = []

    def evaluate(self: visitors._ManifestEvalVisitor, manifest: ManifestFile) -> bool:
        is_in_a_pool = threading.current_thread() is not threading.main_thread()
        if is_in_a_pool and not skipped:
            skipped.append(manifest.manifest_path)
            return False
        return really(self, manifest)

    monkeypatch.setattr(visitors._ManifestEvalVisitor, "eval", evaluate)
    assert maintenance.run(plan).merged_files > 0
    assert skipped
    assert offsets_in("iceberg", tmp_path) == OFFSETS


@pytest.mark.parametrize("file_format", FORMATS)
def test_young_versions_keep_their_files(file_format: str, tmp_path: Path) -> None:
    """An upkeep that was killed left a merged file; young versions keep their files."""
    plan = filled(file_format, tmp_path)._replace(keep_ms=3_600_000)
    old_files = data_files(tmp_path)
    killed = open_table(file_format, tmp_path)
    maintenance._merged(killed.merged_layout(1 << 20), killed.files()[:2])
    done = maintenance.run(plan)
    assert (done.merged_files, done.expired_versions) == (old_files, 0)
    assert offsets_in(file_format, tmp_path) == OFFSETS
    assert data_files(tmp_path) >= old_files + done.into_files


def test_files_that_are_merged_together() -> None:
    def file(name: str, size: int, day: str = "2026-11-24") -> ListedFile:
        return ListedFile(name, "t", day, 1, size)

    files = [file("a", 40), file("b", 40), file("c", 40), file("large", 80), file("d", 9, "2026")]
    assert [[file.path for file in chosen] for chosen in bins(files, 100)] == [["a", "b"]]
    assert bins(files[3:], 100) == []


@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize(("files_a_round", "commits"), [(8, 1), (4, 2)])
def test_one_commit_replaces_the_files_of_many_days(
    file_format: str,
    files_a_round: int,
    commits: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A commit looks at every file of the table, so one for each day would be quadratic."""
    monkeypatch.setattr("tests.unit.pipeline.tables.archives.DAYS", 1)
    monkeypatch.setattr(maintenance, "ROUND_FILES", files_a_round)
    plan = filled(file_format, tmp_path, days=2)
    table = open_table(file_format, tmp_path)
    really, replaced = type(table).replace, []

    def replace(self: object, old: Sequence[ListedFile], new: Sequence[DataFile]) -> bool:
        replaced.append((len(old), len(new)))
        return really(self, old, new)  # type: ignore[arg-type]

    monkeypatch.setattr(type(table), "replace", replace)
    done = maintenance.run(plan)
    assert (done.merged_files, done.into_files) == (8, 2)
    assert replaced == [(8 // commits, 2 // commits)] * commits
    assert offsets_in(file_format, tmp_path) == OFFSETS


def test_stages_that_nobody_commits_are_removed(tmp_path: Path) -> None:
    job = '{"job": "archive", "format": "csv"}'
    LocalFiles().write(str(tmp_path / "_minibroker" / "job.json"), job)
    archive = FileArchive(LocalFiles(), str(tmp_path))
    archive.commit(BatchId(QUERY, 1), staged(archive, BatchId(QUERY, 1), "part-0"))
    staged(archive, BatchId(QUERY, 0), "left")
    assert maintenance.run(MaintainPlan(str(tmp_path))) == Maintained(removed_files=1)


def test_an_impossible_upkeep_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match="there is no archive at"):
        maintenance.run(MaintainPlan(str(tmp_path)))
    with pytest.raises(PipelineError, match="archives that are maintained cannot be at hdfs://n/d"):
        maintenance.run(MaintainPlan("hdfs://n/d"))
    plan = filled("delta", tmp_path)
    with (tmp_path / "_minibroker" / "maintain.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(PipelineError, match=r"another maintain of .* is running"):
            maintenance.run(plan)

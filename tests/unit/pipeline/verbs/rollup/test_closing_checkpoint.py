"""The copied files of a rollup's checkpoint, and the additional ones."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

import pytest

from minibroker.pipeline.files.file_system import LocalFiles
from minibroker.pipeline.kafka.cluster import Kafka
from minibroker.pipeline.verbs.rollup import closing_checkpoint, provisional_windows
from minibroker.pipeline.verbs.rollup.closing_checkpoint import not_needed
from minibroker.pipeline.verbs.rollup.plan import RollupPlan

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


FILES = LocalFiles()


def fill(checkpoint: Path, *names: str) -> None:
    for name in names:
        path = checkpoint / name
        path.parent.mkdir(parents=True, exist_ok=True)
        metadata = json.dumps({"batchWatermarkMs": 7, "batchTimestampMs": 8, "conf": {"a": "b"}})
        path.write_text(f'v1\n{metadata}\n{{"t": {{"0": 5}}}}')


def files_in(directory: Path) -> set[str]:
    return {str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file()}


def test_its_next_batch_reads_nothing_and_is_behind_every_window(tmp_path: Path) -> None:
    """Batch 5 was begun and is not committed: the copy knows nothing of it."""
    fill(tmp_path, *(f"offsets/{number}" for number in (3, 4, 5)), "offsets/.4.crc")
    fill(tmp_path, "commits/3", "commits/4", "metadata", "sources/0/0")
    fill(tmp_path, "state/0/0/4.delta", "state/0/0/5.delta", "state/0/0/6.delta")
    old_files = files_in(tmp_path)
    copy = closing_checkpoint.make(FILES, str(tmp_path))
    assert copy == str(tmp_path / "provisional")
    assert files_in(tmp_path / "provisional") == {
        *("offsets/4", "offsets/.4.crc", "offsets/5", "commits/4", "metadata", "sources/0/0"),
        *("state/0/0/4.delta", "state/0/0/5.delta"),
    }
    version, metadata, source = (tmp_path / "provisional/offsets/5").read_text().splitlines()
    assert (version, source) == ("v1", '{"t": {"0": 5}}')
    assert json.loads(metadata) == {
        "batchWatermarkMs": 400_000_000_000_000,
        "batchTimestampMs": 8,
        "conf": {"a": "b"},
    }
    assert closing_checkpoint.make(FILES, str(tmp_path)) == copy  # a copy has no copy in it
    assert not (tmp_path / "provisional" / "provisional").exists()
    closing_checkpoint.remove(FILES, str(tmp_path))
    assert files_in(tmp_path) == old_files


def test_no_closing_checkpoint_is_made_before_the_first_batch_is_done(tmp_path: Path) -> None:
    fill(tmp_path, "offsets/0")
    assert closing_checkpoint.make(FILES, str(tmp_path)) is None
    assert closing_checkpoint.make(FILES, str(tmp_path / "nowhere")) is None
    assert files_in(tmp_path) == {"offsets/0"}


def test_of_the_state_the_newest_snapshot_and_what_follows_is_needed() -> None:
    names = [
        *("3.delta", "4.snapshot", "4.delta", ".4.delta.crc", "5.delta", "5.snapshot"),
        *("6.delta", ".6.delta.crc", "7.delta", "7.snapshot", ".7.delta.0.tmp", "_metadata"),
    ]
    left_out = not_needed("state/0/1", names, committed=5)
    assert set(names) - set(left_out) == {
        *("5.delta", "5.snapshot", "6.delta", ".6.delta.crc", "_metadata")
    }
    assert not_needed("state/0/1", ["1.zip", "9.changelog", "SSTs"], committed=5) == []
    assert not_needed("state/0/1", ["1.delta", "2.delta"], committed=1) == []


# Provisional files and Spark's list of them, killed at every step.


FINAL = "date=2026-11-21/part-0.parquet"
NO_SPARK = cast("Any", None)
CHANGES = ("write", "remove", "rename", "copy_tree")


class Killed(BaseException):
    """An exception like kill -9: no code catches it."""


def rollup_in(directory: Path) -> RollupPlan:
    """Its directory after a batch with one final file; its path is one that may be mistaken."""
    rollup_directory = directory / "provisional-of ü"
    offsets = 'v1\n{"batchWatermarkMs": 1}\n{"t": {"0": 5}}'
    texts = {
        FINAL: "final",
        "_spark_metadata/0": "v1\n" + json.dumps({"path": (rollup_directory / FINAL).as_uri()}),
        "_spark_metadata/.0.crc": "of the list",
        "_minibroker/checkpoint/offsets/0": offsets,
        "_minibroker/checkpoint/commits/0": "v1",
    }
    for name, text in texts.items():
        (rollup_directory / name).parent.mkdir(parents=True, exist_ok=True)
        (rollup_directory / name).write_text(text)
    return RollupPlan(Kafka(), "t", 60_000, ("count(*)",), str(rollup_directory))


def names_listed(plan: RollupPlan) -> list[str]:
    """Return what Spark reads."""
    lines = LocalFiles().read(f"{plan.to}/_spark_metadata/0") or ""
    return [json.loads(line)["path"].rpartition("/")[2] for line in lines.splitlines()[1:]]


def names_in(plan: RollupPlan) -> list[str]:
    """Return the files that other readers see."""
    files = LocalFiles()
    names = [name for name in files.names(plan.to) if not name.startswith("_")]
    return [name for date in names for name in files.names(f"{plan.to}/{date}")]


@pytest.fixture
def write(monkeypatch: pytest.MonkeyPatch) -> Callable[[RollupPlan], int]:
    """`provisional_windows.write`, with two files of Spark."""

    def write_rows(*arguments: Any) -> int:
        rows = arguments[-1]
        for name in ("date=2026-11-21/part-7.parquet", "date=2026-11-22/part-8.parquet"):
            LocalFiles().write(f"{rows}/{name}", "row")
        LocalFiles().write(f"{rows}/_SUCCESS", "")
        return 5

    monkeypatch.setattr(provisional_windows, "_write_rows", write_rows)
    return lambda plan: provisional_windows.write(NO_SPARK, plan, NO_SPARK)


def test_provisional_files_are_listed_until_they_are_withdrawn(
    tmp_path: Path, write: Callable[[RollupPlan], int]
) -> None:
    plan = rollup_in(tmp_path)
    assert write(plan) == 5
    names = ["provisional-part-7.parquet", "provisional-part-8.parquet"]
    assert names_listed(plan) == ["part-0.parquet", *names]
    assert names_in(plan) == ["part-0.parquet", *names]
    assert not LocalFiles().read(f"{plan.to}/_spark_metadata/.0.crc")
    provisional_windows.remove(NO_SPARK, plan)
    assert names_listed(plan) == names_in(plan) == ["part-0.parquet"]
    provisional_windows.remove(NO_SPARK, plan)
    assert names_listed(plan) == ["part-0.parquet"]


def test_a_line_of_spark_has_what_its_reader_needs(
    tmp_path: Path, write: Callable[[RollupPlan], int]
) -> None:
    plan = rollup_in(tmp_path)
    write(plan)
    text = LocalFiles().read(f"{plan.to}/_spark_metadata/0") or ""
    answer = json.loads(text.splitlines()[-1])
    assert answer.pop("modificationTime") > 1_700_000_000_000
    assert answer == {
        "path": f"{tmp_path.as_uri()}/provisional-of%20%C3%BC/date%3D2026-11-22/"
        "provisional-part-8.parquet",
        "size": 3,
        "isDir": False,
        "blockReplication": 1,
        "blockSize": 33_554_432,
        "action": "add",
    }


@pytest.mark.parametrize("dies", ["write", "remove"])
def test_killed_at_any_step_the_next_run_takes_all_of_it_away(
    dies: str, tmp_path: Path, write: Callable[[RollupPlan], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also in the middle of `remove`, and what is in Spark's list is always there."""
    for step in range(100):
        plan = rollup_in(tmp_path / str(step))
        if dies == "remove":
            write(plan)
        with monkeypatch.context() as patch:
            steps_left = [step]
            for name in CHANGES:
                patch.setattr(LocalFiles, name, killed_after(getattr(LocalFiles, name), steps_left))
            try:
                if dies == "remove":
                    provisional_windows.remove(NO_SPARK, plan)
                else:
                    write(plan)
                was_killed = False
            except Killed:
                was_killed = True
        assert dies == "remove" or set(names_listed(plan)) <= set(names_in(plan))
        provisional_windows.remove(NO_SPARK, plan)
        assert names_listed(plan) == names_in(plan) == ["part-0.parquet"]
        assert not (tmp_path / str(step) / "_minibroker" / "provisional.list").exists()
        assert write(plan) == 5
        assert names_listed(plan) == names_in(plan)
        if not was_killed:
            assert step >= 4
            return
    raise AssertionError("it has more steps than this test")


def killed_after(change: Callable[..., None], steps_left: list[int]) -> Callable[..., None]:
    """`change`, while `left` allows one more; `left` is shared by all changes."""

    def change_or_die(*arguments: Any) -> None:
        if not steps_left[0]:
            raise Killed
        steps_left[0] -= 1
        change(*arguments)

    return change_or_die

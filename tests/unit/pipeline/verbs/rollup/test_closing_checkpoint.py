"""The copied files of a rollup's checkpoint, and the additional ones."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from minibroker.pipeline.files.file_system import LocalFiles
from minibroker.pipeline.verbs.rollup import closing_checkpoint
from minibroker.pipeline.verbs.rollup.closing_checkpoint import not_needed

if TYPE_CHECKING:
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
    before = files_in(tmp_path)
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
    assert files_in(tmp_path) == before


def test_before_the_first_batch_is_done_there_is_none(tmp_path: Path) -> None:
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

"""The query of a checkpoint, and the one query that may write a directory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.pipeline.checkpoints.query_identity import begin_batch, check_owner, query_of
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.files.file_system import LocalFiles

if TYPE_CHECKING:
    from pathlib import Path


def test_the_query_of_a_checkpoint(tmp_path: Path) -> None:
    (tmp_path / "metadata").write_text('{"id": "q"}')
    assert query_of(LocalFiles(), str(tmp_path)) == "q"
    (tmp_path / "metadata").write_text("{}")
    with pytest.raises(PipelineError, match="metadata is damaged"):
        query_of(LocalFiles(), str(tmp_path))


def test_another_query_may_not_write(tmp_path: Path) -> None:
    for _ in range(2):
        check_owner(LocalFiles(), str(tmp_path), "q")
    with pytest.raises(PipelineError, match="was written with another checkpoint"):
        check_owner(LocalFiles(), str(tmp_path), "another")


def test_a_batch_may_be_repeated_and_an_old_checkpoint_writes_nothing(tmp_path: Path) -> None:
    """Its next batches have numbers that were written, and other records."""
    files, directory, checkpoint = LocalFiles(), str(tmp_path), tmp_path / "checkpoint"
    (checkpoint / "offsets").mkdir(parents=True)
    (checkpoint / "metadata").write_text('{"id": "q"}')

    def begin(number: int, end: int) -> str:
        (checkpoint / "offsets" / str(number)).write_text(f'v1\n{{}}\n{{"t":{{"0":{end}}}}}')
        return begin_batch(files, directory, files, str(checkpoint), number)

    for number, end in ((0, 10), (1, 20), (1, 20), (2, 20), (2, 20)):
        assert begin(number, end) == "q"
    for number, end in ((1, 20), (0, 10), (2, 30)):
        with pytest.raises(PipelineError, match=f"is older than .*: the next batch is {number}, "):
            begin(number, end)
    assert begin(3, 30) == "q"
    (tmp_path / "_minibroker" / "begun.json").write_text("3")
    with pytest.raises(PipelineError, match=r"begun\.json is damaged"):
        begin(4, 40)

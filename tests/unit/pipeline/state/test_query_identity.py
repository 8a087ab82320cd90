"""The query of a checkpoint, and the one query that may write a directory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.files import LocalFiles
from minibroker.pipeline.state.query_identity import check_owner, query_of

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

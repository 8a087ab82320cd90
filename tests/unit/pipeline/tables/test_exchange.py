"""Two directories change their names; what cannot is one sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.tables.exchange import exchange

if TYPE_CHECKING:
    from pathlib import Path


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

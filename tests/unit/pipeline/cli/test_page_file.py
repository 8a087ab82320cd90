"""The file of a page: refused before the job, or written."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.pipeline.cli import page_file
from minibroker.pipeline.errors import PipelineError

if TYPE_CHECKING:
    from pathlib import Path


def test_a_page_is_written_where_it_can_be(tmp_path: Path) -> None:
    path = str(tmp_path / "page.html")
    page_file.check(None)
    page_file.check(path)
    page_file.write(path, "<p>ä</p>")
    assert (tmp_path / "page.html").read_bytes() == "<p>ä</p>".encode()


def test_the_sentence_names_the_page_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match=r"nowhere/page\.html cannot be written: its dir"):
        page_file.check(str(tmp_path / "nowhere" / "page.html"))
    with pytest.raises(PipelineError, match=f"{tmp_path} cannot be written: Is a directory"):
        page_file.write(str(tmp_path), "")


def test_a_page_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text("old")
    with path.open() as reader:
        page_file.write(str(path), "new")
        assert (reader.read(), path.read_text()) == ("old", "new")
    assert list(tmp_path.iterdir()) == [path]

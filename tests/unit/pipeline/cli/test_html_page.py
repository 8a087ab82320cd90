"""The file of a page."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.pipeline.cli import html_page
from minibroker.pipeline.errors import PipelineError

if TYPE_CHECKING:
    from pathlib import Path


def test_a_page_is_written_where_it_can_be(tmp_path: Path) -> None:
    path = str(tmp_path / "page.html")
    html_page.check(None)
    html_page.check(path)
    html_page.write(path, "<p>ä</p>")
    assert (tmp_path / "page.html").read_bytes() == "<p>ä</p>".encode()


def test_the_sentence_names_the_page_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match=r"nowhere/page\.html cannot be written: its dir"):
        html_page.check(str(tmp_path / "nowhere" / "page.html"))
    with pytest.raises(PipelineError, match=f"{tmp_path} cannot be written: Is a directory"):
        html_page.write(str(tmp_path), "")

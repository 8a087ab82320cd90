"""Paths and URLs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.pipeline.files.paths import absolute, is_remote, join
from minibroker.pipeline.options.kinds import is_path

if TYPE_CHECKING:
    from pathlib import Path


def test_paths_urls_and_topics_are_told_apart() -> None:
    assert [is_path(text) for text in ("orders", "./orders", "/a", "s3a://b/c", ".", "..")] == [
        False,
        *(True,) * 5,
    ]
    assert [
        is_remote(text) for text in ("a", "/a", "file:/a", "file:///a", "s3a://b", "hdfs:/a")
    ] == [
        *(False,) * 4,
        True,
        True,
    ]
    assert join("a", "b", "c") == "a/b/c"
    assert join("s3a://b/", "c") == "s3a://b/c"


def test_a_path_of_this_machine_is_one_from_the_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert absolute("./archive") == str(tmp_path / "archive")
    assert absolute("/archive") == "/archive"
    assert absolute("s3a://bucket/archive") == "s3a://bucket/archive"

"""Small files, here; those of URLs go through Hadoop and are seen in tests/pipeline."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.cli.kinds import is_path
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.files.file_system import LocalFiles, files_of, local
from minibroker.pipeline.files.paths import absolute, is_remote, join
from minibroker.pipeline.tables.archived_files import format_of

if TYPE_CHECKING:
    from pathlib import Path


def test_a_path_is_asked_at_once_and_a_url_when_spark_is_there() -> None:
    assert isinstance(files_of("a", None), LocalFiles)
    assert isinstance(files_of("file:///a", None), LocalFiles)
    assert files_of("s3a://bucket/a", None) is None


def test_a_written_file_is_complete(tmp_path: Path) -> None:
    files, path = LocalFiles(), tmp_path / "a" / "b.json"
    assert files.read(str(path)) is None
    assert files.names(str(path.parent)) == []
    files.write(str(path), "ä")
    assert files.read(path.as_uri()) == "ä"
    assert files.names(str(path.parent)) == ["b.json"]
    assert local("file:/a%20b").as_posix() == "/a b"


def test_a_file_is_created_once(tmp_path: Path) -> None:
    files, path = LocalFiles(), tmp_path / "a" / "b"
    assert files.create(str(path), "first")
    assert not files.create(str(path), "second")
    assert (files.read(str(path)), files.names(str(path.parent))) == ("first", ["b"])


def test_a_failed_write_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(PipelineError, match=r"cannot be written: .*; give another directory"):
        LocalFiles().write(str(tmp_path / "file" / "below"), "")


def test_an_archive_is_told_from_everything_else(tmp_path: Path) -> None:
    files = LocalFiles()
    with pytest.raises(PipelineError, match="there is no archive at"):
        format_of(files, str(tmp_path))
    files.write(str(tmp_path / "_minibroker" / "job.json"), '{"job": "archive", "format": "csv"}')
    assert format_of(files, str(tmp_path)) == "csv"
    other = tmp_path / "other"
    files.write(str(other / "_minibroker" / "job.json"), '{"job": "rollup"}')
    with pytest.raises(
        PipelineError, match="is of `minibroker pipeline rollup`: give a directory that"
    ):
        format_of(files, str(other))
    foreign = tmp_path / "foreign"
    files.write(str(foreign / "notes.txt"), "")
    with pytest.raises(PipelineError, match="foreign is no archive: give a directory that"):
        format_of(files, str(foreign))


def test_paths_urls_and_topics_are_told_apart() -> None:
    assert [is_path(text) for text in ("orders", "./orders", "/a", "s3a://b/c", ".", "..")] == [
        False,
        *(True,) * 5,
    ]
    assert [
        is_remote(text) for text in ("a", "/a", "file:/a", "file:///a", "s3a://b", "hdfs:/a")
    ] == [*(False,) * 4, True, True]
    assert join("a", "b", "c") == "a/b/c"
    assert join("s3a://b/", "c") == "s3a://b/c"


def test_a_path_of_this_machine_is_one_from_the_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert absolute("./archive") == str(tmp_path / "archive")
    assert absolute("/archive") == "/archive"
    assert absolute("s3a://bucket/archive") == "s3a://bucket/archive"

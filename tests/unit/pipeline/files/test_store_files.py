"""Files in a store: the same as on this machine, and safe where an answer is lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.files.file_system import LocalFiles
from minibroker.pipeline.files.store_files import MixedFiles, StoreFiles
from tests.support.object_store import BUCKET, LOST, REFUSED, Fault, s3_server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from minibroker.pipeline.files.file_system import FileSystem
    from tests.support.object_store import S3Server


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    with s3_server() as server:
        yield server


@pytest.fixture(params=["here", "there"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[FileSystem, str]:
    if request.param == "here":
        return LocalFiles(), str(tmp_path)
    server = request.getfixturevalue("server")
    return StoreFiles(server.store), f"s3://{BUCKET}/{request.node.originalname}"


def test_files_come_and_go(place: tuple[FileSystem, str]) -> None:
    files, root = place
    path = f"{root}/a/b.json"
    assert files.names(root) == []
    assert files.read(path) is None
    assert not files.has(path)
    assert files.create(path, "one")
    assert not files.create(path, "two")
    assert files.read(path) == "one"
    files.write(path, "three")
    files.write(f"{root}/a.txt", "text")
    assert files.has(path)
    assert not files.has(f"{root}/a")
    assert files.names(root) == ["a", "a.txt"]
    assert files.facts(path).size == len("three")
    assert sorted(file.path for file in files.tree(root)) == [f"{root}/a.txt", path]
    files.rename(path, f"{root}/c/d.json")
    assert (files.read(path), files.read(f"{root}/c/d.json")) == (None, "three")
    with pytest.raises(PipelineError, match=r"e\.json cannot be written"):
        files.rename(path, f"{root}/e.json")
    files.copy_tree(root, f"{root}-copy", lambda at, names: ["a.txt"] if at == "." else [])
    assert [file.path for file in files.tree(f"{root}-copy")] == [f"{root}-copy/c/d.json"]
    files.remove(f"{root}/c")
    files.remove(f"{root}/nothing")
    assert files.names(f"{root}/c") == []
    assert files.names(root) in (["a", "a.txt"], ["a.txt"])


def test_a_file_whose_answer_was_lost_is_this_writers(server: S3Server) -> None:
    files, path = StoreFiles(server.store), f"s3://{BUCKET}/lost/v1.json"
    files.create(path, "mine")
    assert files.create(path, "mine"), "asked again by the client, which got no answer"
    assert not files.create(path, "of another")


def test_an_error_of_the_store_is_one_sentence(server: S3Server) -> None:
    files, path = StoreFiles(server.store), f"s3://{BUCKET}/denied/x"
    for fault in (REFUSED, LOST):
        server.fail(Fault(["PUT"], "denied", fault))
        with pytest.raises(PipelineError, match=r"denied/x cannot be written: .*see --storage"):
            files.write(path, "text")
        assert (files.read(path) is None) == (fault == REFUSED)
    server.fail(Fault(["GET"], "denied", REFUSED))
    with pytest.raises(PipelineError, match="denied/x cannot be read"):
        files.read(path)


def test_a_path_says_where_a_file_is(server: S3Server, tmp_path: Path) -> None:
    files = MixedFiles(server.store)
    with pytest.raises(PipelineError, match="hdfs://name/x is in another store than the archive"):
        files.read("hdfs://name/x")
    for root in (str(tmp_path), f"s3a://{BUCKET}/mixed"):
        assert files.create(f"{root}/x", "text")
        files.write(f"{root}/y", "more")
        files.rename(f"{root}/y", f"{root}/z")
        assert files.names(root) == ["x", "z"]
        assert (files.read(f"{root}/x"), files.has(f"{root}/y")) == ("text", False)
        assert files.facts(f"{root}/z").size == 4
        assert sorted(file.path for file in files.tree(root)) == [f"{root}/x", f"{root}/z"]
        files.copy_tree(root, f"{root}/copy", lambda at, names: [])
        files.remove(f"{root}/copy")
        assert files.names(root) == ["x", "z"]

"""Small files through Hadoop (for URLs) and through Python: the same calls, the same results."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import unquote, urlparse

import pytest

from minibroker.pipeline.files.file_system import FileSystem, HadoopFiles, LocalFiles

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.mark.parametrize("kind", ["python", "hadoop"])
def test_calls_that_jobs_make(spark: SparkSession, kind: str, tmp_path: Path) -> None:
    files: FileSystem = LocalFiles() if kind == "python" else HadoopFiles(spark)
    root = f"{tmp_path.as_uri()}/a b=ü"
    files.write(f"{root}/x/one", "first")
    files.write(f"{root}/x/one", "Ä")  # an old one is replaced, and its checksum
    files.write(f"{root}/x/y/two", "2")
    assert HadoopFiles(spark).read(f"{root}/x/one") == files.read(f"{root}/x/one") == "Ä"
    assert files.read(f"{root}/x/none") is None

    directories: list[str] = []

    def leaves_out(directory: str, names: Sequence[str]) -> list[str]:
        directories.append(directory.removeprefix("./"))
        return [name for name in names if "one" in name]

    files.copy_tree(f"{root}/x", f"{root}/copy/of/x", leaves_out)
    assert directories == [".", "y"]
    assert files.names(f"{root}/copy/of/x") == ["y"]
    assert files.read(f"{root}/copy/of/x/y/two") == "2"

    files.rename(f"{root}/x/one", f"{root}/new/directory/uno")
    assert files.read(f"{root}/new/directory/uno") == "Ä"
    facts = files.facts(f"{root}/new/directory/uno")
    assert facts.size == 2
    assert unquote(urlparse(facts.uri).path) == str(tmp_path / "a b=ü/new/directory/uno")
    assert facts.modified_ms == (tmp_path / "a b=ü/new/directory/uno").stat().st_mtime_ns // 10**6

    for path in ("x", "new/directory/uno", "none"):
        files.remove(f"{root}/{path}")
    assert "x" not in files.names(root)
    assert files.read(f"{root}/new/directory/uno") is None

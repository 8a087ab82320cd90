"""Small files beside what a job writes, on this machine or wherever Spark can write.

A path of this machine is asked directly, so that a wrong one is told before Spark starts; a URL
(`s3a://…`) goes through Hadoop's file systems, which need the session.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import unquote, urlparse

from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.plan import is_remote

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Files(Protocol):
    """What is asked of a file system."""

    def names(self, directory: str) -> list[str]:
        """What is in `directory`, sorted; empty when it is not there."""

    def read(self, path: str) -> str | None:
        """The text of a file, None: not there."""

    def write(self, path: str, text: str) -> None:
        """Make the file, and the directories above it."""


class LocalFiles:
    """Those of this machine."""

    def names(self, directory: str) -> list[str]:
        path = local(directory)
        if path.exists() and not path.is_dir():
            raise PipelineError(f"{directory} is a file: give a directory")
        try:
            return sorted(one.name for one in path.iterdir()) if path.exists() else []
        except OSError as error:
            raise PipelineError(f"{directory} cannot be read: {error.strerror}") from error

    def read(self, path: str) -> str | None:
        try:
            return local(path).read_text(encoding="utf-8")
        except FileNotFoundError:
            return None

    def write(self, path: str, text: str) -> None:
        target = local(path)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            unfinished = target.with_name(f".{target.name}.unfinished")
            with unfinished.open("w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())  # a power cut must not leave the name without its content
            unfinished.replace(target)
        except OSError as error:
            raise PipelineError(
                f"{path} cannot be written: {error.strerror}; give another directory"
            ) from error


class HadoopFiles:
    """Those that Spark's Hadoop knows by their URL."""

    def __init__(self, spark: SparkSession) -> None:
        self._jvm: Any = spark._jvm
        self._conf: Any = spark._jsc.hadoopConfiguration()

    def names(self, directory: str) -> list[str]:
        path = self._path(directory)
        system = path.getFileSystem(self._conf)
        if not system.exists(path):
            return []
        return sorted(one.getPath().getName() for one in system.listStatus(path))

    def read(self, path: str) -> str | None:
        where = self._path(path)
        system = where.getFileSystem(self._conf)
        if not system.exists(where):
            return None
        stream = system.open(where)
        try:
            text: str = self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8")
        finally:
            stream.close()
        return text

    def write(self, path: str, text: str) -> None:
        where = self._path(path)
        stream = where.getFileSystem(self._conf).create(where, True)
        try:
            stream.write(bytearray(text, "utf-8"))
        finally:
            stream.close()

    def _path(self, path: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(path)


def files_of(path: str, spark: SparkSession | None) -> Files | None:
    """Who reads and writes `path`; None: a URL, and there is no session yet."""
    if not is_remote(path):
        return LocalFiles()
    return None if spark is None else HadoopFiles(spark)


def local(path: str) -> Path:
    """A path of this machine, also when it is written as `file:/…`."""
    return Path(unquote(urlparse(path).path)) if path.startswith("file:/") else Path(path)

"""Small files beside what a job writes, on this machine or wherever Spark can write.

A path of this machine is asked directly, so that a wrong one is told before Spark starts; a URL
(`s3a://…`) goes through Hadoop's file systems, which need the session.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol
from urllib.parse import unquote, urlparse

from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.plan import is_remote

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class FileFacts(NamedTuple):
    """Facts about one file."""

    uri: str
    size: int
    """Bytes."""
    modified_ms: int


LeavesOut = Callable[[str, Sequence[str]], Sequence[str]]
"""Directory (from the root of the tree on, "." is the root), names in it → names to leave out."""


class Files(Protocol):
    """What is asked of a file system."""

    def names(self, directory: str) -> list[str]:
        """What is in `directory`, sorted; empty when it is not there."""

    def read(self, path: str) -> str | None:
        """The text of a file, None: not there."""

    def write(self, path: str, text: str) -> None:
        """Make the file in one step, with the directories above it; an old one is replaced."""

    def remove(self, path: str) -> None:
        """Remove a file, or a directory with all that is in it, if it is there."""

    def rename(self, path: str, to: str) -> None:
        """Move a file within a file system, and make the directories above it."""

    def copy_tree(self, directory: str, to: str, leaves_out: LeavesOut) -> None:
        """Copy a directory but for the names that `leaves_out` gives."""

    def facts(self, path: str) -> FileFacts:
        """Return what there is to know of a file."""


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
            # Hadoop's checksum of the old text; without one Hadoop checks nothing.
            target.with_name(f".{target.name}.crc").unlink(missing_ok=True)
            unfinished.replace(target)
        except OSError as error:
            raise _cannot_be_written(path, error) from error

    def remove(self, path: str) -> None:
        target = local(path)
        try:
            if target.is_dir():
                shutil.rmtree(target)
            else:
                target.unlink(missing_ok=True)
        except OSError as error:
            raise _cannot_be_written(path, error) from error

    def rename(self, path: str, to: str) -> None:
        try:
            local(to).parent.mkdir(parents=True, exist_ok=True)
            local(path).replace(local(to))
        except OSError as error:
            raise _cannot_be_written(to, error) from error

    def copy_tree(self, directory: str, to: str, leaves_out: LeavesOut) -> None:
        root = local(directory)
        try:
            shutil.copytree(
                root,
                local(to),
                ignore=lambda found, names: leaves_out(
                    Path(found).relative_to(root).as_posix(), names
                ),
            )
        except OSError as error:
            raise _cannot_be_written(to, error) from error

    def facts(self, path: str) -> FileFacts:
        found = local(path).stat()
        return FileFacts(local(path).absolute().as_uri(), found.st_size, found.st_mtime_ns // 10**6)


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
        where.getFileSystem(self._conf).mkdirs(where.getParent())
        package = self._jvm.org.apache.spark.sql.execution.streaming.checkpointing
        managers = getattr(package, "CheckpointFileManager$").__getattr__("MODULE$")
        stream = managers.create(where.getParent(), self._conf).createAtomic(where, True)
        try:
            stream.write(bytearray(text, "utf-8"))
            stream.close()
        except BaseException:
            stream.cancel()
            raise

    def remove(self, path: str) -> None:
        where = self._path(path)
        where.getFileSystem(self._conf).delete(where, True)

    def rename(self, path: str, to: str) -> None:
        source, target = self._path(path), self._path(to)
        system = source.getFileSystem(self._conf)
        system.mkdirs(target.getParent())
        if not system.rename(source, target):
            raise PipelineError(f"{path} cannot be renamed to {to}; give another directory")

    def copy_tree(self, directory: str, to: str, leaves_out: LeavesOut) -> None:
        root = self._path(directory)
        self._copy(root.getFileSystem(self._conf), root, self._path(to), leaves_out, ".")

    def _copy(self, system: Any, source: Any, target: Any, leaves_out: LeavesOut, at: str) -> None:
        found = {one.getPath().getName(): one for one in system.listStatus(source)}
        system.mkdirs(target)
        for name in sorted(set(found) - set(leaves_out(at, sorted(found)))):
            path, copy = found[name].getPath(), self._jvm.org.apache.hadoop.fs.Path(target, name)
            if found[name].isDirectory():
                self._copy(system, path, copy, leaves_out, f"{at}/{name}")
            else:
                util = self._jvm.org.apache.hadoop.fs.FileUtil
                util.copy(system, path, system, copy, False, True, self._conf)

    def facts(self, path: str) -> FileFacts:
        where = self._path(path)
        found = where.getFileSystem(self._conf).getFileStatus(where)
        uri = found.getPath().toUri().toString()
        return FileFacts(uri, found.getLen(), found.getModificationTime())

    def _path(self, path: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(path)


def files_of(path: str, spark: SparkSession | None) -> Files | None:
    """Who reads and writes `path`; None: a URL, and there is no session yet."""
    if not is_remote(path):
        return LocalFiles()
    return None if spark is None else HadoopFiles(spark)


def _cannot_be_written(path: str, error: OSError) -> PipelineError:
    reason = error.strerror or str(error)
    return PipelineError(f"{path} cannot be written: {reason}; give another directory")


def local(path: str) -> Path:
    """A path of this machine, also when it is written as `file:/…`."""
    return Path(unquote(urlparse(path).path)) if path.startswith("file:/") else Path(path)

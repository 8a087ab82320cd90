"""Small files beside what a job writes, on this machine or wherever Spark can write.

A local path is read directly, so that a wrong one is reported before Spark starts. A URL
(`s3a://…`) goes through Hadoop's file systems, which need the session.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol
from urllib.parse import unquote, urlparse

from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.files.paths import is_remote

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class FileFacts(NamedTuple):
    """Facts about one file."""

    uri: str
    size: int
    """Size of the file in bytes."""
    modified_ms: int


class StoredFile(NamedTuple):
    """One file below a directory."""

    path: str
    size: int
    """Size of the file in bytes."""
    modified_ms: int


LeavesOut = Callable[[str, Sequence[str]], Sequence[str]]
"""A directory (relative to the root of the tree, "." is the root) and its names → names to leave
out.
"""


class FileSystem(Protocol):
    """The calls that a file system offers here."""

    def names(self, directory: str) -> list[str]:
        """Return the names in `directory`, sorted; empty if the directory does not exist."""

    def read(self, path: str) -> str | None:
        """Return the text of a file, None if it does not exist."""

    def has(self, path: str) -> bool:
        """Return whether there is a file with this path."""

    def write(self, path: str, text: str) -> None:
        """Make or replace a file in one step, with the directories above it."""

    def create(self, path: str, text: str) -> bool:
        """Make a file in one step, with the directories above it; return False if there is one."""

    def remove(self, path: str) -> None:
        """Remove a file, or a directory with its content; do nothing if it does not exist."""

    def rename(self, path: str, to: str) -> None:
        """Move a file within a file system; make the directories above it."""

    def copy_tree(self, directory: str, to: str, leaves_out: LeavesOut) -> None:
        """Copy a directory without the names that `leaves_out` returns."""

    def facts(self, path: str) -> FileFacts:
        """Return size and time of a file."""

    def tree(self, directory: str) -> Iterator[StoredFile]:
        """Yield every file below a directory; none if the directory does not exist."""


class LocalFiles:
    """Files of this machine."""

    def names(self, directory: str) -> list[str]:
        path = local(directory)
        if path.exists() and not path.is_dir():
            raise PipelineError(f"{directory} is a file: give a directory")
        try:
            return sorted(child.name for child in path.iterdir()) if path.exists() else []
        except OSError as error:
            raise PipelineError(f"{directory} cannot be read: {error.strerror}") from error

    def read(self, path: str) -> str | None:
        try:
            return local(path).read_text(encoding="utf-8")
        except FileNotFoundError:
            return None

    def has(self, path: str) -> bool:
        return local(path).is_file()

    def write(self, path: str, text: str) -> None:
        target = local(path)
        try:
            unfinished = _write_beside(target, text)
            # Hadoop's checksum of the old text; without one Hadoop checks nothing.
            target.with_name(f".{target.name}.crc").unlink(missing_ok=True)
            unfinished.replace(target)
        except OSError as error:
            raise _cannot_be_written(path, error) from error

    def create(self, path: str, text: str) -> bool:
        target = local(path)
        try:
            unfinished = _write_beside(target, text)
            try:
                os.link(unfinished, target)
            except FileExistsError:
                return False
            finally:
                unfinished.unlink()
        except OSError as error:
            raise _cannot_be_written(path, error) from error
        return True

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
                ignore=lambda folder, names: leaves_out(
                    Path(folder).relative_to(root).as_posix(), names
                ),
            )
        except OSError as error:
            raise _cannot_be_written(to, error) from error

    def facts(self, path: str) -> FileFacts:
        status = local(path).stat()
        return FileFacts(
            local(path).absolute().as_uri(), status.st_size, status.st_mtime_ns // 10**6
        )

    def tree(self, directory: str) -> Iterator[StoredFile]:
        for path in local(directory).rglob("*"):
            if path.is_file():
                status = path.stat()
                yield StoredFile(str(path), status.st_size, status.st_mtime_ns // 10**6)


class HadoopFiles:
    """Files that Spark's Hadoop reaches by URL."""

    def __init__(self, spark: SparkSession) -> None:
        self._jvm: Any = spark._jvm
        self._conf: Any = spark._jsc.hadoopConfiguration()

    def names(self, directory: str) -> list[str]:
        path = self._path(directory)
        system = path.getFileSystem(self._conf)
        if not system.exists(path):
            return []
        return sorted(status.getPath().getName() for status in system.listStatus(path))

    def read(self, path: str) -> str | None:
        hadoop_path = self._path(path)
        system = hadoop_path.getFileSystem(self._conf)
        if not system.exists(hadoop_path):
            return None
        stream = system.open(hadoop_path)
        try:
            text: str = self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8")
        finally:
            stream.close()
        return text

    def has(self, path: str) -> bool:
        hadoop_path = self._path(path)
        system = hadoop_path.getFileSystem(self._conf)
        return bool(system.exists(hadoop_path) and system.getFileStatus(hadoop_path).isFile())

    def write(self, path: str, text: str) -> None:
        self._write(self._path(path), text, overwrite=True)

    def create(self, path: str, text: str) -> bool:
        hadoop_path = self._path(path)
        try:
            self._write(hadoop_path, text, overwrite=False)
        except Exception:
            # The class of the error depends on the file system: what counts is whose file is there.
            if self.read(path) is None:
                raise
            return False
        return True

    def _write(self, hadoop_path: Any, text: str, *, overwrite: bool) -> None:
        hadoop_path.getFileSystem(self._conf).mkdirs(hadoop_path.getParent())
        package = self._jvm.org.apache.spark.sql.execution.streaming.checkpointing
        managers = getattr(package, "CheckpointFileManager$").__getattr__("MODULE$")
        stream = managers.create(hadoop_path.getParent(), self._conf).createAtomic(
            hadoop_path, overwrite
        )
        try:
            stream.write(bytearray(text, "utf-8"))
            stream.close()
        except BaseException:
            stream.cancel()
            raise

    def remove(self, path: str) -> None:
        hadoop_path = self._path(path)
        hadoop_path.getFileSystem(self._conf).delete(hadoop_path, True)

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
        statuses = {status.getPath().getName(): status for status in system.listStatus(source)}
        system.mkdirs(target)
        for name in sorted(set(statuses) - set(leaves_out(at, sorted(statuses)))):
            path, copy = statuses[name].getPath(), self._jvm.org.apache.hadoop.fs.Path(target, name)
            if statuses[name].isDirectory():
                self._copy(system, path, copy, leaves_out, f"{at}/{name}")
            else:
                util = self._jvm.org.apache.hadoop.fs.FileUtil
                util.copy(system, path, system, copy, False, True, self._conf)

    def facts(self, path: str) -> FileFacts:
        hadoop_path = self._path(path)
        status = hadoop_path.getFileSystem(self._conf).getFileStatus(hadoop_path)
        uri = status.getPath().toUri().toString()
        return FileFacts(uri, status.getLen(), status.getModificationTime())

    def tree(self, directory: str) -> Iterator[StoredFile]:
        hadoop_path = self._path(directory)
        system = hadoop_path.getFileSystem(self._conf)
        statuses = system.listFiles(hadoop_path, True) if system.exists(hadoop_path) else None
        while statuses is not None and statuses.hasNext():
            file = statuses.next()
            path = file.getPath().toString()
            yield StoredFile(path, file.getLen(), file.getModificationTime())

    def _path(self, path: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(path)


def files_of(path: str, spark: SparkSession | None) -> FileSystem | None:
    """Return the files that `path` belongs to, None for a URL while there is no session."""
    if spark is None:
        return None if is_remote(path) else LocalFiles()
    return files_with(spark, path)


def files_with(spark: SparkSession, path: str) -> FileSystem:
    """Return the files that `path` belongs to."""
    return HadoopFiles(spark) if is_remote(path) else LocalFiles()


def _write_beside(target: Path, text: str) -> Path:
    """Write `text` into a hidden file beside `target`, whose directories are made."""
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_name(f".{target.name}.{uuid.uuid4()}.unfinished")
    with unfinished.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())  # a power cut must not leave the name without its content
    return unfinished


def _cannot_be_written(path: str, error: OSError) -> PipelineError:
    reason = error.strerror or str(error)
    return PipelineError(f"{path} cannot be written: {reason}; give another directory")


def local(path: str) -> Path:
    """Return a local path, also for one that is written as `file:/…`."""
    return Path(unquote(urlparse(path).path)) if path.startswith("file:/") else Path(path)

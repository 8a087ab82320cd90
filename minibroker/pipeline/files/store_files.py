"""Small files in an object store, without Spark: the same calls as `files`, through obstore.

A store has no directories and no renaming: a directory is the begin of a name, and a file is moved
by a copy that is whole or not there. `create` is one conditional request (`If-None-Match: *`),
which S3 and the stores with its API refuse if the name is taken. So a commit is as safe as a link
in a directory.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError
from obstore.store import S3Store

from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.files.file_system import FileFacts, LocalFiles, StoredFile
from minibroker.pipeline.files.object_stores import ObjectStore, bucket_and_key, is_object_store
from minibroker.pipeline.files.paths import is_remote

if TYPE_CHECKING:
    from minibroker.pipeline.files.file_system import FileSystem, LeavesOut

_ERRORS: Final = (OSError, BaseError)
"""Errors of a request; obstore raises FileNotFoundError for a name that is not there."""


class StoreFiles:
    """Files of one store, in any of its buckets."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._buckets: dict[str, S3Store] = {}

    def names(self, directory: str) -> list[str]:
        bucket, key = self._at(directory)
        with _sentence(directory, "read"):
            listing = obstore.list_with_delimiter(bucket, key or None)
        paths = [*listing["common_prefixes"], *(item["path"] for item in listing["objects"])]
        return sorted({path.rstrip("/").rpartition("/")[2] for path in paths} - {""})

    def read(self, path: str) -> str | None:
        bucket, key = self._at(path)
        with _sentence(path, "read"):
            try:
                return bytes(obstore.get(bucket, key).bytes()).decode()
            except FileNotFoundError:
                return None

    def has(self, path: str) -> bool:
        bucket, key = self._at(path)
        with _sentence(path, "read"):
            try:
                obstore.head(bucket, key)
            except FileNotFoundError:
                return False
        return True

    def write(self, path: str, text: str) -> None:
        bucket, key = self._at(path)
        with _sentence(path, "written"):
            obstore.put(bucket, key, text.encode())

    def create(self, path: str, text: str) -> bool:
        """Do as `FileSystem.create`: a file with this very text counts as made by this call.

        The answer of a request may be lost. The client then asks again, and finds its own file.
        """
        bucket, key = self._at(path)
        with _sentence(path, "written"):
            try:
                obstore.put(bucket, key, text.encode(), mode="create")
            except AlreadyExistsError:
                return self.read(path) == text
        return True

    def remove(self, path: str) -> None:
        bucket, key = self._at(path)
        with _sentence(path, "removed"):
            names = [name for name, _ in self._below(bucket, key)]
            if names:
                obstore.delete(bucket, names)
            obstore.delete(bucket, key)  # a name that is not there is no error

    def rename(self, path: str, to: str) -> None:
        (bucket, key), (_, target) = self._at(path), self._at(to)
        with _sentence(to, "written"):
            obstore.copy(bucket, key, target)
            obstore.delete(bucket, key)

    def copy_tree(self, directory: str, to: str, leaves_out: LeavesOut) -> None:
        self._copy(directory, to, leaves_out, ".")

    def _copy(self, directory: str, to: str, leaves_out: LeavesOut, at: str) -> None:
        names = self.names(directory)
        for name in sorted(set(names) - set(leaves_out(at, names))):
            path, target = f"{directory}/{name}", f"{to}/{name}"
            if self.has(path):
                (bucket, key), (_, copy) = self._at(path), self._at(target)
                with _sentence(target, "written"):
                    obstore.copy(bucket, key, copy)
            else:
                self._copy(path, target, leaves_out, f"{at}/{name}")

    def facts(self, path: str) -> FileFacts:
        bucket, key = self._at(path)
        with _sentence(path, "read"):
            facts = obstore.head(bucket, key)
        return FileFacts(path, facts["size"], int(facts["last_modified"].timestamp() * 1000))

    def tree(self, directory: str) -> Iterator[StoredFile]:
        """Yield every file below a directory."""
        bucket, key = self._at(directory)
        root = directory[: len(directory.rstrip("/")) - len(key)]
        with _sentence(directory, "read"):
            for path, item in self._below(bucket, key):
                modified_ms = int(item["last_modified"].timestamp() * 1000)
                yield StoredFile(f"{root}{path}", item["size"], modified_ms)

    def _below(self, bucket: S3Store, key: str) -> Iterator[tuple[str, Any]]:
        for part in obstore.list(bucket, f"{key}/" if key else None):
            for item in part:
                yield item["path"], item

    def _at(self, path: str) -> tuple[S3Store, str]:
        """Return the bucket of a path, and the name in it."""
        name, key = bucket_and_key(path)
        if name not in self._buckets:
            self._buckets[name] = S3Store(name, **self._store.for_obstore())
        return self._buckets[name], key


class MixedFiles:
    """Files of a store and of this machine: an archive's checkpoint may be here."""

    def __init__(self, store: ObjectStore) -> None:
        self._store_files = StoreFiles(store)
        self._local_files = LocalFiles()

    def names(self, directory: str) -> list[str]:
        return self._of(directory).names(directory)

    def read(self, path: str) -> str | None:
        return self._of(path).read(path)

    def has(self, path: str) -> bool:
        return self._of(path).has(path)

    def write(self, path: str, text: str) -> None:
        self._of(path).write(path, text)

    def create(self, path: str, text: str) -> bool:
        return self._of(path).create(path, text)

    def remove(self, path: str) -> None:
        self._of(path).remove(path)

    def rename(self, path: str, to: str) -> None:
        self._of(path).rename(path, to)

    def copy_tree(self, directory: str, to: str, leaves_out: LeavesOut) -> None:
        self._of(directory).copy_tree(directory, to, leaves_out)

    def facts(self, path: str) -> FileFacts:
        return self._of(path).facts(path)

    def tree(self, directory: str) -> Iterator[StoredFile]:
        return self._of(directory).tree(directory)

    def _of(self, path: str) -> FileSystem:
        if is_object_store(path):
            return self._store_files
        if is_remote(path):
            raise PipelineError(
                f"{path} is in another store than the archive: give s3://BUCKET/DIR, or a path of "
                "this machine"
            )
        return self._local_files


@contextmanager
def _sentence(path: str, done: str) -> Iterator[None]:
    """Turn an error of the store into a PipelineError."""
    try:
        yield
    except _ERRORS as error:
        reason = (str(error).strip() or repr(error)).splitlines()[0]
        raise PipelineError(
            f"{path} cannot be {done}: {reason}; check the store's address and the credentials, "
            "see --storage"
        ) from error

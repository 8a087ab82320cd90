"""The interface of a table that an archive writes: Iceberg, Delta, or files with a manifest.

A table takes the files of a whole batch in one commit, which also has the query and the number of
the batch. So a batch that is written again after a kill is recognised, and no reader ever sees a
part of a batch, or a batch twice.
"""

from __future__ import annotations

import random
import threading
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeVar

from minibroker.pipeline.errors import PipelineError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import pyarrow as pa

    from minibroker.pipeline.files.file_system import FileSystem
    from minibroker.pipeline.files.object_stores import ObjectStore
    from minibroker.pipeline.tables.data_files import DataFile, Layout

Result = TypeVar("Result")

COMMIT_TRIES: Final = 20
_PAUSE_S: Final = 0.05


class TablePlace(NamedTuple):
    """The place of a table, and its access."""

    directory: str
    """Absolute path, or URL of a store."""
    files: FileSystem
    """Files of the directory."""
    store: ObjectStore | None = None
    """Settings of the store, None for a path."""


class BatchId(NamedTuple):
    """The identity of a batch: the id of the query's checkpoint, and the number in it."""

    query: str
    number: int


class ListedFile(NamedTuple):
    """One file that a table lists."""

    path: str
    """Absolute path."""
    topic: str
    date: str
    rows: int
    size: int
    """Size in bytes."""


class Table(Protocol):
    """A table of archived records; used by the driver alone."""

    def layout(self, batch: BatchId, target_bytes: int) -> Layout:
        """Return where and how the tasks write the files of a batch."""

    def has(self, batch: BatchId) -> bool:
        """Return whether a batch is committed."""

    def commit(self, batch: BatchId, files: Sequence[DataFile]) -> bool:
        """List the files of a batch, all in one step; return False if it is committed already.

        Raises:
            PipelineError: other writers of the table were faster each time.
        """

    def columns(self) -> pa.Schema:
        """Return the columns, with the types that a writer of rows needs."""

    def take_in(self, types: Mapping[str, pa.DataType]) -> None:
        """Add columns, and fields inside columns, and widen numbers, in a version of its own.

        Args:
            types: column → type, which takes in the column's type now.

        Raises PipelineError: the table cannot have them.
        """

    def files(self) -> list[ListedFile]:
        """Return the files that a reader of the newest version reads."""

    def merged_layout(self, target_bytes: int) -> Layout:
        """Return where and how merged files are written; their names tell that they are such."""

    def replace(self, old: Sequence[ListedFile], new: Sequence[DataFile]) -> bool:
        """List `new` instead of `old` in one step; return False if one of `old` is not listed."""

    def expire(self, before_ms: int) -> int:
        """Drop the versions before a time, except the newest; return how many these were."""

    def unlisted(self, query: str, keep_ms: int) -> list[str]:
        """Return the absolute paths of data files that no version lists, and none ever will.

        Args:
            query: the one that writes the archive; its files of later batches may still be listed.
            keep_ms: files that were taken out of the table within this time are kept.
        """


class Committed(Protocol):
    """A place of batches: a table, or a directory of files."""

    def has(self, batch: BatchId) -> bool:
        """Return whether a batch is committed."""


def is_repeated(place: Committed, batch: BatchId) -> bool:
    """Return whether a batch is committed and only repeated: it is the last one.

    Raises:
        PipelineError: a later batch is committed, so this one has other records.
    """
    if not place.has(batch):
        return False
    if place.has(batch._replace(number=batch.number + 1)):
        raise PipelineError(
            f"batch {batch.number} is to be written, and a later one is committed: the checkpoint "
            "is older than what it wrote; put the newer one back, or give a new directory"
        )
    return True


def retried(
    table_name: str,
    conflict: type[Exception] | tuple[type[Exception], ...],
    commit: Callable[[], Result],
) -> Result:
    """Return the result of `commit`, which is called again while other writers are faster.

    Args:
        table_name: the table, for the error.
        conflict: errors of the library for a commit that another writer overtook.
        commit: reads the newest version of the table, and commits on it.

    Raises:
        PipelineError: other writers were faster each time.
    """
    for attempt in range(COMMIT_TRIES):
        try:
            return commit()
        except conflict:
            _pause(attempt)
    raise PipelineError(
        f"nothing can be committed to {table_name}: other writers were faster {COMMIT_TRIES} times"
        "; give the same command again"
    )


def committed_once(
    table_name: str,
    conflict: type[Exception] | tuple[type[Exception], ...],
    is_there: Callable[[], bool],
    commit: Callable[[], object],
) -> bool:
    """Commit a batch if the newest version of the table has not got it; return whether it had not.

    Both are called again while other writers are faster: one of them may commit the same batch.

    Args:
        table_name: as of `retried`.
        conflict: as of `retried`.
        is_there: reads the newest version, and returns whether the batch is in it.
        commit: commits the batch on that version.

    Raises:
        PipelineError: other writers were faster each time.
    """

    def attempt() -> bool:
        if is_there():
            return False
        commit()
        return True

    return retried(table_name, conflict, attempt)


def _pause(attempt: int) -> None:
    """Wait a little, longer with each attempt, so that two writers do not meet again."""
    threading.Event().wait(random.uniform(0, _PAUSE_S * (attempt + 1)))


def unknown_time(topic: str) -> PipelineError:
    """Return the error for a record of `topic` whose time the libraries of tables do not know."""
    return PipelineError(
        f"topic {topic!r} has a record that is dated outside of the years 1 to 9999, which a table "
        "cannot keep: an earlier version wrote its file; begin anew in another directory"
    )

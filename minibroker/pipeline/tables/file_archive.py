"""An archive of files (Parquet, JSON, CSV) whose readers see no record before it is committed.

    DIR/topic=T/date=D/part-….parquet      the records: every file here is committed
    DIR/_minibroker/batches/000000007.json the files of batch 7, in one step: this is the commit
    DIR/_minibroker/.staged/…              files of a batch before that; readers skip such names

Files are moved to their places after the commit. A kill between the moves leaves files that are
committed and not moved yet; the next run, `replay` and `maintain` move them. So a reader of DIR may
miss records of the last batch for a while, and never sees a record twice or one that does not
count. All names are relative: DIR can be moved. `merges` puts large files in place of
small ones.

Archives that Spark's file sink has begun have `_spark_metadata` instead, and stay as they are.
"""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING, Any, Final

from minibroker.pipeline.errors import PipelineError, damage
from minibroker.pipeline.files.paths import JOB_DIRECTORY, join
from minibroker.pipeline.tables.merges import Merges

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from minibroker.pipeline.files.file_system import FileSystem
    from minibroker.pipeline.tables.table import BatchId

_BATCHES: Final = "batches"
STAGED: Final = ".staged"
_LISTS_OF_SPARK: Final = "_spark_metadata"


class FileArchive:
    """The committed and the staged files of one directory; used by the driver alone."""

    def __init__(self, files: FileSystem, directory: str) -> None:
        self._files = files
        self._directory = directory
        self.merges = Merges(files, directory)

    def is_of_spark(self) -> bool:
        """Return whether Spark's file sink has begun this archive."""
        return bool(self._files.names(join(self._directory, _LISTS_OF_SPARK)))

    def new_stage(self, batch: BatchId) -> str:
        """Return the path of a directory that no other run of this batch writes into."""
        return self._in(STAGED, f"{_name(batch.number)}-{uuid.uuid4()}")

    def has(self, batch: BatchId) -> bool:
        """Return whether a batch is committed, and then move its files to their places."""
        return self._finish(batch.number)

    def commit(self, batch: BatchId, stage: str, names: Sequence[str] | None = None) -> bool:
        """Commit files below `stage` in one step; return False if another run did it.

        Args:
            batch: the one whose records they have.
            stage: of `new_stage`.
            names: the files as `topic=…/date=…/NAME`; None: all that there are. An attempt of a
                task that failed leaves files that do not count.

        Raises:
            PipelineError: files cannot be written or moved.
        """
        if names is None:
            names = list(self._files_below(stage))
        entry = {"query": batch.query, "stage": stage.rpartition("/")[2], "files": list(names)}
        is_ours = self._files.create(self._list_of(batch.number), json.dumps(entry) + "\n")
        self._finish(batch.number)
        return is_ours

    def finish(self) -> int | None:
        """Move files to their places that a killed run left elsewhere.

        Returns the number of the last batch, None if there is none.
        """
        self.merges.finish()
        numbers = self._numbers()
        if not numbers:
            return None
        self._finish(max(numbers))
        return max(numbers)

    def names(self) -> Iterator[str]:
        """Yield the paths of all committed files, below the directory.

        Raises PipelineError for a damaged list.
        """
        self.finish()
        committed = (name for number in self._numbers() for name in self._read(number)["files"])
        yield from self.merges.names_of(committed)

    def stages(self) -> list[str]:
        """Return the names of the directories with files that are not at their places."""
        return self._files.names(self._in(STAGED))

    def _finish(self, number: int) -> bool:
        """Move the files of a batch; return False if it is not committed."""
        if self._files.read(self._list_of(number)) is None:
            return False
        entry = self._read(number)
        stage, counts = self._in(STAGED, entry["stage"]), set(entry["files"])
        for name in self._files_below(stage):
            if name in counts:
                self._move(join(stage, name), join(self._directory, name))
        self._remove_stages(number)
        return True

    def _remove_stages(self, number: int) -> None:
        """Remove what runs of a committed batch and of those before it left."""
        for name in self.stages():
            if name.partition("-")[0] <= _name(number):
                self._files.remove(self._in(STAGED, name))

    def _move(self, path: str, to: str) -> None:
        """Move a file; another process may have done it, or exchanged the directory, just now."""
        try:
            self._files.rename(path, to)
        except PipelineError:
            directory, _, name = to.rpartition("/")
            if name not in self._files.names(directory):
                self._files.rename(path, to)

    def _files_below(self, directory: str, prefix: str = "") -> Iterator[str]:
        """Yield the data files of a stage, as paths below it: `topic=…/date=…/NAME`."""
        for name in self._files.names(directory):
            if "=" in name:
                yield from self._files_below(join(directory, name), f"{prefix}{name}/")
            elif not name.startswith((".", "_")):
                yield f"{prefix}{name}"

    def _numbers(self) -> list[int]:
        names = self._files.names(self._in(_BATCHES))
        return sorted(int(name[:-5]) for name in names if name[:-5].isdecimal())

    def _read(self, number: int) -> Mapping[str, Any]:
        path = self._list_of(number)
        try:
            plain = json.loads(self._files.read(path) or "")
            return {"stage": plain["stage"], "files": [str(name) for name in plain["files"]]}
        except (ValueError, KeyError, TypeError) as error:
            raise damage(path, error) from error

    def _list_of(self, number: int) -> str:
        return self._in(_BATCHES, f"{_name(number)}.json")

    def _in(self, *names: str) -> str:
        return join(self._directory, JOB_DIRECTORY, *names)


def _name(number: int) -> str:
    return f"{number:09d}"

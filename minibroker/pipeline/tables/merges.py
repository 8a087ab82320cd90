"""Merges of an archive's files: the files of a topic and day become few, in one step for readers.

Readers of `DIR/topic=T/date=D/*.parquet` know no list. So a whole directory is made anew beside the
old one, and both are exchanged in one step:

    DIR/_minibroker/.merging/7/topic=T/date=D   the new directory; after the exchange the old one
    DIR/_minibroker/merges/000000007.json       directory, old names, new names

    merged files, links to the others ─► list ─► exchange ─► late files ─► old directory removed

The exchange is the commit: a merge counts if its new files are in their place. The list is made
before it, so that `names` tells at any moment what readers see. An archive may put a file into the
old directory just before the exchange. It is found there afterwards, and moved to the new one, by
whoever comes first: this run, the next one, or a reader of the lists. A kill leaves either the old
directory or the new one.

A reader that has opened the old directory lists it after the exchange. So its files stay for
`OLD_FILES_S`; the next upkeep, batch or reader of the lists behind that time removes them.

One upkeep at a time makes merges (`maintain.maintenance`). Paths are of this machine.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from minibroker.clock import SystemClock
from minibroker.pipeline.errors import PipelineError, damage
from minibroker.pipeline.files.paths import JOB_DIRECTORY, join

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from minibroker.pipeline.files.file_system import FileSystem

OLD_FILES_S: Final = 60.0
"""Time from an exchange to the removal of the old files: longer than a directory stays open between
its opening and its list.
"""
_MERGES: Final = "merges"
_MERGING: Final = ".merging"


class Merge(NamedTuple):
    """One directory whose files became others."""

    number: int
    directory: str
    """`topic=…/date=…`"""
    old: Sequence[str]
    """Names in the directory."""
    new: Sequence[str]


class Merges:
    """The merges of one archive."""

    def __init__(self, files: FileSystem, directory: str) -> None:
        self._files = files
        self._directory = directory

    def done(self) -> list[Merge]:
        """Return the merges that count, in their order. Raises PipelineError for a damaged list."""
        merges = [self._read(number) for number in self._numbers()]
        if merges and not self._is_done(merges[-1]):
            merges.pop()  # each of the others was done before the next one began
        return merges

    def names_of(self, committed: Iterable[str]) -> Iterator[str]:
        """Yield the paths of all files below the directory; `committed` are those of batches."""
        old, new = set(), []
        for merge in self.done():
            old |= {f"{merge.directory}/{name}" for name in merge.old}
            new += [f"{merge.directory}/{name}" for name in merge.new]
        for names in (committed, new):
            for name in names:
                if name not in old:
                    yield name

    def finish(self) -> None:
        """Move late files into their place; remove old directories that no reader lists now."""
        stages = set(self._files.names(self._in(_MERGING)))
        for merge in self.done() if stages else ():
            if str(merge.number) in stages:
                self._sweep(merge)

    def begin(self) -> None:
        """Finish what a killed upkeep left, or remove what does not count; for an upkeep alone."""
        done = self.done()
        for merge in done:
            self._sweep(merge)
        counts = {merge.number for merge in done}
        for number in self._numbers():
            if number not in counts:
                self._files.remove(self._list_of(number))
        for name in self._files.names(self._in(_MERGING)):
            if not (name.isdecimal() and int(name) in counts):
                self._files.remove(self._in(_MERGING, name))

    def new_stage(self) -> tuple[int, str]:
        """Return the number of the next merge, and its stage as a path below the directory."""
        number = max(self._numbers(), default=0) + 1
        return number, f"{JOB_DIRECTORY}/{_MERGING}/{number}"

    def commit(self, merge: Merge) -> None:
        """Put the new files of a merge, which are in its stage, in place of the old ones.

        Raises PipelineError if the file system cannot do that.
        """
        place, new = self._places(merge)
        old_names = _old_names(merge)
        for entry in place.iterdir():
            if entry.name not in old_names:
                os.link(entry, new / entry.name)
        fields = {"directory": merge.directory, "old": merge.old, "new": merge.new}
        self._files.create(self._list_of(merge.number), json.dumps(fields) + "\n")
        try:
            exchange(place, new)
        except PipelineError:
            self._files.remove(self._list_of(merge.number))
            self._files.remove(self._stage(merge.number))
            raise
        self._sweep(merge)

    def _sweep(self, merge: Merge) -> None:
        """Move the late files of the old directory, and remove it when its time is over."""
        place, old_place = self._places(merge)
        old_names = _old_names(merge)
        is_over = self._age_s(merge) >= OLD_FILES_S
        while old_place.exists():
            with suppress(FileNotFoundError):  # another process does the same
                for entry in old_place.iterdir():
                    if entry.name not in old_names and not (place / entry.name).exists():
                        entry.replace(place / entry.name)
                    elif is_over:
                        entry.unlink()
                if not is_over:
                    return
                _remove_if_empty(old_place)
        for empty in (old_place.parent, old_place.parent.parent):
            with suppress(OSError):
                empty.rmdir()

    def _age_s(self, merge: Merge) -> float:
        """Return the time since a merge's list was made, which is just before its exchange."""
        made_s = Path(self._list_of(merge.number)).stat().st_mtime
        return SystemClock().now_ms() / 1000 - made_s

    def _is_done(self, merge: Merge) -> bool:
        return all(
            self._files.has(join(self._directory, merge.directory, name)) for name in merge.new
        )

    def _places(self, merge: Merge) -> tuple[Path, Path]:
        """Return the directory that readers see, and the one in the stage."""
        return (
            Path(self._directory, merge.directory),
            Path(self._stage(merge.number), merge.directory),
        )

    def _numbers(self) -> list[int]:
        names = self._files.names(self._in(_MERGES))
        return sorted(int(name[:-5]) for name in names if name[:-5].isdecimal())

    def _read(self, number: int) -> Merge:
        path = self._list_of(number)
        try:
            fields: dict[str, Any] = json.loads(self._files.read(path) or "")
            return Merge(number, fields["directory"], fields["old"], fields["new"])
        except (ValueError, KeyError, TypeError) as error:
            raise damage(path, error) from error

    def _stage(self, number: int) -> str:
        return self._in(_MERGING, str(number))

    def _list_of(self, number: int) -> str:
        return self._in(_MERGES, f"{number:09d}.json")

    def _in(self, *names: str) -> str:
        return join(self._directory, JOB_DIRECTORY, *names)


def _old_names(merge: Merge) -> set[str]:
    """Return the names that a merge takes out, with those of Hadoop's checksums."""
    return {*merge.old, *(f".{name}.crc" for name in merge.old)}


def _remove_if_empty(directory: Path) -> None:
    """Remove a directory, unless a file has come into it. Raises FileNotFoundError."""
    try:
        directory.rmdir()
    except OSError as error:
        if error.errno != errno.ENOTEMPTY:
            raise


_AT_FDCWD: Final = -100
"""AT_FDCWD: paths are relative to the directory of the process."""
_LINUX_EXCHANGE: Final = 2
_MACOS_SWAP: Final = 2


def exchange(path: Path, other: Path) -> None:
    """Exchange two directories of a file system; on the disk when this returns.

    Raises PipelineError if the system or the file system cannot do it.
    """
    library = ctypes.CDLL(None, use_errno=True)
    paths = os.fsencode(path), os.fsencode(other)
    if sys.platform == "darwin":
        status = library.renamex_np(*paths, _MACOS_SWAP)
    elif hasattr(library, "renameat2"):
        status = library.renameat2(_AT_FDCWD, paths[0], _AT_FDCWD, paths[1], _LINUX_EXCHANGE)
    else:
        status = -1
        ctypes.set_errno(errno.ENOSYS)
    if status:
        raise PipelineError(
            f"small files of {path} are not merged: its file system cannot exchange two "
            f"directories in one step ({os.strerror(ctypes.get_errno())})"
        )
    for directory in {path.parent, other.parent}:
        _sync(directory)


def _sync(directory: Path) -> None:
    """Put the names in a directory on the disk."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

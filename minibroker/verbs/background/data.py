"""The data of a broker, deleted for `reset`: only what a broker has made.

A data directory is known by its meta.properties. Entries with other names stay, and so does a
directory that has some.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Final

from minibroker.broker.app import CLUSTER_FILE, SESSION_FILE
from minibroker.broker.storage import names
from minibroker.cli.errors import CommandError

if TYPE_CHECKING:
    from collections.abc import Iterable

_OWN_FILES: Final = frozenset(
    {
        *(names.LOCK, names.CLEAN_SHUTDOWN, names.RECOVERY_POINTS, names.LOG_START_OFFSETS),
        *(names.HIGH_WATERMARKS, names.CLEANER_OFFSETS, SESSION_FILE, names.KRAFT_LOG),
    }
)
"""Names of files; the last one is what `take-back` leaves in place of a directory of Kafka."""
_OWN_BEGIN: Final = "minibroker-"
"""Begin of the names of minibroker's own files: the metadata, and what SQLite keeps beside it."""


def delete_data(directories: Iterable[str]) -> list[str]:
    """Delete the data in the directories; return the paths that stay, since no broker made them.

    Raises:
        CommandError: a directory has no data of a broker; then nothing is deleted.
        OSError: a file cannot be deleted.
    """
    present = [Path(name) for name in directories if Path(name).exists()]
    parts = [part for directory in present for part in _parts_of(directory)]
    for part in parts:
        _delete_part(part)
    for directory in present:
        if directory not in parts:
            _delete_own_files(directory)
    touched = list(dict.fromkeys([*parts, *present]))
    for directory in touched:
        if directory.exists() and not any(directory.iterdir()):
            directory.rmdir()
    return [str(path) for directory in touched for path in _remaining(directory, parts)]


def _parts_of(directory: Path) -> list[Path]:
    """Return the directories with the data of one broker each. Raises CommandError."""
    if (directory / names.META_PROPERTIES).is_file():
        return [directory]
    if (directory / CLUSTER_FILE).is_file():
        brokers = sorted(directory.glob("broker-*"))
        return [path for path in brokers if (path / names.META_PROPERTIES).is_file()]
    if not any(directory.iterdir()):
        return []
    raise CommandError(
        f"{directory} is no data directory, as it has no {names.META_PROPERTIES}: nothing was "
        "deleted"
    )


def _delete_part(directory: Path) -> None:
    """Delete the partitions and the files of one broker; its mark goes last."""
    for path in directory.iterdir():
        if _is_partition(path):
            shutil.rmtree(path)
    _delete_own_files(directory)
    (directory / names.META_PROPERTIES).unlink()


def _is_partition(path: Path) -> bool:
    """Return whether a path is the directory of a log: by its name, and by a file in it."""
    if path.is_symlink() or not path.is_dir() or names.parse_directory(path.name) is None:
        return False
    files = [entry.name for entry in path.iterdir()]
    return (
        not files
        or names.PARTITION_METADATA in files
        or any(names.base_offset_of(name) is not None for name in files)
    )


def _delete_own_files(directory: Path) -> None:
    for path in directory.iterdir():
        is_own = path.name in _OWN_FILES or path.name.startswith(_OWN_BEGIN)
        if is_own and path.is_file():
            path.unlink()


def _remaining(directory: Path, parts: list[Path]) -> list[Path]:
    """Return the entries of a directory that stay, without the directories of brokers."""
    if not directory.exists():
        return []
    return [path for path in sorted(directory.iterdir()) if path not in parts]

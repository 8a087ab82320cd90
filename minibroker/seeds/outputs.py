"""The files of a recording: whole at its end, or not there.

    declare(topic) ─► write(a piece of a partition) … ─► finish

Everything is written under a temporary name beside the target, synced, and renamed at the end. A
recording that fails or is interrupted removes it. JSON lines are one file; segment files are a
directory: `topics.jsonl`, and `orders-0/00000000000000000000.log` as in Kafka's log directory.
"""

from __future__ import annotations

import os
import secrets
import shutil
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, Protocol

from minibroker.broker.storage.files import REAL_FILES
from minibroker.broker.storage.names import LOG, partition_directory, segment_file
from minibroker.seeds.errors import SeedError
from minibroker.seeds.lines import topic_line
from minibroker.seeds.staging import JSON_LINES, YAML

if TYPE_CHECKING:
    from collections.abc import Mapping

    from minibroker.kafka.ids import TopicPartition

TOPICS_FILE: Final = "topics.jsonl"
SEGMENT_BYTES: Final = 1 << 30
"""Bytes of a segment file, at most, unless one batch is larger; Kafka's `segment.bytes`."""


class SeedOutput(Protocol):
    """One of the forms of a recording. Used by one thread."""

    has_lines: bool
    """True for JSON lines; else its pieces are batches."""

    def declare(self, topic: str, partitions: int, configs: Mapping[str, str]) -> None:
        """Write a topic. Raises OSError."""

    def write(
        self, place: TopicPartition, offset: int, piece: bytes | bytearray | memoryview
    ) -> None:
        """Write a piece behind those of the partition before. Raises OSError.

        Args:
            place: the partition; its pieces come without those of others between them.
            offset: of the first record.
            piece: lines, or a batch.
        """

    def finish(self) -> None:
        """Sync everything, and give it its name. Raises OSError, SeedError."""

    def abandon(self) -> None:
        """Remove everything that was written."""


def output_of(path: Path, name: str) -> SeedOutput:
    """Return the output for a path: JSON lines for `.jsonl`, else a directory of segment files.

    `name`: of the path, for messages. Raises SeedError: it exists, or cannot be made.
    """
    is_lines = path.suffix in JSON_LINES and not name.endswith("/")
    if path.suffix in (*YAML, ".json", LOG):
        raise SeedError(
            f"-o {name}: expected a file that ends in .jsonl, or the name of a directory, which "
            "gets segment files"
        )
    _check_free(path, name)
    try:
        return LinesOutput(path, name) if is_lines else SegmentsOutput(path, name)
    except OSError as error:
        raise SeedError(f"-o {name} cannot be made: {error.strerror}") from None


def _check_free(path: Path, name: str) -> None:
    """Raise SeedError for a path that exists."""
    if path.exists() or path.is_symlink():
        raise SeedError(f"-o {name} exists: remove it, or give another name")


def _temporary(path: Path) -> Path:
    """Return a new name beside `path`."""
    whole = path.absolute()
    return whole.with_name(f".{whole.name}.{secrets.token_hex(4)}.tmp")


def _give_name(temporary: Path, path: Path, name: str) -> None:
    """Rename a temporary file or directory. Raises OSError, SeedError."""
    _check_free(path, name)
    temporary.rename(path.absolute())
    REAL_FILES.sync_directory(str(path.absolute().parent))


class LinesOutput:
    """JSON lines in one file."""

    has_lines = True

    def __init__(self, path: Path, name: str) -> None:
        """Raises OSError."""
        self._path = path
        self._name = name
        self._temporary = _temporary(path)
        self._file: IO[bytes] = self._temporary.open("xb")

    def declare(self, topic: str, partitions: int, configs: Mapping[str, str]) -> None:
        self._file.write(topic_line(topic, partitions, configs))

    def write(
        self, place: TopicPartition, offset: int, piece: bytes | bytearray | memoryview
    ) -> None:
        self._file.write(piece)

    def finish(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        _give_name(self._temporary, self._path, self._name)

    def abandon(self) -> None:
        self._file.close()
        self._temporary.unlink(missing_ok=True)


class SegmentsOutput:
    """A directory with segment files, and the topics beside them."""

    has_lines = False

    def __init__(self, path: Path, name: str) -> None:
        """Raises OSError."""
        self._path = path
        self._name = name
        self._temporary = _temporary(path)
        self._temporary.mkdir()
        self._topics: list[bytes] = []
        self._place: TopicPartition | None = None
        self._file: IO[bytes] | None = None
        """The segment file of `_place` that is written now."""
        self._file_bytes = 0

    def declare(self, topic: str, partitions: int, configs: Mapping[str, str]) -> None:
        self._topics.append(topic_line(topic, partitions, configs))

    def write(
        self, place: TopicPartition, offset: int, piece: bytes | bytearray | memoryview
    ) -> None:
        is_full = self._file_bytes + len(piece) > SEGMENT_BYTES
        if self._file is None or place != self._place or is_full:
            self._end_file()
            directory = self._temporary / partition_directory(*place)
            directory.mkdir(exist_ok=True)
            self._file = (directory / segment_file(offset, LOG)).open("xb")
            self._place, self._file_bytes = place, 0
        self._file.write(piece)
        self._file_bytes += len(piece)

    def finish(self) -> None:
        self._end_file()
        topics = self._temporary / TOPICS_FILE
        topics.write_bytes(b"".join(self._topics))
        REAL_FILES.sync_path(str(topics))
        for directory in self._temporary.iterdir():
            if directory.is_dir():
                REAL_FILES.sync_directory(str(directory))
        REAL_FILES.sync_directory(str(self._temporary))
        _give_name(self._temporary, self._path, self._name)

    def abandon(self) -> None:
        if self._file is not None:
            self._file.close()
        shutil.rmtree(self._temporary, ignore_errors=True)

    def _end_file(self) -> None:
        if self._file is not None:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            self._file = None

"""From offsets of a source partition to those of its copy, exactly, and never ahead of the copy.

Each batch adds an entry for each range that it copied:

    source offsets [start, end)  ──►  `rows` records at `first` … `last` of the target

Within an entry the n-th record of the source is at `first` + n - 1 of the target, as long as nobody
else wrote between them. Offsets of the source without a record (compacted, aborted, markers) count
nothing, so where there are some the records before an offset are counted. Old entries are joined
when there are very many: an offset within a joined one becomes its `first`, and some records are
read again, as with MirrorMaker 2.
"""

from __future__ import annotations

import bisect
import json
from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.kafka.ids import TopicPartition
from minibroker.pipeline.errors import damage
from minibroker.pipeline.files.paths import JOB_DIRECTORY, join

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from minibroker.pipeline.files.file_system import FileSystem

ENTRIES_MAX: Final = 512
"""Entries of a partition, at most."""
FILES_MAX: Final = 64
"""Batches with a file of their own; then their files become one."""
_DIRECTORY: Final = "offset-map"
_UP_TO: Final = "up-to-"


class CopiedSpan(NamedTuple):
    """One range of a source partition that was copied."""

    start: int
    end: int
    rows: int
    first: int
    """Offset of the first record in the target; rows is never 0 in a map."""
    last: int

    @property
    def is_dense(self) -> bool:
        """Return whether the records lie one behind the other in the target."""
        return self.last - self.first + 1 == self.rows


class TranslatedOffsets:
    """The entries of all partitions, by the source's topic and partition."""

    def __init__(self) -> None:
        self._entries: dict[TopicPartition, list[CopiedSpan]] = {}

    def add(self, partition: TopicPartition, entry: CopiedSpan) -> None:
        """Add an entry; one with the same start replaces it, as a repeated batch does."""
        if entry.rows == 0:
            return
        entries = self._entries.setdefault(partition, [])
        index = bisect.bisect_left(entries, entry.start, key=lambda span: span.start)
        if index < len(entries) and entries[index].start == entry.start:
            entries[index] = entry
        else:
            entries.insert(index, entry)
        if len(entries) > ENTRIES_MAX:
            self._entries[partition] = thinned(entries)

    def translated(
        self, partition: TopicPartition, offset: int, count: Callable[[int, int], int]
    ) -> int | None:
        """Return the target's offset of the first copied record at or behind an offset.

        Args:
            offset: the next one that a consumer of the source reads.
            count: returns how many records the source has from one offset to before another.

        Returns:
            The end of the copy for an offset that is not copied yet; None if nothing is copied.
        """
        entries = self._entries.get(partition)
        if not entries:
            return None
        index = bisect.bisect_right(entries, offset, key=lambda span: span.end)
        if index == len(entries):
            return entries[-1].last + 1
        entry = entries[index]
        if offset <= entry.start or not entry.is_dense:
            return entry.first
        if entry.rows == entry.end - entry.start:
            return entry.first + offset - entry.start
        return entry.first + min(count(entry.start, offset), entry.rows)

    def rows(self) -> list[list[object]]:
        """Return all entries as lists for JSON."""
        return [
            [*partition, *entry]
            for partition, entries in sorted(self._entries.items())
            for entry in entries
        ]


def thinned(entries: Sequence[CopiedSpan]) -> list[CopiedSpan]:
    """Return the entries with pairs joined in their older half."""
    half = len(entries) // 2 // 2 * 2
    joined = [
        CopiedSpan(older.start, newer.end, older.rows + newer.rows, older.first, newer.last)
        for older, newer in zip(entries[:half:2], entries[1:half:2], strict=True)
    ]
    return [*joined, *entries[half:]]


class OffsetMapFiles:
    """The map in the directory of a copy: one file for each batch, and one for all older ones."""

    def __init__(self, files: FileSystem, directory: str) -> None:
        """Read what is there. Raises PipelineError for a damaged file."""
        self._files = files
        self._directory = join(directory, JOB_DIRECTORY, _DIRECTORY)
        self.map = TranslatedOffsets()
        for name in self._names():
            path = join(self._directory, name)
            try:
                self._take(json.loads(files.read(path) or "[]"))
            except (ValueError, TypeError) as error:
                raise damage(path, error) from error

    def add(self, number: int, rows: Iterable[Sequence[object]]) -> None:
        """Keep the entries of a batch, before Spark knows that it is done.

        Args:
            rows: topic and partition of the source, and the fields of `CopiedSpan`.
        """
        plain_rows = [list(row) for row in rows]
        self._take(plain_rows)
        self._files.write(join(self._directory, f"{number:012d}.json"), json.dumps(plain_rows))
        names = self._names()
        if len(names) > FILES_MAX:
            # A name of its own: this batch may be repeated, and then its file is written again.
            whole = f"{_UP_TO}{number:012d}.json"
            self._files.write(join(self._directory, whole), json.dumps(self.map.rows()))
            for name in names:
                if name != whole:
                    self._files.remove(join(self._directory, name))

    def _names(self) -> list[str]:
        names = self._files.names(self._directory)
        return sorted(name for name in names if name.endswith(".json"))

    def _take(self, rows: Iterable[Sequence[object]]) -> None:
        for topic, partition, *fields in rows:
            numbers = [int(str(field)) for field in fields]
            self.map.add(TopicPartition(str(topic), int(str(partition))), CopiedSpan(*numbers))

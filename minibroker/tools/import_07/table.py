"""The table of an import: from positions of Kafka 0.7 to offsets, in a file of SQLite.

It has a row for each message of the logs; a compressed one has the offset of its first record. So a
lookup reads a few pages, and memory does not grow with the number of messages. The file gets its
name when all is in it, so there is never a half one.

A consumer of 0.7 stores the position of the next message. While it reads the messages of a
compressed one, that is the position of the compressed one: it would read all of them again.

Source: Kafka 0.7 ConsumerIterator, ByteBufferMessageSet.internalIterator.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.broker.storage.files import REAL_FILES
from minibroker.tools.import_07.errors import ImportRefusedError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from minibroker.tools.import_07.logs import Log07

_APPLICATION_ID: Final = 0x6B303731  # "k071"
"""In the header of the file: no other SQLite database has it."""
_AT_ONCE: Final = 10_000
_SCHEMA: Final = f"""
PRAGMA application_id = {_APPLICATION_ID};
CREATE TABLE partitions (
  id INTEGER PRIMARY KEY,
  topic TEXT NOT NULL,
  broker INTEGER NOT NULL,
  partition INTEGER NOT NULL,
  new_topic TEXT NOT NULL,
  new_partition INTEGER NOT NULL,
  start_position INTEGER NOT NULL,
  end_position INTEGER NOT NULL,
  first_offset INTEGER NOT NULL,
  end_offset INTEGER NOT NULL,
  UNIQUE (topic, broker, partition)
);
CREATE TABLE messages (
  partition_id INTEGER NOT NULL,
  position INTEGER NOT NULL,
  first_offset INTEGER NOT NULL,
  records INTEGER NOT NULL,
  PRIMARY KEY (partition_id, position)
) WITHOUT ROWID;
"""

MESSAGE: Final = "message"
END: Final = "end"
INSIDE: Final = "inside"
BEFORE_START: Final = "before the start"
BEHIND_END: Final = "behind the end"


class ImportedPartition(NamedTuple):
    """A partition of 0.7 and its place now."""

    topic: str
    broker: int
    number: int
    new_topic: str
    new_number: int
    start: int
    """The position of the first message."""
    end: int
    """The position behind the last message."""
    first_offset: int
    end_offset: int

    @property
    def name(self) -> str:
        """Return `TOPIC/BROKER-PARTITION`."""
        return f"{self.topic}/{self.broker}-{self.number}"


class TableRow(NamedTuple):
    """A message in the table."""

    position: int
    first_offset: int
    records: int
    """0: it was damaged and left out, or has no messages in it."""


class PlaceOfPosition(NamedTuple):
    """The answer about a position."""

    kind: str
    """`MESSAGE`, `END`, `INSIDE` of a message, `BEFORE_START`, `BEHIND_END`."""
    offset: int
    """The record at which a consumer goes on, so that it misses none."""
    row: TableRow | None
    """The message there, or the one around it."""
    next_row: TableRow | None
    """The next message of one around the position, None: it is the last."""

    @property
    def is_exact(self) -> bool:
        """Return whether a consumer of 0.7 may have stored it."""
        return self.kind in (MESSAGE, END)


class TableWriter:
    """Writes a new table; used by one thread. `writing_table` makes one."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._rows: list[tuple[int, int, int, int]] = []
        self._partitions = 0

    def begin_partition(self) -> None:
        """Begin the rows of a partition."""
        self._partitions += 1

    def add(self, position: int, first_offset: int, records: int) -> None:
        """Add a message of the partition; positions rise. Raises ImportRefusedError."""
        self._rows.append((self._partitions, position, first_offset, records))
        if len(self._rows) == _AT_ONCE:
            self._flush()

    def end_partition(self, partition: ImportedPartition) -> None:
        """Add the partition of the rows since `begin_partition`."""
        self._flush()
        self._connection.execute(
            "INSERT INTO partitions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (self._partitions, *partition),
        )

    def _flush(self) -> None:
        self._connection.executemany("INSERT INTO messages VALUES (?, ?, ?, ?)", self._rows)
        self._rows.clear()


def check_place(path: Path) -> None:
    """Raise ImportRefusedError if no table can be written there, or if there is a file already: it
    is never replaced.
    """
    if not (path.parent.is_dir() and os.access(path.parent, os.W_OK)):
        raise ImportRefusedError(
            f"the table {path} cannot be written: expected a directory {path.parent} that is there "
            "and may be written"
        )
    if path.exists():
        raise ImportRefusedError(
            f"{path} is there already: name another file with --table, or remove it if no "
            "consumer needs it any more"
        )


@contextmanager
def writing_table(path: Path) -> Iterator[TableWriter]:
    """Give a writer; the file is there when the block ends without an error, else not.

    Raises ImportRefusedError: the file is there, or cannot be written. OSError.
    """
    check_place(path)
    temporary = path.with_name(f"{path.name}.part")
    temporary.unlink(missing_ok=True)
    try:
        with closing(sqlite3.connect(temporary, isolation_level=None)) as connection:
            # No journal: a file that is half written has another name, and is written anew.
            connection.execute("PRAGMA journal_mode = OFF")
            connection.execute("PRAGMA synchronous = OFF")
            connection.executescript(_SCHEMA)
            connection.execute("BEGIN")
            yield TableWriter(connection)
            connection.execute("COMMIT")
        REAL_FILES.sync_path(str(temporary))
        temporary.rename(path)
        REAL_FILES.sync_directory(str(path.parent))
    except sqlite3.Error as error:
        raise ImportRefusedError(f"the table {path} cannot be written: {error}") from error
    finally:
        temporary.unlink(missing_ok=True)


class PositionTable:
    """A table that is read; used by one thread. `open_table` makes one."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        columns = ", ".join(_COLUMNS)
        self._partitions = {
            int(row[0]): ImportedPartition(*row[1:])
            for row in connection.execute(f"SELECT id, {columns} FROM partitions ORDER BY id")
        }
        self._ids = {partition: number for number, partition in self._partitions.items()}

    @property
    def partitions(self) -> list[ImportedPartition]:
        """Return the partitions in the order of the import."""
        return list(self._partitions.values())

    def place_of(self, partition: ImportedPartition, position: int) -> PlaceOfPosition:
        """Return what stands at a position of a partition of this table."""
        if position == partition.end:
            return PlaceOfPosition(END, partition.end_offset, None, None)
        if position < partition.start:
            return PlaceOfPosition(BEFORE_START, partition.first_offset, None, None)
        if position > partition.end:
            return PlaceOfPosition(BEHIND_END, partition.end_offset, None, None)
        row = self._row(partition, "position <= ? ORDER BY position DESC", position)
        if row is None:
            raise ImportRefusedError(f"the table has no message of {partition.name}: import again")
        next_row = self._row(partition, "position > ? ORDER BY position", position)
        kind = MESSAGE if row.position == position else INSIDE
        return PlaceOfPosition(kind, row.first_offset, row, next_row)

    def _row(self, partition: ImportedPartition, condition: str, position: int) -> TableRow | None:
        cursor = self._connection.execute(
            "SELECT position, first_offset, records FROM messages "
            f"WHERE partition_id = ? AND {condition} LIMIT 1",
            (self._ids[partition], position),
        )
        row = cursor.fetchone()
        return None if row is None else TableRow(*row)


_COLUMNS: Final = (
    *("topic", "broker", "partition", "new_topic", "new_partition"),
    *("start_position", "end_position", "first_offset", "end_offset"),
)


@contextmanager
def open_table(path: Path) -> Iterator[PositionTable]:
    """Give the table in a file. Raises ImportRefusedError: there is none, or it is none."""
    if not path.is_file():
        raise ImportRefusedError(
            f"there is no table {path}: an import writes it, and --table names it"
        )
    try:
        uri = f"{path.absolute().as_uri()}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True)) as connection:
            application_id = connection.execute("PRAGMA application_id").fetchone()[0]
            if application_id != _APPLICATION_ID:
                raise ImportRefusedError(f"{path} is a database, but no table of import-07")
            yield PositionTable(connection)
    except sqlite3.Error as error:
        raise ImportRefusedError(f"{path} is no table of import-07: {error}") from error


def imported_partition(
    log: Log07, end: int, new_place: tuple[str, int], offsets: tuple[int, int]
) -> ImportedPartition:
    """Return the partition of a log that ends at position `end`.

    `new_place`: its topic and number now. `offsets`: of its first record, and behind its last.
    """
    return ImportedPartition(
        log.topic, log.broker, log.number, *new_place, log.start, end, *offsets
    )

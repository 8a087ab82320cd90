"""Parquet files that the tasks of a batch write themselves, before a table lists them.

    rows of a task (Arrow) ─► one open file for each topic and date ─► DataFile, its facts

Only these few facts travel to the driver. A file counts once a table lists it: a task that is
repeated, or a batch that is, leaves files that no reader of the table sees. Their names have the
query and the batch, so that `maintain` can tell which of them nobody can list any more.

The workers need PyArrow for this and no library of a table format.
"""

from __future__ import annotations

import re
import uuid
from datetime import date
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from minibroker.pipeline.files.paths import join
from minibroker.pipeline.tables.data_access import end_output, open_output

if TYPE_CHECKING:
    from collections.abc import Iterator

    from minibroker.pipeline.files.object_stores import ObjectStore

OPEN_FILES_MAX: Final = 64
"""Open files of a task: a task with more topics and dates closes the one it wrote least lately."""
ROW_GROUP_BYTES: Final = 32 << 20
"""Bytes of rows in memory, before compression, that become one row group of a file."""
BUFFERED_BYTES_MAX: Final = 128 << 20
"""Bytes of rows that a task holds for all its open files together."""

MERGED: Final = "merged"
"""Begin of the names of files that an upkeep has merged."""
_UNCOUNTED: Final = ("key", "value", "headers", "keyBytes", "valueBytes")
"""Columns without a smallest and a largest value: bytes as long as a record."""
_NEVER_REPEATED: Final = "offset"
"""Column without a dictionary: an entry for each row makes a larger file, and a third of the work.
"""
_NAME: Final = re.compile(r"([0-9a-f-]{8,36})-(\d{9,})-.*\.parquet")


RECORD: Final = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", "UTC")),
        ("timestampType", pa.int32()),
        (
            "headers",
            pa.list_(
                pa.field("element", pa.struct([("key", pa.string()), ("value", pa.binary())]))
            ),
        ),
        ("date", pa.date32()),
    ]
)
"""Columns of `schemas.ARCHIVE`, which needs Spark."""
DEAD_LETTER: Final = RECORD.append(pa.field("reason", pa.string()))
"""Columns of `schemas.ARCHIVE` and the reason: a record as it came."""
PARTITION_COLUMNS: Final = ("topic", "date")
"""Columns that are directories: `schemas.ARCHIVE_PARTITION_COLUMNS`."""

_EPOCH: Final = date(1970, 1, 1).toordinal()
_LAST: Final = date.max.toordinal()


class DataFile(NamedTuple):
    """One closed file, which no table lists yet."""

    path: str
    """Path below the directory of the layout, with `/`."""
    topic: str
    date: str
    """Date of every record in it, in UTC, as `date_text` writes it."""
    rows: int
    size: int
    """Size in bytes."""


class Layout(NamedTuple):
    """The place and the form of a batch's files; pickled into the tasks."""

    directory: str
    """Directory of the table; every worker reaches it under this path."""
    prefix: str
    """Directories between it and `topic=…`, with a `/` at the end, or empty."""
    schema: pa.Schema
    """Columns of a file, in order; a format may want ids in their metadata."""
    target_bytes: int
    """A file is closed once it is about so large."""
    stem: str
    """Begin of each name, see `stem_of`."""
    compression: str = "zstd"
    """Codec of the pages, as PyArrow names it."""
    store: ObjectStore | None = None
    """Settings of the store that `directory` is in, None for a path."""


def stem_of(query: str, batch: int) -> str:
    """Return the begin of the names of a batch's files."""
    return f"{query}-{batch:09d}"


def batch_of(path: str) -> tuple[str, int] | None:
    """Return query and batch by the name of a file, None if no batch wrote it."""
    match = _NAME.fullmatch(path.rpartition("/")[2])
    return None if match is None else (match[1], int(match[2]))


def is_left(path: str, query: str, last: int) -> bool:
    """Return whether a file that no table lists can never be listed.

    Args:
        query: the one that writes the archive.
        last: number of its last committed batch.
    """
    if path.rpartition("/")[2].startswith(f"{MERGED}-"):
        return True
    batch = batch_of(path)
    return batch is not None and batch[0] == query and batch[1] <= last


def counted_columns(schema: pa.Schema) -> list[str]:
    """Return the paths of the columns that have statistics, those inside of structs too."""
    names: list[str] = []
    for field in schema:
        if pa.types.is_struct(field.type):
            names += [f"{field.name}.{path}" for path in counted_columns(pa.schema(field.type))]
        elif field.name not in _UNCOUNTED:
            names.append(field.name)
    return names


def repeated_columns(schema: pa.Schema) -> list[str]:
    """Return the paths of the columns that have a dictionary, as Parquet names their leaves.

    PyArrow takes a dictionary for all columns, for none, or for the leaves that it is told.
    """
    return [
        path
        for field in schema
        if field.name != _NEVER_REPEATED
        for path in _leaves(field.name, field.type)
    ]


def _leaves(path: str, kind: pa.DataType) -> Iterator[str]:
    if pa.types.is_struct(kind):
        for field in kind:
            yield from _leaves(f"{path}.{field.name}", field.type)
    elif pa.types.is_map(kind):
        yield from _leaves(f"{path}.key_value.key", kind.key_type)
        yield from _leaves(f"{path}.key_value.value", kind.item_type)
    elif isinstance(kind, pa.ListType | pa.LargeListType | pa.FixedSizeListType):
        yield from _leaves(f"{path}.list.element", kind.value_type)
    else:
        yield path


class _Part(NamedTuple):
    """The rows of one file, or of several of equal kind."""

    topic: str
    day: int
    """Days since 1970-01-01, in UTC."""


class FileWriter:
    """Writes rows into files by topic and date; used by one thread."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._open: dict[_Part, _OpenFile] = {}
        """Topic and day → its open file; the first one was written least lately."""
        self._closed: list[DataFile] = []
        self._buffered = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Take the rows of `batch`; files that reach their size are closed."""
        for key, rows in _parts(batch):
            file = self._open.pop(key, None)
            if file is None:
                if len(self._open) >= OPEN_FILES_MAX:
                    self._close(next(iter(self._open)))
                file = _OpenFile(self._layout, key.topic, date_text(key.day))
            self._open[key] = file
            self._buffered += file.add(rows)
            if file.buffered >= min(ROW_GROUP_BYTES, self._layout.target_bytes):
                self._flush(file)
            if file.size() >= self._layout.target_bytes:
                self._close(key)
        while self._buffered > BUFFERED_BYTES_MAX:
            self._flush(max(self._open.values(), key=lambda file: file.buffered))

    def close(self) -> list[DataFile]:
        """Close every file and return them, those that were closed before too."""
        for key in list(self._open):
            self._close(key)
        return self._closed

    def abandon(self) -> None:
        """Close the open files and leave them where they are: no table will list them."""
        for file in self._open.values():
            file.abandon()

    def _flush(self, file: _OpenFile) -> None:
        self._buffered -= file.buffered
        file.flush()

    def _close(self, key: _Part) -> None:
        file = self._open.pop(key)
        self._buffered -= file.buffered
        self._closed.append(file.close())


class _OpenFile:
    """One file that is being written."""

    def __init__(self, layout: Layout, topic: str, date: str) -> None:
        self._schema = layout.schema
        name = f"{layout.stem}-{uuid.uuid4()}.parquet"
        relative = f"{layout.prefix}topic={topic}/date={date}/{name}"
        self._facts = DataFile(relative, topic, date, 0, 0)
        self._file = open_output(join(layout.directory, relative), layout.store)
        self._writer = pq.ParquetWriter(
            self._file,
            self._schema,
            compression=layout.compression,
            write_statistics=counted_columns(self._schema),
            use_dictionary=repeated_columns(self._schema),
        )
        self._rows: list[pa.RecordBatch] = []
        self.buffered = 0

    def add(self, rows: pa.RecordBatch) -> int:
        """Keep rows for the next row group; return their bytes."""
        self._rows.append(rows)
        size: int = rows.nbytes
        self.buffered += size
        return size

    def size(self) -> int:
        """Return the bytes that are in the file so far."""
        return self._file.tell()

    def flush(self) -> None:
        """Write the kept rows as a row group."""
        if self._rows:
            table = pa.Table.from_batches(self._rows).select(self._schema.names)
            self._writer.write_table(table.cast(self._schema), row_group_size=table.num_rows)
            self._facts = self._facts._replace(rows=self._facts.rows + table.num_rows)
        self._rows, self.buffered = [], 0

    def close(self) -> DataFile:
        """End the file; its bytes are on the disk before any table can list it."""
        self.flush()
        self._writer.close()
        return self._facts._replace(size=end_output(self._file))

    def abandon(self) -> None:
        self._rows, self.buffered = [], 0
        self._writer.close()
        self._file.close()


def _parts(batch: pa.RecordBatch) -> Iterator[tuple[_Part, pa.RecordBatch]]:
    """Yield the rows of each topic and date, in their order."""
    if not batch.num_rows:
        return
    topics, days = batch.column("topic"), batch.column("date").cast(pa.int32())
    first = _Part(topics[0].as_py(), days[0].as_py())
    same = pc.and_(pc.equal(topics, first.topic), pc.equal(days, first.day))
    if pc.all(same).as_py():
        yield first, batch
        return
    pairs = pa.table([topics, days], ["topic", "day"]).group_by(["topic", "day"]).aggregate([])
    for pair in pairs.to_pylist():
        chosen = pc.and_(pc.equal(topics, pair["topic"]), pc.equal(days, pair["day"]))
        yield _Part(**pair), batch.filter(chosen)


def date_text(day: int) -> str:
    """Return the date of a day, counted from 1970-01-01, as 2026-11-24.

    A producer may claim any time. Days outside of the years 1 to 9999, which hardly a reader knows,
    have the date of the first or of the last day that all know.
    """
    return date.fromordinal(min(max(_EPOCH + day, 1), _LAST)).isoformat()

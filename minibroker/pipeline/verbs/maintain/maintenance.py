"""Upkeep of an archive: small files become large ones, old versions and left-overs go.

    files of topics and days ─► merged files ─► one commit: new instead of old
        of a table: a version; of Parquet files: an exchange of directories (`tables.merges`)
    versions older than `keep` ─► dropped ─► files that no version lists any more ─► removed

It runs beside an archive that writes: a commit that meets another one is made again on the newer
version. A file is removed only if no version lists it and nobody can list it any more: its batch
is committed, or an earlier upkeep wrote it. One upkeep of a directory runs at a time. Every step
may be repeated after a kill. No Spark is needed.
"""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import json
import os
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from minibroker.cli import quantities
from minibroker.cli.quantities import duration
from minibroker.clock import SystemClock
from minibroker.pipeline.cli.dry_run import Lines, format_text
from minibroker.pipeline.cli.one_answer import VerbAnswer
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.files.object_stores import is_object_store, store_of
from minibroker.pipeline.files.paths import JOB_DIRECTORY, join
from minibroker.pipeline.tables import TABLE_FORMATS
from minibroker.pipeline.tables.archived_files import format_of
from minibroker.pipeline.tables.choice import check_place, open_archive, place_of
from minibroker.pipeline.tables.data_access import open_input
from minibroker.pipeline.tables.data_files import MERGED, FileWriter, Layout
from minibroker.pipeline.tables.file_archive import FileArchive
from minibroker.pipeline.tables.merges import Merge
from minibroker.pipeline.tables.parquet_directory import ParquetDirectory
from minibroker.pipeline.tables.table import ListedFile

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from minibroker.pipeline.tables.data_files import DataFile
    from minibroker.pipeline.tables.table import Table, TablePlace
    from minibroker.pipeline.verbs.maintain.plan import MaintainPlan

SMALL: Final = 0.75
"""A file below this part of the target size is merged with others."""
ROUND_FILES: Final = 10_000
ROUND_BYTES: Final = 1 << 30
"""Files and bytes that one commit replaces, about: it looks at every file of the table, so a commit
for each merged file would be quadratic. A kill, or a file that is gone, costs the work of one.
"""
LEFT_FOR_MS: Final = 86_400_000
"""Age from which a file in a store that no version lists is left over for certain."""
_SEVERAL_DAYS: Final = (date.min.isoformat(), date.max.isoformat())
_ROWS: Final = 10_000


class Maintained(NamedTuple):
    """The outcome of one upkeep."""

    merged_files: int = 0
    into_files: int = 0
    expired_versions: int = 0
    removed_files: int = 0


def place(plan: MaintainPlan) -> TablePlace:
    """Return the place of the archive. Raises PipelineError if it cannot be reached."""
    check_place(plan.to, "archives that are maintained")
    if not is_object_store(plan.to):
        return place_of(plan.to, None)
    return place_of(plan.to, store_of(plan.to, os.environ, {}, plan.storage))


def check(plan: MaintainPlan, table_place: TablePlace) -> str:
    """Return the format of the archive. Raises PipelineError if there is none."""
    return format_of(table_place.files, plan.to, is_in_catalogue=bool(plan.catalog))


def describe(plan: MaintainPlan) -> Lines:
    """Return what a run would do, for `--dry-run`. Raises PipelineError if it could not run."""
    table_place = place(plan)
    file_format = check(plan, table_place)
    headline = ("maintain", f"{plan.to}, {format_text(file_format)}")
    if file_format in TABLE_FORMATS:
        files = open_archive(file_format, table_place, plan.catalog, plan.table).files()
    else:
        files = files_to_merge(table_place, file_format)
    groups = bins(files, plan.target_bytes)
    size = quantities.size(plan.target_bytes)
    merges = f"{sum(map(len, groups)):,} files into {len(groups):,}, of {size} at most"
    if file_format not in TABLE_FORMATS:
        return [headline, ("merges", merges), ("removes", "left-overs")]
    return [
        headline,
        ("merges", merges),
        ("drops", f"versions older than {duration(plan.keep_ms)}, and files of no version"),
    ]


def run(plan: MaintainPlan) -> Maintained:
    """Do the upkeep of an archive. Raises PipelineError."""
    table_place = place(plan)
    file_format = check(plan, table_place)
    with _alone(table_place):
        if file_format not in TABLE_FORMATS:
            return _maintain_files(table_place, file_format, plan.target_bytes)
        table = open_archive(file_format, table_place, plan.catalog, plan.table)
        done = _merge(table, table_place, plan.target_bytes)
        now_ms = SystemClock().now_ms()
        done = done._replace(expired_versions=table.expire(now_ms - plan.keep_ms))
        query = table_place.files.read(join(table_place.directory, JOB_DIRECTORY, "query")) or ""
        leftovers = table.unlisted(query.strip(), plan.keep_ms)
        return done._replace(removed_files=_remove_left(table_place, leftovers, now_ms))


def answer(done: Maintained, *, is_terminal: bool) -> VerbAnswer:
    """Return the counts as a sentence for a person, as a line of JSON for a script."""
    if not is_terminal:
        return VerbAnswer(json.dumps(done._asdict()) + "\n")
    return VerbAnswer(
        f"{done.merged_files:,} files merged into {done.into_files:,}; "
        f"{done.expired_versions:,} old versions dropped; "
        f"{done.removed_files:,} files removed\n"
    )


def bins(files: Iterable[ListedFile], target_bytes: int) -> list[list[ListedFile]]:
    """Return the files to merge: small ones of one topic and day, about `target_bytes` each.

    The first and the last date stand for many days (`tables.data_files.date_text`): their files
    stay.
    """
    of_day: dict[tuple[str, str], list[ListedFile]] = {}
    for file in sorted(files):
        if file.size < SMALL * target_bytes and file.date not in _SEVERAL_DAYS:
            of_day.setdefault((file.topic, file.date), []).append(file)
    groups = []
    for small in of_day.values():
        chosen: list[ListedFile] = []
        size = 0
        for file in small:
            if chosen and size + file.size > target_bytes:
                groups.append(chosen)
                chosen, size = [], 0
            chosen.append(file)
            size += file.size
        groups.append(chosen)
    return [chosen for chosen in groups if len(chosen) > 1]


def rounds(groups: Iterable[list[ListedFile]]) -> Iterator[list[list[ListedFile]]]:
    """Yield those of `bins` that one commit replaces together."""
    chosen: list[list[ListedFile]] = []
    count = size = 0
    for files in groups:
        chosen.append(files)
        count += len(files)
        size += sum(file.size for file in files)
        if count >= ROUND_FILES or size >= ROUND_BYTES:
            yield chosen
            chosen, count, size = [], 0, 0
    if chosen:
        yield chosen


def _maintain_files(table_place: TablePlace, file_format: str, target_bytes: int) -> Maintained:
    """Merge Parquet files of this machine, and remove what killed runs left."""
    archive = FileArchive(table_place.files, table_place.directory)
    stages = archive.stages()
    archive.finish()
    done = Maintained(removed_files=len(stages) - len(archive.stages()))
    archive.merges.begin()
    for groups in bins_of_days(files_to_merge(table_place, file_format), target_bytes):
        new = _merge_day(archive, table_place, groups, 2 * target_bytes)
        done = done._replace(
            merged_files=done.merged_files + sum(map(len, groups)),
            into_files=done.into_files + new,
        )
    return done


def files_to_merge(table_place: TablePlace, file_format: str) -> list[ListedFile]:
    """Return the committed files of an archive of files that are there and can be merged.

    These are Parquet files of this machine. Lists of Spark's file sink name its files, so they
    stay. A day with a directory of its own inside is left out: nobody knows what that is.
    """
    archive = FileArchive(table_place.files, table_place.directory)
    if file_format != "parquet" or table_place.store is not None or archive.is_of_spark():
        return []
    files: list[ListedFile] = []
    committed = set(archive.names())
    for day in Path(table_place.directory).glob("topic=*/date=*"):
        topic, date_ = (part.partition("=")[2] for part in day.parts[-2:])
        entries = list(day.iterdir())
        if any(entry.is_dir() for entry in entries):
            continue
        files += (
            ListedFile(str(entry), topic, date_, 0, entry.stat().st_size)
            for entry in entries
            if f"{day.parent.name}/{day.name}/{entry.name}" in committed
        )
    return files


def bins_of_days(
    files: Iterable[ListedFile], target_bytes: int
) -> Iterator[list[list[ListedFile]]]:
    """Yield those of `bins` that are of one topic and day."""
    groups = bins(files, target_bytes)
    for _, of_day in itertools.groupby(groups, lambda chosen: (chosen[0].topic, chosen[0].date)):
        yield list(of_day)


def _merge_day(
    archive: FileArchive, table_place: TablePlace, groups: Sequence[Sequence[ListedFile]], size: int
) -> int:
    """Merge files of one topic and day; return how many files they became."""
    number, stage = archive.merges.new_stage()
    first = Path(groups[0][0].path)
    columns = ParquetDirectory(
        archive, table_place.files, table_place.directory, (), compression="none"
    ).columns()
    layout = Layout(table_place.directory, f"{stage}/", columns, size, MERGED, codec_of(str(first)))
    new = [file for files in groups for file in _merged(layout, files)]
    archive.merges.commit(
        Merge(
            number,
            f"{first.parts[-3]}/{first.parts[-2]}",
            [Path(file.path).name for files in groups for file in files],
            [file.path.rpartition("/")[2] for file in new],
        )
    )
    return len(new)


def codec_of(path: str) -> str:
    """Return the codec of a file's pages, as PyArrow takes it."""
    metadata = pq.read_metadata(path)
    if not metadata.num_row_groups:
        return "zstd"
    codec: str = metadata.row_group(0).column(0).compression.lower()
    return {"uncompressed": "none"}.get(codec, codec)


def _merge(table: Table, table_place: TablePlace, target_bytes: int) -> Maintained:
    done = Maintained()
    for chosen in rounds(bins(table.files(), target_bytes)):
        layout = table.merged_layout(2 * target_bytes)
        old = [file for files in chosen for file in files]
        new = [file for files in chosen for file in _merged(layout, files)]
        if table.replace(old, new):
            done = done._replace(
                merged_files=done.merged_files + len(old), into_files=done.into_files + len(new)
            )
        else:
            for file in new:
                table_place.files.remove(join(table_place.directory, file.path))
    return done


def _merged(layout: Layout, old: Sequence[ListedFile]) -> list[DataFile]:
    """Write the rows of `old`, which are of one topic and day, into as few files as possible."""
    writer = FileWriter(layout)
    try:
        for file in old:
            for batch in _rows_of(file, layout):
                writer.add(batch)
        return writer.close()
    except BaseException:
        writer.abandon()
        raise


def _rows_of(file: ListedFile, layout: Layout) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file with the columns of the table: the file may be older than some.

    Topic and date may be in its path only.
    """
    day = pa.scalar(file.date).cast(pa.date32())
    with pq.ParquetFile(
        open_input(file.path, layout.store), coerce_int96_timestamp_unit="us"
    ) as parquet:
        # Threads for a few rows cost as much again as the reading.
        for batch in parquet.iter_batches(batch_size=_ROWS, use_threads=file.rows > _ROWS):
            rows = batch
            for field in layout.schema:
                if field.name in rows.schema.names:
                    whole = rows[field.name].cast(field.type)
                    rows = rows.set_column(rows.schema.names.index(field.name), field, whole)
                elif field.name not in ("topic", "date"):
                    rows = rows.add_column(0, field, pa.nulls(rows.num_rows, field.type))
            for name, value in (("topic", pa.scalar(file.topic)), ("date", day)):
                if name not in rows.schema.names:
                    rows = rows.append_column(name, pa.repeat(value, rows.num_rows))
            yield rows


def _remove_left(table_place: TablePlace, paths: Sequence[str], now_ms: int) -> int:
    """Remove those of the files that are there, and return how many these were.

    In a store, files younger than LEFT_FOR_MS stay: no lock tells whether another upkeep has
    written them and is about to list them.
    """
    count = 0
    for path in paths:
        if not table_place.files.has(path):
            continue
        if table_place.store is not None:
            age_ms = now_ms - table_place.files.facts(path).modified_ms
            if age_ms < LEFT_FOR_MS:
                continue
        table_place.files.remove(path)
        count += 1
    return count


@contextlib.contextmanager
def _alone(table_place: TablePlace) -> Iterator[None]:
    """Hold the lock of the directory. Raises PipelineError if another upkeep has it.

    A store has no locks: there the commits of two upkeeps exclude each other.
    """
    if table_place.store is not None:
        yield
        return
    with Path(table_place.directory, JOB_DIRECTORY, "maintain.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise PipelineError(
                f"another maintain of {table_place.directory} is running: wait until it has ended"
            ) from error
        yield

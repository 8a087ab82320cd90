"""The segments of a log directory, and the part of each to read: one task for each segment.

Second station of raw segments, in the driver. It reads names, checkpoints, transaction indexes and
the newest segment of a partition (`segments_transactions`); the tasks read the log itself.

Directories with the endings `-delete`, `-stray` and `-future` are no partitions. A complete
`.log.swap` of an interrupted compaction replaces the segments that it covers, as at a broker's next
start.

Source: Kafka LogManager, LogLoader; `storage/FORMAT.md` sections 1, 6 and 8.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from minibroker.errors import CorruptionError
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.segments_file import SegmentFile
from minibroker.pipeline.segments_transactions import (
    Aborted,
    Transactions,
    overlapping,
    read_transactions,
)
from minibroker.storage import names
from minibroker.storage.checkpoint import read_offsets
from minibroker.storage.files import REAL_FILES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from minibroker.ids import TopicPartition

logger = logging.getLogger(__name__)


class SegmentTask(NamedTuple):
    """The records of one task, from `start_offset` up to (not including) `end_offset`.

    `end_offset` None: to the file's end. `is_newest`: the partition's last segment, whose tail may
    be torn.
    """

    path: str
    topic: str
    partition: int
    base_offset: int
    start_offset: int
    end_offset: int | None
    is_newest: bool
    aborted: tuple[Aborted, ...]


class PartitionFiles(NamedTuple):
    """One partition: `segments` are (base offset, path of the `.log`), ascending, or empty."""

    directory: str
    topic: str
    partition: int
    log_start_offset: int
    segments: tuple[tuple[int, str], ...]


def plan_tasks(
    partitions: Iterable[PartitionFiles], *, tell_aborted: bool, leave_out_open: bool
) -> list[SegmentTask]:
    """Return one task for every segment that has records from the log start offset on.

    `tell_aborted`: the tasks get the aborted transactions; `leave_out_open`: they end at the start
    of the first open transaction. Raises PipelineError for files that cannot be read.
    """
    tasks: list[SegmentTask] = []
    for partition in partitions:
        if not partition.segments:
            continue
        transactions = None
        if tell_aborted or leave_out_open:
            transactions = _transactions(partition)
        end = _committed_end(partition, transactions) if leave_out_open and transactions else None
        ends = [base for base, _ in partition.segments[1:]] + [None]
        for (base_offset, path), next_offset in zip(partition.segments, ends, strict=True):
            if next_offset is not None and next_offset <= partition.log_start_offset:
                continue
            if end is not None and base_offset >= end:
                continue
            tasks.append(
                SegmentTask(
                    path,
                    partition.topic,
                    partition.partition,
                    base_offset,
                    partition.log_start_offset,
                    end,
                    next_offset is None,
                    overlapping(
                        transactions.aborted if transactions else (), base_offset, next_offset
                    ),
                )
            )
    return tasks


def _committed_end(partition: PartitionFiles, transactions: Transactions) -> int:
    """Return the end for a reader of committed records; a running broker may append more."""
    stable = transactions.last_stable_offset
    if stable is None:
        return transactions.log_end_offset
    logger.warning(
        "%s: a transaction is open, records behind offset %d are not committed",
        partition.directory,
        stable - 1,
    )
    return stable


def _transactions(partition: PartitionFiles) -> Transactions:
    try:
        return read_transactions(partition.directory, partition.segments)
    except (CorruptionError, OSError) as error:
        raise PipelineError(
            f"which records of {partition.directory} are committed cannot be found out: {error}; "
            "set isolation.level to read_uncommitted to read without knowing"
        ) from error


def find_partitions(paths: Iterable[str]) -> list[PartitionFiles]:
    """Return the partitions under `paths`, each a log directory or a partition's own, sorted.

    Raises PipelineError for a path that is neither, and for a partition that is in two of them.
    """
    found: dict[TopicPartition, PartitionFiles] = {}
    for path in paths:
        for directory in _partition_directories(path):
            parsed = names.parse_directory(Path(directory).name)
            if parsed is None or parsed[1]:
                continue
            partition = parsed[0]
            if partition in found and found[partition].directory != directory:
                raise PipelineError(
                    f"partition {partition} stands in {found[partition].directory} and in "
                    f"{directory}; give directories of one broker only"
                )
            found[partition] = _partition_files(directory, partition)
    ordered = [found[key] for key in sorted(found)]
    return [
        partition for partition in ordered if partition.segments or _is_new(partition.directory)
    ]


def _is_new(directory: str) -> bool:
    """Return whether a directory is a partition without any record yet."""
    return Path(directory, names.PARTITION_METADATA).exists()


def _partition_directories(path: str) -> list[str]:
    given = Path(path)
    if not given.is_dir():
        raise PipelineError(
            f"{path} is no directory; expected a broker's log directory or one of its partitions'"
        )
    root = str(given.absolute())
    try:
        if _is_new(root) or any(name.endswith(names.LOG) for name in REAL_FILES.list_files(root)):
            if names.parse_directory(Path(root).name) is None:
                raise PipelineError(
                    f"{path} holds segments but is not named as a partition is, <topic>-<number>"
                )
            return [root]
        inside = sorted(REAL_FILES.list_directories(root))
    except OSError as error:
        raise PipelineError(f"{path} cannot be read: {error.strerror}") from error
    directories = [f"{root}/{name}" for name in inside if names.parse_directory(name)]
    if not directories:
        raise PipelineError(
            f"{path} holds no partitions; expected a broker's log directory "
            "(with <topic>-<number>/ in it) or one of its partitions'"
        )
    return directories


def _partition_files(directory: str, partition: TopicPartition) -> PartitionFiles:
    checkpoint = f"{Path(directory).parent}/{names.LOG_START_OFFSETS}"
    try:
        segments = _segments(directory)
        starts = read_offsets(REAL_FILES, checkpoint)
    except CorruptionError as error:
        # As a broker does: the log begins with its first segment then.
        logger.warning("%s is ignored: %s", checkpoint, error)
        starts = {}
    except OSError as error:
        raise PipelineError(f"{directory} cannot be read: {error}") from error
    first = segments[0][0] if segments else 0
    start = max(first, starts.get(partition, 0))
    return PartitionFiles(directory, partition.topic, partition.partition, start, tuple(segments))


def _segments(directory: str) -> list[tuple[int, str]]:
    """Return the `.log` files, and each `.log.swap` instead of the files that it covers."""
    listed = REAL_FILES.list_files(directory)
    cleaned = [names.base_offset_of(name) for name in listed if name.endswith(names.CLEANED)]
    cleaned_from = min((base for base in cleaned if base is not None), default=None)
    plain: dict[int, str] = {}
    swaps: dict[int, str] = {}
    for name in listed:
        base_offset = names.base_offset_of(name)
        if base_offset is None:
            continue
        if name == names.segment_file(base_offset, names.LOG):
            plain[base_offset] = f"{directory}/{name}"
        elif name == names.segment_file(base_offset, names.LOG + names.SWAP) and (
            cleaned_from is None or base_offset < cleaned_from
        ):
            swaps[base_offset] = f"{directory}/{name}"
    for base_offset, path in swaps.items():
        end = base_offset
        for batch in SegmentFile(path).batches():
            end = batch.header.last_offset
        plain = {base: kept for base, kept in plain.items() if not base_offset <= base <= end}
    return sorted((plain | swaps).items())

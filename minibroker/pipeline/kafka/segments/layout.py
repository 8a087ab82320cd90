"""The segments of a log directory, and the tasks that read them: of about equal size.

Second station of raw segments, in the driver. It lists names and sizes, and reads two checkpoints
of a log directory; what a task has to know of the files themselves it finds out (`parts`).
So 10,000 partitions are planned in a second or two, and no file is too large to plan.

    directories ─► PartitionFiles ─► SegmentTask, parts of segments ─► tasks of TASK_BYTES or more

Directories with the endings `-delete`, `-stray` and `-future` are no partitions. A complete
`.log.swap` of an interrupted compaction replaces the segments that it covers, as at a broker's next
start.

Source: Kafka LogManager, LogLoader; `storage/FORMAT.md` sections 1, 6 and 8.
"""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.broker.storage import names
from minibroker.broker.storage.files import REAL_FILES
from minibroker.broker.storage.log_directory import read_offsets
from minibroker.kafka.errors import CorruptionError
from minibroker.kafka.ids import TopicPartition
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.kafka.segments.file import SegmentFile
from minibroker.pipeline.offsets import OffsetRange, group_ranges

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

logger = logging.getLogger(__name__)

TASK_BYTES: Final = 64 << 20
"""Bytes of a task, about, while there are fewer tasks than TASKS_MAX."""
TASKS_MAX: Final = 10_000
CUT_BYTES_MIN: Final = 1 << 20
"""Bytes of a segment on each side of a cut, at least."""
LISTING_THREADS: Final = 16
"""Directories that are listed at once, which helps where they are on another machine."""


class ListedSegment(NamedTuple):
    """One `.log` file when it was listed."""

    base_offset: int
    path: str
    size_bytes: int
    file_id: int
    """Number of the file in its file system: another one has taken its place if it differs."""


class PartitionFiles(NamedTuple):
    """One partition: its segments ascend, and there may be none."""

    directory: str
    topic: str
    partition: int
    log_start_offset: int
    segments: tuple[ListedSegment, ...]
    has_snapshot: bool
    """True if a producer snapshot says which transactions are open."""


class SegmentTask(NamedTuple):
    """A part of one segment, from the log start offset on: all of it, or what is behind one border
    up to another (`parts`).
    """

    topic: str
    partition: int
    segment: ListedSegment
    next_offset: int | None
    """Base offset of the next segment; None: this is the newest, whose tail may be torn."""
    newest: ListedSegment
    start_offset: int
    """Log start offset of the partition."""
    begin: int
    """Byte of the segment; the part begins with the first batch there or behind it that the index
    tells of, and 0 is the start."""
    end: int
    """Byte of the segment, likewise; the segment's size is its end."""

    @property
    def path(self) -> str:
        """Return the path of the `.log`."""
        return self.segment.path

    @property
    def is_newest(self) -> bool:
        """Return whether the segment is the partition's last one."""
        return self.next_offset is None

    @property
    def is_whole(self) -> bool:
        """Return whether the part is the whole segment."""
        return self.begin == 0 and self.end == self.segment.size_bytes

    @property
    def is_last(self) -> bool:
        """Return whether no part of the segment follows."""
        return self.end == self.segment.size_bytes


def plan_tasks(
    partitions: Iterable[PartitionFiles], *, whole: bool = False
) -> list[list[SegmentTask]]:
    """Return the parts of segments of each task, in order, with records from the log start on.

    Tasks have about the same number of bytes. A partition without a producer snapshot is in one
    task: each reader of a part would have to read all of it.

    Args:
        partitions: to read.
        whole: whether each partition is in one task; a large one makes a large task.
    """
    if whole:
        return _whole_partitions(partitions)
    together: list[list[SegmentTask]] = []
    apart: list[SegmentTask] = []
    for partition in partitions:
        segments = list(_whole_segments(partition))
        if len(segments) > 1 and not partition.has_snapshot:
            together.append(segments)
        else:
            apart += segments
    total = sum(task.end for task in apart)
    shares = group_ranges(
        (OffsetRange("", number, 0, task.end) for number, task in enumerate(apart)),
        groups_max=max(1, min(TASKS_MAX, -(-total // TASK_BYTES))),
        cut_min=CUT_BYTES_MIN,
    )
    return together + [
        [apart[part.partition]._replace(begin=part.start, end=part.end) for part in share]
        for share in shares
    ]


def _whole_partitions(partitions: Iterable[PartitionFiles]) -> list[list[SegmentTask]]:
    tasks: list[list[SegmentTask]] = []
    room = 0
    for partition in partitions:
        segments = list(_whole_segments(partition))
        size = sum(task.end for task in segments)
        if not tasks or size > room:
            tasks.append([])
            room = TASK_BYTES
        tasks[-1] += segments
        room -= size
    return [task for task in tasks if task]


def _whole_segments(partition: PartitionFiles) -> Iterator[SegmentTask]:
    """Yield the segments of a partition that have records from the log start offset on."""
    segments = partition.segments
    for number, segment in enumerate(segments):
        is_newest = number + 1 == len(segments)
        next_offset = None if is_newest else segments[number + 1].base_offset
        if segment.size_bytes == 0 or (
            next_offset is not None and next_offset <= partition.log_start_offset
        ):
            continue
        yield SegmentTask(
            partition.topic,
            partition.partition,
            segment,
            next_offset,
            segments[-1],
            partition.log_start_offset,
            0,
            segment.size_bytes,
        )


def find_partitions(paths: Iterable[str]) -> list[PartitionFiles]:
    """Return the partitions under `paths`, each a log directory or a partition's own, sorted.

    Raises PipelineError for a path that is neither, and for a partition that is in two of them.
    """
    directories: dict[TopicPartition, str] = {}
    for path in paths:
        for directory in _partition_directories(path):
            name = names.parse_directory(Path(directory).name)
            if name is None or name[1]:
                continue
            partition = name[0]
            if directories.setdefault(partition, directory) != directory:
                raise PipelineError(
                    f"partition {partition} stands in {directories[partition]} and in "
                    f"{directory}; give directories of one broker only"
                )
    starts = {
        root: _log_starts(root)
        for root in {str(Path(path).parent) for path in directories.values()}
    }
    with ThreadPoolExecutor(LISTING_THREADS) as threads:
        partitions = threads.map(
            lambda item: _partition_files(item[1], item[0], starts[str(Path(item[1]).parent)]),
            sorted(directories.items()),
        )
        return [
            partition
            for partition in partitions
            if partition.segments or _is_new(partition.directory)
        ]


def _log_starts(root: str) -> dict[TopicPartition, int]:
    """Return the log start offsets in the checkpoint of a log directory. Raises PipelineError."""
    checkpoint = f"{root}/{names.LOG_START_OFFSETS}"
    try:
        return read_offsets(REAL_FILES, checkpoint)
    except CorruptionError as error:
        # As a broker does: a log begins with its first segment then.
        logger.warning("%s is ignored: %s", checkpoint, error)
        return {}
    except OSError as error:
        raise PipelineError(f"{checkpoint} cannot be read: {error.strerror}") from error


def _is_new(directory: str) -> bool:
    """Return whether a directory is a partition without any record yet."""
    return Path(directory, names.PARTITION_METADATA).exists()


def _partition_directories(path: str) -> list[str]:
    directory = Path(path)
    if not directory.is_dir():
        raise PipelineError(
            f"{path} is no directory; expected a broker's log directory, or that of a partition"
        )
    root = str(directory.absolute())
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
            "(with <topic>-<number>/ in it) or that of a partition"
        )
    return directories


def _partition_files(
    directory: str, partition: TopicPartition, starts: dict[TopicPartition, int]
) -> PartitionFiles:
    try:
        file_names = REAL_FILES.list_files(directory)
        segments = tuple(
            _segment(base_offset, path)
            for base_offset, path in segment_paths(directory, file_names)
        )
    except OSError as error:
        raise PipelineError(f"{directory} cannot be read: {error}") from error
    first = segments[0].base_offset if segments else 0
    start = max(first, starts.get(partition, 0))
    has_snapshot = any(name.endswith(names.SNAPSHOT) for name in file_names)
    return PartitionFiles(
        directory, partition.topic, partition.partition, start, segments, has_snapshot
    )


def _segment(base_offset: int, path: str) -> ListedSegment:
    status = Path(path).stat()
    return ListedSegment(base_offset, path, status.st_size, status.st_ino)


def segment_paths(directory: str, file_names: Iterable[str]) -> list[tuple[int, str]]:
    """Return (base offset, path) of the `.log` files, ascending, and of each `.log.swap` instead of
    the files that it covers.

    Args:
        directory: of a partition.
        file_names: the names in it.

    Raises OSError.
    """
    file_names = list(file_names)
    cleaned = [names.base_offset_of(name) for name in file_names if name.endswith(names.CLEANED)]
    cleaned_from = min((base for base in cleaned if base is not None), default=None)
    plain: dict[int, str] = {}
    swaps: dict[int, str] = {}
    for name in file_names:
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
        plain = {
            base: plain_path for base, plain_path in plain.items() if not base_offset <= base <= end
        }
    return sorted((plain | swaps).items())

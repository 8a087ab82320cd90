"""The files of segments that leave a log, or take the place of others: renamed now, removed later.

Retention and truncation take segments away; compaction puts finished ones (`….cleaned`) in the
place of those they were made from. In both, names change at once and in an order in which a crash
at any step leaves something that `finish_interrupted_work` completes or undoes; the bytes
go after `file.delete.delay.ms`, on the worker (KAFKA-4614: to unlink a gigabyte takes a while, and
so does to unmap it). A reader that holds a slice of such a file keeps it.

    00….log               a segment in service
    00….log.deleted       taken out of service, removed after the delay, or by the next start
    00….log.cleaned       compaction is writing it; a start removes it
    00….log.swap          finished, about to replace what it was made from; a start completes it

Nothing here knows a log's list of segments: `PartitionLog.remove_segments` and
`compaction.replacement` keep it in step with the names.

Source: Kafka LocalLog (deleteSegmentFiles, replaceSegments), UnifiedLog (deleteProducerSnapshots).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

from minibroker.broker.storage import names, producer_files
from minibroker.broker.storage.batch_walks import walk_headers
from minibroker.broker.storage.disk import Disk
from minibroker.broker.storage.files import Files
from minibroker.broker.storage.removals import RemoveTask
from minibroker.broker.storage.segment import Segment

logger = logging.getLogger(__name__)


def mark_deleted(
    disk: Disk, directory: str, segments: Iterable[Segment], *, with_snapshots: bool = True
) -> list[str]:
    """Rename every file of these segments to `….deleted`; the new paths. Raises OSError.

    `with_snapshots`: the producer snapshots that stand at their base offsets, too.
    """
    marked = []
    for segment in segments:
        if with_snapshots:  # the one file that may as well be missing goes first
            path = producer_files.snapshot_path(directory, segment.base_offset)
            if _rename(disk.files, path, path + names.DELETED):
                marked.append(path + names.DELETED)
        marked += segment.mark_deleted()
    return marked


def remove_later(disk: Disk, paths: list[str], delay_ms: int) -> None:
    """Remove files that were renamed to `….deleted` on the worker, `delay_ms` from now.

    A stop before that leaves them to the next start.
    """
    if paths:
        disk.run_after(delay_ms, RemoveTask(disk.files, paths))


def cleaned_to_swap(files: Files, directory: str, base_offsets: Sequence[int]) -> None:
    """Say that the `.cleaned` files at these base offsets are finished: they become `.swap`.

    The highest base offset goes first: while one `.cleaned` file is left, a start throws away every
    `.swap` file from its base offset on, and the old segments stay. Raises OSError.
    """
    for base_offset in sorted(base_offsets, reverse=True):
        _change_suffix(files, directory, base_offset, names.CLEANED, names.SWAP)


def swap_to_service(files: Files, directory: str, base_offsets: Sequence[int]) -> None:
    """Give `.swap` files their final names; what they replace is out of the way. Raises OSError."""
    for base_offset in sorted(base_offsets):
        _change_suffix(files, directory, base_offset, names.SWAP, "")


def remove_cleaned(disk: Disk, directory: str, base_offsets: Sequence[int]) -> None:
    """Remove `.cleaned` files that are not wanted any more, also such as are `.swap` already; what
    they were to replace is in service. Raises OSError.
    """
    for base_offset in base_offsets:
        for suffix in names.SEGMENT_SUFFIXES:
            path = f"{directory}/{names.segment_file(base_offset, suffix)}"
            disk.remove(path + names.CLEANED)
            disk.remove(path + names.SWAP)


def finish_interrupted_work(disk: Disk, directory: str) -> None:
    """Remove or adopt `.deleted`, `.cleaned` and `.swap` files. Raises OSError, CorruptionError."""
    files = disk.files
    file_names = files.list_files(directory)
    cleaned = [name for name in file_names if name.endswith(names.CLEANED)]
    cleaned_from = min((_base(name) for name in cleaned), default=1 << 63)
    for name in file_names:
        unfinished = name.endswith(names.SWAP) and _base(name) >= cleaned_from
        if name.endswith((names.DELETED, names.CLEANED)) or unfinished:
            disk.remove(f"{directory}/{name}")
    swaps = [name for name in files.list_files(directory) if name.endswith(names.SWAP)]
    if not swaps:
        return
    covered = [_covered(disk, directory, name) for name in swaps if names.LOG in name]
    for name in files.list_files(directory):
        base_offset = names.base_offset_of(name)
        if base_offset is None or name.endswith(names.SWAP):
            continue
        if any(start <= base_offset < end for start, end in covered):
            disk.remove(f"{directory}/{name}")
    for name in swaps:
        logger.warning("%s/%s is taken over: compaction had finished it", directory, name)
        files.replace(f"{directory}/{name}", f"{directory}/{name.removesuffix(names.SWAP)}")
    files.sync_directory(directory)


def _change_suffix(files: Files, directory: str, base_offset: int, old: str, new: str) -> None:
    for suffix in names.SEGMENT_SUFFIXES:
        path = f"{directory}/{names.segment_file(base_offset, suffix)}"
        is_there = _rename(files, path + old, path + new)
        if not is_there and suffix == names.LOG:
            raise FileNotFoundError(f"{path}{old} is missing")


def _rename(files: Files, old: str, new: str) -> bool:
    """Rename a file; return False where there is none: a transaction index is rarely there."""
    try:
        files.replace(old, new)
    except FileNotFoundError:
        return False
    return True


def _base(name: str) -> int:
    base_offset = names.base_offset_of(name)
    return 1 << 63 if base_offset is None else base_offset


def _covered(disk: Disk, directory: str, name: str) -> tuple[int, int]:
    """Return the offsets that a finished `.log.swap` replaces: (base offset, next offset)."""
    base_offset = _base(name)
    path = f"{directory}/{name}"
    content_end = base_offset
    for _, header in walk_headers(disk, path, 0, disk.files.size_at(path)):
        content_end = header.last_offset + 1
    disk.handles.forget(path)
    return base_offset, content_end

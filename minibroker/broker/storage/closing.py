"""The end of a clean stop: everything that was appended gets to the disk, many logs at a time.

An fsync waits for the file system's journal, and fsyncs that wait together share one of its
commits: a thousand logs take a tenth of the time with eight of them at once. So the loop's thread
writes what is in memory, one log after the other, and a few threads that live as long as this takes
do the rest. The names of new partitions are in their log directory, which is synced once for all.

Source: Kafka LogManager.shutdown (`num.recovery.threads.per.data.dir` threads for each directory).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Final

from minibroker.broker.storage.partition_log import PartitionLog
from minibroker.broker.storage.tasks import FlushTask
from minibroker.kafka.errors import StorageError, SyncError

logger = logging.getLogger(__name__)

THREADS: Final = 8
"""More gain little: each waits for the same commit."""
FLUSHED_ALONE: Final = 4
"""So few logs are not worth a thread."""


def close_logs(logs: Iterable[PartitionLog]) -> dict[str, StorageError]:
    """Write and sync all of them: log directory → the first thing that went wrong there.

    Every log is tried, whatever happens to another.
    """
    failed: dict[str, StorageError] = {}
    tasks: list[FlushTask] = []
    for log in logs:
        try:
            task = closing_task(log)
        except StorageError as error:
            _note(failed, log.log_directory, error)
        else:
            if task is not None:
                tasks.append(task)
    synced = []
    for task, failure in zip(tasks, _run_all([task.sync for task in tasks]), strict=True):
        if failure is None:
            synced.append(task)
        else:
            _note(failed, task.place.log_directory, failure)
    _finish(synced, failed)
    return failed


def closing_task(log: PartitionLog) -> FlushTask | None:
    """Write everything as a clean stop does; what remains to be synced, on any thread, None:
    nothing, as in a log that nobody touched. Raises StorageError.
    """
    log.write_staged()
    try:
        has_new_entries = write_state(log)
    except OSError as error:
        raise log.place.failed("close", error) from error
    if (
        has_new_entries
        or log.log_end_offset > log.recovery_point
        or log.place.epochs_content is not None
        or log.producers.unsynced
    ):
        return log.durability.flush_task(rolled=log.active_segment if has_new_entries else None)
    return None


def write_state(log: PartitionLog) -> bool:
    """Write what is in memory only, but for epochs, which are synced as they are written:
    producers, index entries. Return whether the indexes got entries, which are not synced then.
    Raises OSError, StorageError.
    """
    if log.log_end_offset > log.recovery_point or log.producers.state is not None:
        log.producers.stage_snapshot(log.log_end_offset)
        log.producers.write_unsynced()
    active = log.active_segment
    if active.trim():
        log.files.sync_path(active.log_path)
    return active.close()


def _finish(tasks: list[FlushTask], failed: dict[str, StorageError]) -> None:
    """Sync the parents of new directories, and have the recovery points follow."""
    parents = {
        task.place.log_directory: task.place.files for task in tasks if task.has_new_directory
    }
    lost = set()
    for parent, files in parents.items():
        try:
            files.sync_directory(parent)
        except OSError as error:
            lost.add(parent)
            refused = SyncError(f"cannot sync {parent}: {error}", log_directory=parent, cause=error)
            _note(failed, parent, refused)
    for task in tasks:
        if task.place.log_directory not in lost:
            task.apply()


def _note(failed: dict[str, StorageError], directory: str, error: StorageError) -> None:
    logger.error("%s", error)
    failed.setdefault(directory, error)


def _run_all(steps: list[Callable[[], None]]) -> Iterator[StorageError | None]:
    """Yield the StorageError of each step, in order, or None; any other error is raised here."""
    attempts = [partial(_attempt, step) for step in steps]
    if len(steps) <= FLUSHED_ALONE:
        return iter([attempt() for attempt in attempts])
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415  (start-up does without)

    with ThreadPoolExecutor(THREADS, "flush") as pool:
        return iter([future.result() for future in [pool.submit(attempt) for attempt in attempts]])


def _attempt(step: Callable[[], None]) -> StorageError | None:
    try:
        step()
    except StorageError as error:
        return error
    return None

"""Blocking work on a worker: it survives what happens meanwhile, and says what it could not do."""

from __future__ import annotations

import gc
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.storage.disk import Disk
from minibroker.broker.storage.files import REAL_FILES, Files
from minibroker.broker.storage.removals import RemoveDirectoryTask, RemoveTask
from minibroker.broker.storage.segment import Segment
from minibroker.broker.storage.tasks import (
    SWITCH_S,
    CreateTask,
    EpochsTask,
    FlushTask,
    collector_at_rest,
    quick_switches,
)
from minibroker.kafka.errors import StorageError, SyncError
from tests.support.evidence import MARKED
from tests.support.faulty_files import FaultyFiles, PowerCut
from tests.support.logs import (
    NOW_MS,
    TOPIC_ID,
    NewLog,
    abandon,
    append,
    config,
    flush,
    log_on_faulty_files,
    open_manager,
    sync,
    values_of,
)
from tests.support.watched_files import CountingFiles

if TYPE_CHECKING:
    from collections.abc import Callable

    from minibroker.broker.storage.partition_log import PartitionLog


def test_threads_switch_quickly_until_the_last_one_has_ended() -> None:
    before_s = sys.getswitchinterval()
    with quick_switches():
        assert sys.getswitchinterval() == pytest.approx(SWITCH_S)
        with quick_switches():
            assert sys.getswitchinterval() == pytest.approx(SWITCH_S)
        assert sys.getswitchinterval() == pytest.approx(SWITCH_S)
    assert sys.getswitchinterval() == pytest.approx(before_s)


def test_the_collector_rests_until_the_last_thread_that_asked_has_ended() -> None:
    assert gc.isenabled()
    with collector_at_rest():
        with pytest.raises(ZeroDivisionError), collector_at_rest():
            _ = 1 // 0
        assert not gc.isenabled()
    assert gc.isenabled()


def test_a_collector_that_did_not_run_stays_at_rest() -> None:
    gc.disable()
    try:
        with collector_at_rest():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def flush_task(log: PartitionLog, paths: list[str], end: int) -> FlushTask:
    on_synced = log.durability._note_synced
    return FlushTask(log.place, paths, end, names_changed=0, on_synced=on_synced)


def run_and_apply(task: FlushTask) -> None:
    """Run a task like the worker, and apply it like the loop."""
    task()
    task.apply()


def new_segment(directory: Path) -> Segment:
    return Segment(Disk(), str(directory), 7, created_ms=NOW_MS)


def test_create_leaves_existing_files(tmp_path: Path) -> None:
    segment = new_segment(tmp_path)
    Path(segment.log_path).write_text("content")
    CreateTask(segment)()
    assert Path(segment.log_path).read_text() == "content"
    assert [Path(path).exists() for path in segment.paths] == [True, True, True]


def test_create_names_the_path_that_it_could_not_make(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    CreateTask(new_segment(tmp_path / "gone"))()
    assert not (tmp_path / "gone").exists()
    assert "cannot create the files of" in caplog.text


def test_create_makes_nothing_for_a_segment_that_left_service(tmp_path: Path) -> None:
    segment = new_segment(tmp_path)
    task = CreateTask(segment)
    Path(segment.log_path).write_text("content")
    [marked] = segment.mark_deleted()
    task()
    assert [path.name for path in tmp_path.iterdir()] == [Path(marked).name]


def test_create_makes_nothing_in_a_namesake_of_its_partition(tmp_path: Path) -> None:
    """An empty `.log` at a higher offset would move the end of the new log at the next start."""
    tasks: list[Callable[[], None]] = []
    manager = open_manager(str(tmp_path), run_later=tasks.append)
    log = manager.create_log("t", 0, TOPIC_ID, config())
    append(log, b"a")
    log.roll()
    directory = log.directory
    manager.delete("t", 0, MARKED)
    namesake = manager.create_log("t", 0, TOPIC_ID, config())
    assert namesake.directory == directory
    for task in tasks:
        task()
    assert not list(Path(namesake.directory).glob("*.log"))
    abandon(manager)


def test_a_flush_moves_the_recovery_point_not_beyond_the_end(new_log: NewLog) -> None:
    log = new_log()
    append(log, b"a", b"b")
    run_and_apply(flush_task(log, [f"{log.directory}/absent"], 2))
    assert log.recovery_point == 2
    run_and_apply(flush_task(log, [], 100))
    assert log.recovery_point == 2


def test_a_flush_that_fails_says_so_and_leaves_the_recovery_point(tmp_path: Path) -> None:
    files, manager, log = log_on_faulty_files(tmp_path / "d")
    append(log, b"a")
    task = log.durability.flush_task()
    files.fail_at = files.call_count + 1
    with pytest.raises(SyncError, match="cannot flush t-0") as caught:
        task()
    assert caught.value.is_lasting
    assert log.recovery_point == 0
    flush(log)
    assert log.recovery_point == 1
    abandon(manager)
    files.forget_pins()


def test_epochs_that_find_no_room_may_find_it_later(tmp_path: Path) -> None:
    files, manager, log = log_on_faulty_files(tmp_path / "d")
    append(log, b"a")
    log.place.epochs_content = b"0\n1\n1 0\n"
    files.fail_at = files.call_count + 1
    with pytest.raises(StorageError, match="cannot flush t-0") as caught:
        flush(log)
    assert not caught.value.is_lasting
    flush(log)
    assert log.recovery_point == 1
    abandon(manager)
    files.forget_pins()


def test_a_flush_of_a_deleted_log_does_nothing(new_log: NewLog, tmp_path: Path) -> None:
    log = new_log()
    append(log, b"a")
    task = log.durability.flush_task()
    remove = log.mark_deleted(f"{tmp_path}/t/t-0.x-delete")
    run_and_apply(task)
    remove()
    run_and_apply(task)
    assert log.recovery_point == 0


@pytest.mark.parametrize("is_flushed_before", [False, True])
def test_a_flush_that_overtakes_another_syncs_the_names_too(
    tmp_path: Path, is_flushed_before: bool
) -> None:
    """The flush of a roll waits on the worker while a producer's is done by a thread of its own."""
    (tmp_path / "d").mkdir()
    files = FaultyFiles(str(tmp_path / "d"))
    tasks: list[Callable[[], None]] = []
    manager = open_manager(str(tmp_path / "d"), files=files, run_later=tasks.append)
    log = manager.create_log("t", 0, TOPIC_ID, config())
    append(log, b"a")
    flush(log)
    log.roll()
    if is_flushed_before:
        flush(log)  # the new segment has no file yet, and no name that could be synced
    append(log, b"b")
    flush(log)
    assert log.recovery_point == 2
    abandon(manager)
    files.power_cut()
    manager = open_manager(str(tmp_path / "d"), files=files)
    assert values_of(manager.logs[log.name]) == [b"a", b"b"]
    abandon(manager)
    files.forget_pins()


class OvertakenFiles(FaultyFiles):
    """Calls `meanwhile`, once, when something is about to be synced by name."""

    meanwhile: Callable[[], None] | None = None

    def sync_path(self, path: str) -> None:
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            meanwhile()
        super().sync_path(path)


def test_epochs_count_as_synced_when_they_are(tmp_path: Path) -> None:
    """A flush that ends before another one has synced them does not leave them to that."""
    (tmp_path / "d").mkdir()
    files = OvertakenFiles(str(tmp_path / "d"))
    manager = open_manager(str(tmp_path / "d"), files=files, run_later=lambda _: None)
    log = manager.create_log("t", 0, TOPIC_ID, config())
    append(log, b"a", leader_epoch=3)

    def overtake() -> None:
        flush(log)
        manager.checkpoint_now()
        raise PowerCut

    files.meanwhile = overtake
    with pytest.raises(PowerCut):
        flush(log)
    abandon(manager)
    files.power_cut()
    manager = open_manager(str(tmp_path / "d"), files=files)
    assert manager.logs[log.name].recovery_point == 1
    assert manager.logs[log.name].epochs.history.entries == [(3, 0)]
    abandon(manager)
    files.forget_pins()


def test_a_flush_does_not_count_records_after_a_truncation(new_log: NewLog) -> None:
    log = new_log()
    append(log, b"a")
    append(log, b"b")
    task = log.durability.flush_task()
    log.truncate_to(1)
    append(log, b"other")
    run_and_apply(task)
    assert log.recovery_point == 0


def test_staged_records_of_a_deleted_log_are_not_written(tmp_path: Path) -> None:
    """Its index would be made in the directory of a namesake, or be taken for a disk's fault."""
    manager = open_manager(str(tmp_path))
    log = manager.create_log("t", 0, TOPIC_ID, config())
    for _ in range(3):
        append(log, b"x" * 5000)
    assert log.active_segment.unwritten_entry_count
    manager.delete("t", 0, MARKED)
    log.durability.flush_task()()
    namesake = manager.create_log("t", 0, TOPIC_ID, config())
    log.durability.flush_task()()
    assert not list(Path(namesake.directory).glob("*index"))
    abandon(manager)


def test_the_newest_epochs_are_written_whichever_task_runs(new_log: NewLog) -> None:
    log = new_log()
    log.epochs.assign(1, 0)
    log.place.epochs_content = b"newest"
    EpochsTask(log.place)()
    assert REAL_FILES.read_all(log.place.epochs_path) == b"newest"
    assert log.place.epochs_content is None
    EpochsTask(log.place)()
    assert REAL_FILES.read_all(log.place.epochs_path) == b"newest"


def test_removal_ignores_missing_files(tmp_path: Path) -> None:
    (tmp_path / "a.deleted").write_text("")
    RemoveTask(REAL_FILES, [f"{tmp_path}/absent", f"{tmp_path}/a.deleted"])()
    assert list(tmp_path.iterdir()) == []
    RemoveDirectoryTask(REAL_FILES, f"{tmp_path}/t-0.x-delete")()


def test_only_a_marked_directory_is_removed(tmp_path: Path) -> None:
    (tmp_path / "t-0").mkdir()
    with pytest.raises(AssertionError):
        RemoveDirectoryTask(REAL_FILES, f"{tmp_path}/t-0")()


class RefusingFiles(Files):
    __slots__ = ()

    def remove(self, path: str) -> None:
        raise PermissionError(13, "Permission denied", path)


def test_a_failed_removal_is_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "t-0.x-delete").mkdir()
    (tmp_path / "t-0.x-delete" / "a").write_text("")
    RemoveDirectoryTask(RefusingFiles(), f"{tmp_path}/t-0.x-delete")()
    RemoveTask(RefusingFiles(), [f"{tmp_path}/b"])()
    assert caplog.text.count("Permission denied") == 2


PRODUCER = 4


def append_as_producer(log: PartitionLog, first: int, count: int) -> None:
    for number in range(first, first + count):
        append(log, b"x" * 1_000, producer_id=PRODUCER, producer_epoch=0, sequence=number)


def test_a_start_after_a_kill_reads_no_more_than_what_came_after_the_sync(tmp_path: Path) -> None:
    manager = open_manager(str(tmp_path))
    log = manager.create_log("t", 0, TOPIC_ID, config())
    append_as_producer(log, 0, 500)
    sync(manager, log)
    append_as_producer(log, 500, 3)
    abandon(manager)
    files = CountingFiles()
    manager = open_manager(str(tmp_path), files=files)
    log = manager.logs[log.name]
    assert (log.log_end_offset, log.recovery_point) == (503, 500)
    assert log.producers.loaded().producers[PRODUCER].last_sequence == 502
    assert files.read_bytes < 60_000
    abandon(manager)


def test_the_snapshot_survives_a_power_cut(tmp_path: Path) -> None:
    files, manager, log = log_on_faulty_files(tmp_path)
    append_as_producer(log, 0, 3)
    sync(manager, log)
    path = Path(log.directory, f"{3:020d}.snapshot")
    content = path.read_bytes()
    files.sync_directory(log.directory)  # its name is durable sooner or later
    abandon(manager)
    files.power_cut()
    assert path.read_bytes() == content
    files.forget_pins()


def test_a_snapshot_that_cannot_be_written_is_an_error_of_its_directory(tmp_path: Path) -> None:
    files, manager, log = log_on_faulty_files(tmp_path)
    append_as_producer(log, 0, 1)
    flush(log)
    task = log.durability.sync_task()
    assert task is not None
    files.fail_at = files.call_count + 1
    with pytest.raises(StorageError, match="cannot write the producers of t-0") as raised:
        task()
    assert raised.value.log_directory == str(tmp_path)
    task()
    task.apply()
    assert Path(log.directory, f"{1:020d}.snapshot").exists()
    abandon(manager)
    files.forget_pins()

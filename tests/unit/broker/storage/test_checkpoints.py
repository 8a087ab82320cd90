"""The logs that checkpoints name, and the order in which they are written."""

from __future__ import annotations

from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.storage.files import Files
from minibroker.kafka.errors import StorageError
from minibroker.kafka.ids import TopicPartition
from tests.support.evidence import MARKED
from tests.support.faulty_files import FaultyFiles
from tests.support.logs import DEFAULTS, TOPIC_ID, append, flush, open_manager

if TYPE_CHECKING:
    from collections.abc import Callable

    from minibroker.broker.storage.log_manager import LogManager
    from minibroker.broker.storage.partition_log import PartitionLog


A, B = TopicPartition("a", 0), TopicPartition("b", 0)


def test_a_directory_knows_the_logs_that_its_files_may_name(tmp_path: Path) -> None:
    manager = open_manager(str(tmp_path))
    (directory,) = manager.directories
    manager.create_log(*A, TOPIC_ID, DEFAULTS)
    assert directory.checkpoint_names == set()
    manager.checkpoint_now()
    assert directory.checkpoint_names == {A}
    manager.delete(*A, MARKED)
    assert directory.checkpoint_names == {A}
    manager.create_log(*B, TOPIC_ID, DEFAULTS)
    assert directory.checkpoint_names == {A}
    manager.checkpoint_now()
    assert directory.checkpoint_names == {B}
    manager.close()
    again = open_manager(str(tmp_path))
    assert again.directories[0].checkpoint_names == {B}
    again.close()


class SlowFiles(Files):
    """A checkpoint that waits until it may go on, and one that is refused."""

    def __init__(self) -> None:
        self.waits = self.refuses = False
        self.arrived, self.may_go_on = Event(), Event()

    def write_atomically(self, path: str, content: bytes) -> None:
        if self.waits:
            self.waits = False
            self.arrived.set()
            assert self.may_go_on.wait(60)
        if self.refuses:
            raise OSError(28, "No space left on device")
        super().write_atomically(path, content)


def test_a_checkpoint_that_is_being_written_is_waited_for(tmp_path: Path) -> None:
    """The worker has looked at the old log already: its file must not be the last."""
    files = SlowFiles()
    manager = open_manager(str(tmp_path), files=files)
    log = manager.create_log(*A, TOPIC_ID, DEFAULTS)
    append(log, b"old")
    flush(log)
    files.waits = True
    writer = Thread(target=manager.checkpoint_now)
    writer.start()
    assert files.arrived.wait(60)
    manager.delete(*A, MARKED)
    files.may_go_on.set()
    manager.create_log(*A, TOPIC_ID, DEFAULTS)
    writer.join(60)
    assert "a 0 1" not in (tmp_path / "recovery-point-offset-checkpoint").read_text()
    manager.close()


def test_a_round_of_compaction_writes_the_ends_of_compaction_alone(tmp_path: Path) -> None:
    """The other files name each log of the directory: ten thousand for the round of one."""
    manager = open_manager(str(tmp_path))
    a, b = (manager.create_log(*name, TOPIC_ID, DEFAULTS) for name in (A, B))
    for log, end in ((a, 1), (b, 2)):
        append(log, b"1")
        append(log, b"2")
        log.clean_offset = end
        manager.checkpoint_cleaned_later(log)
    path = tmp_path / "cleaner-offset-checkpoint"
    assert path.read_text().splitlines()[2:] == ["a 0 1", "b 0 2"]
    assert not (tmp_path / "recovery-point-offset-checkpoint").exists()
    manager.delete(*A, MARKED)
    a.clean_offset = 2
    manager.checkpoint_cleaned_later(a)
    assert path.read_text().splitlines()[2:] == ["a 0 1", "b 0 2"]
    manager.close()
    again = open_manager(str(tmp_path))
    reopened = again.get(*B)
    assert reopened is not None
    assert reopened.clean_offset == 2
    again.close()


def test_a_disk_that_refuses_makes_no_log(tmp_path: Path) -> None:
    files = SlowFiles()
    manager = open_manager(str(tmp_path), files=files)
    manager.create_log(*A, TOPIC_ID, DEFAULTS)
    manager.checkpoint_now()
    manager.delete(*A, MARKED)
    files.refuses = True
    with pytest.raises(StorageError, match="cannot be written"):
        manager.create_log(*A, TOPIC_ID, DEFAULTS)
    assert manager.get(*A) is None
    files.refuses = False
    manager.create_log(*A, TOPIC_ID, DEFAULTS)
    manager.close()


def test_a_checkpoint_that_knows_a_log_of_the_same_name_is_waited_for(tmp_path: Path) -> None:
    """The first of two directories is being written; the second one's logs are known already.

    A log start that is not the namesake's would empty that at the next start.
    """
    files = SlowFiles()
    manager = open_manager(str(tmp_path / "1"), str(tmp_path / "2"), files=files)
    manager.create_log(*B, TOPIC_ID, DEFAULTS)
    log = manager.create_log(*A, TOPIC_ID, DEFAULTS)
    assert log.log_directory == str(tmp_path / "2")
    append(log, b"old")
    append(log, b"old")
    log.advance_log_start(1)
    files.waits = True
    writer = Thread(target=manager.checkpoint_now)
    writer.start()
    assert files.arrived.wait(60)
    manager.delete(*A, MARKED)
    files.may_go_on.set()
    namesake = manager.create_log(*A, TOPIC_ID, DEFAULTS)
    writer.join(60)
    assert namesake.directory == log.directory.partition("/a-0.")[0] + "/a-0"
    assert "a 0 1" not in (tmp_path / "2" / "log-start-offset-checkpoint").read_text()
    manager.close()


def test_a_directory_that_fails_meanwhile_keeps_its_checkpoints(tmp_path: Path) -> None:
    """Its logs are gone from the list when the writer's turn comes: that says nothing of them."""
    paths = str(tmp_path / "1"), str(tmp_path / "2")
    manager = open_manager(*paths)
    log = manager.create_log(*A, TOPIC_ID, DEFAULTS)
    manager.create_log(*B, TOPIC_ID, DEFAULTS)
    append(log, b"a")
    append(log, b"a")
    log.advance_log_start(1)
    manager.checkpoint_now()
    old_text = (tmp_path / "1" / "log-start-offset-checkpoint").read_text()
    assert "a 0 1" in old_text

    def logs_after_the_failure() -> list[tuple[TopicPartition, PartitionLog]]:
        manager.fail_directory(paths[0])
        return list(manager.logs.items())

    manager._checkpoints.write(manager.live_directories, logs_after_the_failure)
    assert (tmp_path / "1" / "log-start-offset-checkpoint").read_text() == old_text
    manager.close()


def test_a_recovery_point_never_vouches_for_deleted_records_alone(tmp_path: Path) -> None:
    """DeleteRecords moves both; what lies below was never synced."""
    root = tmp_path / "d"
    root.mkdir()
    files = FaultyFiles(str(root))
    manager = open_manager(str(root), files=files)
    log = manager.create_log(*A, TOPIC_ID, DEFAULTS)
    manager.checkpoint_now()
    append(log, b"a")
    log.advance_log_start(1)
    for call in range(20):
        files.fail_at = files.call_count + 1 + call
        try:
            manager.checkpoint_now()
        except StorageError:
            vouches = "a 0 1" in (root / "recovery-point-offset-checkpoint").read_text()
            starts = "a 0 1" in (root / "log-start-offset-checkpoint").read_text()
            assert starts or not vouches
    files.fail_at = -1
    manager.close()
    files.forget_pins()


def recovery_points(directory: Path) -> dict[str, int]:
    """Topic → offset in the file."""
    lines = (directory / "recovery-point-offset-checkpoint").read_text().splitlines()[2:]
    return {line.split()[0]: int(line.split()[2]) for line in lines}


def test_a_sync_writes_the_recovery_points_of_its_logs_only(tmp_path: Path) -> None:
    """The file keeps the entries of all other logs, also those of an earlier run."""
    manager = open_manager(str(tmp_path))
    logs = [manager.create_log(*name, TOPIC_ID, DEFAULTS) for name in (A, B)]
    for log in logs:
        append(log, b"1")
        flush(log)
    manager.checkpoint_now()
    manager.close()
    manager = open_manager(str(tmp_path))
    logs = [manager.logs[name] for name in (A, B)]
    for log in logs:
        append(log, b"2")
        flush(log)
    manager.checkpoint_synced([(logs[0], 2)])
    assert recovery_points(tmp_path) == {"a": 2, "b": 1}
    manager.close()


def test_a_sync_of_truncated_or_deleted_records_counts_for_nothing(tmp_path: Path) -> None:
    manager = open_manager(str(tmp_path))
    logs = [manager.create_log(*name, TOPIC_ID, DEFAULTS) for name in (A, B)]
    for log in logs:
        append(log, b"1")
        append(log, b"2")
        flush(log)
    manager.truncate(*A, 1)
    manager.delete(*B, MARKED)
    manager.create_log(*B, TOPIC_ID, DEFAULTS)
    manager.checkpoint_synced([(log, 2) for log in logs])
    assert recovery_points(tmp_path) == {"a": 1}
    assert manager.directories[0].checkpoint_names == {A, B}  # who makes a B writes them anew first
    manager.close()


def test_a_sync_writes_into_the_directory_of_each_log(tmp_path: Path) -> None:
    paths = [tmp_path / "one", tmp_path / "two"]
    manager = open_manager(*map(str, paths))
    logs = [manager.create_log(*name, TOPIC_ID, DEFAULTS) for name in (A, B)]
    for log in logs:
        append(log, b"1")
        flush(log)
    manager.checkpoint_synced([(log, 1) for log in logs])
    assert [recovery_points(path) for path in paths] == [{"a": 1}, {"b": 1}]
    manager.fail_directory(str(paths[1]))
    manager.checkpoint_synced([(log, 1) for log in logs])
    manager.close()


class Queue:
    """A worker that works when the test says so."""

    def __init__(self) -> None:
        self.tasks: list[Callable[[], None]] = []

    def run_later(self, task: Callable[[], None]) -> None:
        self.tasks.append(task)

    def run(self) -> None:
        tasks, self.tasks = self.tasks, []
        for task in tasks:
            task()


def synced_log(manager: LogManager, name: TopicPartition) -> PartitionLog:
    """Return a log of three durable records, which the checkpoints vouch for."""
    log = manager.create_log(*name, TOPIC_ID, DEFAULTS)
    for value in (b"1", b"2", b"3"):
        append(log, value)
    flush(log)
    manager.checkpoint_now()
    return log


@pytest.fixture
def queue() -> Queue:
    return Queue()


@pytest.fixture
def counting(tmp_path: Path, queue: Queue) -> tuple[FaultyFiles, LogManager]:
    """Files that count calls, and a log manager of two directories on them."""
    files = FaultyFiles(str(tmp_path))
    paths = [tmp_path / name for name in ("one", "two")]
    for path in paths:
        path.mkdir()
    return files, open_manager(*map(str, paths), files=files, run_later=queue.run_later)


def test_a_truncation_writes_no_checkpoint_itself(
    counting: tuple[FaultyFiles, LogManager], queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    files, manager = counting
    log = synced_log(manager, A)
    other = synced_log(manager, B)
    queue.run()
    synced: list[str] = []
    monkeypatch.setattr(Files, "write_atomically", lambda _files, path, _: synced.append(path))
    manager.truncate(*A, 1)
    assert synced == []
    queue.run()
    assert synced
    assert all(path.startswith(log.log_directory) for path in synced)
    assert log.log_directory != other.log_directory
    assert files


def test_the_recovery_point_follows_a_truncation_before_the_log_grows(
    counting: tuple[FaultyFiles, LogManager], queue: Queue
) -> None:
    """The worker has not come to it: the append does it."""
    _, manager = counting
    log = synced_log(manager, A)
    directory = Path(log.log_directory)
    manager.truncate(*A, 1)
    assert log.unsaved_cut is not None
    append(log, b"instead")
    assert recovery_points(directory) == {"a": 1}
    assert log.unsaved_cut is None
    manager.begin_anew(*A, 7)
    queue.run()
    assert log.unsaved_cut is None
    assert recovery_points(directory) == {"a": 1}


def test_a_log_whose_checkpoint_cannot_follow_takes_no_record(
    counting: tuple[FaultyFiles, LogManager],
) -> None:
    files, manager = counting
    log = synced_log(manager, A)
    manager.truncate(*A, 1)
    files.fail_at, files.fail_count = files.call_count + 1, 1
    with pytest.raises(StorageError):
        append(log, b"instead")
    assert log.log_end_offset == 1
    append(log, b"instead")
    assert log.log_end_offset == 2


def test_a_cut_that_the_checkpoints_do_not_reach_writes_nothing(
    counting: tuple[FaultyFiles, LogManager], queue: Queue
) -> None:
    files, manager = counting
    log = synced_log(manager, A)
    append(log, b"4")
    queue.run()
    manager.truncate(*A, 3)
    old_count = files.call_count
    queue.run()
    assert files.call_count == old_count

"""Tasks that nobody waits for: the worker gets them together, and none is forgotten."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.broker.storage.disk import Disk
from minibroker.broker.storage.files import REAL_FILES
from minibroker.broker.storage.gathered import GATHER_S, TASKS_MAX, Gathered
from minibroker.broker.storage.log_manager import LogManager
from minibroker.broker.storage.partition_metadata import read_metadata
from minibroker.broker.worker import Caller, Workers
from minibroker.kafka.errors import StorageError
from tests.support.logs import TOPIC_ID, ManualClock, abandon, append, config

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from minibroker.broker.storage.partition_log import PartitionLog


class Loop:
    """Keeps what is to be called later."""

    def __init__(self) -> None:
        self.calls: list[tuple[float, Callable[[], None]]] = []

    def call_later(self, delay_s: float, call: Callable[[], None]) -> None:
        self.calls.append((delay_s, call))

    def let_time_pass(self) -> None:
        calls, self.calls = self.calls, []
        for _, call in calls:
            call()


class CountingWorker(Caller):
    """Runs tasks at once, and counts them."""

    def __init__(self) -> None:
        self.task_count = 0

    def run_later(self, task: Callable[[], None]) -> None:
        self.task_count += 1
        super().run_later(task)


@pytest.fixture
def loop() -> Loop:
    return Loop()


@pytest.fixture
def worker() -> CountingWorker:
    return CountingWorker()


def test_the_worker_gets_the_tasks_of_a_moment_as_one(loop: Loop, worker: CountingWorker) -> None:
    gathered = Gathered(worker, loop.call_later)
    done: list[int] = []
    for number in range(3):
        gathered.add(lambda number=number: done.append(number))  # type: ignore[misc]
    assert (done, worker.task_count) == ([], 0)
    assert [delay_s for delay_s, _ in loop.calls] == [GATHER_S]
    loop.let_time_pass()
    assert (done, worker.task_count) == ([0, 1, 2], 1)


def test_a_task_behind_a_hand_over_has_its_own_moment(loop: Loop, worker: CountingWorker) -> None:
    gathered = Gathered(worker, loop.call_later)
    done: list[int] = []
    gathered.add(lambda: done.append(1))
    gathered.hand_over()
    gathered.hand_over()
    assert (done, worker.task_count) == ([1], 1)
    gathered.add(lambda: done.append(2))
    loop.let_time_pass()
    assert done == [1, 2]
    loop.let_time_pass()
    assert worker.task_count == 2


def test_many_tasks_wait_for_no_moment(loop: Loop, worker: CountingWorker) -> None:
    gathered = Gathered(worker, loop.call_later)
    done: list[None] = []
    for _ in range(TASKS_MAX):
        gathered.add(lambda: done.append(None))
    assert (len(done), worker.task_count) == (TASKS_MAX, 1)


def test_without_a_loop_a_task_runs_at_once(worker: CountingWorker) -> None:
    done: list[None] = []
    Gathered(worker, None).add(lambda: done.append(None))
    assert done == [None]


def test_a_task_that_fails_keeps_no_other_one_from_its_turn(loop: Loop) -> None:
    gathered = Gathered(Caller(), loop.call_later)
    done: list[None] = []

    def fail(reason: str) -> None:
        raise StorageError(reason)

    gathered.add(lambda: fail("first"))
    gathered.add(lambda: done.append(None))
    gathered.add(lambda: fail("second"))
    with pytest.raises(StorageError, match="first"):
        gathered.hand_over()
    assert done == [None]


# The topic id of a new partition's directory.


@pytest.fixture
def manager(tmp_path: Path, loop: Loop) -> Iterator[LogManager]:
    """Yield the logs of a broker; topic ids of new ones are gathered."""
    settings = config()
    disk = Disk(REAL_FILES, Workers.by(Caller()), call_later=loop.call_later)
    manager = LogManager(
        [str(tmp_path)], clock=ManualClock(), config_of=lambda _: settings, disk=disk
    )
    manager.open()
    manager.load()
    yield manager
    abandon(manager)


@pytest.fixture
def new_log(manager: LogManager) -> Callable[[], PartitionLog]:
    """Makes a log whose topic id is gathered."""
    return lambda: manager.create_log("t", 0, TOPIC_ID, config())


def test_a_new_directory_has_its_topic_id_after_a_moment(
    tmp_path: Path, loop: Loop, new_log: Callable[[], PartitionLog]
) -> None:
    log = new_log()
    assert log.place.topic_id == TOPIC_ID
    assert read_metadata(REAL_FILES, str(tmp_path / "t-0")) is None
    loop.let_time_pass()
    assert read_metadata(REAL_FILES, str(tmp_path / "t-0")) == TOPIC_ID


def test_the_topic_id_is_on_its_way_before_the_first_record(
    tmp_path: Path, new_log: Callable[[], PartitionLog]
) -> None:
    """As with Kafka's `UnifiedLog.append`: else the records could become another topic's."""
    append(new_log(), b"a")
    assert read_metadata(REAL_FILES, str(tmp_path / "t-0")) == TOPIC_ID


def test_a_broker_that_was_killed_writes_no_topic_id(
    tmp_path: Path, loop: Loop, manager: LogManager, new_log: Callable[[], PartitionLog]
) -> None:
    """The next one of the process may have another topic's log at this path."""
    new_log()
    manager.disk.close()
    loop.let_time_pass()
    assert read_metadata(REAL_FILES, str(tmp_path / "t-0")) is None

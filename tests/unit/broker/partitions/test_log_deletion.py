"""The logs of a deleted topic go a few at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.broker.partitions.append_queue import run_now_of
from minibroker.broker.partitions.leaving_logs import REMOVED_AT_ONCE, LogDeletion
from minibroker.kafka.errors import StorageError
from tests.support.evidence import MARKED
from tests.unit.broker.partitions.conftest import partition_image

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.unit.broker.partitions.conftest import World


def deletion_of(world: World, count: int) -> LogDeletion:
    topic = world.create("t", *[partition_image()] * count)
    return LogDeletion(
        topic,
        world.manager.of_topic("t"),
        range(len(topic.partitions)),
        MARKED,
        logs=world.logs,
        delay_ms=5,
        on_failed=lambda _subject, _error: None,
    )


def test_a_step_takes_one_log(world: World) -> None:
    deletion = deletion_of(world, 3)
    left = [len(world.logs.logs) for _ in deletion.steps()]
    assert left == [2, 1, 0]


def test_few_timers_wait_for_the_files(world: World) -> None:
    count = 2 * REMOVED_AT_ONCE + 1
    list(deletion_of(world, count).steps())
    assert [delay_ms for delay_ms, _ in world.later] == [5] * 3
    path = world.logs.directories[0].path
    left = []
    for _, remove in world.later:
        remove()
        left.append(len(world.files.list_directories(path)))
    assert left == [REMOVED_AT_ONCE + 1, 1, 0]


def test_a_disk_that_refuses_one_log_costs_no_other(world: World) -> None:
    deletion = deletion_of(world, 3)
    steps = deletion.steps()
    next(steps)
    world.files.fail_at = world.files.call_count + 1
    list(steps)
    assert isinstance(deletion.failure, StorageError)
    assert list(world.logs.logs) == [("t", 1)]


def test_the_end_is_told_after_every_directory(world: World) -> None:
    deletion = deletion_of(world, 2)
    done: list[bool] = []
    list(deletion.steps())
    deletion.settle(run_now_of, lambda: done.append(True))
    assert done == [True]
    assert deletion.failure is None


def test_a_topic_without_logs_here_has_nothing_to_settle(world: World) -> None:
    topic = world.create("t", partition_image(leader=5, replicas=(5,)))
    deletion = LogDeletion(
        topic,
        {},
        range(len(topic.partitions)),
        MARKED,
        logs=world.logs,
        delay_ms=5,
        on_failed=lambda _subject, _error: None,
    )
    done: list[bool] = []
    list(deletion.steps())
    deletion.settle(run_now_of, lambda: done.append(True))
    assert done == [True]
    assert world.later == []


def test_the_end_is_told_whatever_went_wrong(world: World) -> None:
    """The request that deletes the topic waits for it."""
    deletion = deletion_of(world, 1)
    list(deletion.steps())
    done: list[bool] = []

    def refuse(_task: object, end: Callable[[OSError], None]) -> None:
        end(OSError("a worker that cannot be asked"))

    deletion.settle(lambda _path: refuse, lambda: done.append(True))
    assert done == [True]
    assert isinstance(deletion.failure, StorageError)

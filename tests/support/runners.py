"""Runners of work in tests: the tasks go where the test says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.broker.worker import Caller, Workers

if TYPE_CHECKING:
    from collections.abc import Callable

    from minibroker.broker.worker import Done


class TestRunner(Caller):
    """Hands each task, with what is called after it, to a function of the test."""

    __test__ = False

    def __init__(self, take: Callable[[Callable[[], None]], object]) -> None:
        """`take` gets every task. It may run it, keep it or drop it."""
        self._take = take

    def run_later(self, task: Callable[[], None]) -> None:
        self._take(task)

    def run_then(self, task: Callable[[], None], done: Done) -> None:
        self._take(lambda: Caller.run_then(self, task, done))

    def run_reported(self, task: Callable[[], None], done: Done) -> None:
        self._take(lambda: Caller.run_reported(self, task, done))


class HeldRunner:
    """Keeps each task, with what is called after it, in `work` until the test runs both."""

    def __init__(self) -> None:
        self.work: list[tuple[Callable[[], None], Done]] = []

    def run_later(self, task: Callable[[], None]) -> None:
        self.work.append((task, lambda _error: None))

    def run_then(self, task: Callable[[], None], done: Done) -> None:
        self.work.append((task, done))

    run_reported = run_then


def workers_of(take: Callable[[Callable[[], None]], object]) -> Workers:
    """Return workers that hand every task to `take`."""
    return Workers.by(TestRunner(take))

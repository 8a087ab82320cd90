"""Tasks of a log directory that nobody waits for: the topic id of a new partition's directory.

Each task wakes the worker up, which takes the interpreter from the loop in the middle of a request.
So such tasks are gathered for a moment, and the worker gets them together.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from minibroker.kafka.errors import MinibrokerError

if TYPE_CHECKING:
    from minibroker.broker.worker import Runner

    CallLater = Callable[[float, Callable[[], None]], object]
    """Gets a delay in seconds and what the loop calls then."""

GATHER_S: float = 0.1
"""Seconds for which a task waits for others."""
TASKS_MAX: Final = 100
"""So many tasks are handed over at once: what is behind them in the queue waits for all of them."""


class Gathered:
    """The tasks that are not handed over yet. The loop owns it."""

    __slots__ = ("_call_later", "_tasks", "_worker")

    def __init__(self, worker: Runner, call_later: CallLater | None) -> None:
        """`call_later` is None in tools and tests, which have no loop: each task runs at once."""
        self._worker = worker
        self._call_later = call_later
        self._tasks: list[Callable[[], None]] = []

    def add(self, task: Callable[[], None]) -> None:
        """Have the worker run a task within `GATHER_S`. It raises no error but MinibrokerError and
        OSError.
        """
        if self._call_later is None:
            self._worker.run_later(task)
            return
        self._tasks.append(task)
        if len(self._tasks) == TASKS_MAX:
            self.hand_over()
        elif len(self._tasks) == 1:
            self._call_later(GATHER_S, self.hand_over)

    def hand_over(self) -> None:
        """Give the worker what is gathered."""
        if self._tasks:
            tasks, self._tasks = self._tasks, []
            self._worker.run_later(partial(_run_all, tasks))

    def drop(self) -> None:
        """Forget what is gathered, as a kill does: the next broker of the process may have other
        logs at these paths.
        """
        self._tasks = []


def _run_all(tasks: list[Callable[[], None]]) -> None:
    """Run all tasks. Raises the first error of one, behind the last one."""
    first_error: MinibrokerError | OSError | None = None
    for task in tasks:
        try:
            task()
        except (MinibrokerError, OSError) as error:
            first_error = first_error or error
    if first_error is not None:
        raise first_error

"""How pytest's workers spent a run: printed at its end, for the order in `schedule.py`.

A run is as long as its longest worker. The table shows when each worker ended and with which
module, and the modules and tests that took longest, with their fixtures.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MODULES_SHOWN = 25
TESTS_SHOWN = 30
SHORTEST_SHOWN_S = 1.0


class Step(NamedTuple):
    """Set-up, call or tear-down of one test."""

    worker: str
    nodeid: str
    stopped_s: float
    """Seconds since the epoch."""
    duration_s: float

    @property
    def module(self) -> str:
        """The file of the test."""
        return self.nodeid.partition("::")[0]


def lines(steps: Iterable[Step], started_s: float) -> Iterator[str]:
    """Return the table of a run that began at `started_s`, seconds since the epoch."""
    by_worker: dict[str, list[Step]] = defaultdict(list)
    by_module: dict[str, float] = defaultdict(float)
    by_test: dict[str, float] = defaultdict(float)
    for step in steps:
        by_worker[step.worker].append(step)
        by_module[step.module] += step.duration_s
        by_test[step.nodeid] += step.duration_s
    for worker, work in sorted(by_worker.items()):
        last = max(work, key=lambda step: step.stopped_s)
        busy_s = sum(step.duration_s for step in work)
        yield (
            f"{worker}: in tests for {busy_s:.0f} s, "
            f"ended after {last.stopped_s - started_s:.0f} s with {last.module}"
        )
    for durations, count in ((by_module, MODULES_SHOWN), (by_test, TESTS_SHOWN)):
        yield ""
        long = [item for item in durations.items() if item[1] >= SHORTEST_SHOWN_S]
        longest = sorted(long, key=lambda item: item[1], reverse=True)
        yield from (f"{duration_s:7.1f} s  {name}" for name, duration_s in longest[:count])

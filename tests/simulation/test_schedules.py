"""Random schedules keep the invariants of replication, and planted bugs break them.

`MINIBROKER_SCHEDULES=2000` runs so many seeds (`make simulation`), from
`MINIBROKER_SCHEDULES_FIRST` on (0). A failure names its seed and shows the last lines of its
history; `make simulation FIRST=189 SCHEDULES=1 ARGS='-k keep_the_rules'` runs that seed again.
"""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

import pytest

from tests.simulation import planted_bugs
from tests.simulation.loop import SimulatedLoop
from tests.simulation.plan import plan_of
from tests.simulation.world import run_schedule
from tests.support.memory import directory_in_memory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


SCHEDULES = int(os.environ.get("MINIBROKER_SCHEDULES", "12"))
FIRST = int(os.environ.get("MINIBROKER_SCHEDULES_FIRST", "0"))
"""The first seed; the planted bugs have seeds of their own."""
SEEDS_OF_A_BUG = 40
"""Seeds of which one at least finds a planted bug. Each is found by one of four, or more."""
TIME_WIDTH = 11
"""Characters of the time in a line of the history."""
NEEDS = {
    planted_bugs.followers_forget_transactions: "has_transactions",
    planted_bugs.shows_undecided_records: "has_transactions",
    planted_bugs.confirms_deletions_at_once: "deletes_records",
}
"""Bugs that only schedules with this find."""
SEEDS_OF_A_RARE_BUG = 500
"""One schedule of a hundred, or more, finds each of these; of two hundred none did once."""
RARE_BUGS = [
    planted_bugs.leaves_out_a_member_that_is_not_confirmed,
    planted_bugs.shrinks_before_it_is_confirmed,
    planted_bugs.no_version_of_the_state,
]
"""Few schedules find these, so that only `make simulation` looks for them."""


@pytest.fixture
def directory(request: pytest.FixtureRequest) -> Iterator[Path]:
    """A directory for the disks of a run."""
    with directory_in_memory(request) as path:
        yield path / "run"


@pytest.mark.parametrize("seed", range(FIRST, FIRST + SCHEDULES))
def test_random_schedules_keep_the_rules(directory: Path, seed: int) -> None:
    assert run_schedule(directory, seed).committed_end > 0


def test_a_seed_replays_its_run(directory: Path) -> None:
    first, second = (run_schedule(directory, 1) for _ in range(2))
    events = [[line[TIME_WIDTH:] for line in run.history] for run in (first, second)]
    assert events[0] == events[1]
    assert first.acknowledged == second.acknowledged


@pytest.mark.parametrize(
    "plant",
    [
        planted_bugs.high_watermark_without_the_slowest,
        planted_bugs.high_watermark_of_the_leader_alone,
        planted_bugs.counts_a_member_that_is_not_confirmed,
        planted_bugs.cuts_to_the_high_watermark,
        planted_bugs.followers_forget_transactions,
        planted_bugs.shows_undecided_records,
        planted_bugs.confirms_deletions_at_once,
        planted_bugs.no_truncation_by_epoch,
        planted_bugs.joins_before_it_has_everything,
        planted_bugs.leader_outside_of_the_isr,
        *(RARE_BUGS if SCHEDULES >= SEEDS_OF_A_RARE_BUG else []),
    ],
)
def test_a_planted_bug_is_found(
    directory: Path, plant: Callable[[], planted_bugs.Places], monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in plant():
        monkeypatch.setattr(*place)
    seeds = SEEDS_OF_A_RARE_BUG if plant in RARE_BUGS else SEEDS_OF_A_BUG
    needed = NEEDS.get(plant)
    for seed in range(seeds):
        if needed is not None and not getattr(plan_of(seed), needed):
            continue
        try:
            run_schedule(directory, seed)
        except AssertionError:
            return
    raise AssertionError(f"{seeds} schedules did not find it")


# Simulated time keeps the order that sessions of ZooKeeper and connections keep.


def test_calls_for_one_time_come_in_the_order_in_which_they_were_made() -> None:
    """A session says that it expired, then that it is renewed; bytes of a connection stay in
    order. Calls of another time, and calls that are cancelled, change nothing of that.
    """
    loop = SimulatedLoop()
    heard: list[int] = []
    for number in range(200):
        loop.call_at(1.0, heard.append, number)
        other = loop.call_at(0.5 + number % 7, asyncio.Event().set)
        if number % 3:
            other.cancel()
    loop.call_at(9.0, loop.stop)
    loop.run_forever()
    loop.close()
    assert heard == list(range(200))

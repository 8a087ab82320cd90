"""Random schedules keep the invariants of replication, and planted bugs break them.

`MINIBROKER_SCHEDULES=2000` runs so many seeds (`make simulation`). A failure names its seed and
shows the last lines of its history; `-k 'keep_the_rules and [189]'` runs that seed again.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.simulation import planted_bugs
from tests.simulation.world import run_schedule
from tests.support.memory import directory_in_memory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

SCHEDULES = int(os.environ.get("MINIBROKER_SCHEDULES", "12"))
SEEDS_OF_A_BUG = 20
"""Seeds of which one at least finds a planted bug."""


@pytest.fixture
def directory(request: pytest.FixtureRequest) -> Iterator[Path]:
    """A directory for the disks of a run."""
    with directory_in_memory(request) as made:
        yield made / "run"


@pytest.mark.parametrize("seed", range(SCHEDULES))
def test_random_schedules_keep_the_rules(directory: Path, seed: int) -> None:
    assert run_schedule(directory, seed).committed_end > 0


def test_a_seed_replays_its_run(directory: Path) -> None:
    assert run_schedule(directory, 1) == run_schedule(directory, 1)


@pytest.mark.parametrize(
    "plant",
    [
        planted_bugs.high_watermark_without_the_slowest,
        planted_bugs.no_truncation_by_epoch,
        planted_bugs.joins_before_it_has_everything,
        planted_bugs.leader_outside_of_the_isr,
    ],
)
def test_a_planted_bug_is_found(
    directory: Path, plant: Callable[[], planted_bugs.Places], monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in plant():
        monkeypatch.setattr(*place)
    for seed in range(SEEDS_OF_A_BUG):
        try:
            run_schedule(directory, seed)
        except AssertionError:
            return
    raise AssertionError(f"{SEEDS_OF_A_BUG} schedules did not find it")

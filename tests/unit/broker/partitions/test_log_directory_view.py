"""A log directory as DescribeLogDirs shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.unit.broker.partitions.conftest import partition_image

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.broker.partitions.conftest import World


def test_log_directories_are_shown_with_their_logs(world: World, tmp_path: Path) -> None:
    world.create("t", partition_image(), partition_image())
    (directory,) = world.manager.log_directories()
    assert directory.path == str(tmp_path / "data")
    assert sorted(log.partition for log in directory.logs()) == [0, 1]
    total, usable = directory.space()
    assert total >= usable > 0

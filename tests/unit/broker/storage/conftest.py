"""Fixtures of the storage tests: a log manager on a directory of the test's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.logs import TOPIC_ID, ManualClock, NewLog, abandon, config, open_manager

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from minibroker.broker.storage.log_manager import LogManager
    from minibroker.broker.storage.partition_log import PartitionLog


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def new_log(tmp_path: Path, clock: ManualClock) -> Iterator[NewLog]:
    """Makes partition 0 of a topic with the given configuration; all managers go at the end."""
    managers: list[LogManager] = []

    def make(topic: str = "t", **overrides: object) -> PartitionLog:
        settings = config(**overrides)
        manager = open_manager(str(tmp_path / topic), clock=clock, topic=settings)
        managers.append(manager)
        return manager.create_log(topic, 0, TOPIC_ID, settings)

    yield make
    for manager in managers:
        abandon(manager)

"""Every test of this folder runs on both loops: uvloop, which serves, and asyncio's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.broker.handlers import create_topics
from tests.support import loops
from tests.support.in_process import InProcessBroker, Serve
from tests.unit.broker.server.gate import Gate

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from minibroker.clock import Clock

pytest_asyncio_loop_factories = loops.pytest_asyncio_loop_factories


@pytest.fixture
async def serve(tmp_path: Path) -> AsyncIterator[Serve]:
    """Starts brokers: `serve(**{"max.connections": "2"})`; they are stopped when the test ends."""
    running: list[InProcessBroker] = []

    async def start(clock: Clock | None = None, **settings: str) -> InProcessBroker:
        broker = InProcessBroker(tmp_path / str(len(running)), settings, clock=clock)
        await broker.__aenter__()
        running.append(broker)
        return broker

    yield start
    for broker in running:
        await broker.stop()


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Gate:
    """Stands for the handler of CreateTopics."""
    gate = Gate()
    monkeypatch.setattr(create_topics, "handle", gate.handle)
    return gate

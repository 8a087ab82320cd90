"""Fixtures of the broker's unit tests: storage that a test leaves open is closed behind it."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest

from tests.support.name_server import SlowNameServer
from tests.support.open_storage import storage_closed
from tests.support.transactions import World, transactional_world

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def _closed_storage() -> Iterator[None]:
    with storage_closed():
        yield


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    """Yield a broker with transactions."""
    async with transactional_world(tmp_path) as new_world:
        yield new_world


@pytest.fixture
def name_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[SlowNameServer]:
    server = SlowNameServer()
    monkeypatch.setattr(socket, "getaddrinfo", server)
    yield server
    server.may_answer.set()

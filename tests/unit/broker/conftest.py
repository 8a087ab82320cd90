"""Fixtures of the broker's unit tests: storage that a test leaves open is closed behind it."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest

from tests.support.name_server import SlowNameServer
from tests.support.open_storage import storage_closed

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def _closed_storage() -> Iterator[None]:
    with storage_closed():
        yield


@pytest.fixture
def name_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[SlowNameServer]:
    server = SlowNameServer()
    monkeypatch.setattr(socket, "getaddrinfo", server)
    yield server
    server.may_answer.set()

"""A connection that waits in the pool for its next user."""

from __future__ import annotations

import fcntl
import resource
import socket
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.client.connection import BlockingConnection
from minibroker.client.settings import client_settings

if TYPE_CHECKING:
    from collections.abc import Iterator

DESCRIPTOR = 2_000
"""More than select() takes."""


@pytest.fixture
def many_files() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, DESCRIPTOR + 100), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("many_files")
def test_a_process_with_many_files_uses_a_connection_again() -> None:
    ours, broker = socket.socketpair()
    descriptor = fcntl.fcntl(ours, fcntl.F_DUPFD_CLOEXEC, DESCRIPTOR)
    ours.close()
    stream: Any = socket.socket(fileno=descriptor)
    settings = client_settings({"bootstrap.servers": "127.0.0.1:9092"})
    connection = BlockingConnection(settings, settings.servers[0], stream)
    try:
        assert connection.is_usable
        broker.close()
        assert not connection.is_usable
    finally:
        connection.close()

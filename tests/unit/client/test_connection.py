"""A connection that waits in the pool for its next user."""

from __future__ import annotations

import fcntl
import socket
from typing import Any

from minibroker.client.connection import BlockingConnection
from minibroker.client.settings import client_settings


def test_a_process_with_many_files_uses_a_connection_again(high_descriptor: int) -> None:
    ours, broker = socket.socketpair()
    descriptor = fcntl.fcntl(ours, fcntl.F_DUPFD_CLOEXEC, high_descriptor)
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

"""A link that is cut holds its bytes, and only its bytes, until it is whole again."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

import pytest

from tests.fire.links import ZOOKEEPER, Links

if TYPE_CHECKING:
    from collections.abc import Iterator

HOST = "127.0.0.1"
WAIT_S = 180.0
NOTHING_S = 0.2


class Servers:
    """ZooKeeper and broker 1 of a test, and this process as broker 0, which connects to them."""

    def __init__(self) -> None:
        self.zookeeper = socket.create_server((HOST, 0))
        self.links = Links((0, 1), self.zookeeper.getsockname()[1], {0: os.getpid(), 1: None}.get)
        self.broker = socket.create_server((HOST, self.links.inside[1]))
        self._sockets: list[socket.socket] = [self.zookeeper, self.broker]

    def to_zookeeper(self) -> tuple[socket.socket, socket.socket]:
        """Return both ends of a new connection of broker 0 to ZooKeeper."""
        return self._connect(self.links.zookeeper[0], self.zookeeper)

    def to_broker(self) -> tuple[socket.socket, socket.socket]:
        """Return both ends of a new connection of broker 0 to broker 1."""
        return self._connect(self.links.outside[1], self.broker)

    def _connect(self, port: int, server: socket.socket) -> tuple[socket.socket, socket.socket]:
        near = socket.create_connection((HOST, port), WAIT_S)
        server.settimeout(WAIT_S)
        far, _ = server.accept()
        far.settimeout(WAIT_S)
        self._sockets += [near, far]
        return near, far

    def close(self) -> None:
        self.links.close()
        for end in self._sockets:
            end.close()


@pytest.fixture
def servers() -> Iterator[Servers]:
    pair = Servers()
    yield pair
    pair.close()


def test_whole_links_carry_bytes_both_ways(servers: Servers) -> None:
    for near, far in (servers.to_zookeeper(), servers.to_broker()):
        near.sendall(b"question")
        assert far.recv(100) == b"question"
        far.sendall(b"answer")
        assert near.recv(100) == b"answer"


def test_a_cut_link_holds_bytes_of_both_ways_until_it_is_mended(servers: Servers) -> None:
    near, far = servers.to_broker()
    servers.links.cut(0, [1])
    near.sendall(b"question")
    far.sendall(b"answer")
    other_near, other_far = servers.to_zookeeper()
    other_near.sendall(b"another link")
    assert other_far.recv(100) == b"another link"
    for end in (near, far):
        end.settimeout(NOTHING_S)
        with pytest.raises(TimeoutError):
            end.recv(100)
        end.settimeout(WAIT_S)
    servers.links.mend()
    assert far.recv(100) == b"question"
    assert near.recv(100) == b"answer"


def test_the_link_to_zookeeper_is_one_of_them(servers: Servers) -> None:
    near, far = servers.to_zookeeper()
    servers.links.cut(0, [ZOOKEEPER])
    near.sendall(b"question")
    far.settimeout(NOTHING_S)
    with pytest.raises(TimeoutError):
        far.recv(100)


def test_the_end_of_a_connection_is_carried_too(servers: Servers) -> None:
    near, far = servers.to_broker()
    near.close()
    assert far.recv(100) == b""

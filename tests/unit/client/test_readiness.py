"""Waits for sockets, with `poll` and with `select`, which Windows has alone."""

from __future__ import annotations

import fcntl
import os
import select
import socket
import threading
from typing import TYPE_CHECKING

import pytest

from minibroker.client.readiness import is_any_readable

if TYPE_CHECKING:
    from collections.abc import Iterator

SECONDS = 60.0


@pytest.fixture(params=["poll", "select"])
def pair(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[socket.socket, socket.socket]]:
    if request.param == "select":
        monkeypatch.delattr(select, "poll")
    near, far = socket.socketpair()
    with near, far:
        yield near, far


def test_bytes_and_an_end_can_be_read(pair: tuple[socket.socket, socket.socket]) -> None:
    near, far = pair
    assert not is_any_readable([near])
    far.send(b"x")
    assert is_any_readable([near])
    assert near.recv(1) == b"x"
    assert not is_any_readable([near])
    far.close()
    assert is_any_readable([near])


def test_a_pipe_above_the_descriptors_of_select_can_be_read(high_descriptor: int) -> None:
    """`up` waits for its broker in a process that has many files open."""
    reading, writing = os.pipe()
    above = fcntl.fcntl(reading, fcntl.F_DUPFD_CLOEXEC, high_descriptor)
    try:
        assert not is_any_readable([above])
        os.write(writing, b"x")
        assert is_any_readable([above], SECONDS)
    finally:
        for descriptor in (reading, writing, above):
            os.close(descriptor)


def test_one_of_many_ends_the_wait(pair: tuple[socket.socket, socket.socket]) -> None:
    near, far = pair
    silent, other = socket.socketpair()
    with silent, other:
        sender = threading.Thread(target=far.send, args=(b"x",))
        sender.start()
        assert is_any_readable([silent, near], SECONDS)
        sender.join()
        assert not is_any_readable([silent])

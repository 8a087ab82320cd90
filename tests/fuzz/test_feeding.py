"""The feeder detects a broker that hangs, and one that answers another frame."""

from __future__ import annotations

import socket
import struct
from contextlib import contextmanager
from threading import Thread
from typing import TYPE_CHECKING

import pytest

from tests.fuzz.feeding import Feeder, StandstillError, WrongAnswerError
from tests.fuzz.frames import Frame

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

RAW = struct.pack(">ihhih", 10, 18, 0, 7, -1)


@contextmanager
def peer(serve: Callable[[socket.socket], None]) -> Iterator[tuple[str, int]]:
    """Yield a listener; `serve` gets its first connection."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def run() -> None:
            connection, _ = listener.accept()
            with connection:
                serve(connection)

        thread = Thread(target=run, daemon=True)
        thread.start()
        yield listener.getsockname()
        thread.join(60)


def feed(
    address: tuple[str, int], frame: Frame, *, bound_s: float = 60.0, quiet_s: float = 60.0
) -> Feeder:
    feeder = Feeder(address, bound_s=bound_s, quiet_s=quiet_s)
    try:
        feeder.feed(iter([frame]))
    finally:
        feeder.close()
    return feeder


def answering(correlation_id: int) -> Callable[[socket.socket], None]:
    def serve(connection: socket.socket) -> None:
        connection.recv(100)
        connection.sendall(struct.pack(">iih", 6, correlation_id, 0))
        connection.recv(1)

    return serve


def test_an_answer_is_counted() -> None:
    with peer(answering(7)) as address:
        feeder = feed(address, Frame(18, 0, RAW, 7, is_torn=False))
    assert (feeder.answered[18, 0], feeder.closed[18, 0]) == (1, 0)


def test_an_end_is_counted() -> None:
    with peer(lambda connection: None) as address:
        feeder = feed(address, Frame(18, 0, RAW, None, is_torn=False))
    assert (feeder.answered[18, 0], feeder.closed[18, 0]) == (0, 1)


def test_a_standstill_is_named_with_its_frame() -> None:
    def stand_still(connection: socket.socket) -> None:
        while connection.recv(100):
            continue
        connection.settimeout(60)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        release.recv(1)

    release, other = socket.socketpair()
    with release, other, peer(stand_still) as address:
        with pytest.raises(StandstillError, match=RAW.hex()):
            feed(address, Frame(18, 0, RAW, 7, is_torn=False), bound_s=0.5, quiet_s=0.1)
        other.send(b"x")


def test_an_answer_to_something_else_is_named_with_the_frame() -> None:
    with peer(answering(8)) as address, pytest.raises(WrongAnswerError, match=RAW.hex()):
        feed(address, Frame(18, 0, RAW, 7, is_torn=False))

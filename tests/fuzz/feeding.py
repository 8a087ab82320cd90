"""Feeds frames to a broker over several connections, and watches that each one ends.

A connection has one frame in flight. A frame ends with an answer or with the end of the connection.
A frame that may wait (a long poll, a join, acks=0, a length beyond its bytes) gets no answer for
QUIET_S. Then our side is closed, and the broker must close its own within the bound.
"""

from __future__ import annotations

import selectors
import socket
import struct
import time
from collections import Counter
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.fuzz.frames import Frame

CONNECTIONS: Final = 32
QUIET_S: Final = 0.2
LOOK_S: Final = 0.05
FRAME_BYTES_MAX: Final = 1 << 28


class StandstillError(AssertionError):
    """A frame that has neither an answer nor an end in time."""


class WrongAnswerError(AssertionError):
    """An answer to another frame."""


class Connection:
    """A socket and the frame that is in flight on it."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.socket = socket.create_connection(address, timeout=60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.setblocking(False)
        self.frame: Frame | None = None
        self.unsent = memoryview(b"")
        self.received = bytearray()
        self.since_s = 0.0
        self.is_half_closed = False

    def send(self, frame: Frame) -> None:
        """Begin to send a frame; `flush` sends the rest."""
        self.frame = frame
        self.unsent = memoryview(frame.raw)
        self.received.clear()
        self.since_s = time.perf_counter()
        self.flush()

    def flush(self) -> None:
        """Send what the socket takes; raises OSError."""
        if self.unsent:
            try:
                self.unsent = self.unsent[self.socket.send(self.unsent) :]
            except BlockingIOError:
                return
        if not self.unsent and self.frame is not None and self.frame.is_torn:
            self.half_close()

    def half_close(self) -> None:
        """Say that nothing more comes: from now on the broker has the bound to close, too."""
        if not self.is_half_closed:
            self.is_half_closed = True
            self.since_s = time.perf_counter()
            self.socket.shutdown(socket.SHUT_WR)

    def has_answer(self) -> bool:
        """Return whether a whole answer is there; raises WrongAnswerError for a foreign one."""
        if len(self.received) < 8:
            return False
        size, correlation_id = struct.unpack_from(">ii", self.received)
        if not 0 <= size <= FRAME_BYTES_MAX:
            raise WrongAnswerError(f"an answer of {size} bytes to {describe(self.frame)}")
        if len(self.received) < 4 + size:
            return False
        expected = None if self.frame is None else self.frame.correlation_id
        if expected is not None and correlation_id != expected:
            raise WrongAnswerError(f"an answer to {correlation_id}, not {describe(self.frame)}")
        return True


class Feeder:
    """Feeds one broker; counts the outcomes of the frames."""

    def __init__(
        self, address: tuple[str, int], *, bound_s: float, quiet_s: float = QUIET_S
    ) -> None:
        """`bound_s`: seconds for the end of a frame; `quiet_s`: until our side is closed."""
        self.address = address
        self._quiet_s = quiet_s
        self.bound_s = bound_s
        self.answered: Counter[tuple[int, int]] = Counter()
        """(API key, version) → frames that were answered."""
        self.closed: Counter[tuple[int, int]] = Counter()
        """(API key, version) → frames with which the connection ended."""
        self.slowest_s = 0.0
        self.slowest: Frame | None = None
        self._selector = selectors.DefaultSelector()

    @property
    def fed(self) -> int:
        """Return the number of frames that have ended."""
        return self.answered.total() + self.closed.total()

    def feed(self, frames: Iterator[Frame]) -> None:
        """Send every frame and return when each has ended.

        Raises StandstillError, WrongAnswerError, OSError when the broker is gone.
        """
        for _ in range(CONNECTIONS):
            self._begin(frames, None)
        last_look_s = time.perf_counter()
        while self._selector.get_map():
            for key, _ in self._selector.select(LOOK_S):
                self._go_on(key.data, frames)
            if time.perf_counter() - last_look_s > LOOK_S:
                last_look_s = time.perf_counter()
                self._look()

    def close(self) -> None:
        """Close the open connections."""
        for key in list((self._selector.get_map() or {}).values()):
            key.data.socket.close()
        self._selector.close()

    def _begin(self, frames: Iterator[Frame], connection: Connection | None) -> None:
        """Send the next frame, on a new connection where the last one has ended."""
        frame = next(frames, None)
        if frame is None:
            if connection is not None:
                self._drop(connection)
            return
        if connection is None:
            connection = Connection(self.address)
            self._selector.register(connection.socket, selectors.EVENT_READ, connection)
        try:
            connection.send(frame)
        except OSError:
            self._ended(connection, self.closed)
            self._drop(connection)
            self._begin(frames, None)

    def _go_on(self, connection: Connection, frames: Iterator[Frame]) -> None:
        try:
            data = connection.socket.recv(1 << 18)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        connection.received += data
        if data and not connection.has_answer():
            return
        self._ended(connection, self.answered if data else self.closed)
        if data and not connection.is_half_closed and not connection.unsent:
            self._begin(frames, connection)
        else:
            self._drop(connection)
            self._begin(frames, None)

    def _look(self) -> None:
        """Close our side of waiting frames; raise StandstillError for those that go on after it."""
        now_s = time.perf_counter()
        for key in list(self._selector.get_map().values()):
            connection: Connection = key.data
            waited_s = now_s - connection.since_s
            try:
                connection.flush()
                if waited_s > self._quiet_s:
                    connection.half_close()
            except OSError:
                continue  # the broker has closed it: the next read tells
            if connection.is_half_closed and waited_s > self.bound_s:
                raise StandstillError(
                    f"no end after {waited_s:.1f} s: {describe(connection.frame)}"
                )

    def _ended(self, connection: Connection, counter: Counter[tuple[int, int]]) -> None:
        frame = connection.frame
        assert frame is not None
        counter[frame.api_key, frame.version] += 1
        took_s = time.perf_counter() - connection.since_s
        if took_s > self.slowest_s:
            self.slowest_s, self.slowest = took_s, frame

    def _drop(self, connection: Connection) -> None:
        self._selector.unregister(connection.socket)
        connection.socket.close()


def describe(frame: Frame | None) -> str:
    """Return a frame for the text of a failure: whole, so that it can be sent again."""
    if frame is None:
        return "no frame"
    return f"key {frame.api_key} version {frame.version}: {frame.raw.hex()}"

"""Clients that send at times of a plan, whatever the broker does meanwhile: an open loop.

One that waits for its answers slows down with the broker and so hides what it is to show. All
streams are one thread's, because a process for each would take the broker's core every now and
then, and that would be measured. It sleeps between two times, in `select`.
"""

import math
import random
import select
import socket
import time
from collections.abc import Callable, Sequence

from benchmarks import wire

PATIENCE_S = 30.0
_READ_BYTES = 1 << 18


class Stream:
    """One connection: the same request, again and again.

    `size_of` tells how many bytes the first answer in a buffer has, 0 while that is not known;
    with `in_flight` on their way the next request waits, though it may be due.
    """

    def __init__(
        self,
        connection: socket.socket,
        request: bytes,
        size_of: Callable[[bytearray], int],
        in_flight: float = math.inf,
    ) -> None:
        self._socket = connection
        self._request = request
        self._size_of = size_of
        self._in_flight = in_flight
        self._due_s: Sequence[float] = ()
        self._sent_at: list[float] = []
        self._buffer = bytearray()
        self.answers: list[bytes] = []
        """Complete answers of this plan."""
        self.taken_s: list[float] = []
        """From sending a request to the last byte of its answer, each."""

    def plan(self, due_s: Sequence[float]) -> None:
        """Set the times to send, in seconds from the begin, ascending; forget the last plan."""
        self._due_s = due_s
        self._sent_at, self.answers, self.taken_s = [], [], []

    def fileno(self) -> int:
        """For `select`."""
        return self._socket.fileno()

    @property
    def is_done(self) -> bool:
        """Return whether everything is sent and answered."""
        return len(self.answers) == len(self._due_s)

    @property
    def next_due_s(self) -> float:
        """Return when the next request is due; infinite before an answer or after the last one."""
        count = len(self._sent_at)
        if count == len(self._due_s) or count - len(self.answers) >= self._in_flight:
            return math.inf
        return self._due_s[count]

    def send_due(self, now_s: float) -> None:
        """Send what is due."""
        while self.next_due_s <= now_s:
            self._sent_at.append(time.perf_counter())
            self._socket.sendall(self._request)

    def receive(self) -> None:
        """Take what has come. Raises WireError."""
        part = self._socket.recv(_READ_BYTES)
        if not part:
            raise wire.WireError("the connection was closed")
        self._buffer += part
        while (size_bytes := self._size_of(self._buffer)) and size_bytes <= len(self._buffer):
            self.taken_s.append(time.perf_counter() - self._sent_at[len(self.taken_s)])
            self.answers.append(bytes(self._buffer[:size_bytes]))
            del self._buffer[:size_bytes]


def run(streams: Sequence[Stream]) -> None:
    """Carry out all plans side by side, until everything is answered. Raises WireError."""
    begun_at = time.perf_counter()
    while not all(stream.is_done for stream in streams):
        for stream in streams:
            stream.send_due(time.perf_counter() - begun_at)
        due_s = min(stream.next_due_s for stream in streams) - (time.perf_counter() - begun_at)
        wait_s = min(max(0.0, due_s), PATIENCE_S)
        # Not poll(): it counts in whole milliseconds, and requests are due between them.
        readable, _, _ = select.select(streams, (), (), wait_s)  # noqa: TID251
        if due_s > PATIENCE_S and not readable:
            raise wire.WireError(f"no answer within {PATIENCE_S:g} s")
        for stream in readable:
            stream.receive()


def spread(count: int, rate_per_s: float, seed: int) -> list[float]:
    """Times of `count` requests, one anywhere in each period: in step with nothing else."""
    chance = random.Random(seed)
    return [(number + chance.random()) / rate_per_s for number in range(count)]


def kafka_size(answers: bytearray) -> int:
    """Return the size of an answer with its 4-byte size in front."""
    return 4 + int.from_bytes(answers[:4], "big") if len(answers) >= 4 else 0


def http_size(answers: bytearray) -> int:
    """Return the size of an answer of HTTP/1.1 with its length in a header."""
    head, end, _ = answers.partition(b"\r\n\r\n")
    if not end:
        return 0
    length = head.lower().partition(b"content-length: ")[2].split()[0]
    return len(head) + len(end) + int(length)

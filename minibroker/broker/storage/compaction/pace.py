"""How fast compaction goes: `log.cleaner.io.max.bytes.per.second`, and many short naps.

The thread that compacts shares the interpreter with the loop that serves clients: one of them runs
Python at a time, and Python takes it from one that does not let go after 5 ms only. So this one
lets go by itself every `SLICE_S`, for as long as the shortest wait of the system takes (some 60
µs), and a client waits less than that. For what takes longer between two naps (a batch of thousands
of records) Python is told to switch sooner (`switching`).

Measured with a client that sends one request after the other, beside a thread that walks batches:
its 95th percentile rose from 0.1 to 0.3 ms this way, to 1.2 ms with rests of a millisecond and
quick switches, to 2 ms with nothing. Quick switches alone hurt the loop as well, which loses the
interpreter in the middle of its work.

Source: Kafka Throttler, which counts what is read and what is written.
"""

from collections.abc import Callable
from threading import Lock
from typing import Final

SLICE_S: Final = 50e-6
"""Worked between two naps."""
NAP_S: Final = 1e-6
"""Asked for; the system's timers make it some 60 µs."""


class BoundedPace:
    """The pace of one round. Its methods belong to the thread that compacts."""

    __slots__ = (
        "_awake_since_s",
        "_bytes",
        "_bytes_per_second",
        "_monotonic_s",
        "_nap",
        "_on_stop",
        "_started_s",
        "_wait",
    )

    def __init__(
        self,
        bytes_per_second: float,
        *,
        monotonic_s: Callable[[], float],
        wait: Callable[[float], bool],
        nap: Callable[[], object],
        on_stop: Callable[[], None],
    ) -> None:
        """`wait` waits so many seconds, less if it is to stop, and tells whether it is.

        `nap` lets the interpreter go for a moment. `on_stop` raises what ends the round.
        """
        self._bytes_per_second = bytes_per_second
        self._monotonic_s = monotonic_s
        self._wait = wait
        self._nap = nap
        self._on_stop = on_stop
        self._bytes = 0
        self._started_s = self._awake_since_s = monotonic_s()

    def breathe(self) -> None:
        """Called after every batch: a nap, if the last one was a while ago."""
        if self._monotonic_s() - self._awake_since_s >= SLICE_S:
            self._nap()
            self._awake_since_s = self._monotonic_s()

    def spent(self, size_bytes: int) -> None:
        """Wait as long as the rate asks for, after so many bytes were read or written."""
        self._bytes += size_bytes
        due_s = self._started_s + self._bytes / self._bytes_per_second
        if self._wait(max(0.0, due_s - self._monotonic_s())):
            self._on_stop()


def napper() -> Callable[[], object]:
    """Return a function that lets the interpreter go for `NAP_S`; a wait for an event would cost
    more.
    """
    never = Lock()
    never.acquire()
    return lambda: never.acquire(timeout=NAP_S)

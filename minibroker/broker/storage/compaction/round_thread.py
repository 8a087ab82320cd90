"""One round of compaction on a thread of its own: started for it, ended with it.

The thread reads and writes files, and twice needs the loop, to which logs belong: for the swap of
segments it waits for the loop; its end it only tells. `stop`, on the loop, ends it wherever it is,
a wait for the loop included.

Its pace follows `log.cleaner.io.max.bytes.per.second`, with many short naps (`BoundedPace`). The
thread shares the interpreter with the loop that serves clients: one of them runs Python at a time,
and Python takes it from one that does not let go after 5 ms only. So this one lets go by itself
every `SLICE_S`, for as long as the shortest wait of the system takes (some 60 µs), and a client
waits less than that. For what takes longer between two naps (a batch of thousands of records)
Python is told to switch sooner (`tasks.quick_switches`). Measured with a client that sends one
request after the other, beside a thread that walks batches: its 95th percentile rose from 0.1 to
0.3 ms this way, to 1.2 ms with rests of a millisecond and quick switches, to 2 ms with nothing.
Quick switches alone hurt the loop as well, which loses the interpreter in the middle of its work.

Source: Kafka Throttler, which counts what is read and what is written.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.broker.storage.compaction.cleaner_settings import CleanerSettings
from minibroker.broker.storage.compaction.cleaning import (
    Cleaning,
    CleaningAborted,
    Round,
    RoundStats,
)
from minibroker.broker.storage.compaction.survivors import OffsetMap
from minibroker.broker.storage.files import Files
from minibroker.broker.storage.segment import Segment
from minibroker.broker.storage.tasks import quick_switches
from minibroker.clock import Clock
from minibroker.kafka.errors import StorageError

if TYPE_CHECKING:
    from minibroker.broker.worker import Runner

logger = logging.getLogger(__name__)

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


THREAD_NAME: Final = "minibroker-log-cleaner"
CHUNK_BYTES_MIN: Final = 64 << 10

CallSoon = Callable[[Callable[[], None]], object]
"""Brings a call from any thread to the loop; raises RuntimeError when the loop is no more."""


class RoundEnd(NamedTuple):
    """How a round ended. `end_offset`: the log is compacted up to here, None: the round was given
    up, or `error` says what went wrong.
    """

    work: Round
    end_offset: int | None
    error: Exception | None
    stats: RoundStats
    elapsed_s: float


class RoundThread:
    """Made, started, stopped and joined on the loop's thread."""

    __slots__ = (
        "_call",
        "_call_soon",
        "_clock",
        "_files",
        "_on_end",
        "_settings",
        "_stop",
        "_thread",
        "_work",
        "_worker",
    )

    def __init__(
        self,
        work: Round,
        settings: CleanerSettings,
        *,
        clock: Clock,
        files: Files,
        call_soon: CallSoon,
        worker: Runner,
        on_end: Callable[[RoundEnd], None],
    ) -> None:
        """`worker`: has the log's directory synced. `on_end` is called on the loop,
        unless that is gone.
        """
        self._work = work
        self._settings = settings
        self._clock = clock
        self._files = files
        self._call_soon = call_soon
        self._worker = worker
        self._on_end = on_end
        self._stop = Event()
        self._call: _Swap | None = None
        self._thread = Thread(target=self._run, name=THREAD_NAME, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End the round and wait for the thread; what was not swapped stays as it was."""
        self._stop.set()
        if self._call is not None:
            self._call.cancel()
        self.join()

    def join(self) -> None:
        self._thread.join()

    def _run(self) -> None:
        started_s = self._clock.monotonic_s()
        end_offset: int | None = None
        error: Exception | None = None
        stats = RoundStats()
        try:
            cleaning = self._cleaning()
            stats = cleaning.stats
            with quick_switches():
                end_offset = cleaning.run()
        except CleaningAborted as reason:
            logger.info("the compaction of %s was given up: %s", self._work.log.name, reason)
        except Exception as failure:  # the root of a thread: whatever it is, it is told
            error = failure
        elapsed_s = self._clock.monotonic_s() - started_s
        end = RoundEnd(self._work, end_offset, error, stats, elapsed_s)
        try:
            self._call_soon(lambda: self._on_end(end))
        except RuntimeError:
            logger.debug("the broker stopped during the compaction of %s", self._work.log.name)

    def _cleaning(self) -> Cleaning:
        settings = self._settings
        return Cleaning(
            self._work,
            OffsetMap(settings.dedupe_buffer_bytes, settings.load_factor),
            BoundedPace(
                settings.io_max_bytes_per_second,
                monotonic_s=self._clock.monotonic_s,
                wait=self._wait,
                nap=napper(),
                on_stop=_give_up,
            ),
            self._files,
            max(settings.io_buffer_bytes // 2, CHUNK_BYTES_MIN),
            self._swap,
        )

    def _wait(self, seconds: float) -> bool:
        is_stopped = self._stop.wait(seconds) if seconds else self._stop.is_set()
        return is_stopped or not self._work.is_current

    def _swap(self, cleaned: Sequence[int], old: Sequence[Segment]) -> bool:
        """Have the loop swap, wait for it. Raises StorageError, CleaningAborted."""
        call = self._call = _Swap(lambda: self._work.replace_segments(cleaned, old), self._worker)
        if self._stop.is_set():  # `stop` may have missed the call
            raise CleaningAborted("the broker stops")
        try:
            self._call_soon(call)
        except RuntimeError as error:
            raise CleaningAborted("the broker has stopped") from error
        call.done.wait()
        if call.is_cancelled:
            raise CleaningAborted("the broker stops")
        if call.error is not None:
            raise call.error
        return call.result


def _give_up() -> None:
    raise CleaningAborted("the broker stops, or the log is not what it was")


class _Swap:
    """A swap that the thread asks the loop for, and waits for.

    It is done when the worker has come to what the log gave it, the sync of the new names: how far
    the log is compacted must not be on the disk before them. A key that was deleted would be back
    for good, in a part of the log that counts as clean.
    """

    __slots__ = ("_function", "_worker", "done", "error", "is_cancelled", "result")

    def __init__(self, function: Callable[[], bool], worker: Runner) -> None:
        self._function = function
        self._worker = worker
        self.done = Event()
        self.is_cancelled = False
        self.result = False
        self.error: StorageError | None = None

    def __call__(self) -> None:
        """Do it on the loop."""
        if self.is_cancelled:
            return
        try:
            self.result = self._function()
        except StorageError as error:
            self.error = error
        finally:
            self._worker.run_later(self.done.set)

    def cancel(self) -> None:
        """Drop the call, on the loop: it is not made any more."""
        if not self.done.is_set():
            self.is_cancelled = True
            self.done.set()

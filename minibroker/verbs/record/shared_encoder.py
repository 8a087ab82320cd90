"""An encoder whose work is done by several processes, if there is much of it.

A million records take some seconds of Python, and a process of it uses one core. Few records are
encoded here, without the start of a process.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from concurrent.futures import Future, ProcessPoolExecutor
from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    from types import TracebackType

    from minibroker.seeds.encoding import EncodedPart, Encoder, PartOfPartition

SHARED_FROM: Final = 100_000
"""Offsets from which on processes are worth their start."""
PROCESSES_MAX: Final = 8
"""More of them wait for the one that reads."""

_encoder: Encoder
"""The encoder of this worker process; set once, by `_prepare`."""


class SharedEncoder:
    """Encodes parts, in the order in which their futures are asked for. Used by one thread, in a
    `with` block.
    """

    def __init__(self, encoder: Encoder, offsets: int) -> None:
        """`offsets`: of all parts together, about."""
        self._encoder = encoder
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        processes = min(cores or 1, PROCESSES_MAX) if offsets >= SHARED_FROM else 1
        self._pool: ProcessPoolExecutor | None = None
        if processes > 1:
            self._pool = ProcessPoolExecutor(
                processes,
                mp_context=multiprocessing.get_context("spawn"),
                initializer=_prepare,
                initargs=(encoder,),
            )
        self.parts_max = 2 * processes if processes > 1 else 0
        """Parts that may wait for their turn: they and their results are in memory."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def begin(self, part: PartOfPartition) -> Future[EncodedPart]:
        """Return the result of a part, or of its process when that has it."""
        if self._pool is not None:
            return self._pool.submit(_encode, part)
        done: Future[EncodedPart] = Future()
        done.set_result(self._encoder.encode(part))
        return done


def _prepare(encoder: Encoder) -> None:
    """Take the encoder of this process. Ctrl-C is for the one that started it."""
    global _encoder  # noqa: PLW0603  a worker process has one encoder
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _encoder = encoder


def _encode(part: PartOfPartition) -> EncodedPart:
    return _encoder.encode(part)

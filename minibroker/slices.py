"""Long work on the event loop, done in slices; clients are served between two of them.

Housekeeping that walks over many things (offsets, producers) is written as a generator of short
steps. The loop alone runs it, so a step sees and changes what belongs to the loop.

A coroutine with long work (the creation of 10,000 partitions takes seconds) asks a `TimeSlice`:

    turn = TimeSlice()
    for index in range(count):
        ...
        if turn.is_over:
            await turn.pause()
"""

from __future__ import annotations

import asyncio
from time import perf_counter
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

SLICE_S: Final = 0.0005
"""Seconds after which a slice begins no further step: half of what may hold the loop."""

T = TypeVar("T")


class TimeSlice:
    """The slice of one piece of work; it begins now. For the loop's thread."""

    __slots__ = ("_length_s", "_until_s")

    def __init__(self, length_s: float | None = None) -> None:
        """`length_s`: seconds, None for SLICE_S."""
        self._length_s = SLICE_S if length_s is None else length_s
        self._until_s = perf_counter() + self._length_s

    @property
    def is_over(self) -> bool:
        return perf_counter() >= self._until_s

    async def pause(self) -> None:
        """Let everybody else have a turn, then begin the next slice."""
        await asyncio.sleep(0)
        self._until_s = perf_counter() + self._length_s


async def collect(items: Iterable[T]) -> list[T]:
    """Return the items as a list, made in slices. Each item is to take far less than a slice."""
    turn = TimeSlice()
    collected = []
    for item in items:
        collected.append(item)
        if turn.is_over:
            await turn.pause()
    return collected


def run_in_slices(steps: Iterator[object]) -> None:
    """Run a generator to its end; the first slice runs now, the others when the loop is free.

    Each step has to be short. Close the generator to end the work early. An exception of a step
    ends the work: in the first slice the caller gets it, later the loop's exception handler.
    """
    turn = TimeSlice()
    for _ in steps:
        if turn.is_over:
            asyncio.get_running_loop().call_soon(run_in_slices, steps)
            return

"""Long work on the event loop, done in slices; the loop serves clients between two slices.

Housekeeping over many items (offsets, producers) is a generator of short steps. Only the loop runs
it, so a step may read and change the objects that the loop owns.

A coroutine with long work (the creation of 10,000 partitions takes seconds) asks a `TimeSlice`:

    turn = TimeSlice()
    for index in range(count):
        ...
        if turn.is_over:
            await turn.pause()

A handler of a request with lists is a generator, too: it yields between two items, and returns the
response (`Steps`). The station that called it (`server/handling.py`) runs it, and pauses when the
slice is over. So a short request is answered at once, and a long one holds nobody up:

    def handle(context, request) -> Steps[DescribeProducersResponse]:
        for topic in request.topics:
            ...
            yield
        return response
"""

from __future__ import annotations

import asyncio
from time import perf_counter
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator
    from typing import TypeAlias

SLICE_S: float = 0.0005
"""Seconds after which a slice begins no further step; nothing may hold the loop for 0.001."""

T = TypeVar("T")
Steps: TypeAlias = "Generator[None, None, T]"
"""Work that yields between two short steps, and returns its result."""


class TimeSlice:
    """The current slice of a piece of work; construction begins it. The loop owns it."""

    __slots__ = ("_length_s", "_until_s")

    def __init__(self, length_s: float | None = None) -> None:
        """`length_s` is in seconds; None means SLICE_S."""
        self._length_s = SLICE_S if length_s is None else length_s
        self._until_s = perf_counter() + self._length_s

    @property
    def is_over(self) -> bool:
        return perf_counter() >= self._until_s

    async def pause(self) -> None:
        """Let the loop do all other work that is ready, then begin the next slice."""
        await asyncio.sleep(0)
        self._until_s = perf_counter() + self._length_s


class Unfinished(Exception):  # noqa: N818  no failure
    """The slice is over, and steps are left."""


def run_slice(steps: Steps[T], turn: TimeSlice) -> T:
    """Run steps until they end, or the slice does; return the result. Raises Unfinished, and what a
    step raises.
    """
    try:
        next(steps)
        while not turn.is_over:
            next(steps)
    except StopIteration as ended:
        return ended.value  # type: ignore[no-any-return]
    raise Unfinished


def run_all(steps: Steps[T]) -> T:
    """Run steps to their end at once, and return the result; for work beside the loop."""
    while True:
        try:
            next(steps)
        except StopIteration as ended:
            return ended.value  # type: ignore[no-any-return]


async def run_rest(steps: Steps[T], turn: TimeSlice) -> T:
    """Run steps to their end, with pauses between slices, and return the result."""
    while True:
        await turn.pause()
        try:
            return run_slice(steps, turn)
        except Unfinished:
            continue


async def run_with_pauses(steps: Steps[T]) -> T:
    """Run steps to their end, the first slice at once, and return the result."""
    turn = TimeSlice()
    try:
        return run_slice(steps, turn)
    except Unfinished:
        return await run_rest(steps, turn)


def gather(items: Iterable[T]) -> Steps[list[T]]:
    """Make the items one by one, and return them as a list."""
    results = []
    for item in items:
        results.append(item)
        yield
    return results


async def collect(items: Iterable[T]) -> list[T]:
    """Return the items as a list, made in slices. Making an item has to take far less than
    a slice.
    """
    turn = TimeSlice()
    results = []
    for item in items:
        results.append(item)
        if turn.is_over:
            await turn.pause()
    return results


def begin_in_slices(steps: Iterator[object]) -> bool:
    """Run a generator for one slice; return whether it ended. `end_in_slices` does the rest."""
    turn: TimeSlice | None = None
    for _ in steps:
        if turn is None:
            turn = TimeSlice()
        elif turn.is_over:
            return False
    return True


async def end_in_slices(steps: Iterator[object]) -> None:
    """Run a generator to its end, after a pause and with pauses between slices."""
    turn = TimeSlice()
    await turn.pause()
    for _ in steps:
        if turn.is_over:
            await turn.pause()


def run_in_slices(steps: Iterator[object]) -> None:
    """Run a generator to its end: the first slice now, the others when the loop is free.
    Each step has to be short. Closing the generator ends the work early. An exception of a step
    ends the work: in the first slice the caller gets it, later the exception handler of the loop.
    """
    turn = TimeSlice()
    for _ in steps:
        if turn.is_over:
            asyncio.get_running_loop().call_soon(run_in_slices, steps)
            return


def complete_in_slices(steps: Iterator[object]) -> asyncio.Future[None] | None:
    """Run a generator to its end, like `run_in_slices`.

    Return None if the first slice was enough, else a future that is done with the last step. The
    work goes on when nobody waits for the future any more. An exception of a step is raised here in
    the first slice, later the future has it.
    """
    future: asyncio.Future[None] | None = None
    is_complete = False

    def told_steps() -> Iterator[object]:
        nonlocal is_complete
        try:
            yield from steps
        except Exception as error:
            if future is None:
                raise
            if not future.done():
                future.set_exception(error)
        else:
            is_complete = True
            if future is not None and not future.done():
                future.set_result(None)

    run_in_slices(told_steps())
    if is_complete:
        return None
    future = asyncio.get_running_loop().create_future()
    return future

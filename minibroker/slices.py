"""Long work on the event loop, done in slices; clients are served between two of them.

Housekeeping that walks over many things (offsets, producers) is written as a generator of short
steps. The loop alone runs it, so a step sees and changes what belongs to the loop.
"""

from __future__ import annotations

import asyncio
from time import perf_counter
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

SLICE_S: Final = 0.0005
"""Seconds after which a slice begins no further step: half of what may hold the loop."""


def run_in_slices(steps: Iterator[object]) -> None:
    """Run a generator to its end; the first slice runs now, the others when the loop is free.

    Each step has to be short. Close the generator to end the work early. An exception of a step
    ends the work: in the first slice the caller gets it, later the loop's exception handler.
    """
    until = perf_counter() + SLICE_S
    for _ in steps:
        if perf_counter() >= until:
            asyncio.get_running_loop().call_soon(run_in_slices, steps)
            return

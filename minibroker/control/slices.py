"""Long answers, put together in slices.

The text of 10,000 partitions takes 50 ms. A request of a client waits for one slice of it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from minibroker.broker.slices import TimeSlice

if TYPE_CHECKING:
    from collections.abc import Iterable

SLICE_S: Final = 50e-6
"""Seconds of a slice: less than a request takes."""


class Slices:
    """Joins one text at a time, so that many texts need no more memory; the others wait."""

    def __init__(self) -> None:
        self._one_at_a_time = asyncio.Lock()

    async def join(self, pieces: Iterable[str]) -> bytearray:
        """Return all pieces as UTF-8. Making a piece has to take less than a slice."""
        async with self._one_at_a_time:
            text = bytearray()
            turn = TimeSlice(SLICE_S)
            await turn.pause()  # reading the request was a slice, and so is sending the answer
            for piece in pieces:
                text += piece.encode()
                if turn.is_over:
                    await turn.pause()
            await turn.pause()
            return text

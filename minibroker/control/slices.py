"""Long answers, put together in slices.

Of 10,000 partitions the text takes 50 ms; what a request of a client waits for it is one slice.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from minibroker.slices import TimeSlice

if TYPE_CHECKING:
    from collections.abc import Iterable

SLICE_S: Final = 50e-6
"""Less than a request takes."""


class Slices:
    """One per control API: one text at a time, so that many take no more memory; others wait."""

    def __init__(self) -> None:
        self._one_at_a_time = asyncio.Lock()

    async def join(self, pieces: Iterable[str]) -> bytearray:
        """All pieces as UTF-8. Each has to be made in less than a slice."""
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

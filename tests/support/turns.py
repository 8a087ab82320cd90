"""Counts the turns of the loop that other tasks get while a test's own work goes on."""

from __future__ import annotations

import asyncio


class Turns:
    """Takes a turn whenever the loop has one; `count` says how many."""

    def __init__(self) -> None:
        self.count = 0
        self._task = asyncio.create_task(self._take())

    async def _take(self) -> None:
        while True:
            self.count += 1
            await asyncio.sleep(0)

    def stop(self) -> int:
        """Take no more; return how many there were."""
        self._task.cancel()
        return self.count

"""`/metrics`: the families in Prometheus' text format, put together in slices.

Of 10,000 partitions that takes 50 ms; what a request waits for it is one slice. One scrape runs at
a time, so that many take no more memory; others wait for it.
"""

from __future__ import annotations

import asyncio
from time import perf_counter
from typing import TYPE_CHECKING, Final

from minibroker.control.families import families
from minibroker.control.process_metrics import ProcessMetrics

if TYPE_CHECKING:
    from minibroker.testing.node import Node

SLICE_S: Final = 50e-6
"""Less than a request takes."""


class Exposition:
    """One per control API."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._one_at_a_time = asyncio.Lock()
        self._process = ProcessMetrics()

    async def text(self) -> bytearray:
        """Everything, in the text format."""
        async with self._one_at_a_time:
            shown = bytearray(self._process.text().encode())
            until = 0.0  # that was a slice, and so is sending the answer
            for piece in families(self._node):
                shown += piece.encode()
                if perf_counter() >= until:
                    await asyncio.sleep(0)
                    until = perf_counter() + SLICE_S
            await asyncio.sleep(0)
            return shown

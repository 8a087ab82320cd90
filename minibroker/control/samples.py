"""Samples: the figures of each second, while a page that shows them is open.

    Sampler ─► a task, once a second ─► gauges ─► the ring of the last minutes ─► each stream

The task and the ring begin with the first stream, and end with the last one: a page that is closed
costs nothing. A client that is slow misses samples, and delays nobody.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from contextlib import suppress
from time import monotonic, time
from typing import TYPE_CHECKING, Any, Final

import msgspec

from minibroker.control.gauges import UNITS, Totals, measure, row_of
from minibroker.control.streams import event_of_text

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence

    from minibroker.rig.node import Node

logger = logging.getLogger(__name__)

INTERVAL_S: Final = 1.0
SAMPLES_MAX: Final = 600
"""Ten minutes."""


class Sampler:
    """The samples of the brokers of this process. The loop owns it."""

    def __init__(
        self, nodes: Callable[[], Sequence[Node]], hits: Callable[[], dict[int, int]]
    ) -> None:
        """`nodes`: returns those that run; `hits`: number of a fault → its hits."""
        self._nodes = nodes
        self._hits = hits
        self.ring: deque[bytes] = deque(maxlen=SAMPLES_MAX)
        """The last samples as JSON, oldest first; empty while nobody takes them."""
        self._events: set[asyncio.Event] = set()
        self._task: asyncio.Task[None] | None = None

    @property
    def is_running(self) -> bool:
        """Return whether samples are taken."""
        return self._task is not None

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        """Yield the events of one stream: the samples so far, then each new one, for ever."""
        event = asyncio.Event()
        self._events.add(event)
        try:
            if self._task is None:
                self._task = asyncio.get_running_loop().create_task(self._run())
            yield self._history()
            while True:
                await event.wait()
                event.clear()
                yield event_of_text("sample", self.ring[-1])
        finally:
            self._events.discard(event)
            if not self._events:
                await self._stop()

    def _history(self) -> bytes:
        head = {"names": list(UNITS), "units": UNITS, "interval_ms": int(INTERVAL_S * 1000)}
        text = msgspec.json.encode({**head, "rows": []}).removesuffix(b"]}")
        return event_of_text("history", b"%s%s]}" % (text, b",".join(self.ring)))

    async def _stop(self) -> None:
        task, self._task = self._task, None
        self.ring.clear()
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _run(self) -> None:
        """Take samples until cancelled."""
        earlier = await measure(self._nodes(), 0.0)
        due_s = monotonic()
        while True:
            due_s += INTERVAL_S
            await asyncio.sleep(due_s - monotonic())
            delay_ms = max(0.0, 1000 * (monotonic() - due_s))
            try:
                now = await measure(self._nodes(), delay_ms)
            except Exception:  # a bug of ours, or a broker that was killed meanwhile
                logger.exception("a sample failed")
                continue
            self.ring.append(self._sample(earlier, now))
            earlier = now
            due_s = max(due_s, monotonic() - INTERVAL_S)
            for event in self._events:
                event.set()

    def _sample(self, earlier: Totals, now: Totals) -> bytes:
        nodes = self._nodes()
        sample: dict[str, Any] = {
            "at_ms": int(time() * 1000),
            "now_ms": nodes[0].clock.now_ms() if nodes else None,
            "values": row_of(earlier, now),
            "lag": now.lag,
            "members": now.members,
            "faults": self._hits(),
        }
        return msgspec.json.encode(sample)

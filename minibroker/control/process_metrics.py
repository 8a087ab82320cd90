"""What the kernel tells of this process, by prometheus-client, at most once a second.

Its collector lists every open file and connection, 0.2 ms and more in one go: too long to be done
for each of many scrapes.
"""

from __future__ import annotations

from time import monotonic
from typing import Final

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest

FRESH_S: Final = 1.0


class ProcessMetrics:
    """The families `process_…`; none where there is no `/proc`."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        self._text = ""
        self._gathered_s = -FRESH_S

    def text(self) -> str:
        """In the text format."""
        now_s = monotonic()
        if now_s - self._gathered_s >= FRESH_S:
            self._text = generate_latest(self._registry).decode()
            self._gathered_s = now_s
        return self._text

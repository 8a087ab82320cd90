"""A handler of CreateTopics at which every request waits."""

from __future__ import annotations

import asyncio
from typing import Any

from minibroker.kafka.protocol.messages.create_topics import CreateTopicsResponse


class Gate:
    """Stands for CreateTopics: every request waits at it until it is opened."""

    def __init__(self) -> None:
        self.waiting = 0
        self.handled = 0
        self.most = 0
        self._release = asyncio.Event()

    async def handle(self, context: Any, request: Any) -> CreateTopicsResponse:
        self.waiting += 1
        self.most = max(self.most, self.waiting)
        try:
            await self._release.wait()
        finally:
            self.waiting -= 1
        self.handled += 1
        return CreateTopicsResponse()

    def open(self) -> None:
        self._release.set()

"""Streams: answers that go on while something happens, as server-sent events.

    a source ─► LiveStream.pieces ─► HttpServer ─► a page

A stream takes what is new since it last looked, at most so many a second; the rest is left out and
counted. So it holds no more than one event, whatever the broker does, and a slow client delays
itself alone. Nothing is sampled or collected while no stream is open.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from http import HTTPStatus
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

import msgspec

from minibroker.control.messages import EventStream, HttpError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

STREAMS_MAX: Final = 16
"""A quarter of the connections, so that others are served meanwhile."""
HEARTBEAT_S: Final = 10.0
"""Longest silence on a stream: a comment shows then that it is alive."""
TICK_S: Final = 0.25
"""Least time between two events of a stream."""
HEARTBEAT: Final = b": alive\n\n"


def event_of(name: str, value: Any) -> bytes:
    """Return an event; its data is a line of JSON."""
    return event_of_text(name, msgspec.json.encode(value))


def event_of_text(name: str, text: bytes) -> bytes:
    """Return an event whose data is JSON already, without line ends."""
    return b"event: %s\ndata: %s\n\n" % (name.encode(), text)


class Streams:
    """The open streams of one API. The loop owns it."""

    def __init__(self) -> None:
        self.count = 0

    def open(self, name: str, pieces: AsyncGenerator[bytes, None]) -> EventStream:
        """Return a stream that begins with its name. Raises HttpError(429) if too many are open."""
        if self.count >= STREAMS_MAX:
            raise HttpError(
                HTTPStatus.TOO_MANY_REQUESTS,
                f"{STREAMS_MAX} streams are open: close a page, then try again",
            )
        self.count += 1

        def end() -> None:
            self.count -= 1

        return EventStream(_with_name(name, pieces), end)


async def _with_name(name: str, pieces: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    """Yield an event that names the stream, then its pieces."""
    try:
        yield event_of("hello", {"stream": name})
        async for piece in pieces:
            yield piece
    finally:
        await pieces.aclose()


class StreamPace:
    """The times at which a stream looks for news. The loop owns it."""

    def __init__(self, tick_s: float = TICK_S) -> None:
        self._tick_s = tick_s
        self._last_look_s = monotonic()
        self._last_piece_s = self._last_look_s

    async def next_look(self, news: asyncio.Event) -> None:
        """Wait until there are news and a tick has passed, or until a heartbeat is due."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._last_piece_s + HEARTBEAT_S - monotonic()):
                await news.wait()
        await self.next_tick()

    async def next_tick(self) -> None:
        """Wait until a tick has passed since the last look."""
        await asyncio.sleep(max(0.0, self._last_look_s + self._tick_s - monotonic()))
        self._last_look_s = monotonic()

    def piece(self, event: bytes | None) -> bytes | None:
        """Return an event, or in its place the heartbeat that is due; None: there is nothing."""
        now_s = monotonic()
        if event is None and now_s - self._last_piece_s < HEARTBEAT_S:
            return None
        self._last_piece_s = now_s
        return HEARTBEAT if event is None else event

"""Large requests are decoded beside the loop, by one worker thread.

Between `dispatch.py` and the handler, for frames above `LARGE_FRAME_BYTES`. A frame can hold half a
million elements a megabyte, and decoding them takes up to 0.4 s. The connection waits meanwhile, so
its requests keep their order. Produce is decoded on the loop at any size: its records are slices of
the frame.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from minibroker.server.handling import read_request
from minibroker.worker import Worker

if TYPE_CHECKING:
    from minibroker.handlers.registry import Handler

LARGE_FRAME_BYTES: Final = 32 * 1024
"""Clients' requests decode in 20-40 µs a KB, so in 1.3 ms at most below this: Metadata of 1,000
topics, a Fetch of 800 partitions. The slowest of this size takes 14 ms."""


class Decoder:
    """Decodes one request after the other in its worker. Belongs to the loop."""

    __slots__ = ("_worker",)

    def __init__(self) -> None:
        self._worker = Worker(lambda _error: None, "minibroker-decode")

    def begin(self, loop: asyncio.AbstractEventLoop) -> None:
        """Answer on `loop` from now on."""
        self._worker.begin(loop)

    def close(self) -> None:
        """Decode what was asked for, and end the worker."""
        self._worker.close()

    def decode(
        self, handler: Handler, version: int, frame: memoryview, position: int
    ) -> asyncio.Future[Any]:
        """Return a future of the request whose body begins at `position`, or of a ProtocolError.

        `frame` must not change before that.
        """
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        decoded: list[Any] = []
        failed: list[Exception] = []

        def task() -> None:
            from minibroker.storage.switching import quick_switches  # noqa: PLC0415

            try:
                with quick_switches():
                    decoded.append(read_request(handler, version, frame, position))
            except Exception as error:  # whoever waits is told
                failed.append(error)

        def done(_failure: object) -> None:
            if future.done():
                return  # the connection is gone
            if failed:
                future.set_exception(failed[0])
            else:
                future.set_result(decoded.pop())

        self._worker.run_then(task, done)
        return future

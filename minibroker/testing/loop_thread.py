"""`LoopThread`: a thread with a loop of its own, in which brokers serve a test.

The test's thread begins and ends it, and runs coroutines in it. `InThread` is what serves there.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from typing import TYPE_CHECKING, Any, Final, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from contextlib import AbstractAsyncContextManager

START_TIMEOUT_S: Final = 30.0
END_TIMEOUT_S = 30.0


class LoopThread:
    """Runs what `serving` returns, between `begin` and `end`. The test's thread calls both."""

    def __init__(
        self,
        serving: Callable[[], AbstractAsyncContextManager[None]],
        *,
        on_end: Callable[[], None] = lambda: None,
    ) -> None:
        """`on_end` is called in the thread when all is over, also after a failed start."""
        # Constant after construction.
        self._serving = serving
        self._on_end = on_end
        self._thread: threading.Thread | None = None
        self._ended: concurrent.futures.Future[None]
        # Set in the thread, before `begin`'s future is done.
        self.loop: asyncio.AbstractEventLoop
        self._ending: asyncio.Event

    @property
    def is_running(self) -> bool:
        return self._thread is not None

    def begin(self) -> concurrent.futures.Future[None]:
        """Start the thread; the future is done when it serves, with the error if it cannot."""
        if self._thread is not None:
            raise RuntimeError("this broker is running: stop it before it is started again")
        started: concurrent.futures.Future[None] = concurrent.futures.Future()
        self._ended = concurrent.futures.Future()
        self._thread = threading.Thread(
            target=self._main, args=(started,), name="minibroker", daemon=True
        )
        self._thread.start()
        return started

    def end(self) -> concurrent.futures.Future[None] | None:
        """Have the thread end; the future is done when it has. None if it does not run."""
        if self._thread is None:
            return None
        if not self._ended.done():
            self.loop.call_soon_threadsafe(self._ending.set)
        return self._ended

    def join(self) -> None:
        """Forget the thread, after `end`."""
        if self._thread is not None:
            self._thread.join(END_TIMEOUT_S)
            self._thread = None

    def submit(self, coroutine: Coroutine[Any, Any, Any]) -> concurrent.futures.Future[Any]:
        """Run a coroutine on the loop."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop)

    def _main(self, started: concurrent.futures.Future[None]) -> None:
        from minibroker.broker.event_loop import new_loop  # noqa: PLC0415  late, as all of a start

        try:
            with asyncio.Runner(loop_factory=lambda: new_loop("auto")) as runner:
                runner.run(self._serve(started))
        except BaseException as error:
            if started.done():
                self._ended.set_exception(error)
            else:
                self._thread = None
                started.set_exception(error)
        else:
            self._ended.set_result(None)
        finally:
            self._on_end()

    async def _serve(self, started: concurrent.futures.Future[None]) -> None:
        self.loop = asyncio.get_running_loop()
        self._ending = asyncio.Event()
        async with self._serving():
            started.set_result(None)
            await self._ending.wait()


class InThread:
    """Serves between `start` and `stop`, or in a `with` block, sync or async, on a loop in a thread
    of its own.
    """

    _thread: LoopThread

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is not None and self._thread.is_running:
                self._note_failure()
        finally:
            self.stop()

    async def __aenter__(self) -> Self:
        await asyncio.wrap_future(self._thread.begin())
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and self._thread.is_running:
            await asyncio.to_thread(self._note_failure)
        ended = self._thread.end()
        if ended is not None:
            await asyncio.wrap_future(ended)
            self._thread.join()

    def start(self) -> None:
        """Start it; its address is known, and clients may come, when this returns.

        Raises MinibrokerError.
        """
        self._thread.begin().result(START_TIMEOUT_S)

    def stop(self) -> None:
        """Stop it and remove its data in memory; do nothing if it is stopped."""
        ended = self._thread.end()
        if ended is not None:
            ended.result(START_TIMEOUT_S)
            self._thread.join()

    def _note_failure(self) -> None:
        """Take note of how it is when its block ends with an error; nothing here."""

"""`LoopThread`: a thread with a loop of its own, in which brokers serve a test.

The test's thread begins and ends it, and runs coroutines in it. `InThread` is what serves there,
and `LoopCalls` are the calls onto its loop. pytest shows a call that fails with an error for the
test at the line of the test: the lines below it, here and in the loop's thread, say nothing more.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

from minibroker.kafka.errors import KafkaError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from contextlib import AbstractAsyncContextManager

WAIT_TIMEOUT_S: Final = 10.0
START_TIMEOUT_S: Final = 30.0
END_TIMEOUT_S = 30.0
ERRORS_FOR_TESTS: Final = (KafkaError, TimeoutError)
"""Errors of a call that are the test's, not minibroker's."""


def is_for_test(failure: Any) -> bool:
    """Return whether an error is for the test; `failure`: pytest's ExceptionInfo.

    A module with `__tracebackhide__ = is_for_test` has its lines left out of such a traceback.
    """
    return issubclass(failure.type, ERRORS_FOR_TESTS)


__tracebackhide__ = is_for_test


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
        self.is_serving = False  # the thread sets it
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
            self.is_serving = True
            started.set_result(None)
            await self._ending.wait()
            self.is_serving = False


class LoopCalls(ABC):
    """Calls of the test's thread onto the loop where brokers or a proxy serve."""

    @property
    @abstractmethod
    def bootstrap(self) -> str:
        """Return the addresses for a client's bootstrap.servers. Raises RuntimeError."""

    @abstractmethod
    def _submit(self, coroutine: Coroutine[Any, Any, Any]) -> concurrent.futures.Future[Any]:
        """Run a coroutine on the loop. Raises RuntimeError if nothing runs."""

    def call(self, function: Callable[[], Any]) -> Any:
        """Run a function on the loop and return its result."""

        async def call() -> Any:
            return function()

        return self._await(call())

    def _await(self, coroutine: Coroutine[Any, Any, Any], timeout_s: float = WAIT_TIMEOUT_S) -> Any:
        """Run a coroutine on the loop and return its result."""
        future = self._submit(coroutine)
        try:
            return future.result(timeout_s + 5)
        except ERRORS_FOR_TESTS as error:
            raise error.with_traceback(None) from error.__cause__

    async def _awaited(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine on the loop, and await it in the caller's loop."""
        future = asyncio.wrap_future(self._submit(coroutine))
        try:
            return await future
        except ERRORS_FOR_TESTS as error:
            raise error.with_traceback(None) from error.__cause__


class InThread(LoopCalls):
    """Serves between `start` and `stop`, or in a `with` block, sync or async, on a loop in a thread
    of its own.
    """

    NOUN: ClassVar[str]
    """The kind of thing, for messages."""
    _thread: LoopThread

    def __repr__(self) -> str:
        address = f"at {self.bootstrap}" if self._thread.is_serving else "that is not running"
        return f"<{type(self).__name__} {address}>"

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

    def _check_running(self) -> None:
        """Raise RuntimeError unless it runs."""
        if not self._thread.is_running:
            noun = self.NOUN
            raise RuntimeError(f"this {noun} is not running: use it in a with block, or start it")

    def _submit(self, coroutine: Coroutine[Any, Any, Any]) -> concurrent.futures.Future[Any]:
        try:
            self._check_running()
        except RuntimeError:
            coroutine.close()
            raise
        return self._thread.submit(coroutine)

    def _note_failure(self) -> None:
        """Take note of how it is when its block ends with an error; nothing here."""

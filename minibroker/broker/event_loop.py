"""The event loop, with a way around what a system lacks: uvloop, or signals that wake a loop.

Windows has neither. `verbs/serve` and `testing` take the loop of a broker from here. Parts that end
cancel their tasks with `cancel_all`.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


def new_loop(name: str) -> asyncio.AbstractEventLoop:
    """Return a loop: `uvloop`, `asyncio`, or `auto`: uvloop where it is installed. Raises
    ModuleNotFoundError for uvloop that is not installed.

    The loop of asyncio is the one with selectors: that of Windows with completion ports cannot
    wait for a listening socket as the listener does.
    """
    if name != "asyncio":
        try:
            import uvloop  # noqa: PLC0415  the other loop must not pay for it
        except ModuleNotFoundError:
            if name == "uvloop":
                raise
        else:
            loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
            return loop
    return asyncio.SelectorEventLoop()


async def cancel_all(*tasks: asyncio.Future[Any] | None) -> None:
    """Cancel tasks and wait for their ends, whatever these are. None stands for no task."""
    running = [task for task in tasks if task is not None]
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)


@contextmanager
def on_signals(numbers: Sequence[int], callback: Callable[[], None]) -> Iterator[None]:
    """Have the running loop call `callback` for each of these signals, inside the block. Call it in
    the main thread.

    Where the loop takes no signals, Python's own handler writes the number to a socket that the
    loop reads: a signal alone would not wake a loop that waits.
    """
    loop = asyncio.get_running_loop()
    try:
        for number in numbers:
            loop.add_signal_handler(number, callback)
    except NotImplementedError:
        with _signals_by_socket(loop, numbers, callback):
            yield
    else:
        yield  # the end of the loop ends that


@contextmanager
def _signals_by_socket(
    loop: asyncio.AbstractEventLoop, numbers: Sequence[int], callback: Callable[[], None]
) -> Iterator[None]:
    import signal  # noqa: PLC0415  seldom needed, as the next
    import socket  # noqa: PLC0415

    inlet, outlet = socket.socketpair()
    inlet.setblocking(False)
    outlet.setblocking(False)

    def take() -> None:
        if any(number in numbers for number in outlet.recv(4096)):
            callback()

    loop.add_reader(outlet, take)
    handle_before = signal.set_wakeup_fd(inlet.fileno(), warn_on_full_buffer=False)
    # A handler has to be there, or the signal ends the process; the byte does the rest.
    handlers_before = [(number, signal.signal(number, lambda *_: None)) for number in numbers]
    try:
        yield
    finally:
        for number, handler in handlers_before:
            signal.signal(number, handler)
        signal.set_wakeup_fd(handle_before)
        loop.remove_reader(outlet)
        inlet.close()
        outlet.close()

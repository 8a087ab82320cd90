"""Ctrl-C of a command that runs: the first one asks it to end, the second one ends the process."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from minibroker.pipeline.spark.repeating import repeated

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

_LOOK_S: Final = 0.2


@contextmanager
def when_set(stop: threading.Event, call: Callable[[], None]) -> Iterator[None]:
    """Call `call` repeatedly, in a thread, from the moment `stop` is set until the block ends."""

    def look() -> None:
        if stop.is_set():
            call()

    with repeated(_LOOK_S, look):
        yield


@contextmanager
def ctrl_c_sets(stop: threading.Event) -> Iterator[None]:
    """Make the first Ctrl-C set `stop`; the next one ends the process."""

    def on_signal(signum: int, frame: FrameType | None) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = signal.signal(signal.SIGINT, on_signal)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)

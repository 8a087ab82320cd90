"""A call that is repeated in a thread while a block runs."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextmanager
def repeated(every_s: float, call: Callable[[], None]) -> Iterator[None]:
    """Call `call` in a thread after every `every_s` seconds, until the block ends."""
    is_over = threading.Event()

    def repeat() -> None:
        while not is_over.wait(every_s):
            call()

    thread = threading.Thread(target=repeat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()

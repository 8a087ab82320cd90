"""The time for which a caller asks brokers again, and the pauses between two questions.

A first pause is short, for an idle machine. Each later one is twice as long, so a busy machine is
not kept busy by the questions.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

FIRST_PAUSE_S: Final = 0.01
PAUSE_MAX_S: Final = 0.32


def _pause(seconds: float) -> None:
    threading.Event().wait(seconds)


class Patience:
    """A time that runs from now on; used by one thread."""

    def __init__(
        self,
        limit_s: float,
        now_s: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = _pause,
    ) -> None:
        """Begin the time.

        Args:
            limit_s: how long it is, in seconds.
            now_s: a clock that never goes back.
            pause: waits for so many seconds.
        """
        self.limit_s = limit_s
        """Constant."""
        self._now_s = now_s
        self._wait = pause
        self._ends_s = now_s() + limit_s
        self._pause_s = FIRST_PAUSE_S

    @property
    def is_over(self) -> bool:
        """Return whether the time is over."""
        return self._now_s() >= self._ends_s

    def pause(self) -> None:
        """Wait before the next question, not beyond the end."""
        self._wait(min(self._pause_s, max(0.0, self._ends_s - self._now_s())))
        self._pause_s = min(2 * self._pause_s, PAUSE_MAX_S)

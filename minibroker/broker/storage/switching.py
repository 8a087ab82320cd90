"""Quick switches between threads, while one of them runs Python for long.

Python takes the interpreter from a thread that does not let go after 5 ms only. The loop would wait
that long. `compaction.pace` has the figures.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Final

SWITCH_S: Final = 0.0005

_switching = Lock()
_usual_s: list[float] = []
"""The switch interval to go back to, once for every thread that asked for quick switches."""


@contextmanager
def quick_switches() -> Iterator[None]:
    """Threads that wait for the interpreter get it within `SWITCH_S` while this is open."""
    with _switching:
        _usual_s.append(sys.getswitchinterval())
        sys.setswitchinterval(SWITCH_S)
    try:
        yield
    finally:
        with _switching:
            before_s = _usual_s.pop()
            if not _usual_s:
                sys.setswitchinterval(before_s)

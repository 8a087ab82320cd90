"""Work counted in lines of Python that run, which does not depend on the machine's speed.

A loop inside a built-in function counts as one line.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import minibroker

if TYPE_CHECKING:
    from types import FrameType

PACKAGE = str(Path(minibroker.__file__).parent)


class CountedWork:
    """Counts the lines of minibroker that run inside `with`: on this thread, and on threads that
    begin inside. Code that is on the stack already is not counted, but what it calls is.
    """

    def __init__(self) -> None:
        self.lines = 0
        """Lines of this thread."""
        self.lines_beside = 0
        """Lines of the other threads."""
        self.longest_hold = 0
        """Most lines of this thread between two moments at which the loop had control."""
        self._hold = 0
        self._depth = 0
        """Frames of minibroker on the stack of this thread."""
        self._old_trace: Any = None

    def __enter__(self) -> CountedWork:
        self._old_trace = sys.gettrace()
        threading.settrace(self._trace_beside)
        sys.settrace(self._trace_call)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(self._old_trace)
        threading.settrace(self._old_trace)

    def reset(self) -> None:
        """Count anew."""
        self.lines = self.lines_beside = self.longest_hold = self._hold = 0

    def _trace_call(self, frame: FrameType, _event: str, _argument: object) -> Any:
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        if not self._depth:
            self._hold = 0
        self._depth += 1
        return self._trace_line

    def _trace_line(self, _frame: FrameType, event: str, _argument: object) -> Any:
        if event == "line":
            self.lines += 1
            self._hold += 1
        elif event == "return":
            self._depth -= 1
            self.longest_hold = max(self.longest_hold, self._hold)
        return self._trace_line

    def _trace_beside(self, frame: FrameType, _event: str, _argument: object) -> Any:
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        return self._trace_line_beside

    def _trace_line_beside(self, _frame: FrameType, event: str, _argument: object) -> Any:
        if event == "line":
            self.lines_beside += 1
        return self._trace_line_beside

"""Work counted in lines of Python that run, which does not depend on the machine's speed.

A loop inside a built-in function counts as one line. `test_costs` counts memory, too, for those.
"""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import FrameType


class CountedWork:
    """Counts the lines of minibroker that run inside `with`, on all threads that begin inside and
    on this one. Code that is on the stack already is not counted, but what it calls is.
    """

    def __init__(self) -> None:
        self.lines = 0
        self._before: Any = None

    def __enter__(self) -> CountedWork:
        self._before = sys.gettrace()
        threading.settrace(self._trace_call)
        sys.settrace(self._trace_call)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(self._before)
        threading.settrace(self._before)

    def _trace_call(self, frame: FrameType, _event: str, _argument: object) -> Any:
        if "/minibroker/" not in frame.f_code.co_filename:
            return None
        return self._trace_line

    def _trace_line(self, _frame: FrameType, event: str, _argument: object) -> Any:
        if event == "line":
            self.lines += 1
        return self._trace_line

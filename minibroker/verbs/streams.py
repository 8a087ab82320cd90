"""The streams of a verb: bytes or JSON out, and progress for a person who watches.

Records are bytes, and so are results. Progress is one line on a terminal, rewritten a few times a
second, and nothing anywhere else.
"""

from __future__ import annotations

import io
import signal
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, BinaryIO, TextIO

EVERY_S: Final = 0.2
"""Time between two lines of progress."""
_CLEAR_LINE: Final = "\r\x1b[K"
_EXIT_TERMINATED: Final = 128 + signal.SIGTERM


def bytes_of(out: TextIO) -> BinaryIO:
    """Return a buffered stream of the bytes under a stream of text; flush it at the end.

    With PYTHONUNBUFFERED the stream below has no buffer, and may write a part of what it gets.
    """
    out.flush()
    below = out.buffer
    if isinstance(below, io.RawIOBase):
        return open(below.fileno(), "wb", closefd=False)
    return below


def write_json(out: TextIO, answer: Any) -> None:
    """Write an answer as JSON that a person can read."""
    import json  # noqa: PLC0415  not for a help page

    out.write(json.dumps(answer, indent=2, ensure_ascii=False) + "\n")


class ProgressLine:
    """One line about the work, on a terminal alone. Used by one thread."""

    def __init__(self, stream: TextIO, *, is_quiet: bool = False) -> None:
        """`is_quiet`: the results go to the same terminal, so there is no line."""
        self._stream = stream
        self.is_shown = stream.isatty() and not is_quiet
        self._shown_s = 0.0
        self._has_line = False

    def show(self, text: str) -> None:
        """Show the line, unless another one was shown just now."""
        now_s = time.monotonic()
        if self.is_shown and now_s - self._shown_s >= EVERY_S:
            self._shown_s = now_s
            self._write(text)

    def end(self, text: str) -> None:
        """Show the last line, and go to the next one."""
        if self.is_shown:
            self._write(text)
            self._stream.write("\n")

    def clear(self) -> None:
        """Remove the line, so that another text may stand there."""
        if self._has_line:
            self._write("")

    def _write(self, text: str) -> None:
        self._stream.write(f"{_CLEAR_LINE}{text}")
        self._stream.flush()
        self._has_line = bool(text)


@contextmanager
def ending_at_sigterm() -> Iterator[None]:
    """Have SIGTERM end the block as an error does, so that a group is left and records are sent."""

    def end(*_: object) -> None:
        raise SystemExit(_EXIT_TERMINATED)

    try:
        old_handler = signal.signal(signal.SIGTERM, end)
    except ValueError:  # not the main thread, which alone may do that
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, old_handler)

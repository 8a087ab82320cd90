"""`LogLines`: how an event of the log becomes a line of text.

Every line of a process goes through here (`cli.configure_logging`). Names of topics, groups and
clients are foreign text: one may have 32,767 bytes, a newline with a made-up line behind it, or
escape sequences that a terminal obeys. So no logger has to look at what it writes.

    a value of the event     at most `VALUE_MAX` characters
    a character that has no glyph: a control character, half a surrogate pair, a change of the
    direction of writing     as an escape such as `\\n`, `\\x1b` or `\\u202e`
    a traceback              indented, so that none of its lines looks like an event
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from minibroker.kafka.foreign_text import printable, shorten

if TYPE_CHECKING:
    from types import TracebackType

    ExceptionInfo = (
        tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]
    )

FORMAT: Final = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"
VALUE_MAX: Final = 2_000
"""Characters of one value; lists of settings are the longest of our own."""


class LogLines(logging.Formatter):
    """Writes an event as a line: time, level, logger, message."""

    def __init__(self) -> None:
        super().__init__(FORMAT)

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, and behind it the traceback that belongs to it."""
        # Other handlers get the event as it is.
        copy = logging.makeLogRecord(record.__dict__)
        if isinstance(copy.args, tuple):
            copy.args = tuple(
                value if isinstance(value, (int, float)) else _Value(value) for value in copy.args
            )
        return super().format(copy)

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  the name of the base class
        """Return the line, in characters that can be read."""
        record.message = printable(record.message)
        return super().formatMessage(record)

    def formatException(self, ei: ExceptionInfo) -> str:  # noqa: N802  as above
        """Return the lines of a traceback, indented."""
        lines = super().formatException(ei).split("\n")
        return "\n".join(f"    {printable(shorten(line, VALUE_MAX))}" for line in lines)


class _Value:
    """A value of an event; its text is made, and shortened, when the line is."""

    __slots__ = ("_value",)

    def __init__(self, value: Any) -> None:
        self._value = value

    def __str__(self) -> str:
        return shorten(str(self._value), VALUE_MAX)

    def __repr__(self) -> str:
        return shorten(repr(self._value), VALUE_MAX)

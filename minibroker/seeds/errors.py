"""The errors of a seed, and the place in a file that they name."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from minibroker.kafka.errors import MinibrokerError

_TEXT_MAX: Final = 80
"""Characters of a wrong value in a sentence."""


class SeedError(MinibrokerError):
    """A seed that cannot be read, loaded or recorded; the message is one sentence for a person."""


class LoadedBeforeError(MinibrokerError):
    """A seed that a start of this broker loaded; the message says what shows it."""


class LinePlace(NamedTuple):
    """A line of a file."""

    name: str
    """The file, as a person named it."""
    line: int

    def __str__(self) -> str:
        return f"{self.name}:{self.line}"

    def refuse(self, field: str, value: Any, expected: str) -> SeedError:
        """Return the error of a field with a wrong value."""
        return SeedError(f"{self}: {field}: {text_of(value)}: expected {expected}")


def text_of(value: Any) -> str:
    """Return a value as it stands in a sentence: cut, and on one line."""
    # Before `repr`, which would copy all of a large text.
    text = repr(value[:_TEXT_MAX] if isinstance(value, str | bytes) else value)
    return text if len(text) <= _TEXT_MAX + 2 else f"{text[:_TEXT_MAX]}…"

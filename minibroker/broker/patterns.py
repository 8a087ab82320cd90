"""Patterns of users, matched by RE2 as in Kafka: in linear time, whatever a client sends.

RE2 is the package `google-re2`, an extra, because it has no wheels for some systems. Without it a
pattern is refused with a sentence: Python's own `re` may take minutes for a pattern that RE2
matches at once. It is imported with the first pattern: most groups and rules have none.
"""

from __future__ import annotations

from typing import Any

MISSING = (
    "patterns need the package google-re2, which the broker does not have: pip install"
    " 'minibroker[regex]'"
)


class PatternError(Exception):
    """A pattern that cannot be compiled; the text says why, in RE2's words."""


class PatternsMissingError(PatternError):
    """RE2 is not installed; the text is `MISSING`."""


def compile_pattern(pattern: str) -> Any:
    """Return the pattern, with the methods of Python's `re`. Raises PatternError."""
    try:
        import re2  # noqa: PLC0415  most brokers never have a pattern
    except ModuleNotFoundError:
        raise PatternsMissingError(MISSING) from None
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        raw = error.args[0] if error.args else b""
        text = raw.decode(errors="replace") if isinstance(raw, bytes) else str(raw)
        raise PatternError(text) from error

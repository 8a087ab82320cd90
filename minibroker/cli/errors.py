"""The errors of a verb that a person can mend, and the exit codes of the program."""

from __future__ import annotations

from typing import ClassVar, Final

EXIT_OK: Final = 0
"""The verb did its work."""
EXIT_FAILED: Final = 1
"""It could not: a broker is away, a file cannot be read."""
EXIT_USAGE: Final = 2
"""The words of the command line make no command; nothing was done."""
EXIT_INTERRUPTED: Final = 130
"""Ctrl-C ended it."""


class CommandError(Exception):
    """The failure of a verb: one sentence with the thing, the value and what was expected."""

    exit_code: ClassVar[int] = EXIT_FAILED


class UsageError(CommandError):
    """A word of the command line, or an argument of a function, that cannot be."""

    exit_code: ClassVar[int] = EXIT_USAGE

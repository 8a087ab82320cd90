"""The errors that a person can mend, and the exit codes that only `minibroker pipeline` has."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Final

from minibroker.cli.errors import CommandError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable


EXIT_DIFFERENT: Final = 3
"""`compare` found differences."""
EXIT_BAD_RECORD: Final = 4
"""A record that cannot be used ended the job, and so it will again: give `--dead-letters`."""


class PipelineError(CommandError):
    """One sentence: the thing, the value found, the expected value and what to do.

    Raised in the driver and in Spark's Python processes; Spark carries the text of the latter.
    """


class JobUsageError(PipelineError, UsageError):
    """An error in the arguments of a job; the command line exits with 2."""


class BadRecordError(PipelineError):
    """A record that cannot be used ended the job; the command line exits with 4.

    The same command again ends at the same record: it needs a place for such records.
    """

    exit_code = EXIT_BAD_RECORD


def damage(path: str, error: Exception) -> PipelineError:
    """Return the error of a file of a job that cannot be read, for the reason `error`."""
    return PipelineError(f"{path} is damaged ({error}): begin anew in another directory")


def near_places(name: str, places: Iterable[str]) -> str:
    """Return ` (did you mean customer.email?)` for names that are near, the nearest first."""
    matches = difflib.get_close_matches(name, list(places), n=3)
    return f" (did you mean {' or '.join(matches)}?)" if matches else ""

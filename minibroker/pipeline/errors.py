"""The errors that a person can mend; `minibroker pipeline` prints them (`cli.exits`)."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class PipelineError(Exception):
    """One sentence: the thing, the value found, the expected value and what to do.

    Raised in the driver and in Spark's Python processes; Spark carries the text of the latter.
    """


class JobUsageError(PipelineError):
    """An error in the arguments of a job; the command line exits with 2."""


class BadRecordError(PipelineError):
    """A record that cannot be used ended the job; the command line exits with 4.

    The same command again ends at the same record: it needs a place for such records.
    """


def near_places(name: str, known: Iterable[str]) -> str:
    """Return ` (did you mean customer.email?)` for names that are near, the nearest first."""
    found = difflib.get_close_matches(name, list(known), n=3)
    return f" (did you mean {' or '.join(found)}?)" if found else ""

"""The errors that a person can mend; `minibroker pipeline` prints them and exits with 1 or 2."""

from __future__ import annotations


class PipelineError(Exception):
    """One sentence: the thing, the value found, the expected value and what to do.

    Raised in the driver and in Spark's Python processes; Spark carries the text of the latter.
    """


class JobUsageError(PipelineError):
    """An error in the arguments of a job; the command line exits with 2."""

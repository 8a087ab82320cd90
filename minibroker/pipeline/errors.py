"""The errors that a person can mend; `minibroker pipeline` prints them (`commands.exits`)."""

from __future__ import annotations


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

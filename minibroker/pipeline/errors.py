"""The error that a person can mend; `minibroker pipeline` prints it and exits with 1."""

from __future__ import annotations


class PipelineError(Exception):
    """One sentence: the thing, the value found, the expected value and what to do.

    Raised in the driver and in Spark's Python processes; Spark carries the text of the latter.
    """

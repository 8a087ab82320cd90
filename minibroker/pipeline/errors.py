"""What a person can mend when a pipeline does not run; `minibroker pipeline` prints it, exit 1."""

from __future__ import annotations


class PipelineError(Exception):
    """One sentence: the thing, the value found, what was expected and what to do.

    Raised in the driver and in Spark's Python processes; Spark carries the text of the latter.
    """

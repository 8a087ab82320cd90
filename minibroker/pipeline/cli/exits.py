"""The exit codes of `minibroker pipeline`."""

from __future__ import annotations

from typing import Final

EXIT_OK: Final = 0
"""The job did what it was asked; bad records, if any, are dead letters, and counted."""
EXIT_FAILED: Final = 1
"""It failed: a broker is away, a directory belongs to another job, Spark does not start."""
EXIT_USAGE: Final = 2
"""The arguments are wrong, or a mask names a place that no record has; nothing was written."""
EXIT_DIFFERENT: Final = 3
"""`compare` found differences."""
EXIT_BAD_RECORD: Final = 4
"""A record that cannot be used ended the job, and so it will again: give `--dead-letters`."""
EXIT_INTERRUPTED: Final = 130
"""Ctrl-C; the same command goes on."""
